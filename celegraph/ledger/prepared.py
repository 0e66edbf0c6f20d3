"""Statements that the server keeps prepared, sent without a cursor around them.

A cursor can do everything with any query.  What it does around a statement takes a tenth of the time of a
small commit, and the pen sends little else.  The names of psycopg used here are public, though not all are
in its manual; the tests compare what comes out with its cursors.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from psycopg import AsyncConnection, errors, generators
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult
from psycopg.rows import DictRow

from celegraph.ledger.answers import Answers
from celegraph.ledger.queries import numbered

# Somebody has said DEALLOCATE ALL, as psycopg does after a rollback; or a migration has given a table that
# the statement returns whole another column.
_OUTDATED = (errors.InvalidSqlStatementName, errors.FeatureNotSupported)


@dataclass
class _Prepared:
    """A statement as one connection knows it, for parameters of certain types."""

    name: bytes
    # Known when it has answered for the first time; from then on the server refuses to answer with others.
    columns: tuple[str, ...] | None = None


class PreparedStatements:
    """Of one autocommit connection, one at a time.  `alone`: see `Answers`.

    Types, values, errors and cancellation are those of psycopg's cursors, which may use the connection before
    and after.
    """

    def __init__(self, conn: AsyncConnection[Any], alone: Callable[[], bool]):
        self._conn = conn
        self._answers = Answers(conn, alone)
        self._transformer = Transformer(conn)
        # Never a name twice: not when nobody heard what became of the first try, nor in a session that a
        # pooler had given to somebody else before.
        mine = secrets.token_hex(4)
        self._names = (f"celegraph_{mine}_{n}".encode() for n in count())
        # By query and parameters' types: a small integer is of another type than a large one.  No bound is
        # needed, as queries are constants.
        self._prepared: dict[tuple[bytes, tuple[int, ...] | None], _Prepared] = {}

    async def fetch(self, query: bytes, params: Mapping[str, Any]) -> list[DictRow]:
        """All rows of one statement, its own transaction.  Raises psycopg's errors."""
        try:
            try:
                return await self._fetch(query, params)
            except _OUTDATED:
                # A refused statement has done nothing: once more, prepared anew.
                self._prepared.clear()
                return await self._fetch(query, params)
        except BaseException:
            # A signal's handler has raised, and nobody will read the answer that is still to come: the
            # connection would refuse every statement from now on and never look broken.
            if self._conn.pgconn.transaction_status == TransactionStatus.ACTIVE:
                self._conn.pgconn.finish()
            raise

    async def _fetch(self, query: bytes, params: Mapping[str, Any]) -> list[DictRow]:
        text, names = numbered(query)
        transformer = self._transformer
        values = transformer.dump_sequence([params[name] for name in names], [PyFormat.AUTO] * len(names))
        statement = self._prepared.get((query, transformer.types))
        if statement is None:
            statement = await self._prepare(query, text)
        self._conn.pgconn.send_query_prepared(statement.name, values, transformer.formats)
        return self._rows(statement, await self._result())

    async def _prepare(self, query: bytes, text: bytes) -> _Prepared:
        types = self._transformer.types
        statement = _Prepared(next(self._names))
        self._conn.pgconn.send_prepare(statement.name, text, types)
        await self._result()
        self._prepared[query, types] = statement
        return statement

    async def _result(self) -> PGresult:
        results: list[PGresult] = await self._answers.wait(generators.execute(self._conn.pgconn))
        result = results[-1]
        if result.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            raise errors.error_from_result(result)
        return result

    def _rows(self, statement: _Prepared, result: PGresult) -> list[DictRow]:
        if result.ntuples == 0:
            return []
        if (columns := statement.columns) is None:
            found = (result.fname(n) or b"" for n in range(result.nfields))
            columns = statement.columns = tuple(name.decode() for name in found)
        self._transformer.set_pgresult(result)
        rows = self._transformer.load_rows(0, result.ntuples, tuple)
        self._transformer.set_pgresult(None)  # it may be large, and the slot idle for long
        return [dict(zip(columns, row, strict=True)) for row in rows]
