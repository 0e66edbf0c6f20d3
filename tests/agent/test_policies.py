"""Policies as data: what is accepted, what is refused, and what is kept in the row."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pydantic import ValidationError

from celegraph import ApprovalPolicy, Step
from celegraph.agent.policy import approval_policy, check_channels
from celegraph.config import load_config
from celegraph.errors import ConfigError

BERLIN = ZoneInfo("Europe/Berlin")
CHAIN = [Step("1h", to="duty-manager", by="email")]


def test_the_policy_of_the_contract_reads_as_written() -> None:
    policy = ApprovalPolicy(
        deadline="2h",
        remind=["30m"],
        escalate=[Step("1h", to="duty-manager", by="email")],
        on_timeout="reject",
    )

    assert policy.deadline == timedelta(hours=2)
    assert policy.remind == (timedelta(minutes=30),)
    assert policy.escalate == (Step(timedelta(hours=1), to="duty-manager"),)


def test_a_policy_comes_back_from_json_as_it_was() -> None:
    policy = ApprovalPolicy(
        deadline=datetime(2026, 10, 24, 12, tzinfo=BERLIN) + timedelta(days=1),
        remind=["30m", "1h30m"],
        escalate=CHAIN,
        notify=[Step(to="refunds@shop.example")],
        on_timeout="escalate",
        ask_again="6h",
    )

    again = ApprovalPolicy.model_validate_json(policy.model_dump_json())

    assert again == policy


def test_the_row_has_the_steps_in_the_order_of_their_times() -> None:
    policy = ApprovalPolicy(
        deadline="1d", remind=["2h", "1h"], escalate=[Step("1h", to="b"), Step("30m", to="a")]
    )

    stages = [(s["what"], s["after"], s.get("to")) for s in policy.as_row()["stages"]]

    assert stages == [
        ("escalation", 1800.0, "a"),
        ("escalation", 3600.0, "b"),
        ("reminder", 3600.0, None),
        ("reminder", 7200.0, None),
    ]


@pytest.mark.parametrize(
    ("given", "instant"),
    [
        # Both nights on which the clocks change, the hour that is there twice and the one that is not.
        (datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=0), "2026-10-25T00:30:00+00:00"),
        (datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=1), "2026-10-25T01:30:00+00:00"),
        (datetime(2026, 3, 29, 2, 30, tzinfo=BERLIN), "2026-03-29T01:30:00+00:00"),
        (datetime(2028, 2, 29, 12, tzinfo=BERLIN), "2028-02-29T11:00:00+00:00"),
        (datetime(2027, 2, 28, 23, 59, 59, tzinfo=UTC), "2027-02-28T23:59:59+00:00"),
        (datetime(2027, 1, 31, 0, 0, tzinfo=ZoneInfo("Asia/Kathmandu")), "2027-01-30T18:15:00+00:00"),
        ("2027-01-31T12:00:00+02:00", "2027-01-31T10:00:00+00:00"),
    ],
)
def test_f112_an_absolute_deadline_is_the_instant_that_its_zone_names(given: Any, instant: str) -> None:
    """F112: summer time, leap days and month ends are decided when the policy is made, never later."""
    policy = ApprovalPolicy(deadline=given)

    kept = ApprovalPolicy.model_validate(policy.model_dump(mode="json")).deadline

    assert isinstance(kept, datetime)
    assert kept.astimezone(UTC).isoformat() == instant


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"deadline": datetime(2027, 1, 1, 12)}, "no time zone"),  # noqa: DTZ001
        ({"deadline": "2027-01-01T12:00"}, "no time zone"),
        ({"deadline": datetime.max.replace(tzinfo=UTC)}, "hundred years"),
        ({"deadline": "40000d"}, "hundred years"),
        ({"deadline": "soon"}, "not a duration"),
        ({"deadline": "-5"}, "not a duration"),
        ({"deadline": -5}, "nobody time to answer"),
        ({"deadline": timedelta(0)}, "nobody time to answer"),
        ({"deadline": "0s", "on_timeout": "approve"}, "nobody time to answer"),
        ({"deadline": float("inf")}, "longer than any duration"),
        ({"deadline": f"{'9' * 20}d"}, "longer than any duration"),
        ({"deadline": "1h", "remind": ["1h"]}, "not before the deadline"),
        ({"deadline": "1h", "escalate": [Step("2h", to="a")]}, "not before the deadline"),
        ({"remind": ["0s"]}, "greater than or equal"),
        ({"remind": ["1m"] * 21}, "at most 20"),
        ({"escalate": [Step(to="a")]}, "needs a time"),
        ({"notify": [Step("1h", to="a")]}, "told at once"),
        ({"on_timeout": "cancel"}, "needs a deadline"),
        ({"deadline": "1h", "on_timeout": "escalate"}, "whom shall it ask"),
        (
            {"deadline": "1h", "on_timeout": "maybe"},
            "'reject', 'cancel', 'approve', 'read_only' or 'escalate'",
        ),
        ({"dealine": "1h"}, "not permitted"),
        ({"escalate": [{"after": "1h", "too": "a"}]}, "not permitted"),
        ({"escalate": [{"after": "1h", "to": "a\nBcc: b"}]}, "match pattern"),
        ({"escalate": [{"after": "1h", "to": ""}]}, "at least 1"),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused_when_it_is_made(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        ApprovalPolicy(**given)


def test_a_wrong_default_policy_is_named_by_its_key() -> None:
    with pytest.raises(ConfigError, match=r"option 'approval\.remind\.0'"):
        approval_policy({"remind": ["often"]})


def test_a_channel_that_nobody_configured_is_refused_with_those_that_are_there() -> None:
    config = load_config(
        {
            "database_url": "postgresql://nobody@nowhere/x",
            "channels": {"sms": {"kind": "call", "call": "shop.sms:send"}},
        }
    )

    with pytest.raises(ConfigError, match=r"'email'.*configured: sms"):
        check_channels(ApprovalPolicy(deadline="2h", escalate=CHAIN), config)


def test_who_is_told_comes_from_the_agent_where_a_question_does_not_say() -> None:
    agents = ApprovalPolicy(notify=[Step(to="team")])

    assert ApprovalPolicy(deadline="1h").as_row(agents)["notify"] == [
        {"after": 0.0, "to": "team", "by": "email"}
    ]
    assert ApprovalPolicy(notify=[]).as_row(agents)["notify"] == []
