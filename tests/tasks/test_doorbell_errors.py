"""What of a failing doorbell reaches Celery's log, events and Flower."""

from __future__ import annotations

import pickle

import psycopg
import pytest
from celery.utils.serialization import get_pickleable_exception

from celegraph.errors import CelegraphError, DoorbellFailed, RunFailed, UnknownAgent
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


@pytest.mark.parametrize(
    "error",
    [
        RunFailed("run-1", "failed", "see `celegraph explain`"),
        DoorbellFailed("run-1", "OperationalError"),
        UnknownAgent("refnud", ["refund"], "refund"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_reaches_celerys_log_and_flower_as_what_it_is(error: CelegraphError) -> None:
    shown = get_pickleable_exception(error)
    made_again = pickle.loads(pickle.dumps(error))

    assert shown is error
    assert type(made_again) is type(error)
    assert str(made_again) == str(error)
    assert vars(made_again) == vars(error)
