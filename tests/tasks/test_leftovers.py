"""What an attempt leaves behind is waited for, cancelled or refused, and its slot is renewed."""

from __future__ import annotations

import asyncio
import contextvars
import threading

from celegraph import EffectCall, effect, heartbeat
from celegraph.config import load_config
from celegraph.errors import AttemptOver
from celegraph.ledger.connect import connect
from celegraph.ledger.sweep import sweep_once
from celegraph.testing.driver import Driver
from tests.support.driving import kinds
from tests.support.log import Log
from tests.support.shapes import State, chain, parallel
from tests.support.waiting import eventually


def test_a_call_in_flight_that_outlasts_the_lease_is_recorded_before_its_attempt_ends(
    lonely_drive: Driver, database_url: str, log: Log
) -> None:
    settings = {"lease": "1s", "beat_every": "300ms"}

    @effect("slow-pay")
    async def pay(call: EffectCall) -> str:
        log("calling")
        await asyncio.sleep(2.5)
        log(f"recovered {await asyncio.to_thread(swept)}")
        return "paid"

    def swept() -> list[str]:
        config = load_config({"database_url": database_url, **settings})
        with connect(config) as conn:
            return sweep_once(conn, config).recovered

    async def paying(state: State) -> State:
        return {"seen": [await pay()]}

    async def failing(state: State) -> State:
        await asyncio.to_thread(eventually, lambda: log.count("calling"))
        raise RuntimeError("beside it")

    run = lonely_drive(parallel(paying, failing), {}, settings=settings)

    assert (run.status, [act.status for act in run.effects]) == ("failed", ["sent"])
    assert log.lines == ["calling", "recovered []"]
    assert not {"hung", "abandoned"} & set(kinds(run))


def test_a_call_in_flight_is_given_its_own_timeout_when_its_attempt_ends(
    lonely_drive: Driver, log: Log
) -> None:
    """Also where that is longer than the configured one: cut in the middle it would be a doubt."""

    @effect("long-pay", timeout="30s")
    async def pay(call: EffectCall) -> str:
        log("calling")
        await asyncio.sleep(8)
        return "paid"

    async def paying(state: State) -> State:
        return {"seen": [await pay()]}

    async def failing(state: State) -> State:
        await asyncio.to_thread(eventually, lambda: log.count("calling"))
        raise RuntimeError("beside it")

    run = lonely_drive(parallel(paying, failing), {}, settings={"effect_timeout": "1s"})

    assert (run.status, [act.status for act in run.effects]) == ("failed", ["sent"])


def test_a_task_that_a_node_has_forgotten_is_cancelled(drive: Driver, log: Log) -> None:
    forgotten = []

    async def forever() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            log("cancelled")
            raise

    async def node(state: State) -> State:
        forgotten.append(asyncio.create_task(forever()))
        await asyncio.sleep(0)
        return {"seen": ["done"]}

    assert drive(chain(node), {}).output["seen"] == ["done"]
    assert log.lines == ["cancelled"]


def test_a_thread_that_outlives_its_attempt_is_refused_and_the_next_run_gets_a_new_slot(
    drive: Driver, log: Log
) -> None:
    over = threading.Event()

    @effect("late-pay")
    def pay(call: EffectCall) -> None:
        log("paid")

    def standing(state: State) -> State:
        log("stands")
        over.wait(60)
        for act in (pay, heartbeat):
            try:
                act()
            except AttemptOver:
                log("refused")
        return {"seen": ["too late"]}

    def failing(state: State) -> State:
        eventually(lambda: log.count("stands"))
        raise RuntimeError("beside it")

    run = drive(parallel(standing, failing), {})

    assert run.status == "failed"
    next_run = drive(chain(lambda state: {"seen": ["done"]}), {})
    assert next_run.output["seen"] == ["done"]
    over.set()
    eventually(lambda: log.count("refused") == 2)
    assert log.lines == ["stands", "refused", "refused"]
    assert run.status == "failed"
    assert run.effects == []


def test_a_thread_of_a_nodes_own_is_refused_when_the_run_has_ended(drive: Driver, log: Log) -> None:
    over = threading.Event()

    def late() -> None:
        over.wait(60)
        try:
            heartbeat()
        except AttemptOver:
            log("refused")

    def node(state: State) -> State:
        context = contextvars.copy_context()
        threading.Thread(target=lambda: context.run(late), daemon=True).start()
        return {"seen": ["done"]}

    assert drive(chain(node), {}).output["seen"] == ["done"]
    over.set()
    eventually(lambda: log.lines == ["refused"])
