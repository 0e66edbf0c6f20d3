"""A child that is forked from a process with a slot does no harm to it."""

from __future__ import annotations

import asyncio
import gc
import threading
import time

from celegraph.config import load_config
from celegraph.tasks.slot import close_current, current_slot
from tests.support.dying import die, process_dies


def test_a_forked_child_with_a_slot_of_its_own_leaves_the_parents_loop_its_wake_up() -> None:
    config = load_config({"database_url": "postgresql://nobody/asks"})
    current_slot(config)  # held by nobody but its module: a frame's reference would save it in the child

    def child() -> None:
        current_slot(config)
        gc.collect()
        die()

    process_dies(child)
    began = time.monotonic()
    # Long enough that the loop is asleep when the thread is done and wakes it through the pipe.
    current_slot(config).run(asyncio.wait_for(asyncio.to_thread(threading.Event().wait, 0.2), 10))
    close_current()

    assert time.monotonic() - began < 5
