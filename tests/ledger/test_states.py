"""The chart, the table in the code and the CHECKs of the table say the same."""

from __future__ import annotations

import re
from pathlib import Path

from celegraph.ledger.connect import Conn
from celegraph.ledger.states import APPROVAL_STATUSES, ARROWS, EFFECT_STATUSES, STATUSES, TERMINAL

DOC = Path(__file__).parents[2] / "docs" / "state_machine.md"


def documented() -> dict[str, tuple[frozenset[str], str]]:
    rows = re.findall(r"^\| (\w+) \| ([\w, -]+) \| (\w+) \| .+\. \|$", DOC.read_text(), re.MULTILINE)
    return {
        verb: (frozenset(origins.split(", ")) - {"-"}, to) for verb, origins, to in rows if verb != "verb"
    }


def charted() -> set[tuple[str, str, str]]:
    lines = re.findall(r"^    (\w+|\[\*\]) --> (\w+): ([\w, ]+)$", DOC.read_text(), re.MULTILINE)
    return {(verb, origin, to) for origin, to, verbs in lines for verb in verbs.split(", ")}


def statuses_in_check(conn: Conn, name: str) -> set[str]:
    row = conn.execute(
        "SELECT pg_get_constraintdef(oid) AS text FROM pg_constraint WHERE conname = %s", (name,)
    ).fetchone()
    assert row is not None
    return set(re.findall(r"'(\w+)'::text", row["text"]))


def test_every_arrow_of_the_code_is_documented_with_a_sentence_and_none_besides() -> None:
    assert documented() == ARROWS


def test_the_chart_shows_exactly_the_arrows_of_the_code() -> None:
    expected = {(verb, origin, to) for verb, (origins, to) in ARROWS.items() for origin in origins or {"[*]"}}
    assert charted() == expected


def test_the_tables_checks_know_exactly_these_statuses(conn: Conn) -> None:
    assert statuses_in_check(conn, "runs_status") == set(STATUSES)
    assert statuses_in_check(conn, "runs_finished_at_iff_terminal") == set(TERMINAL)
    assert statuses_in_check(conn, "effects_status") == set(EFFECT_STATUSES)
    assert statuses_in_check(conn, "approvals_status") == set(APPROVAL_STATUSES)


def test_arrows_lead_only_between_known_statuses_and_reach_all_of_them() -> None:
    targets = {to for _, to in ARROWS.values()}
    origins = {origin for origins, _ in ARROWS.values() for origin in origins}
    assert targets == set(STATUSES)
    assert origins <= set(STATUSES)
    assert not origins & (TERMINAL - {"failed"})
