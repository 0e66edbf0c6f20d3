"""Durable execution of LangGraph agents on Celery, Redis and PostgreSQL.

All public names come from here, lazily: a web process that starts runs and takes decisions never
imports LangGraph.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Here, because LangGraph reads it when it is imported: checkpoints must not be able to name code to run.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")

if TYPE_CHECKING:
    from celegraph.agent.asking import Decision as Decision
    from celegraph.agent.asking import ask_approval as ask_approval
    from celegraph.agent.bound import BoundEffect as BoundEffect
    from celegraph.agent.declaration import EffectCall as EffectCall
    from celegraph.agent.declaration import Happened as Happened
    from celegraph.agent.declaration import NotHappened as NotHappened
    from celegraph.agent.declaration import Unknown as Unknown
    from celegraph.agent.effect import effect as effect
    from celegraph.agent.heartbeat import heartbeat as heartbeat
    from celegraph.agent.policy import ApprovalPolicy as ApprovalPolicy
    from celegraph.agent.policy import Step as Step
    from celegraph.agent.recorded import recorded as recorded
    from celegraph.agent.recorded_model import recorded_model as recorded_model
    from celegraph.agent.spec import Agent as Agent
    from celegraph.agent.spec import RetryPolicy as RetryPolicy
    from celegraph.tasks.control import cancel_run as cancel_run
    from celegraph.tasks.control import get_approval as get_approval
    from celegraph.tasks.control import get_effect as get_effect
    from celegraph.tasks.control import get_run as get_run
    from celegraph.tasks.control import list_approvals as list_approvals
    from celegraph.tasks.control import list_runs as list_runs
    from celegraph.tasks.control import pause_run as pause_run
    from celegraph.tasks.control import release_effect as release_effect
    from celegraph.tasks.control import release_run as release_run
    from celegraph.tasks.control import resume_run as resume_run
    from celegraph.tasks.control import retry_run as retry_run
    from celegraph.tasks.control import trace_run as trace_run
    from celegraph.tasks.decide import Decided as Decided
    from celegraph.tasks.decide import decide as decide
    from celegraph.tasks.explain import Explanation as Explanation
    from celegraph.tasks.explain import explain_run as explain_run
    from celegraph.tasks.install import install as install
    from celegraph.tasks.install import start_run as start_run
    from celegraph.tasks.resolve import confirm_effect as confirm_effect
    from celegraph.tasks.resolve import fail_effect as fail_effect
    from celegraph.tasks.resolve import resolve_effect as resolve_effect
    from celegraph.tasks.result import RunResult as RunResult
    from celegraph.tasks.stream.items import StreamItem as StreamItem
    from celegraph.tasks.stream.listen import astream_run as astream_run
    from celegraph.tasks.stream.listen import stream_run as stream_run

_HOMES = {
    "Agent": "agent.spec",
    "ApprovalPolicy": "agent.policy",
    "BoundEffect": "agent.bound",
    "Decided": "tasks.decide",
    "Decision": "agent.asking",
    "EffectCall": "agent.declaration",
    "Explanation": "tasks.explain",
    "Happened": "agent.declaration",
    "NotHappened": "agent.declaration",
    "RetryPolicy": "agent.spec",
    "RunResult": "tasks.result",
    "Step": "agent.policy",
    "StreamItem": "tasks.stream.items",
    "Unknown": "agent.declaration",
    "ask_approval": "agent.asking",
    "astream_run": "tasks.stream.listen",
    "cancel_run": "tasks.control",
    "confirm_effect": "tasks.resolve",
    "decide": "tasks.decide",
    "effect": "agent.effect",
    "explain_run": "tasks.explain",
    "fail_effect": "tasks.resolve",
    "get_approval": "tasks.control",
    "get_effect": "tasks.control",
    "get_run": "tasks.control",
    "heartbeat": "agent.heartbeat",
    "install": "tasks.install",
    "list_approvals": "tasks.control",
    "list_runs": "tasks.control",
    "pause_run": "tasks.control",
    "recorded": "agent.recorded",
    "recorded_model": "agent.recorded_model",
    "release_effect": "tasks.control",
    "release_run": "tasks.control",
    "resolve_effect": "tasks.resolve",
    "resume_run": "tasks.control",
    "retry_run": "tasks.control",
    "start_run": "tasks.install",
    "stream_run": "tasks.stream.listen",
    "trace_run": "tasks.control",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'celegraph' has no attribute {name!r}")
    return getattr(import_module(f"celegraph.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
