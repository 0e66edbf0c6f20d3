"""Database errors become ours in one place, by SQLSTATE; upper layers never look at psycopg's."""

from __future__ import annotations

import psycopg
from psycopg import errors as pg

from celegraph.errors import SchemaMissing

# psycopg files them under OperationalError, but the connection is well: a jsonb string of more than 256 MB,
# a row too long for its index.
_LIMITS = (pg.ProgramLimitExceeded, pg.StatementTooComplex, pg.TooManyColumns, pg.TooManyArguments)

FENCED = "CG001"  # raised by the triggers on LangGraph's tables


def is_fenced(error: BaseException) -> bool:
    """A stale owner's write was refused by the database."""
    return isinstance(error, psycopg.Error) and error.sqlstate == FENCED


def is_lost(error: BaseException) -> bool:
    """The connection is gone, or the server is going: this attempt is over, another one goes on."""
    # Read-only: another server became the primary while this session stayed with the old one.
    gone = psycopg.OperationalError | psycopg.InterfaceError | pg.ReadOnlySqlTransaction
    return isinstance(error, gone) and not isinstance(error, (pg.QueryCanceled, *_LIMITS))


def is_passing(error: BaseException) -> bool:
    """The connection is lost, or it is well and the server has given the statement up half-way, for a time
    limit of the role's or somebody's cancel: a repetition may succeed."""
    return is_lost(error) or isinstance(error, pg.QueryCanceled)


def is_bad_value(error: BaseException) -> bool:
    """PostgreSQL refuses the value itself (NUL, not JSON, too large): every repetition fails too."""
    return isinstance(error, (psycopg.DataError, *_LIMITS))


def as_ours(error: psycopg.Error) -> BaseException:
    """The error a caller outside the ledger should see for `error`."""
    if isinstance(error, pg.UndefinedTable | pg.UndefinedFunction | pg.InvalidSchemaName):
        return SchemaMissing("the ledger's tables are not there; run `celegraph migrate`")
    return error


def in_log(error: BaseException) -> str:
    """An error as a log may show it: its class, and of a lost connection what is the matter with it.

    Everything else that PostgreSQL says may quote a row or a value, and those are the customer's.
    """
    name = type(error).__name__
    return f"{name}: {_first_line(error)}" if is_lost(error) else name


def in_words(error: BaseException) -> str | None:
    """A database's error as one line for a person; None for any other error."""
    if not isinstance(error, psycopg.Error):
        return None
    said = _first_line(error) or type(error).__name__
    return f"the database cannot be used: {said}" if is_lost(error) else f"the database refuses: {said}"


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0]
