"""What of a failing doorbell reaches Celery's log, events and Flower."""

from __future__ import annotations

import psycopg
import pytest

from celegraph.errors import DoorbellFailed
from celegraph.tasks import bodies
from celegraph.tasks.installation import ledger_only


def test_what_postgresql_quotes_of_a_row_does_not_reach_celery(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        with psycopg.connect(database_url) as conn:
            conn.execute("CREATE TEMPORARY TABLE t (iban text CHECK (iban = ''))")
            conn.execute("INSERT INTO t VALUES ('DE00TEST')")

    monkeypatch.setattr(bodies, "advance", failing)

    with pytest.raises(DoorbellFailed) as raised:
        bodies.run_doorbell(ledger_only(), "run-1")

    assert "CheckViolation" in str(raised.value)
    assert "DE00TEST" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__
