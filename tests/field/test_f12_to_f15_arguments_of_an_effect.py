"""F12 dict order, F13 1 vs 1.0 after a JSON hop, F14 Decimal, datetime, UUID, bytes, set as arguments,
F15 non-string dict keys: at the product's surface, with a provider's own log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from celegraph import EffectCall, effect
from celegraph.testing.driver import Driven, Driver
from tests.support.log import Log
from tests.support.shapes import State, chain


def called_again_with(drive: Driver, log: Log, first: Any, second: Any) -> Driven:
    """A node calls with `first`, fails after the effect, and calls with `second` when it runs again."""

    @effect("pay")
    def pay(call: EffectCall, body: Any) -> str:
        log(f"act {call.key}")
        return "receipt"

    passes: list[None] = []

    def node(state: State) -> State:
        passes.append(None)
        receipt = pay(first if len(passes) == 1 else second)
        if len(passes) == 1:
            raise ConnectionResetError("after the effect")
        return {"seen": [receipt]}

    return drive(chain(node), {})


SAME: list[tuple[Any, Any]] = [
    ({"b": 1, "a": {"y": 2, "x": [{"q": 1, "p": 2}]}}, {"a": {"x": [{"p": 2, "q": 1}], "y": 2}, "b": 1}),
    ({"hours": 1.0}, {"hours": 1}),
    ({"n": 1e2}, {"n": 100}),
    ({"amount": Decimal("10.00")}, {"amount": Decimal("10")}),
    (
        {"at": datetime(2026, 3, 29, 2, 30, tzinfo=UTC)},
        {"at": datetime(2026, 3, 29, 4, 30, tzinfo=timezone(timedelta(hours=2)))},
    ),
    ({"id": UUID(int=1)}, {"id": UUID(int=1)}),
    ({"b": b"\xff"}, {"b": b"\xff"}),
]


@pytest.mark.parametrize(("first", "second"), SAME, ids=[str(a) for a, _ in SAME])
def test_equal_arguments_in_another_form_are_one_act(
    drive: Driver, log: Log, first: Any, second: Any
) -> None:
    run = called_again_with(drive, log, first, second)

    assert run.output["seen"] == ["receipt"]
    assert len(log.lines) == 1
    assert [a.status for a in run.effects] == ["sent"]


OTHERS: list[tuple[Any, Any]] = [
    ({"x": [1, 2]}, {"x": [2, 1]}),
    ({"n": True}, {"n": 1}),
    ({"id": "1"}, {"id": 1}),
    ({"amount": Decimal("10")}, {"amount": 10}),
]


@pytest.mark.parametrize(("first", "second"), OTHERS, ids=[str(a) for a, _ in OTHERS])
def test_other_arguments_are_never_taken_for_the_recorded_call(
    drive: Driver, log: Log, first: Any, second: Any
) -> None:
    run = called_again_with(drive, log, first, second)

    assert run.status == "waiting"
    assert [a.kind for a in run.approvals] == ["drift"]
    assert len(log.lines) == 1


NAIVE = datetime(2026, 3, 29)  # noqa: DTZ001 - refused for that

NAIVE = datetime(2026, 3, 29)  # noqa: DTZ001 - refused for that

REFUSED: list[tuple[Any, str]] = [
    ({"s": {"a", "b"}}, "args.body.s"),
    ({"at": NAIVE}, "args.body.at"),
    ({"amount": Decimal("NaN")}, "args.body.amount"),
    ({"deep": [{"note": "nul \x00"}]}, "args.body.deep[0].note"),
    ({"who": object()}, "args.body.who"),
    ({1: "a", "b": 2}, "args.body"),
    ({1: "a", "1": "b"}, "args.body"),
]


@pytest.mark.parametrize(("body", "path"), REFUSED, ids=[path for _, path in REFUSED])
def test_what_has_no_stable_form_is_refused_with_its_path_and_leaves_no_row(
    drive: Driver, log: Log, body: Any, path: str
) -> None:
    run = called_again_with(drive, log, body, body)

    assert run.status == "failed"
    assert run.run.error["message"].startswith(path)
    assert (log.lines, run.effects) == ([], [])
