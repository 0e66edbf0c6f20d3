"""Flower's settings for celegraph: `from celegraph.contrib.flower import *` in a `flowerconfig.py`.

Flower shows attempts, the ledger knows runs: here an attempt's row says which run it is of, of which
agent, and why the doorbell rang.  Who may look is not said here; add `basic_auth` or `auth` of your own.
"""

from __future__ import annotations

import ast
from typing import Any

__all__ = ["format_task", "read_only", "tasks_columns"]

tasks_columns = "name,kwargs,state,result,received,runtime,worker,uuid"
# Flower can start tasks with any arguments and kill a worker's child in the middle of a step.  What people
# do to runs, they do where permissions and the ledger see it.
read_only = True

_OURS = ("celegraph.start_run", "celegraph.resume")
_SHOWN = ("run_id", "agent", "reason")


def format_task(task: Any) -> Any:
    """One row, as Flower shows it: "run R, agent A, decided" and how the attempt ended.

    Everything else is left out, also what a foreign producer has sent: its arguments are the customer's.
    """
    if task.name not in _OURS:
        return task
    run_id, agent, reason = _doorbell(task.kwargs)
    task.args = ""
    task.kwargs = ", ".join(filter(None, [run_id and f"run {run_id}", agent and f"agent {agent}", reason]))
    if task.state == "RETRY":
        # Not over: the run waits, sleeps or goes on elsewhere.
        task.result = _quoted(task.exception)
    return task


def _doorbell(kwargs: str | None) -> tuple[str, str, str]:
    try:
        shown = ast.literal_eval(kwargs or "{}")
        run_id, agent, reason = (str(shown.get(name) or "") for name in _SHOWN)
    except (ValueError, SyntaxError, AttributeError, MemoryError, RecursionError):
        return "", "", ""  # cut by Celery, or somebody else's form
    return run_id, agent, reason


def _quoted(exception: str | None) -> str:
    """ "RunNotOver('run is waiting')" -> "run is waiting"."""
    _, quote, rest = (exception or "").partition("'")
    return rest.partition("'")[0] if quote else exception or ""
