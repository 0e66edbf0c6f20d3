"""One ledger, many workers, deaths at any statement, jumps of time, faults of the provider: whatever
happens in whatever order, the provider's own log shows no act twice, and at last none missing.

CELEGRAPH_MACHINE_EXAMPLES=500 makes it a search with other seeds each time.
"""

from __future__ import annotations

import contextlib
import gc
import os
from datetime import timedelta
from functools import partial

import pytest
from celery import Celery
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from celegraph import cancel_run, list_approvals
from celegraph.agent.spec import Agent, RetryPolicy
from celegraph.errors import RunMoved
from celegraph.ledger import outbox, runs
from celegraph.ledger.connect import connect
from celegraph.ledger.effect_row import Effect
from celegraph.ledger.effects import effects_of
from celegraph.ledger.for_tests import pass_time
from celegraph.ledger.sweep import sweep_once
from celegraph.tasks.advance import advance
from celegraph.tasks.dispatch import dispatch, reconcile
from celegraph.tasks.install import fit
from celegraph.tasks.installation import using
from celegraph.tasks.start import check_request
from tests.crash.person import answer_doubts
from tests.support.faulty import FAULTS, POLICIES, Fault, Policy, Provider, Want, agents
from tests.support.mortal import Death, MortalWorker
from tests.support.waiting import eventually

_EXAMPLES = os.environ.get("CELEGRAPH_MACHINE_EXAMPLES")
_WORKERS = 3
_WORKER = st.integers(0, _WORKERS - 1)
_AGENT = st.sampled_from(("sync", "async"))
# Now; a back-off; the horizon of a call that had 20 s and a window of 5; anything else.
_SECONDS = st.sampled_from((0, 2, 26, 3600))
# An attempt of these agents says some thirty things to the database.
_DEATH = st.none() | st.builds(
    Death, st.integers(1, 30), st.sampled_from(("before", "after")), st.sampled_from(("loses", "stops"))
)
_WANTS = st.lists(st.tuples(st.sampled_from(POLICIES), st.booleans()), min_size=1, max_size=3)
_FAULTS: st.SearchStrategy[list[Fault]] = st.just([]) | st.lists(
    st.sampled_from(FAULTS), min_size=1, max_size=3
)
_ROUNDS = 60
_MANY = 1_000_000


class LedgerMachine(RuleBasedStateMachine):
    """Real tables, real code; only the provider is ours."""

    started = Bundle("runs")

    def __init__(self, database_url: str):
        super().__init__()
        self.provider = Provider()
        app = Celery("machine", broker="memory://", set_as_current=False)
        app.conf.celegraph = {"database_url": database_url, "effect_timeout": "20s"}
        patient = RetryPolicy(max_attempts=_MANY)
        graphs = {
            name: Agent(graph=graph, retry=patient, max_crashes=_MANY)
            for name, graph in agents(self.provider).items()
        }
        self.inst = fit(app, graphs)
        self.workers = [MortalWorker(self.inst) for _ in range(_WORKERS)]
        self.wanted: dict[str, list[Want]] = {}
        self.conn = connect(self.inst.config)
        self.conn.execute("TRUNCATE runs, checkpoints, checkpoint_blobs, checkpoint_writes CASCADE")

    # -- what happens ------------------------------------------------------------------------------

    @initialize(target=started, wants=_WANTS, agent=_AGENT, together=st.booleans(), faults=_FAULTS)
    def first_run(
        self, wants: list[tuple[Policy, bool]], agent: str, together: bool, faults: list[Fault]
    ) -> str:
        return self._begin(wants, agent, together, 0, faults, None)

    @rule(
        target=started,
        wants=_WANTS,
        agent=_AGENT,
        together=st.booleans(),
        worker=_WORKER,
        faults=_FAULTS,
        death=_DEATH,
    )
    def run_begins(
        self,
        wants: list[tuple[Policy, bool]],
        agent: str,
        together: bool,
        worker: int,
        faults: list[Fault],
        death: Death | None,
    ) -> str:
        return self._begin(wants, agent, together, worker, faults, death)

    @rule(run_id=started, worker=_WORKER, after=_SECONDS, faults=_FAULTS, death=_DEATH)
    def run_goes_on(
        self, run_id: str, worker: int, after: int, faults: list[Fault], death: Death | None
    ) -> None:
        self.time_passes(run_id, after)
        self._work(worker, partial(advance, run_id=run_id), faults, death)

    @rule(worker=_WORKER, faults=_FAULTS, death=_DEATH)
    def dispatch(self, worker: int, faults: list[Fault], death: Death | None) -> None:
        self._work(worker, dispatch, faults, death)

    @rule(worker=_WORKER, death=_DEATH)
    def reconcile(self, worker: int, death: Death | None) -> None:
        self._work(worker, reconcile, [], death)

    @rule(run_id=started, seconds=_SECONDS)
    def time_passes(self, run_id: str, seconds: int) -> None:
        pass_time(self.conn, run_id, timedelta(seconds=seconds))

    @rule(skips=st.booleans())
    def person_answers(self, skips: bool) -> None:
        with using(self.inst):
            answer_doubts(list_approvals(), self._refs, skips=skips)

    @rule()
    def hanging_calls_come_back(self) -> None:
        self.provider.let_go()
        for worker in self.workers:
            worker.result()

    # Rare, because little happens to a cancelled run.
    @precondition(lambda self: len(self.wanted) > 2)
    @rule(run_id=started)
    def cancel(self, run_id: str) -> None:
        with using(self.inst), contextlib.suppress(RunMoved):  # it has ended before
            cancel_run(run_id)

    # -- how it happens ----------------------------------------------------------------------------

    def _begin(
        self,
        wants: list[tuple[Policy, bool]],
        agent: str,
        together: bool,
        worker: int,
        faults: list[Fault],
        death: Death | None,
    ) -> str:
        run_id = f"run-{len(self.wanted)}"
        self.wanted[run_id] = [
            {"name": f"{run_id}/{n}", "policy": policy, "outbox": later}
            for n, (policy, later) in enumerate(wants)
        ]
        given = {"wants": self.wanted[run_id], "together": together}
        runs.admit(self.conn, check_request(self.inst, agent, given, run_id=run_id))
        self._work(worker, partial(advance, run_id=run_id), faults, death)
        return run_id

    def _work(self, worker: int, duty: object, faults: list[Fault], death: Death | None) -> None:
        free = [w for w in self.workers if not w.busy]
        # The last one never hangs: somebody must be there to take over.
        faults = [f for f in faults if f != "acts, hangs" or len(free) > 1]
        # The owner that hangs is found by the sweep; a doorbell would wait for its lock.
        sweep_once(self.conn, self.inst.config)
        mine = free[worker % len(free)]
        self.provider.faults.extend(faults)
        hanging = len(self.provider.hanging)
        mine.give(duty, death)  # type: ignore[arg-type]
        eventually(lambda: not mine.busy or len(self.provider.hanging) > hanging, within=60)
        if not mine.busy:
            mine.result()
        self.provider.faults.clear()

    def _refs(self) -> dict[str, str]:
        return {key: f"receipt of {key}" for key in self.provider.done}

    # -- what is always true -----------------------------------------------------------------------

    def _rows(self) -> list[Effect]:
        return [row for run_id in self.wanted for row in effects_of(self.conn, run_id)]

    @invariant()
    def nothing_happens_twice(self) -> None:
        by_key, by_want = self.provider.times()
        assert set(by_key.values()) | set(by_want.values()) <= {1}, self._told()

    @invariant()
    def what_is_recorded_is_true(self) -> None:
        # Read in this order: an owner that was given up may record meanwhile what it has done.
        rows = self._rows()
        by_key, _ = self.provider.times()
        for row in rows:
            if row.done or row.status == "failed":
                assert by_key[row.idempotency_key] == row.done, (row, self._told())

    # -- what is true in the end -------------------------------------------------------------------

    def teardown(self) -> None:
        try:
            self.hanging_calls_come_back()
            self._finish()
            self.nothing_happens_twice()
            self.what_is_recorded_is_true()
            self._nothing_is_missing()
        finally:
            for worker in self.workers:
                worker.close()
            self.conn.close()

    def _finish(self) -> None:
        for _ in range(_ROUNDS):
            if all(self._over(run_id) for run_id in self.wanted):
                return
            self._round()
        raise AssertionError(f"never ends: {self._told()}")

    def _round(self) -> None:
        """Nothing fails any more, time passes, and everybody does their duty."""
        for run_id in self.wanted:
            self.time_passes(run_id, 3600)
        self.person_answers(skips=False)
        for row in self._rows():
            if self._is_dead_letter(row):
                outbox.release_dead(self.conn, row.idempotency_key, "person")
        self.dispatch(0, [], None)
        for run_id in self.wanted:
            self._work(0, partial(advance, run_id=run_id), [], None)

    def _is_dead_letter(self, row: Effect) -> bool:
        return (
            row.mode == "outbox"
            and row.status == "failed"
            and not row.error.get("skipped")
            and row.attempts >= 8
        )

    def _over(self, run_id: str) -> bool:
        status = runs.get_run(self.conn, run_id).status
        rows = effects_of(self.conn, run_id)
        settled = all(row.done or (row.error or {}).get("skipped") for row in rows)
        return status == "cancelled" or (status == "finished" and settled)

    def _nothing_is_missing(self) -> None:
        _, by_want = self.provider.times()
        for run_id, wants in self.wanted.items():
            if runs.get_run(self.conn, run_id).status == "cancelled":
                continue
            skipped = {row.args["want"] for row in effects_of(self.conn, run_id) if row.status == "failed"}
            for want in wants:
                assert by_want[want["name"]] == (want["name"] not in skipped), (want, self._told())

    def _told(self) -> str:
        lines = [f"acts: {self.provider.acts}"]
        for run_id in self.wanted:
            lines.append(f"{runs.get_run(self.conn, run_id)}")
            lines += [f"  {row}" for row in effects_of(self.conn, run_id)]
            lines += [f"  {e.epoch} {e.kind} {dict(e.data)}" for e in runs.events(self.conn, run_id)]
        return "\n".join(lines)


# The coroutines of attempts that stopped are found by the garbage collector, as nobody ends them.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::RuntimeWarning")
def test_whatever_happens_nothing_is_done_twice_and_nothing_is_forgotten(database_url: str) -> None:
    class Machine(LedgerMachine):
        def __init__(self) -> None:
            super().__init__(database_url)

    search = settings(
        max_examples=int(_EXAMPLES or 20),
        stateful_step_count=25,
        derandomize=_EXAMPLES is None,
        # Made smaller only in a search: a failure in the suite shall be told before the test's time is up.
        phases=[Phase.generate] if _EXAMPLES is None else [Phase.generate, Phase.shrink],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    try:
        run_state_machine_as_test(Machine, settings=search)
    finally:
        gc.collect()  # now, while it is expected
