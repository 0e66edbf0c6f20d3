"""Runs that are admitted in a transaction of SQLAlchemy's, and what nodes find around them."""

from __future__ import annotations

import pytest
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import text

import celegraph
from celegraph.errors import RunConflict, RunNotFound
from tests.flask.shop import Shop


@pytest.fixture
def db(shop: Shop, database_url: str) -> SQLAlchemy:
    """The host's own tables beside the ledger's, through Flask-SQLAlchemy."""
    shop.app.config["SQLALCHEMY_DATABASE_URI"] = database_url.replace(
        "postgresql://", "postgresql+psycopg://"
    )
    db = SQLAlchemy(shop.app)
    with shop.app.app_context():
        db.session.execute(text("CREATE TABLE public.orders (name text PRIMARY KEY)"))
        db.session.commit()
    return db


def _order(db: SQLAlchemy, name: str) -> None:
    db.session.execute(text("INSERT INTO public.orders VALUES (:name)"), {"name": name})


def _orders(db: SQLAlchemy) -> list[str]:
    return list(db.session.scalars(text("SELECT name FROM public.orders ORDER BY name")))


def test_run_and_order_exist_together_or_not_at_all(shop: Shop, db: SQLAlchemy) -> None:
    with shop.app.app_context():
        _order(db, "kept")
        celegraph.start_run.admit("asking", {}, run_id="kept", connection=db.session.connection())
        db.session.commit()
        _order(db, "lost")
        celegraph.start_run.admit("asking", {}, run_id="lost", connection=db.session.connection())
        db.session.rollback()

        assert _orders(db) == ["kept"]
    assert celegraph.get_run("kept").status == "ready"
    with pytest.raises(RunNotFound):
        celegraph.get_run("lost")


def test_the_session_itself_is_taken_too(shop: Shop, db: SQLAlchemy) -> None:
    with shop.app.app_context():
        result = celegraph.start_run.admit("asking", {}, run_id="by-session", connection=db.session)
        db.session.commit()

    assert result.id == "by-session"
    assert celegraph.get_run("by-session").status == "ready"


def test_conflict_leaves_the_session_usable(shop: Shop, db: SQLAlchemy) -> None:
    shop.start("asking", "taken")

    with shop.app.app_context():
        _order(db, "before")
        with pytest.raises(RunConflict):
            celegraph.start_run.admit("asking", {"other": 1}, run_id="taken", connection=db.session)
        _order(db, "after")
        db.session.commit()

        assert _orders(db) == ["after", "before"]


def test_decision_and_business_change_are_one_transaction(shop: Shop, db: SQLAlchemy) -> None:
    shop.start("refunds", "order")
    asked = shop.question("order")

    with shop.app.app_context():
        _order(db, "refunded")
        celegraph.decide(asked.approval_id, "approve", by="ada", connection=db.session)
        db.session.rollback()

        assert _orders(db) == []
    assert shop.question("order").status == "open"


def test_nodes_run_inside_the_application_context(shop: Shop) -> None:
    shop.start("contexts", "inside")

    output = celegraph.get_run("inside").output

    assert (output["answer"], output["seen"]) == ("tests.flask.shop", ["tests.flask.shop"])
