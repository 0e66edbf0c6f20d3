"""The outbox: intents released with their node's own writes, performed once by any dispatcher."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any, TypedDict

import psycopg
import pytest
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.channels import UntrackedValue
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy

from celegraph import ApprovalPolicy, EffectCall, Happened, Step, effect
from celegraph.agent.dispatch import dispatch_once
from celegraph.agent.saver import Saver
from celegraph.agent.spec import Agent
from celegraph.ledger import doubts, effects, outbox
from celegraph.ledger.doubts import Resolution
from celegraph.ledger.pool import ledger
from celegraph.tasks.dispatch import dispatch
from celegraph.tasks.slot import Slot, current_slot
from celegraph.testing.driver import Driver
from tests.support.cancelling import VICTIMS, cancelled
from tests.support.driving import connection, kinds, sweep, taken_over
from tests.support.dying import die, process_dies
from tests.support.log import Log
from tests.support.shapes import State, chain
from tests.support.waiting import eventually


def _mail(log: Log, tool: str, behave: Callable[[EffectCall, str], None] = lambda call, to: None) -> Any:
    @effect(tool, in_doubt="retry")
    def mail(call: EffectCall, to: str) -> str:
        behave(call, to)
        log(f"mail {to}")
        return f"sent to {to}"

    return mail


def _mails(log: Log) -> Counter[str]:
    return Counter(line.removeprefix("mail ") for line in log.lines if line.startswith("mail"))


def test_an_intent_is_performed_after_its_node_is_durable_and_read_by_its_handle(
    lonely_drive: Driver, log: Log
) -> None:
    mail = _mail(log, "outbox-once")

    def node(state: State) -> State:
        return {"seen": [mail.enqueue("ada@example.org")]}

    run = lonely_drive(chain(node), {})
    assert not _mails(log)

    assert dispatch(run.installation).sent == 1
    assert dispatch(run.installation).sent == 0

    assert _mails(log) == Counter(["ada@example.org"])
    with ledger(run.installation.config) as conn:
        assert effects.get_effect(conn, run.output["seen"][0]).value == "sent to ada@example.org"


def test_intents_of_a_pass_that_failed_are_dropped_unless_the_next_pass_wants_them(
    lonely_drive: Driver, log: Log
) -> None:
    mail = _mail(log, "outbox-ghost")

    def node(state: State) -> None:
        log("node")
        mail.enqueue("both@example.org")
        if log.count("node") == 1:
            mail.enqueue("ghost@example.org")
            raise ConnectionResetError("before the node ends")

    run = lonely_drive(chain(node), {})
    dispatch(run.installation)

    assert _mails(log) == Counter(["both@example.org"])
    assert kinds(run).count("effect dropped") == 1


def test_f38_two_dispatchers_take_the_same_rows(lonely_drive: Driver, log: Log) -> None:
    """F38: Two dispatchers take the same rows."""
    mail = _mail(log, "outbox-many")

    def node(state: State) -> None:
        for i in range(200):
            mail.enqueue(f"m{i}@example.org")

    run = lonely_drive(chain(node), {})
    start = threading.Barrier(4)

    def worker() -> None:
        start.wait()
        while dispatch(run.installation).sent:
            pass

    threads = [threading.Thread(target=worker) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(_mails(log)) == 200
    assert set(_mails(log).values()) == {1}


def test_a_refused_intent_backs_off_and_becomes_a_dead_letter_that_a_person_releases(
    lonely_drive: Driver, log: Log
) -> None:
    refusing = True

    def behave(call: EffectCall, to: str) -> None:
        if refusing:
            raise ConnectionRefusedError("nobody listens")

    mail = _mail(log, "outbox-dead", behave)
    run = lonely_drive(chain(lambda state: mail.enqueue("ada@example.org") and None), {})
    for _ in range(20):
        dispatch(run.installation)
        run.pass_time(timedelta(hours=1))
    assert run.effects[0].attempts == 8
    assert run.effects[0].status == "failed"
    refusing = False
    assert dispatch(run.installation).sent == 0

    with connection(run) as conn:
        outbox.release_dead(conn, run.effects[0].key, "ada")
    dispatch(run.installation)

    assert _mails(log) == Counter(["ada@example.org"])
    assert run.effects[0].status == "sent"


def test_an_intent_in_doubt_is_tried_again_with_its_key(lonely_drive: Driver, log: Log) -> None:
    keys: list[str] = []

    def behave(call: EffectCall, to: str) -> None:
        keys.append(call.key)
        if len(keys) == 1:
            raise TimeoutError("no answer")

    mail = _mail(log, "outbox-doubt", behave)
    run = lonely_drive(chain(lambda state: mail.enqueue("ada@example.org") and None), {})
    dispatch(run.installation)
    run.pass_time(timedelta(minutes=5))
    dispatch(run.installation)

    assert len(keys) == 2
    assert len(set(keys)) == 1
    assert run.effects[0].status == "sent"


def test_a_node_is_never_durable_without_the_release_of_its_intents(
    lonely_drive: Driver, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    mail = _mail(log, "outbox-order")
    write = AsyncPostgresSaver.aput_writes

    async def late_and_lost(saver: AsyncPostgresSaver, *args: Any) -> None:
        if not log.count("node") or log.count("lost"):
            await write(saver, *args)
            return
        log("lost")
        # LangGraph sends the step's checkpoint meanwhile; it has every chance to be faster.
        await asyncio.sleep(0.1)
        saver.conn.pgconn.finish()  # type: ignore[union-attr]
        raise psycopg.OperationalError("the connection is lost")

    monkeypatch.setattr(AsyncPostgresSaver, "aput_writes", late_and_lost)

    def node(state: State) -> None:
        log("node")
        mail.enqueue("ada@example.org")

    run = lonely_drive(chain(node, lambda state: None), {})
    dispatch(run.installation)

    assert run.status == "finished"
    assert log.lines == ["node", "lost", "node", "mail ada@example.org"]


@pytest.mark.parametrize("claim", [1, 2], ids=["first claim", "claim after a doubt"])
def test_a_dispatcher_that_slept_between_claim_and_call_does_not_call(
    lonely_drive: Driver, log: Log, monkeypatch: pytest.MonkeyPatch, claim: int
) -> None:
    def behave(call: EffectCall, to: str) -> None:
        log(f"call {call.attempt}")
        if call.attempt < claim:
            raise TimeoutError("no answer")

    mail = _mail(log, f"outbox-slept-{claim}", behave)
    run = lonely_drive(chain(lambda state: mail.enqueue("ada@example.org") and None), {})
    for _ in range(1, claim):
        dispatch(run.installation)
        run.pass_time(timedelta(minutes=5))
    clock = itertools.chain([0.0], itertools.repeat(3600.0))
    with monkeypatch.context() as slept:
        slept.setattr("celegraph.agent.dispatch.boot_time", lambda: next(clock))
        dispatch(run.installation)

    run.pass_time(timedelta(minutes=5))
    dispatch(run.installation)

    assert log.count(f"call {claim}") == 0
    assert log.count(f"call {claim + 1}") == 1
    assert _mails(log) == Counter(["ada@example.org"])


def test_an_intent_in_doubt_without_a_key_at_the_provider_asks_and_its_answer_moves_it(
    lonely_drive: Driver, log: Log
) -> None:
    @effect("outbox-asks")
    def mail(call: EffectCall, to: str) -> str:
        log(f"mail {to}")
        if call.attempt == 1:
            raise TimeoutError("no answer")
        return "sent"

    run = lonely_drive(chain(lambda state: mail.enqueue("ada@example.org") and None), {})
    dispatch(run.installation)
    run.pass_time(timedelta(minutes=5))
    for _ in range(3):
        dispatch(run.installation)
        run.pass_time(timedelta(minutes=30))
    assert [a.kind for a in run.approvals] == ["doubt"]
    assert log.count("mail ada@example.org") == 1

    with connection(run) as conn:
        said = Resolution(status="failed", by="ada", error={"type": "celegraph.DidNotHappen"})
        doubts.resolve(conn, run.effects[0].key, said)
    dispatch(run.installation)

    assert log.count("mail ada@example.org") == 2
    assert run.effects[0].status == "sent"
    # The run was over before it was answered; the answer is taken in all the same.
    sweep(run)
    assert run.approvals[0].consumed_at is not None


def test_the_doubt_about_an_intent_is_asked_under_the_agents_policy(lonely_drive: Driver, log: Log) -> None:
    @effect("outbox-asks-by-policy")
    def mail(call: EffectCall, to: str) -> str:
        raise TimeoutError("no answer")

    graph = chain(lambda state: mail.enqueue("ada@example.org") and None)
    policy = ApprovalPolicy(deadline="2h", notify=[Step(to="ops", by="sms")], remind=["1h"])
    sms = {"kind": "call", "call": "tests.support.told:tell"}
    run = lonely_drive(Agent(graph=graph, approval=policy), {}, settings={"channels": {"sms": sms}})
    dispatch(run.installation)
    run.pass_time(timedelta(minutes=5))
    dispatch(run.installation)

    (question,) = run.approvals
    assert (question.kind, question.silence) == ("doubt", None)
    assert question.asked["agent"] == "agent"
    assert question.deadline_at is not None
    assert [(n.tool, n.args["what"], n.args["to"]) for n in run.notices] == [("notify:sms", "opened", "ops")]


def test_a_look_up_that_answers_nonsense_does_not_keep_other_intents_back(
    lonely_drive: Driver, log: Log
) -> None:
    nonsense: Any = lambda call, to: "perhaps"  # noqa: E731

    @effect("outbox-nonsense", in_doubt="reconcile", lookup=nonsense)
    def bad(call: EffectCall, to: str) -> None:
        raise TimeoutError("no answer")

    mail = _mail(log, "outbox-patient")
    run = lonely_drive(chain(lambda state: bad.enqueue("bob@example.org") and None), {})
    dispatch(run.installation)
    run.pass_time("5m")
    run = lonely_drive(chain(lambda state: mail.enqueue("ada@example.org") and None), {})

    dispatch(run.installation)

    assert _mails(log) == Counter(["ada@example.org"])


@pytest.mark.timeout(60)
@pytest.mark.parametrize("plain", [False, True])
def test_a_look_up_that_hangs_does_not_keep_other_intents_back(
    lonely_drive: Driver, log: Log, plain: bool
) -> None:
    over = threading.Event()

    async def waits_for_ever(call: EffectCall, to: str) -> Happened:
        await asyncio.sleep(3600)
        return Happened(None)

    def blocks(call: EffectCall, to: str) -> Happened:
        over.wait(3600)
        return Happened(None)

    lookup: Any = blocks if plain else waits_for_ever

    @effect(f"outbox-hanging-{plain}", in_doubt="reconcile", lookup=lookup, timeout="1s")
    def bad(call: EffectCall, to: str) -> None:
        raise TimeoutError("no answer")

    mail = _mail(log, f"outbox-not-kept-back-{plain}")
    run = lonely_drive(chain(lambda state: bad.enqueue("bob@example.org") and None), {})
    dispatch(run.installation)
    run.pass_time("5m")
    run = lonely_drive(chain(lambda state: mail.enqueue("ada@example.org") and None), {})

    report = dispatch(run.installation)

    assert (report.sent, report.doubtful) == (1, 1)
    assert _mails(log) == Counter(["ada@example.org"])
    over.set()


def test_two_dispatchers_do_not_look_up_the_same_intent_at_once(lonely_drive: Driver) -> None:
    seen: list[list[str]] = []

    async def lookup(call: EffectCall, to: str) -> Happened:
        with connection(run) as conn:
            due = conn.execute("SELECT tool FROM effects WHERE next_try_at <= ledger_now()")
            seen.append([row["tool"] for row in due])
        return Happened("found")

    @effect("outbox-one-look-up", in_doubt="reconcile", lookup=lookup)
    def mail(call: EffectCall, to: str) -> None:
        raise TimeoutError("no answer")

    run = lonely_drive(chain(lambda state: mail.enqueue("ada@example.org") and None), {})
    dispatch(run.installation)
    run.pass_time("5m")

    assert dispatch(run.installation).sent == 1
    assert seen == [[]]
    with connection(run) as conn:
        assert conn.execute("SELECT next_try_at FROM effects").fetchone() == {"next_try_at": None}


@pytest.mark.parametrize("tasks", [False, True])
def test_an_intent_of_a_pass_that_failed_in_place_is_dropped_when_the_next_makes_no_effect(
    lonely_drive: Driver, log: Log, tasks: bool
) -> None:
    mail = _mail(log, f"outbox-in-place-{tasks}")
    retry = RetryPolicy(max_attempts=2, initial_interval=0.01)

    def node(state: State) -> None:
        log("node")
        if log.count("node") == 1:
            mail.enqueue("ghost@example.org")
            raise ConnectionResetError("before the node ends")

    @entrypoint()
    def calling(state: State) -> None:
        task(node, retry_policy=retry)(state).result()  # type: ignore[call-overload]

    run = lonely_drive(calling if tasks else chain(node, retry=retry), {})
    dispatch(run.installation)

    assert run.status == "finished"
    assert log.lines == ["node", "node"]


def test_what_a_node_calls_between_its_intents_does_not_count_as_another_pass(
    lonely_drive: Driver, log: Log
) -> None:
    mail = _mail(log, "outbox-nested")
    same_name = RunnableLambda(lambda given: given, name="node")

    @tool
    def ask(what: int) -> int:
        """A tool that runs a chain of its own."""
        return int(same_name.invoke(what))

    below = chain(lambda state: same_name.invoke(1) and None).compile()

    def node(state: State) -> None:
        mail.enqueue("first@example.org")
        same_name.invoke(1)
        ask.invoke({"what": 1})
        below.invoke({})
        mail.enqueue("second@example.org")
        same_name.batch([1, 2])

    run = lonely_drive(chain(node), {})
    dispatch(run.installation)

    assert _mails(log) == Counter(["first@example.org", "second@example.org"])


def test_a_node_that_failed_releases_nothing_also_when_the_graph_handles_its_error(
    lonely_drive: Driver, log: Log
) -> None:
    mail = _mail(log, "outbox-handled")

    def node(state: State) -> State:
        mail.enqueue("ada@example.org")
        raise LookupError("not today")

    def handle(state: State) -> State:
        return {"seen": ["handled"]}

    graph = StateGraph(State)
    graph.add_node("node", node, error_handler=handle)
    graph.add_edge(START, "node")
    run = lonely_drive(graph, {})

    assert run.output["seen"] == ["handled"]
    assert dispatch(run.installation).sent == 0
    assert not _mails(log)


def test_what_an_intent_did_is_kept_when_the_dispatchers_connection_breaks_in_the_call(
    lonely_drive: Driver, log: Log
) -> None:
    urls: list[str] = []

    @effect("outbox-cut-off", in_doubt="ask")
    def mail(call: EffectCall, to: str) -> str:
        with psycopg.connect(urls[0]) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND application_name LIKE 'celegraph pen%'"
            )
        log(f"mail {to}")
        return f"sent to {to}"

    run = lonely_drive(chain(lambda state: mail.enqueue("ada@example.org") and None), {})
    urls.append(run.installation.config.database_url)
    with pytest.raises(psycopg.OperationalError):
        dispatch(run.installation)
    dispatch(run.installation)

    assert [(e.status, e.result) for e in run.effects] == [("sent", "sent to ada@example.org")]
    assert _mails(log) == Counter(["ada@example.org"])
    assert run.approvals == []


def test_a_dispatcher_whose_call_waited_for_a_free_thread_beyond_the_window_does_not_call(
    lonely_drive: Driver, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    mail = _mail(log, "outbox-crowded", lambda call, to: log(f"call {call.attempt}"))
    run = lonely_drive(chain(lambda state: mail.enqueue("ada@example.org") and None), {})
    config = run.installation.config
    now = [0.0]
    monkeypatch.setattr("celegraph.agent.dispatch.boot_time", lambda: now[0])
    free = threading.Event()
    executor = current_slot(config).executor
    crowd = [executor.submit(free.wait) for _ in range(executor._max_workers)]

    def pass_the_window() -> None:
        eventually(lambda: run.effects[0].attempts == 1)
        now[0] += config.call_window.total_seconds() + 1
        free.set()

    watch = threading.Thread(target=pass_the_window)
    watch.start()
    report = dispatch(run.installation)
    watch.join()
    assert all(job.result() for job in crowd)

    # Claimed anew, within a window of its own.
    assert (report.sent, report.failed) == (1, 1)
    assert log.lines == ["call 2", "mail ada@example.org"]


class _Fleeting(TypedDict, total=False):
    client: Annotated[Any, UntrackedValue]


@pytest.mark.parametrize("death", ["none", "before its writes", "after its writes"])
def test_an_intent_of_a_last_node_whose_values_are_all_untracked_is_released_with_it(
    lonely_drive: Driver, log: Log, monkeypatch: pytest.MonkeyPatch, death: str
) -> None:
    mail = _mail(log, "outbox-untracked")

    def node(state: _Fleeting) -> _Fleeting:
        log("node")
        mail.enqueue("both@example.org")
        if log.count("node") == 1 and death == "before its writes":
            mail.enqueue("ghost@example.org")
        return {"client": object()}

    graph = StateGraph(_Fleeting)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    if death != "none":
        with monkeypatch.context() as mortal:
            write, put = AsyncPostgresSaver.aput_writes, Saver.aput

            async def die_first(saver: AsyncPostgresSaver, *args: Any) -> None:
                if log.count("node") and death == "before its writes":
                    die()
                await write(saver, *args)

            async def die_then(saver: Saver, *args: Any) -> Any:
                stored = await put(saver, *args)
                if log.count("node"):
                    die()
                return stored

            mortal.setattr(AsyncPostgresSaver, "aput_writes", die_first)
            mortal.setattr(Saver, "aput", die_then)
            process_dies(lambda: lonely_drive(graph, {}, run_id="untracked"))
    run = taken_over(lonely_drive(graph, {}, run_id="untracked"))

    while dispatch(run.installation).sent:
        pass

    assert run.status == "finished"
    assert _mails(log) == Counter(["both@example.org"])
    assert log.count("node") == (2 if death == "before its writes" else 1)


@pytest.mark.parametrize("whom", VICTIMS)
def test_an_intent_that_ends_in_a_cancellation_of_its_own_making_is_in_doubt(
    lonely_drive: Driver, log: Log, whom: str
) -> None:
    """A client whose background task is cancelled with its connection lets the error through."""

    @effect(f"cancelled mail to {whom}", in_doubt="retry")
    async def mail(call: EffectCall, to: str) -> str:
        log(f"call {call.attempt}")
        if call.attempt == 1:
            await cancelled(whom)
        return "sent"

    async def node(state: State) -> State:
        return {"seen": [await mail.enqueue("ada@example.org")]}

    run = lonely_drive(chain(node), {})

    assert dispatch(run.installation).doubtful == 1
    run.pass_time("2m")
    assert dispatch(run.installation).sent == 1
    assert log.lines == ["call 1", "call 2"]


def test_a_dispatcher_that_is_to_stop_leaves_the_rest_to_the_next(lonely_drive: Driver, log: Log) -> None:
    @effect("hurried mail")
    def mail(call: EffectCall, to: str) -> str:
        log(to)
        return "sent"

    def node(state: State) -> State:
        return {"seen": [mail.enqueue(f"{name}@example.org") for name in ("ada", "bob", "cy")]}

    run = lonely_drive(chain(node), {})

    async def work(slot: Slot) -> int:
        pen = await slot.ready_pen()
        config, policy_of = run.installation.config, run.installation.policy_for
        report = await dispatch_once(pen, config, policy_of, enough=lambda: len(log.lines) >= 2)
        return report.sent

    slot = current_slot(run.installation.config)
    assert slot.run(work(slot)) == 2
    assert dispatch(run.installation).sent == 1
    assert len(log.lines) == 3
