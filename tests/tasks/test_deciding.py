"""What is decided is checked before anything is written, and joins what the host writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any

import psycopg
import pytest
import sqlalchemy
from langgraph.types import interrupt
from pydantic import BaseModel, Field

from celegraph import EffectCall, ask_approval, decide, effect, get_approval, get_run, stream_run
from celegraph.errors import ApprovalNotFound, DecisionRefused, InvalidValue, RunNotFound
from celegraph.ledger.approvals import Approval
from celegraph.ledger.connect import Conn, connect
from celegraph.tasks.decide import Decided
from celegraph.tasks.installation import using
from celegraph.testing.driver import Driven, Driver
from tests.support.shapes import State, chain

BIG = "x" * 1_000_000


class Reason(Enum):
    LATE = "late"
    BROKEN = "broken"


class Address(BaseModel):
    street: str
    number: int = Field(gt=0)


@effect("shaped", in_doubt="retry")
def shaped(
    call: EffectCall,
    order: str,
    cents: Annotated[int, Field(ge=1)],
    rate: Decimal = Decimal("1.5"),
    due: date = date(2027, 1, 31),
    reason: Reason = Reason.LATE,
    to: Address | None = None,
    tags: list[str] | None = None,
) -> str:
    return "done"


@pytest.fixture
def asked(drive: Driver) -> Driven:
    """A run that waits for a yes to `shaped`."""

    def node(state: State) -> State:
        decision = ask_approval(shaped.bind("o-1", 1999), prompt="Refund?")
        return {"seen": [decision.args, shaped(**decision.args)]}

    return drive(chain(node), {})


def decided(run: Driven, verb: str, **how: Any) -> Decided:
    with using(run.installation), connect(run.installation.config) as conn:
        return decide(run.approvals[-1].approval_id, verb, connection=conn, **{"by": "ann", **how})


def questions(run: Driven) -> list[Approval]:
    """Everything about them but the time of looking."""
    return [replace(question, now=None) for question in run.approvals]


@pytest.mark.parametrize(
    ("args", "field", "said"),
    [
        ({"cents": "many"}, "cents", "valid integer"),
        ({"cents": 0}, "cents", "greater than or equal to 1"),
        ({"cents": True}, "cents", "not true or false"),
        ({"cents": None}, "cents", "valid integer"),
        ({"order": 7}, "order", "valid string"),
        ({"rate": "much"}, "rate", "decimal"),
        ({"due": "31.1.2027"}, "due", "date"),
        ({"reason": "lost"}, "reason", "'late' or 'broken'"),
        ({"to": {"street": "A", "number": 0}}, "to.number", "greater than 0"),
        ({"to": {"street": "A"}}, "to.number", "required"),
        ({"tags": "a"}, "tags", "list"),
        ({"centz": 5}, "centz", "it has: cents, due, order, rate, reason, tags, to"),
        ({"order": BIG * 2}, "args", "max_value_bytes"),
        ({"order": "a\0b"}, "order", "NUL"),
    ],
)
def test_an_edit_of_the_wrong_shape_is_refused_by_its_fields_name_and_nothing_changes(
    asked: Driven, args: dict[str, Any], field: str, said: str
) -> None:
    before = questions(asked)

    with pytest.raises(DecisionRefused, match=said) as caught:
        decided(asked, "edit", args=args)

    assert caught.value.field is not None
    assert caught.value.field.startswith(field)
    assert questions(asked) == before


def test_an_edit_as_a_page_sends_it_reaches_the_effect_with_its_own_types(asked: Driven) -> None:
    edit = {"cents": "500", "rate": "2.50", "due": "2028-02-29", "reason": "broken"}

    assert decided(asked, "edit", args=edit).won

    asked.resume()
    assert asked.status == "finished"
    (act,) = asked.effects
    assert act.args == {
        "order": "o-1",
        "cents": 500,
        "rate": Decimal("2.50"),
        "due": date(2028, 2, 29),
        "reason": "broken",
        "to": None,
        "tags": None,
    }
    assert act.args == asked.approvals[0].args | {"rate": Decimal("2.50"), "due": date(2028, 2, 29)}


def test_a_question_says_who_asks_what_is_bound_and_of_which_form(asked: Driven) -> None:
    (question,) = asked.approvals

    assert question.asked == {"agent": "agent", "node": "node", "step": "node@1"}
    assert question.tool == "shaped"
    assert question.args_schema["properties"]["cents"] == {"minimum": 1, "title": "Cents", "type": "integer"}
    assert question.previous is None


def test_asked_again_a_question_says_what_was_decided_on_before(drive: Driver) -> None:
    cents = iter([50, 50, 500, 500, 500])

    def node(state: State) -> State:
        decision = ask_approval(shaped.bind("o-1", next(cents)), prompt="Refund?")
        return {"seen": [decision.args["cents"]]}

    run = drive(chain(node), {})
    next(cents)
    run.resume(["approve"])

    first, second = run.approvals
    assert second.args["cents"] == 500
    assert second.previous["args"]["cents"] == 50
    assert (second.previous["approval_id"], second.previous["by"]) == (first.approval_id, "test")
    run.resume(["approve"])
    assert run.output["seen"] == [500]


@pytest.mark.parametrize(
    ("how", "field"),
    [
        ({"note": BIG}, "note"),
        ({"note": 7}, "note"),
        ({"note": "a\0b"}, "note"),
        ({"by": "x" * 201}, "by"),
        ({"by": None}, "by"),
        ({"args": {"a": 1}}, "args"),
    ],
)
def test_what_no_question_takes_is_refused(asked: Driven, how: dict[str, Any], field: str) -> None:
    with pytest.raises(DecisionRefused) as caught:
        decided(asked, "approve", **how)
    assert caught.value.field == field
    assert asked.approvals[0].status == "open"


@pytest.mark.parametrize("how", [{"value": BIG * 2}, {"value": {1, 2}}])
def test_a_value_that_cannot_be_kept_is_refused(asked: Driven, how: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        decided(asked, "approve", **how)
    assert asked.approvals[0].status == "open"


def test_html_in_a_note_is_text(asked: Driven) -> None:
    note = "<script>alert('x')</script> \N{MONEY BAG}"

    assert decided(asked, "reject", note=note).approval.note == note


def test_an_unknown_question_and_a_closed_one_are_told_apart(asked: Driven) -> None:
    with using(asked.installation), pytest.raises(ApprovalNotFound):
        decide("ap-nothing", "approve", by="ann")
    assert decided(asked, "approve").won

    late = decided(asked, "reject", by="ben")

    assert (late.won, late.status, late.approval.decided_by) == (False, "approved", "ann")


def test_a_prompt_of_a_megabyte_fails_the_run_and_says_so(drive: Driver) -> None:
    def node(state: State) -> None:
        ask_approval(prompt=BIG)

    run = drive(chain(node), {})

    assert run.status == "failed"
    assert "a person reads at most 20000" in run.run.error["message"]
    assert run.approvals == []


def test_arguments_too_large_to_be_an_effects_are_not_asked_about(drive: Driver) -> None:
    def node(state: State) -> None:
        ask_approval(shaped.bind(BIG * 2, 1), prompt="Refund?")

    run = drive(chain(node), {})

    assert (run.status, run.approvals) == ("failed", [])
    assert "max_value_bytes" in run.run.error["message"]


def test_a_long_text_in_a_plain_interrupt_is_cut_where_it_is_read_and_kept_where_it_is_bound(
    drive: Driver,
) -> None:
    def node(state: State) -> State:
        return {"seen": [interrupt("y" * 100_000)]}

    run = drive(chain(node), {}, ["approve"])

    assert run.status == "finished"
    (question,) = run.approvals
    assert len(question.prompt) <= 20_000
    assert question.prompt.endswith("[cut here: 100000 characters in all]")
    assert question.args == "y" * 100_000


@pytest.fixture
def books(asked: Driven) -> Iterator[str]:
    """A host's own table beside ours."""
    url = asked.installation.config.database_url
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("DROP TABLE IF EXISTS public.books; CREATE TABLE public.books (said text)")
    yield url
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("DROP TABLE public.books")


def said(conn: Conn) -> list[Any]:
    return [row["said"] for row in conn.execute("SELECT said FROM public.books").fetchall()]


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("driver", ["psycopg", "sqlalchemy"])
def test_a_decision_and_the_hosts_change_stand_or_fall_together(
    asked: Driven, books: str, driver: str, commits: bool
) -> None:
    (question,) = asked.approvals

    with using(asked.installation):
        if driver == "psycopg":
            with psycopg.connect(books) as host:
                host.execute("INSERT INTO public.books VALUES ('paid')")
                assert decide(question.approval_id, "approve", by="ann", connection=host).won
                (host.commit if commits else host.rollback)()
        else:
            engine = sqlalchemy.create_engine(books.replace("postgresql://", "postgresql+psycopg://"))
            with engine.connect() as host_connection:
                host_connection.execute(sqlalchemy.text("INSERT INTO public.books VALUES ('paid')"))
                assert decide(question.approval_id, "approve", by="ann", connection=host_connection).won
                (host_connection.commit if commits else host_connection.rollback)()
            engine.dispose()

    with connect(asked.installation.config) as conn:
        assert said(conn) == (["paid"] if commits else [])
    assert asked.approvals[0].status == ("approved" if commits else "open")
    assert asked.resume().status == ("finished" if commits else "waiting")


@pytest.mark.parametrize("odd", ["a\0b", "\ud800", 5])
def test_an_id_that_nothing_can_have_is_not_found(asked: Driven, odd: Any) -> None:
    with using(asked.installation):
        with pytest.raises(ApprovalNotFound):
            decide(odd, "approve", by="ana")
        with pytest.raises(ApprovalNotFound):
            get_approval(odd)
        with pytest.raises(RunNotFound):
            get_run(odd)
        with pytest.raises(RunNotFound):
            next(stream_run(odd))
