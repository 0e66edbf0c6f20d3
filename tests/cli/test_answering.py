"""approvals, decide, resolve: a person's answers, typed where only the database is known."""

from __future__ import annotations

from decimal import Decimal

import pytest
from langgraph.graph import START, StateGraph

from celegraph import EffectCall, ask_approval, effect
from celegraph.testing.driver import Driven, Driver
from tests.cli.conftest import CommandLine
from tests.cli.refund import INPUT, SECRET, State, chain, refund


@pytest.fixture
def asked(waiting: Driven) -> str:
    """The open question's id."""
    return waiting.approvals[0].approval_id


def test_approvals_show_what_is_decided(cli: CommandLine, asked: str) -> None:
    (approval,) = cli.json("approvals")

    assert approval["approval_id"] == asked
    assert approval["prompt"].startswith("Refund 19.99 EUR?")
    assert approval["args"] == {"order": "o-1", "amount": "19.99", "iban": SECRET}
    said = cli("approvals").stdout
    assert asked in said
    assert SECRET in said


def test_approvals_say_who_asks_what_is_bound_and_what_silence_means(cli: CommandLine, asked: str) -> None:
    said = cli("approvals").stdout

    assert "  asked by last 20" in said
    assert (
        "  Approve: The run goes on. This pays for one call of refund with exactly these arguments.\n" in said
    )
    assert "  Nobody answers: If nobody answers by then, the agent goes on without it.\n" in said
    (approval,) = cli.json("approvals")
    assert (approval["asked"]["node"], approval["silence"], approval["previous"]) == ("last", "reject", None)
    assert "What silence means" in cli("decide", "--help").stdout


def test_a_question_that_is_asked_again_says_how_it_was_decided(cli: CommandLine, drive: Driver) -> None:
    amounts = iter([1, 2])

    def ask(state: State) -> State:
        return {"decided": ask_approval(refund.bind("o", Decimal(next(amounts)), "i"), prompt="?").status}

    run = drive(chain(ask), INPUT)
    cli("decide", run.approvals[0].approval_id, "approve", "--by", "ana")
    run.resume()

    assert "asked again: the last time it was approved by ana" in cli("approvals").stdout
    (approval,) = cli.json("approvals")
    assert approval["args"]["amount"] == "2"
    assert approval["previous"]["args"]["amount"] == "1"


def test_a_prompt_cannot_move_the_terminal(cli: CommandLine, asked: str) -> None:
    said = cli("approvals").stdout

    assert "\x1b" not in said
    assert "\\x1b[31mto the customer" in said


def test_only_open_questions_are_listed_unless_told_otherwise(cli: CommandLine, asked: str) -> None:
    cli("decide", asked, "reject", "--by", "ana", "--note", "too late")

    assert cli("approvals").stdout == "no open questions\n"
    assert "rejected" in cli("approvals", "--all").stdout
    assert "by ana: too late" in cli("approvals", "--status", "rejected").stdout
    assert cli.json("approvals", "--all", "--run", "other") == []


def test_approving_without_an_app_makes_the_run_go_on(cli: CommandLine, asked: str, waiting: Driven) -> None:
    result = cli("decide", asked, "approve", "--by", "ana")

    assert result.stdout == f"{asked} is approved; run run-1 goes on\n"
    assert result.stderr == ""
    assert waiting.run.status == "ready"
    assert waiting.run.rung_at is None  # so the next sweep rings at once
    assert waiting.resume().status == "finished"
    assert [act.status for act in waiting.effects] == ["sent"]


def test_the_first_decision_stands_and_the_second_is_told(cli: CommandLine, asked: str) -> None:
    assert cli("decide", asked, "reject", "--by", "ana").exit_code == 0

    late = cli("decide", asked, "approve", "--by", "bob")

    assert late.exit_code == 1
    assert f"too late: {asked} was rejected by ana" in late.stdout


def test_a_late_decision_tells_what_came_of_the_effect(cli: CommandLine, asked: str, waiting: Driven) -> None:
    waiting.resume(["approve"])

    result = cli("decide", asked, "reject", "--by", "bob", "--json")

    assert result.exit_code == 1
    assert '"won": false' in result.stdout
    assert '"effect_status": "sent"' in result.stdout
    assert '"effect_result": "receipt"' in result.stdout


def test_an_edit_binds_the_new_arguments(cli: CommandLine, asked: str, waiting: Driven) -> None:
    cli("decide", asked, "edit", "--by", "ana", "--args", '{"order": "o-2"}')

    waiting.resume()

    assert [act.args["order"] for act in waiting.effects] == ["o-2"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["edit", "--by", "a", "--args", "order=o-2"], "'order=o-2' is not JSON"),
        (["edit", "--by", "a", "--args", "[1]"], "must be a JSON object"),
        (["answer", "--by", "a", "--value", "yes"], "text needs quotes: '\"yes\"'"),
        (["answer", "--by", "a", "--value", "[" * 20_000], "is not JSON"),
        (["answer", "--by", "a", "--value", "9" * 5_000], "is not JSON"),
        (["approve"], "Missing option '--by'"),
        (["agree", "--by", "a"], "'agree' is not one of"),
        (
            ["edit", "--by", "a", "--args", '{"ordre": 1}'],
            "unknown argument 'ordre' (it has: amount, iban, order)",
        ),
        (["edit", "--by", "a"], "args= goes with 'edit'"),
        (["approve", "--by", ""], "by= must name who decides"),
    ],
)
def test_a_decision_that_does_not_fit_changes_nothing(
    cli: CommandLine, asked: str, waiting: Driven, words: list[str], said: str
) -> None:
    result = cli("decide", asked, *words)

    assert result.exit_code != 0
    assert said in result.stderr
    assert waiting.approvals[0].status == "open"


# -- doubts ----------------------------------------------------------------------------------------


@effect("wire", in_doubt="ask")
def wire(call: EffectCall) -> str:
    """Nobody sees whether it happened."""
    raise TimeoutError("no answer")


def _wire(state: State) -> State:
    return {"decided": wire()}


@pytest.fixture
def doubt(drive: Driver) -> Driven:
    """A run that asks whether its effect happened."""
    graph = StateGraph(State)
    graph.add_node("wire", _wire)
    graph.add_edge(START, "wire")
    return drive(graph, {}, run_id="run-3")


def test_a_doubt_is_resolved_by_its_key(cli: CommandLine, doubt: Driven) -> None:
    (act,) = doubt.effects
    assert (
        f"  celegraph resolve {act.key} happened|did_not_happen|skip --by NAME\n" in cli("approvals").stdout
    )

    result = cli("resolve", act.key, "happened", "--by", "ana", "--ref", "w-1")

    assert result.stdout == f"effect 'wire' ({act.key}) is sent; run run-3 goes on\n"
    assert doubt.resume().output["decided"] == "w-1"


def test_a_doubts_question_takes_the_providers_reference(cli: CommandLine, doubt: Driven) -> None:
    (question,) = doubt.approvals

    said = cli(
        "decide", question.approval_id, "answer", "--by", "ana", "--value", '"happened"', "--ref", "w-2"
    ).stdout

    assert said == f"{question.approval_id} is approved; run run-3 goes on; its effect is sent\n"
    assert doubt.resume().output["decided"] == "w-2"


@pytest.mark.parametrize("way", ["decide", "resolve"])
def test_a_doubt_of_an_ended_run_is_answered_and_nothing_goes_on(
    cli: CommandLine, doubt: Driven, way: str
) -> None:
    (question,), (act,) = doubt.approvals, doubt.effects
    cli("cancel", "run-3")
    assert (
        "  Any answer: It is recorded. The run has ended, and nothing follows.\n" in cli("approvals").stdout
    )

    answer = ["happened"] if way == "resolve" else ["answer", "--value", '"happened"']
    said = cli(way, act.key if way == "resolve" else question.approval_id, *answer, "--by", "ana").stdout

    assert "run run-3 has ended" in said
    assert [e.status for e in doubt.effects] == ["sent"]


def test_a_doubt_that_is_settled_cannot_be_settled_again(cli: CommandLine, doubt: Driven) -> None:
    (act,) = doubt.effects
    assert cli.json("resolve", act.key, "happened", "--by", "ana")["status"] == "sent"

    result = cli("resolve", act.key, "skip", "--by", "bob")

    assert result.exit_code == 1
    assert "as skip: it is sent" in result.stderr


def test_not_happened_is_not_believed_while_a_call_may_be_under_way(cli: CommandLine, doubt: Driven) -> None:
    (act,) = doubt.effects

    result = cli("resolve", act.key, "did_not_happen", "--by", "ana")

    assert result.exit_code == 1
    assert "a call may still be under way for" in result.stderr
    doubt.pass_time("2m")
    assert cli.json("resolve", act.key, "did_not_happen", "--by", "ana")["status"] == "failed"


def test_an_unknown_key_points_to_the_trace(cli: CommandLine) -> None:
    result = cli("resolve", "cg-none", "skip", "--by", "ana")

    assert (result.exit_code, result.stderr) == (
        1,
        "error: no effect 'cg-none'; `celegraph trace RUN` shows a run's effects\n",
    )
