"""Checks under conditions that cannot be installed."""

from __future__ import annotations

from django.core.checks import run_checks
from django.db.backends.postgresql import psycopg_any


def with_psycopg2() -> list[str]:
    # What the module says when psycopg cannot be imported.
    psycopg_any.is_psycopg3 = False
    (found,) = run_checks(tags=["celegraph"])
    assert found.id is not None
    assert found.hint is not None
    return [found.id, found.hint.partition(";")[0]]
