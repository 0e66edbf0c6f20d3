"""What is other than before is marked, and nothing else is."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

import pytest

from celegraph.contrib.web.question import subjects
from celegraph.ledger.approvals import Approval
from celegraph.ledger.canonical import encode_result


@pytest.mark.parametrize(
    ("before", "now", "changed"),
    [
        (1, 1, False),
        ({"a": [1, None]}, {"a": [1, None]}, False),
        (Decimal("1.0"), Decimal("1.0"), False),
        (1, 2, True),
        (1, True, True),
        (1, "1", True),
        (1, 1.0, True),
        ([0], [False], True),
        (Decimal("1.0"), Decimal("1.00"), True),
    ],
)
def test_a_value_of_another_type_is_another_argument(before: Any, now: Any, changed: bool) -> None:
    asked = SimpleNamespace(
        kind="interrupt",
        tool="pay",
        args_hash="hash",
        args=encode_result({"amount": now}),
        previous={"args": encode_result({"amount": before}), "status": "approved", "by": "ada"},
    )

    (subject,) = subjects(cast(Approval, asked))

    assert subject.changed is changed
