"""The person of the soaks: answers doubts with nothing but the provider's own log before her eyes."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Self

from celegraph import decide, list_approvals, resolve_effect
from celegraph.errors import NotResolvable
from celegraph.ledger.approvals import Approval
from celegraph.tasks.resolve import Answer
from tests.support.provider import FakeProvider

_LOOK_EVERY = 0.2


class Person:
    """For the block's length every open doubt is answered with the truth, by either door in turns."""

    def __init__(self, provider: FakeProvider):
        self._provider = provider
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="person")
        self._trouble: list[Exception] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self._trouble:
            raise self._trouble[0]

    def _work(self) -> None:
        try:
            while not self._over.wait(_LOOK_EVERY):
                answer_doubts(list_approvals(), self._refs)
        except Exception as error:
            self._trouble.append(error)

    def _refs(self) -> dict[str, str]:
        return {act.key: act.ref for act in self._provider.acts()}


def answer_doubts(asked: list[Approval], refs: Callable[[], dict[str, str]], *, skips: bool = False) -> None:
    """Answer what is asked by `refs()`: what the provider has done, by key.

    `skips`: what has not happened shall not.
    """
    doubts = [question for question in asked if question.kind == "doubt"]
    if not doubts:
        return
    done = refs()
    for question in doubts:
        key = question.idempotency_key
        assert key is not None
        # A call may still be under way: then "it did not happen" is for later.
        with contextlib.suppress(NotResolvable):
            if key in done:
                _happened(question.approval_id, key, done[key])
            else:
                _answer(question.approval_id, key, "skip" if skips else "did_not_happen")


def _happened(approval_id: str, key: str, ref: str) -> None:
    if _by_key(key):
        resolve_effect(key, "happened", ref=ref, by="person")
    else:
        decide(approval_id, "answer", by="person", value="happened")


def _answer(approval_id: str, key: str, answer: Answer) -> None:
    if _by_key(key):
        resolve_effect(key, answer, by="person")
    else:
        decide(approval_id, "answer", by="person", value=answer)


def _by_key(key: str) -> bool:
    return ord(key[-1]) % 2 == 0
