"""Starts processes in the project and reads what they say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.support.process import ROOT
from tests.support.workers import Worker


@dataclass(frozen=True)
class Project:
    """The project with its servers; `env` says what is different this time."""

    database_url: str
    broker_url: str
    env: Mapping[str, str] = field(default_factory=dict)

    def having(self, *, database: Mapping[str, Any] | None = None, **settings: Any) -> Project:
        """With other settings; `database` goes into DATABASES["default"]."""
        more = {"PROJECT_SETTINGS": json.dumps(settings)}
        if database is not None:
            more["PROJECT_DATABASE"] = json.dumps(database)
        return self.with_env(**more)

    def with_env(self, **env: str) -> Project:
        """With these variables in the environment."""
        return replace(self, env={**self.env, **env})

    @property
    def environment(self) -> dict[str, str]:
        """What a process of the project finds in its environment."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("CELEGRAPH_", "DJANGO_"))}
        return {
            **clean,
            "PYTHONPATH": str(ROOT),
            "PROJECT_DATABASE_URL": self.database_url,
            "PROJECT_BROKER_URL": self.broker_url,
            **self.env,
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """`python -m arguments...`"""
        return subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The same, to its end, whatever that is."""
        process = self.start(*arguments)
        said, complained = process.communicate(timeout=90)
        return subprocess.CompletedProcess(arguments, process.returncode, said, complained)

    def manage(self, *arguments: str, code: int = 0) -> str:
        """`manage.py arguments...`; all that it printed."""
        done = self.run("tests.django.project.manage", *arguments)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def scene(self, name: str, *arguments: str) -> Any:
        """The answer of a function beside this file, called in the project."""
        done = self.run("tests.django.run_scene", name, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def worker(self, directory: Path) -> Worker:
        """`celery -A project worker`."""
        return Worker("w1", directory=directory, env=self.environment, app="tests.django.project")
