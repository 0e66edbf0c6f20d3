"""The example that `demo` and `dev` run: the support agent of a checkout, found and not imported.

The installed package does not carry it, and nothing of celegraph may depend on it.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import celegraph
from celegraph.errors import CelegraphError

APP = "examples.support.app"
AGENT = "support"


class ExampleMissing(CelegraphError):
    """The support agent or a package it needs is not here; the message says how to get it."""


@dataclass(frozen=True)
class Example:
    """`root` is the checkout that holds `examples/support`."""

    root: Path

    def tickets(self) -> list[dict[str, str]]:
        """The inputs that come with the example."""
        path = self.root / "examples" / "support" / "tickets.json"
        tickets: list[dict[str, str]] = json.loads(path.read_text(encoding="utf-8"))
        return tickets

    def install(self) -> None:
        """Make the example's Celery app the one that `start_run` and `decide` use in this process."""
        self._module("app")

    def index_docs(self, database_url: str) -> int:
        """Put the documentation where the agent searches it; returns the number of passages."""
        return int(self._module("search").index_docs(database_url))

    def _module(self, name: str) -> Any:
        if str(self.root) not in sys.path:
            sys.path.insert(0, str(self.root))
        return importlib.import_module(f"examples.support.{name}")


def find_example() -> Example:
    """The example beside this package, else below the working directory; or `ExampleMissing`."""
    for root in (Path(celegraph.__file__).resolve().parents[1], Path.cwd()):
        if (root / "examples" / "support" / "app.py").exists():
            return Example(root)
    raise ExampleMissing(
        "the support agent (examples/support) is part of the repository, not of the installed package;"
        " clone the repository and run this there"
    )


def require(*modules: str) -> None:
    """Refuse at once, with the remedy, what would fail half-way."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise ExampleMissing(f"{module} is not installed: pip install 'celegraph[local]'")
