"""Starts processes in the project and reads what they say."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


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

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """`python -m arguments...`"""
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("CELEGRAPH_", "DJANGO_"))}
        return subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=ROOT,
            env={
                **clean,
                "PYTHONPATH": str(ROOT),
                "PROJECT_DATABASE_URL": self.database_url,
                "PROJECT_BROKER_URL": self.broker_url,
                **self.env,
            },
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

    @contextmanager
    def worker(self) -> Iterator[subprocess.Popen[str]]:
        """`celery worker`, ended in order."""
        words = ("worker", "--pool", "solo", "--without-gossip", "--without-mingle", "--loglevel", "ERROR")
        process = self.start("celery", "-A", "tests.django.project", *words)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)
