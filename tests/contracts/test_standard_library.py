"""What we use of ThreadPoolExecutor without its promise."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest


def test_every_job_asks_whether_a_thread_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    grow = ThreadPoolExecutor._adjust_thread_count

    def counted(pool: ThreadPoolExecutor) -> None:
        asked.append(len(pool._threads))
        grow(pool)

    monkeypatch.setattr(ThreadPoolExecutor, "_adjust_thread_count", counted)
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            pool.submit(threading.get_ident).result()

    assert len(asked) == 3
    assert asked[0] == 0


def test_a_pool_counts_its_idle_threads_in_a_semaphore_that_we_may_empty() -> None:
    with ThreadPoolExecutor(4) as pool:
        pool.submit(threading.get_ident).result()
        idle = pool._idle_semaphore

        assert isinstance(idle, threading.Semaphore)
        while idle.acquire(blocking=False):
            pass
        assert pool.submit(threading.get_ident).result(timeout=5)
