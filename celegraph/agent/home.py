"""Whether a call is made by the node itself, one after the other, or beside others in no order.

A node's own calls are told apart by counting them.  Calls from threads and tasks that run side by side
race, so counting them would name them differently on a re-run.  LangGraph does not say which is which;
the loop is ours, so its task factory and its executor note who created each task and thread job, and in
which pass through a node.

The node itself is the task that was created outside of its pass, and whatever it is waiting for alone: a
timeout's, a wrapper's or a `wait_for`'s only task is the node by another name.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

import langgraph
from langgraph.runtime import ExecutionInfo

from celegraph.agent.place import current_execution

P = ParamSpec("P")
T = TypeVar("T")

_Task = asyncio.Future[Any]
# LangGraph's own helpers (the watch of an idle timeout) stand beside a node's task and call nothing.
_LANGGRAPH = tuple(langgraph.__path__)


@dataclass
class _Birth:
    """Where a task was created.  Strong references to ExecutionInfo would only keep small records."""

    execution: ExecutionInfo | None
    creator: weakref.ref[_Task] | None
    # Others of the same creator were alive beside it, once: then they race, also when it is the last one.
    crowded: bool = False
    children: list[weakref.ref[_Task]] = field(default_factory=list)


_births: weakref.WeakKeyDictionary[_Task, _Birth] = weakref.WeakKeyDictionary()
_thread = threading.local()


def task_factory(
    loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, T], **kwargs: Any
) -> asyncio.Task[T]:
    """asyncio's own tasks, with their birthplace noted."""
    task = asyncio.Task(coro, loop=loop, **kwargs)
    creator, execution = _current_task(), current_execution()
    birth = _births[task] = _Birth(execution, None if creator is None else weakref.ref(creator))
    if creator is not None and execution is not None and not _is_langgraphs(coro):
        _join_siblings(task, birth, creator)
    return task


def _join_siblings(task: _Task, birth: _Birth, creator: _Task) -> None:
    parent = _births.get(creator)
    if parent is None:
        return
    alive = [sibling for ref in parent.children if (sibling := ref()) is not None and not sibling.done()]
    for sibling in alive:
        _births[sibling].crowded = birth.crowded = True
    parent.children = [weakref.ref(one) for one in (*alive, task)]


def noted(work: Callable[[], T]) -> Callable[[], T]:
    """`work`, to be run in one of the loop's threads: notes who submitted it.

    Call it where the job is submitted.  A node's own function is submitted by LangGraph's task;
    `asyncio.to_thread` awaited by the node counts as the node, too.
    """
    submitter = _current_task()

    def run() -> T:
        _thread.submitter = submitter
        try:
            return work()
        finally:
            _thread.submitter = None

    return run


def at_home(info: ExecutionInfo) -> bool:
    """The caller is the node of this pass itself, so its calls come in the author's order."""
    task = _current_task() or getattr(_thread, "submitter", None)
    while task is not None:
        birth = _births.get(task)
        if birth is None or birth.execution is not info:
            return True
        if birth.crowded:
            return False
        task = birth.creator() if birth.creator is not None else None
    return False


def _is_langgraphs(coro: Coroutine[Any, Any, Any]) -> bool:
    code = getattr(coro, "cr_code", None)
    return code is not None and code.co_filename.startswith(_LANGGRAPH)


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None  # a thread without a loop
