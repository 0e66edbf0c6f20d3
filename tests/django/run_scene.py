"""`python -m tests.django.run_scene module.function arg...`: one scene in the project, its answer as JSON."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module

import django


def main(name: str, *arguments: str) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.django.project.settings")
    import_module("tests.django.project")
    django.setup()
    module, _, function = name.rpartition(".")
    answer = getattr(import_module(f"tests.django.{module}"), function)(*arguments)
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
