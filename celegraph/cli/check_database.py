"""What `doctor` asks PostgreSQL: can it hold runs, has it our tables, does work pile up in them?"""

from __future__ import annotations

from collections.abc import Iterator

from celegraph.cli.check import Check, error, ok, warning
from celegraph.config import Config
from celegraph.errors import CelegraphError, PoolerRefused
from celegraph.ledger import health
from celegraph.ledger.connect import Conn, connect
from celegraph.ledger.db_errors import in_words
from celegraph.ledger.migrate import check_schema
from celegraph.ledger.pooler import refuse_transaction_pooler
from celegraph.ledger.sweep import last_tick
from celegraph.tasks.phrases import TICK_IS_LATE
from celegraph.tasks.words import span

# Seconds.  A ready run is rung again within 60 s whatever the length of the queue.
_READY_TOO_LONG = 60.0
_ESCALATION_IS_LATE = 60.0
# Seconds without a tick by which beat, which ticks every second, is known to be down or starved.
_BEAT_IS_SILENT = 5.0


def checks(config: Config) -> Iterator[Check]:
    """Stops at the first answer without which the next question has no meaning."""
    try:
        # First of all: what `connect` sets in its session a transaction pooler would hand to others.
        refuse_transaction_pooler(config.database_url)
        yield ok("database", "reachable")
        yield ok("pooler", "each connection keeps a backend of its own")
        with connect(config, application="celegraph doctor") as conn:
            yield _server(health.server(conn))
            yield ok("schema", f"version {check_schema(conn)}")
            yield from _ticks(conn, config)
            yield _backlog(health.backlog(conn), config)
    except PoolerRefused as problem:
        yield error("pooler", str(problem))
    except CelegraphError as problem:
        yield error("schema", str(problem))
    except Exception as problem:
        if (words := in_words(problem)) is None:
            raise
        yield error("database", words, "start it, or correct database_url (CELEGRAPH_DATABASE_URL)")


def _server(server: health.Server) -> Check:
    if server.supported:
        return ok("postgresql", server.version)
    return error("postgresql", f"version {server.version} is too old", "upgrade to PostgreSQL 14 or newer")


def _ticks(conn: Conn, config: Config) -> Iterator[Check]:
    silent = max(_BEAT_IS_SILENT, 5 * config.sweep_every.total_seconds())
    tick = last_tick(conn, "sweep")
    start = f"start `celery -A proj beat` and a worker with -Q {config.control_queue}"
    if tick is None:
        yield error("sweep", "has never run here: lost runs would stay lost", start)
    elif tick.age_s > max(TICK_IS_LATE, silent):
        yield error(
            "sweep",
            f"the last one was {span(tick.age_s)} ago: nobody finds lost runs",
            start,
            age_s=tick.age_s,
        )
    elif tick.age_s > silent:
        yield warning(
            "sweep",
            f"the last one was {span(tick.age_s)} ago: workers sweep, beat seems down",
            start,
            age_s=tick.age_s,
        )
    else:
        yield ok("sweep", f"the last one was {span(tick.age_s)} ago", age_s=tick.age_s)
    tick = last_tick(conn, "escalate")
    if tick is None or tick.age_s > _ESCALATION_IS_LATE:
        when = "has never run here" if tick is None else f"last looked {span(tick.age_s)} ago"
        yield warning("deadlines", f"the escalation of approvals {when}", start)
    else:
        yield ok("deadlines", f"last looked at {span(tick.age_s)} ago")


def _backlog(backlog: health.Backlog, config: Config) -> Check:
    numbers: dict[str, float] = {
        "ready": backlog.runs,
        "oldest_s": backlog.oldest_s or 0.0,
        "ring_lag_s": backlog.ring_lag_s,
        "never_rung": backlog.never_rung,
        "running": backlog.running,
    }
    if backlog.oldest_s is None:
        return ok("backlog", "no run waits for a worker", **numbers)
    says = f"{backlog.runs} ready, the oldest for {span(backlog.oldest_s)}"
    says += f"; doorbells are {span(backlog.ring_lag_s)} late, {backlog.never_rung} never rung"
    if backlog.oldest_s <= _READY_TOO_LONG:
        return ok("backlog", says, **numbers)
    if backlog.running == 0:
        # Nobody is too busy to take it.
        says = f"queue not consumed: {says}, and none is running"
        remedy = f"start, or restart, a worker that consumes the queue {config.queue!r}"
        return error("backlog", says, remedy, **numbers)
    remedy = f"start more workers that consume the queue {config.queue!r}"
    return warning("backlog", f"{says}; {backlog.running} running", remedy, **numbers)
