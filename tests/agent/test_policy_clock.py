"""What a policy does while its question is open: reminders, escalation, and what silence means."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from celegraph import ApprovalPolicy, EffectCall, Step, ask_approval, decide, effect
from celegraph.agent.spec import Agent
from celegraph.config import load_config
from celegraph.errors import EffectsDisabled
from celegraph.ledger import approvals
from celegraph.ledger.approvals import Moved
from celegraph.ledger.connect import connect
from celegraph.ledger.sweep import sweep_once
from celegraph.tasks.installation import using
from celegraph.testing.driver import Driven, Driver
from tests.support.driving import connection, event, kinds
from tests.support.log import Log
from tests.support.shapes import State, chain

SETTINGS = {"channels": {n: {"kind": "call", "call": "tests.support.told:tell"} for n in ("email", "sms")}}
TEAM = [Step(to="team")]
CHAIN = [Step("1h", to="duty", by="sms"), Step("3h", to="boss")]


def asking(policy: ApprovalPolicy) -> Any:
    def ask(state: State) -> State:
        decision = ask_approval(prompt="go?", policy=policy)
        return {"seen": [decision.status, decision.by, decision.approved]}

    return chain(ask)


def asked(drive: Driver, policy: ApprovalPolicy) -> Driven:
    return drive(asking(policy), {}, settings=SETTINGS)


def tick(run: Driven) -> list[Moved]:
    """One escalation tick, without driving the run."""
    with connection(run) as conn:
        return [m for m in approvals.move_due(conn) if m.run_id == run.run_id]


def told(run: Driven) -> list[tuple[str, str, str]]:
    """What, to whom, by which channel; in the order of the keys' making."""
    return [(n.args["what"], n.args["to"], n.tool.removeprefix("notify:")) for n in run.notices]


def test_whoever_shall_know_is_told_when_the_question_opens(lonely_drive: Driver) -> None:
    run = asked(lonely_drive, ApprovalPolicy(notify=[*TEAM, Step(to="ann", by="sms")]))

    assert sorted(told(run)) == [("opened", "ann", "sms"), ("opened", "team", "email")]
    assert run.effects == []


def test_the_chain_is_asked_step_by_step_and_reminders_go_to_all_reached_so_far(lonely_drive: Driver) -> None:
    policy = ApprovalPolicy(deadline="5h", notify=TEAM, remind=["30m", "2h"], escalate=CHAIN)
    run = asked(lonely_drive, policy)
    seen: list[set[tuple[str, str, str]]] = []

    for _ in range(4):  # 30m, 1h, 2h, 3h
        before = set(told(run)) if not seen else set().union(*seen) | {("opened", "team", "email")}
        question = run.approvals[0]
        assert question.next_action_at is not None
        with connection(run) as conn:
            now = approvals.get_approval(conn, question.approval_id).now
        assert now is not None
        run.pass_time(question.next_action_at - now)
        tick(run)
        seen.append(set(told(run)) - before)

    assert seen == [
        {("reminder", "team", "email")},
        {("escalation", "duty", "sms")},
        {("reminder", "duty", "sms")},  # and the team again: the same words, another notice
        {("escalation", "boss", "email")},
    ]
    assert told(run).count(("reminder", "team", "email")) == 2
    assert run.approvals[0].stage == 4
    assert kinds(run).count("escalated") == 4


def test_a_tick_that_comes_twice_tells_once(lonely_drive: Driver) -> None:
    run = asked(lonely_drive, ApprovalPolicy(deadline="5h", notify=TEAM, remind=["30m"]))
    run.pass_time("40m")

    assert [len(tick(run)), len(tick(run))] == [1, 0]
    assert told(run).count(("reminder", "team", "email")) == 1


def test_after_an_outage_every_escalation_is_made_and_the_last_reminder(lonely_drive: Driver) -> None:
    policy = ApprovalPolicy(deadline="9h", notify=TEAM, remind=["10m", "20m", "4h"], escalate=CHAIN)
    run = asked(lonely_drive, policy)
    run.pass_time("5h")

    assert len(tick(run)) == 1

    assert sorted(told(run)) == [
        ("escalation", "boss", "email"),
        ("escalation", "duty", "sms"),
        ("opened", "team", "email"),
        ("reminder", "boss", "email"),
        ("reminder", "duty", "sms"),
        ("reminder", "team", "email"),
    ]


def test_after_an_outage_over_a_deadline_that_closes_nothing_the_whole_chain_has_been_asked(
    lonely_drive: Driver,
) -> None:
    policy = ApprovalPolicy(deadline="9h", notify=TEAM, remind=["10m"], escalate=CHAIN, on_timeout="escalate")
    run = asked(lonely_drive, policy)
    run.pass_time("10h")

    assert len(tick(run)) == 1

    assert sorted(told(run)) == [
        ("deadline", "boss", "email"),
        ("escalation", "duty", "sms"),
        ("opened", "team", "email"),
    ]
    assert tick(run) == []


def test_silence_approves_by_policy_and_nobody_is_named(lonely_drive: Driver, log: Log) -> None:
    @effect("silent-refund", requires_approval=True)
    def refund(call: EffectCall, order: str, cents: int) -> str:
        log(f"refund {order} {cents}")
        return "done"

    policy = ApprovalPolicy(deadline="2h", on_timeout="approve")

    def node(state: State) -> State:
        decision = ask_approval(refund.bind("o-1", 1999), prompt="go?", policy=policy)
        return {"seen": [decision.approved, decision.by, refund(**decision.args)]}

    run = lonely_drive(chain(node), {}, ["expire"])

    assert run.output["seen"] == [True, None, "done"]
    assert log.lines == ["refund o-1 1999"]
    (question,) = run.approvals
    assert (question.status, question.decided_by) == ("approved", None)
    assert question.decision == {"verb": "expire", "on_timeout": "approve"}
    assert question.effect_key == run.effects[0].key
    assert event(run, "expired")["on_timeout"] == "approve"


def test_silence_makes_the_run_read_only(lonely_drive: Driver, log: Log) -> None:
    @effect("read-only-refund")
    def refund(call: EffectCall, cents: int) -> str:
        log("refunded")
        return "done"

    def node(state: State) -> State:
        decision = ask_approval(prompt="go?", policy=ApprovalPolicy(deadline="2h", on_timeout="read_only"))
        try:
            refund(1999)
        except EffectsDisabled as disabled:
            return {"seen": [decision.expired, type(disabled).__name__]}
        return {"seen": ["refunded"]}

    run = lonely_drive(chain(node), {}, ["expire"])

    assert run.output["seen"] == [True, "EffectsDisabled"]
    assert run.run.read_only
    assert log.lines == []


def test_a_run_made_read_only_still_gets_the_results_of_what_it_has_done(
    lonely_drive: Driver, log: Log
) -> None:
    @effect("early-refund")
    def refund(call: EffectCall, cents: int) -> str:
        log("refunded")
        return "receipt"

    def node(state: State) -> State:
        receipt = refund(1999)
        policy = ApprovalPolicy(deadline="2h", on_timeout="read_only")
        return {"seen": [receipt, ask_approval(prompt="go?", policy=policy).status]}

    run = lonely_drive(chain(node), {}, ["expire"])

    assert run.output["seen"] == ["receipt", "expired"]
    assert log.lines == ["refunded"]


def test_a_run_that_becomes_read_only_while_it_is_driven_calls_nothing_more(
    lonely_drive: Driver, log: Log
) -> None:
    """The deadline of another branch's question passes in the middle of an attempt."""

    @effect("late-refund")
    def refund(call: EffectCall, cents: int) -> str:
        log("refunded")
        return "done"

    def node(state: State) -> State:
        with connect(load_config({"database_url": lonely_drive.ledger.database_url})) as conn:
            conn.execute("UPDATE runs SET read_only = true")
        try:
            return {"seen": [refund(1999)]}
        except EffectsDisabled:
            return {"seen": ["disabled"]}

    run = lonely_drive(chain(node), {})

    assert (run.output["seen"], log.lines) == (["disabled"], [])


def test_two_questions_that_expire_together_both_mean_what_they_say(lonely_drive: Driver) -> None:
    """One ends the run, the other makes it read-only: neither swallows the other."""
    from tests.support.shapes import parallel

    def left(state: State) -> State:
        return {
            "seen": [
                ask_approval(prompt="l", policy=ApprovalPolicy(deadline="1h", on_timeout="cancel")).status
            ]
        }

    def right(state: State) -> State:
        policy = ApprovalPolicy(deadline="1h", on_timeout="read_only")
        return {"seen": [ask_approval(prompt="r", policy=policy).status]}

    run = lonely_drive(parallel(left, right), {})
    run.pass_time("2h")
    tick(run)

    assert run.run.read_only
    assert run.run.cancel_requested_at is not None


def test_whoever_ends_a_run_whose_question_expired_finds_the_reason_on_record(
    lonely_drive: Driver, database_url: str
) -> None:
    """Its owner at the next step, or the sweep after a tick that died before it could cancel the run."""
    run = asked(lonely_drive, ApprovalPolicy(deadline="1h", on_timeout="cancel"))
    run.pass_time("2h")
    tick(run)

    with connection(run) as conn:
        sweep_once(conn, load_config({"database_url": database_url}))

    assert run.status == "cancelled"
    assert run.run.reason == f"approval {run.approvals[0].approval_id} expired"


def test_escalate_leaves_the_question_open_and_asks_the_last_step_again_and_again(
    lonely_drive: Driver,
) -> None:
    policy = ApprovalPolicy(deadline="4h", notify=TEAM, escalate=CHAIN, on_timeout="escalate", ask_again="6h")
    run = asked(lonely_drive, policy)
    run.pass_time("5h")
    tick(run)
    assert ("deadline", "boss", "email") in told(run)
    assert run.approvals[0].status == "open"

    for _ in range(3):
        run.pass_time("6h")
        assert len(tick(run)) == 1

    assert told(run).count(("again", "boss", "email")) == 3
    assert run.approvals[0].next_action_at is not None
    run.resume(["approve"])
    assert run.output["seen"] == ["approved", "test", True]


def test_silence_is_no_answer_to_a_doubt(lonely_drive: Driver, log: Log) -> None:
    """A policy that would approve, reject or cancel cannot know whether a call has happened."""

    @effect("doubted-refund", in_doubt="ask", timeout="1s")
    def refund(call: EffectCall, cents: int) -> str:
        log("refund")
        raise ConnectionResetError("nobody knows")

    def node(state: State) -> State:
        return {"seen": [refund(1999)]}

    policy = ApprovalPolicy(deadline="2h", on_timeout="cancel", notify=TEAM, escalate=[Step("1h", to="boss")])
    run = lonely_drive(Agent(graph=chain(node), approval=policy), {}, settings=SETTINGS)
    (question,) = run.approvals
    assert (question.kind, question.silence) == ("doubt", None)
    assert question.deadline_at is not None

    run.pass_time("90m")
    tick(run)
    run.pass_time("90m")
    tick(run)
    run.pass_time("25h")
    tick(run)

    assert run.status == "waiting"
    assert [a.status for a in run.approvals] == ["open"]
    assert [(w, t) for w, t, _ in told(run)].count(("escalation", "boss")) == 1
    assert {("opened", "team", "email"), ("deadline", "boss", "email"), ("again", "boss", "email")} <= set(
        told(run)
    )
    run.resume([("answer", "happened")])
    assert run.status == "finished"
    assert log.lines == ["refund"]


def test_an_absolute_deadline_is_kept_to_the_microsecond(lonely_drive: Driver) -> None:
    deadline = datetime.now(UTC) + timedelta(hours=24, microseconds=7)
    run = asked(lonely_drive, ApprovalPolicy(deadline=deadline))

    assert run.approvals[0].deadline_at == deadline


def test_an_absolute_deadline_that_has_passed_is_passed(lonely_drive: Driver) -> None:
    run = asked(lonely_drive, ApprovalPolicy(deadline=datetime(2020, 2, 29, tzinfo=UTC)))

    with using(run.installation), connection(run) as conn:
        decided = decide(run.approvals[0].approval_id, "approve", by="ann", connection=conn)

    assert (decided.won, decided.status) == (False, "expired")
    assert run.resume().output["seen"] == ["expired", None, False]


def test_silence_approves_nothing_that_was_asked_after_its_deadline(lonely_drive: Driver) -> None:
    policy = ApprovalPolicy(deadline=datetime(2020, 2, 29, tzinfo=UTC), on_timeout="approve")
    run = asked(lonely_drive, policy)

    tick(run)

    assert [(a.status, a.silence) for a in run.approvals] == [("open", None)]
    assert run.resume(["approve"]).status == "finished"
    assert run.approvals[0].decided_by == "test"


@pytest.mark.parametrize("policy", [ApprovalPolicy(), ApprovalPolicy(remind=["1h"])])
def test_a_question_without_a_deadline_waits_for_ever(lonely_drive: Driver, policy: ApprovalPolicy) -> None:
    run = asked(lonely_drive, policy)
    run.pass_time("900d")
    tick(run)

    assert run.approvals[0].status == "open"
    assert run.approvals[0].next_action_at is None
