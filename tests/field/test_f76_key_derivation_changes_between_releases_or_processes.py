"""F76: key derivation changes between releases or processes; what the server holds is the frozen key."""

from __future__ import annotations

import pytest

from celegraph.testing.driver import Driver
from tests.support.shapes import State, chain


@pytest.mark.parametrize(
    ("run_id", "key"),
    [
        ("run-1", 5649154386500085045),
        ("run-2", -5057135344721838695),
        ("run_abc123", 3005319785460973546),
    ],
)
def test_the_lock_in_postgresql_is_the_golden_one_while_the_run_runs(
    lonely_drive: Driver, run_id: str, key: int
) -> None:
    held: list[int] = []

    def node(state: State) -> None:
        import psycopg

        from celegraph.ledger.queries import load

        with psycopg.connect(lonely_drive.ledger.database_url) as conn:
            held.extend(row[0] for row in conn.execute(load("sweep").locks))

    lonely_drive(chain(node), {}, run_id=run_id)

    assert held == [key]
