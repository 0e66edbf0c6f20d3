"""One doorbell's work: lock, begin, drive, settle, release.  The table of contents of a run's life."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from signal import SIGHUP, SIGINT, SIGQUIT, SIGTERM

from celegraph.agent.attempt import LOST, Attempt
from celegraph.agent.graphs import Graph, bind, fingerprint
from celegraph.agent.runner import drive
from celegraph.agent.saver import Saver
from celegraph.agent.spec import Agent
from celegraph.agent.stream import Stream
from celegraph.errors import NodeExited
from celegraph.ledger import leases
from celegraph.ledger.connect import connect
from celegraph.ledger.db_errors import in_log, is_lost, is_passing
from celegraph.ledger.outcomes import Abandoned, Failed, Outcome, Waiting
from celegraph.ledger.pen import Pen
from celegraph.ledger.runs import Run
from celegraph.tasks import drain, hooks
from celegraph.tasks.heart import Pulse
from celegraph.tasks.installation import Installation
from celegraph.tasks.leftovers import clear_leftovers
from celegraph.tasks.settle import settle
from celegraph.tasks.slot import Slot, current_slot
from celegraph.tasks.stream.publisher import sink_of
from celegraph.tasks.watchdog import Watchdog, watching

logger = logging.getLogger("celegraph")

# Seconds a doorbell waits for the lock of a run that nobody seems to advance: settle commits first and
# unlocks a moment later, and in that moment the sweep may already have rung.
_WAIT_FOR_LOCK = 2.0
# What billiard's children exit with when a signal ends them in the middle of a task: -(256 - signal).
_SIGNALLED = frozenset(signal - 256 for signal in (SIGHUP, SIGINT, SIGQUIT, SIGTERM))
# Seconds.  When a whole process group gets SIGTERM, the child may be faster than the main process.
_FLAG_WITHIN = 0.05


@dataclass(frozen=True)
class Advanced:
    """What became of the doorbell: the run's status now (None: no such run), and whether to ring again."""

    status: str | None
    ring: bool = False


@dataclass
class _Held:
    """The run this doorbell holds, so that an emergency exit knows what to hand back."""

    run: Run | None = None


def advance(inst: Installation, run_id: str) -> Advanced:
    """Advance the run as far as it goes, in this thread.

    Celery's own SystemExit passes, with the run handed back when the worker drains; everything user
    code can raise has become an outcome before it gets here.
    """
    slot = current_slot(inst.config)
    slot.drain_asked = None
    held = _Held()
    try:
        with hooks.calling(hooks.around_attempt):
            return slot.run(_advance(inst, slot, run_id, held))
    except (SystemExit, KeyboardInterrupt) as error:
        if held.run is None:
            raise
        if type(error) is SystemExit and error.code not in _SIGNALLED:
            # An async node called sys.exit(): its failure, not the worker's end.
            return _fail_elsewhere(inst, held.run, NodeExited(error.code))
        if drain.requested(within=_FLAG_WITHIN):
            _hand_back(inst, held.run, "drained")
        # Else a hard time limit (or a revoke) ends this very step, and the next attempt may meet the same:
        # the lock is free, the sweep or the next doorbell counts a death.
        raise
    except Exception as error:
        if held.run is not None and is_passing(error):
            # PostgreSQL went away while the outcome was written, or gave it up; no fault of the run's.
            _hand_back(inst, held.run, "abandoned")
        raise


async def _advance(inst: Installation, slot: Slot, run_id: str, held: _Held) -> Advanced:
    pen, locked = await _lock(slot, run_id)
    if not locked:
        return Advanced(await leases.status(pen, run_id))
    held.run = await _begin(inst, pen, run_id)
    if held.run is None:
        await leases.release(pen)
        return Advanced(await leases.status(pen, run_id))
    attempt, outcome, mark = await _attempt(inst, slot, pen, held.run)
    settled = await settle(attempt, outcome, mark)
    if settled is None:
        await slot.drop_pen()
        await asyncio.to_thread(_hand_back, inst, held.run, "abandoned")
    elif attempt.clean:
        await leases.release(pen)
    held.run = None
    if not attempt.clean:
        slot.discard()
    if settled is None:
        return Advanced("ready", ring=True)
    return Advanced(settled.status, settled.ring)


async def _lock(slot: Slot, run_id: str) -> tuple[Pen, bool]:
    """The slot's pen, and whether it holds the run's lock now."""
    pen = await slot.ready_pen()
    try:
        return pen, await _try_for_a_while(pen, run_id)
    except Exception as error:
        if not is_lost(error):
            raise
    # The pen died while it lay idle (PostgreSQL was restarted); nothing was held with it.
    await slot.drop_pen()
    pen = await slot.ready_pen()
    return pen, await _try_for_a_while(pen, run_id)


async def _try_for_a_while(pen: Pen, run_id: str) -> bool:
    deadline = time.monotonic() + _WAIT_FOR_LOCK
    while not await leases.try_lock(pen, run_id):
        if await leases.busy(pen, run_id) or time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.05)
    return True


async def _begin(inst: Installation, pen: Pen, run_id: str) -> Run | None:
    run = await leases.begin(pen, run_id, inst.worker_id(), inst.config)
    if run is None and (found := await leases.recover_under_lock(pen, run_id)):
        logger.warning("owner is gone", extra={"run_id": run_id, "status": found})
        run = await leases.begin(pen, run_id, inst.worker_id(), inst.config)
    return run


async def _attempt(inst: Installation, slot: Slot, pen: Pen, run: Run) -> tuple[Attempt, Outcome, str | None]:
    saver = Saver(pen)
    spec, graph, problem = _agent_here(inst, run)
    attempt = Attempt(run, spec, inst.policy_of(spec), inst.config, pen, saver, asyncio.get_running_loop())
    if graph is None:
        return attempt, Waiting(problem, waits_for="code"), None
    attempt.stream = _stream(inst, run, spec)
    with slot.heart.beating(attempt) as pulse, watching(inst.config) as watchdog:
        driving = asyncio.create_task(drive(attempt, bind(graph, saver)))
        ticker = asyncio.ensure_future(_tick(slot, attempt, pulse, watchdog, driving))
        try:
            outcome = await _driven(attempt, driving)
            # Still under the heart's beat: a call in flight may take longer than the lease.
            attempt.clean = await clear_leftovers(slot, attempt, ticker)
        finally:
            ticker.cancel()
        await asyncio.wait([ticker])
        if attempt.lost:
            outcome = Abandoned(LOST)
    return attempt, outcome, fingerprint(graph)


async def _driven(attempt: Attempt, driving: asyncio.Task[Outcome]) -> Outcome:
    try:
        return await driving
    except asyncio.CancelledError:
        if attempt.lost:
            return Abandoned(LOST)
        raise


def _agent_here(inst: Installation, run: Run) -> tuple[Agent, Graph | None, str]:
    """The run's agent, if this worker's code has it; a run must not die of a deploy that is under way."""
    try:
        spec = inst.agent(run.agent)
        return spec, inst.graph(run.agent), ""
    except Exception as error:
        # What the host's code raised may quote anything; the run's own reason says it.
        logger.error("agent unusable here", extra={"run_id": run.run_id, "error": in_log(error)})
        return Agent(graph=None), None, f"graph changed: agent {run.agent!r} is not usable here ({error})"


def _stream(inst: Installation, run: Run, spec: Agent) -> Stream | None:
    sink = sink_of(inst, run) if spec.streamed else None
    return Stream(sink, spec.streamed, run.epoch) if sink is not None else None


async def _tick(
    slot: Slot, attempt: Attempt, pulse: Pulse, watchdog: Watchdog, driving: asyncio.Task[Outcome]
) -> None:
    """Proves that the loop is alive, watches for the worker's drain, and ends what is lost."""
    while True:
        pulse.loop_seen = time.monotonic()
        watchdog.alive()
        asked = "worker drains" if drain.requested() else slot.drain_asked
        if attempt.drain_reason is None and asked is not None:
            attempt.request_drain(asked)
            slot.heart.nudge()
        if attempt.lost and not driving.cancelling():
            # Its node may hang for ever, and nothing that it still does would count.  Calls in flight are
            # waited for afterwards: what they did is a fact.
            driving.cancel()
        await asyncio.sleep(0.2)


def _hand_back(inst: Installation, run: Run, cause: str) -> None:
    """running -> ready without counting a death, on a connection of its own.

    When the database does not answer for a while the sweep finds the run later, and counts.
    """
    for pause in (0.0, 0.5, 1.0, 2.0, 4.0):
        time.sleep(pause)
        try:
            with connect(inst.config, application="celegraph hand-back") as conn:
                leases.recover(conn, run.run_id, run.epoch, cause)
            return
        except Exception as error:
            logger.warning("run not handed back", extra={"run_id": run.run_id, "error": in_log(error)})


def _fail_elsewhere(inst: Installation, run: Run, error: Exception) -> Advanced:
    from celegraph.agent.failures import describe

    async def write(slot: Slot) -> Advanced:
        pen = await slot.ready_pen()
        outcome = Failed(f"{type(error).__name__} in the graph", describe(error))
        settled = await leases.settle(pen, run.run_id, run.epoch, outcome)
        return Advanced(settled.status, settled.ring)

    slot = current_slot(inst.config)
    return slot.run(write(slot))
