"""A statement that the server gives up half-way: a time limit of the role's, or an administrator's cancel."""

from __future__ import annotations

import threading

import psycopg
import pytest
from psycopg import sql

from celegraph import EffectCall, effect
from celegraph.testing.database import Ledger
from celegraph.testing.driver import Driver
from tests.support.databases import cut_what_waits_for
from tests.support.driving import kinds
from tests.support.log import Log
from tests.support.shapes import State, chain


def cut_the_next_write(ledger: Ledger) -> None:
    """The next statement that writes an effect waits for us, is cancelled, and then nobody is in its way."""
    holder = psycopg.connect(ledger.database_url)
    holder.execute(sql.SQL("LOCK TABLE {} IN SHARE MODE").format(sql.Identifier(ledger.schema, "effects")))

    def cut() -> None:
        with holder, psycopg.connect(ledger.database_url, autocommit=True) as conn:
            cut_what_waits_for(holder, conn)

    threading.Thread(target=cut, daemon=True).start()


@pytest.mark.parametrize("statement", ["reserve", "record"])
def test_a_cut_statement_of_an_effect_is_no_failure_and_no_doubt(
    drive: Driver, log: Log, statement: str
) -> None:
    @effect("cut.pay", in_doubt="ask")
    async def pay(call: EffectCall) -> str:
        log("pay")
        if statement == "record":
            cut_the_next_write(drive.ledger)
        return "paid"

    async def node(state: State) -> State:
        log("node")
        if statement == "reserve" and log.count("node") == 1:
            cut_the_next_write(drive.ledger)
        return {"seen": [await pay()]}

    run = drive(chain(node), {})

    assert run.output["seen"] == ["paid"]
    assert (log.count("node"), log.count("pay")) == (2, 1)
    assert kinds(run).count("sleeps") == 1
    assert "asked" not in kinds(run)
