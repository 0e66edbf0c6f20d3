"""Whether a call is made by the node itself, one after the other, or beside others in no order.

A node's own calls are told apart by counting them.  Calls from threads and tasks that the node starts
race, so counting them would name them differently on a re-run.  LangGraph does not say which is which;
the loop is ours, so its task factory and its executor note, for each task and thread job, in which
pass through a node it was *created*: the node's own is created outside of that pass.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from langgraph.runtime import ExecutionInfo

from celegraph.agent.place import current_execution

P = ParamSpec("P")
T = TypeVar("T")

# The pass a task was created in.  Strong references to ExecutionInfo would only keep small records.
_born_in: weakref.WeakKeyDictionary[asyncio.Future[Any], ExecutionInfo | None] = weakref.WeakKeyDictionary()
_thread = threading.local()


def task_factory(
    loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, T], **kwargs: Any
) -> asyncio.Task[T]:
    """asyncio's own tasks, with their birthplace noted."""
    task = asyncio.Task(coro, loop=loop, **kwargs)
    _born_in[task] = current_execution()
    return task


def noted(work: Callable[[], T]) -> Callable[[], T]:
    """`work`, to be run in one of the loop's threads: notes whether the node itself submitted it.

    Call it where the job is submitted.  A node's own function is submitted by a task that was created
    outside of the node; `asyncio.to_thread` awaited by the node counts as the node, too.
    """
    submitter = _current_task()
    birthplace = _born_in.get(submitter) if submitter is not None else None

    def run() -> T:
        _thread.birthplace, _thread.known = birthplace, submitter is not None
        try:
            return work()
        finally:
            _thread.known = False

    return run


def at_home(info: ExecutionInfo) -> bool:
    """The caller is the node of this pass itself, so its calls come in the author's order."""
    task = _current_task()
    if task is not None:
        return _born_in.get(task) is not info
    return getattr(_thread, "known", False) and _thread.birthplace is not info


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None  # a thread without a loop
