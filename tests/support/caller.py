"""A web process that can be killed in the middle of what it does.

caller.py start AGENT RUN_ID | decide APPROVAL_ID VERB
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import celegraph
from tests.support.process import Process


class Caller(Process):
    """One start or one decision, made by a process of its own."""

    def __init__(self, *words: str, directory: Path, env: Mapping[str, str]):
        name = f"caller-{'-'.join(words)}"
        super().__init__(name, ["-m", "tests.support.caller", *words], log=directory / f"{name}.log", env=env)


def main(verb: str, *words: str) -> None:
    from tests.support.app import app

    app.set_current()
    if verb == "start":
        agent, run_id = words
        celegraph.start_run.delay(agent, {"cents": 1999}, run_id=run_id)
    else:
        approval_id, decision = words
        celegraph.decide(approval_id, decision, by=f"process {os.getpid()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
