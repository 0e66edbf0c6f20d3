"""Those outside: who starts runs, and who answers questions; neither gives up when the servers are down."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable
from typing import Self

import psycopg
import redis

from celegraph import confirm_effect, decide, list_approvals, retry_run, start_run
from celegraph.errors import CelegraphError, EffectNotFound, NotResolvable
from celegraph.ledger.approvals import Approval
from tests.chaos.shapes import SHAPES
from tests.crash.person import answer_doubts
from tests.support.scene import Scene
from tests.support.waiting import eventually

# What a broken server may refuse to people, and what somebody else was faster at.
REFUSED = (psycopg.Error, CelegraphError, redis.RedisError, OSError)
_LOOK_EVERY = 0.3
# Of all runs have a deadline that many miss; of all acts are told of by the provider itself.
_HURRIED = 0.08
_TOLD = 0.3


class Regularly:
    """For the block's length `work` is done again and again; what servers refuse is for the next time."""

    def __init__(self, name: str, work: Callable[[], object]):
        self._work = work
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name=name)
        self._trouble: list[Exception] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """No more; what went wrong with the tests' own code is raised."""
        self._over.set()
        self._thread.join()
        if self._trouble:
            raise self._trouble[0]

    def _go_on(self) -> None:
        while not self._over.wait(_LOOK_EVERY):
            try:
                with contextlib.suppress(*REFUSED):
                    self._work()
            except Exception as error:
                self._trouble.append(error)
                return


class Traffic:
    """Starts runs of every shape while no more than `live` of them are at work."""

    def __init__(self, scene: Scene, seed: int, *, live: int):
        self._scene = scene
        self._chance = random.Random(seed)
        self._live = live
        self._next = self._drawn()
        self.started: list[str] = []

    def work(self) -> None:
        """Start some; what was refused is started again under the same id."""
        while self._at_work() < self._live:
            agent, run_id, cents, deadline = self._next
            start_run.delay(agent, {"cents": cents}, run_id=run_id, deadline=deadline)
            self.started.append(run_id)
            self._next = self._drawn()

    def _drawn(self) -> tuple[str, str, int, str | None]:
        names, weights = zip(*((name, shape.weight) for name, shape in SHAPES.items()), strict=True)
        agent = self._chance.choices(names, weights)[0]
        number = getattr(self, "_number", 0)
        self._number = number + 1
        deadline = "8s" if self._chance.random() < _HURRIED else None
        return agent, f"{agent}-{number:04}", self._chance.randrange(10_000), deadline

    def _at_work(self) -> int:
        with psycopg.connect(self._scene.database_url, connect_timeout=2) as conn:
            row = conn.execute(
                "SELECT count(*) FROM celegraph.runs WHERE status IN ('ready', 'running')"
            ).fetchone()
        assert row is not None
        return int(row[0])


class Webhooks:
    """The provider tells of some of its acts: after its reply, and where that is late or lost, before it."""

    def __init__(self, scene: Scene, seed: int):
        self._scene = scene
        self._seed = seed
        self._done: set[str] = set()

    def work(self) -> None:
        """Tell of what is new; what was not taken is told again."""
        for act in self._scene.provider.acts():
            if act.key not in self._done and random.Random(f"{self._seed} {act.key}").random() < _TOLD:
                with contextlib.suppress(EffectNotFound, NotResolvable):
                    confirm_effect(act.key, provider_ref=act.ref, result=act.ref)
            self._done.add(act.key)


class Person:
    """Answers doubts by the provider's log, and decides what she likes; some questions she never answers."""

    def __init__(self, scene: Scene, seed: int):
        self._scene = scene
        self._seed = seed

    def work(self) -> None:
        """Look through the inbox once."""
        asked = list_approvals()
        answer_doubts(asked, self._refs)
        for question in asked:
            if question.kind != "doubt":
                with contextlib.suppress(*REFUSED):
                    self._decide(question)

    def _refs(self) -> dict[str, str]:
        return {act.key: act.ref for act in self._scene.provider.acts()}

    def _decide(self, question: Approval) -> None:
        chance = random.Random(f"{self._seed} {question.approval_id}")
        name, verb = question.approval_id, chance.choice(("approve", "approve", "edit", "reject", "ignore"))
        if verb == "ignore" and (question.deadline_at is not None or chance.random() < 0.3):
            return
        if verb == "edit" and question.kind == "interrupt" and question.args_hash is not None:
            decide(name, "edit", by="person", args={"cents": 7})
        else:
            decide(name, "reject" if verb == "reject" else "approve", by="person")

    def retry_failed(self) -> None:
        """What the provider's bad hours have made fail goes on from where it stands."""
        rows = self._scene.conn.execute(
            "SELECT run_id FROM runs WHERE status = 'failed' AND (error ->> 'type' LIKE 'httpx.%'"
            " OR error ->> 'type' LIKE 'httpcore.%' OR error ->> 'type' = 'builtins.TimeoutError')"
        ).fetchall()
        for row in rows:
            with contextlib.suppress(CelegraphError):
                retry_run(str(row["run_id"]), by="person")

    def clear_up(self) -> None:
        """When all is healthy again: failed runs are retried, quarantined ones released."""
        self.retry_failed()
        self._release()

    def _release(self) -> None:
        from celegraph import release_run

        rows = self._scene.conn.execute("SELECT run_id FROM runs WHERE status = 'quarantined'").fetchall()
        for row in rows:
            with contextlib.suppress(CelegraphError):
                release_run(str(row["run_id"]), by="person")


def settled(scene: Scene, person: Person, *, within: float) -> bool:
    """Wait, healing what people can heal, until every run has ended or waits; False if some never do."""

    def all_rest() -> bool:
        with contextlib.suppress(*REFUSED):
            person.clear_up()
        row = scene.conn.execute(_UNSETTLED).fetchone()
        assert row is not None
        return int(row["left"]) == 0

    try:
        eventually(all_rest, within=within)
    except AssertionError:
        return False
    return True


_UNSETTLED = """
SELECT (SELECT count(*) FROM runs WHERE status IN ('ready', 'running', 'paused', 'quarantined', 'failed'))
     + (SELECT count(*) FROM effects WHERE status = 'pending' AND mode = 'outbox' AND released_at IS NOT NULL)
     + (SELECT count(*) FROM effects JOIN runs USING (run_id)
         WHERE effects.status = 'pending' AND mode = 'call' AND finished_at IS NOT NULL)
     + (SELECT count(*) FROM effects JOIN runs USING (run_id)
         WHERE mode = 'outbox' AND effects.status = 'failed' AND next_try_at IS NOT NULL)
     + (SELECT count(*) FROM approvals WHERE status <> 'open' AND consumed_at IS NULL)
     + (SELECT count(*) FROM session_locks JOIN runs USING (lock_key))
     + (SELECT count(*) FROM approvals WHERE status = 'open' AND (kind = 'doubt' OR deadline_at IS NOT NULL))
       AS left
"""
