"""Results through a real jsonb column come back as the first pass returned them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from psycopg.types.json import Jsonb

from celegraph.config import load_config
from celegraph.ledger.canonical import canonical_json, decode_result, encode_result
from celegraph.ledger.connect import Conn, connect
from celegraph.ledger.plain import Json
from tests.ledger.strategies import plain, results


@pytest.fixture(scope="module")
def conn(module_database_url: str) -> Iterator[Conn]:
    with connect(load_config({"database_url": module_database_url})) as conn:
        yield conn


def stored(conn: Conn, value: Json) -> Json:
    row = conn.execute("SELECT %s::jsonb AS kept", (Jsonb(value),)).fetchone()
    assert row is not None
    kept: Json = row["kept"]
    return kept


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=results)
def test_a_result_comes_back_from_postgresql_as_the_first_pass_returned_it(conn: Conn, value: object) -> None:
    encoded = encode_result(value)

    assert repr(decode_result(stored(conn, encoded))) == repr(decode_result(encoded))


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=plain)
def test_arguments_that_went_through_postgresql_have_the_same_identity(conn: Conn, value: Json) -> None:
    encoded = encode_result({"value": value})

    assert canonical_json(decode_result(stored(conn, encoded))) == canonical_json({"value": value})
