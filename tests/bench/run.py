"""`make bench-run`: a durable run beside a bare `graph.invoke` with PostgresSaver, in one interleaved run.

Prints ratios: the median time and the commits of a five-step run, from admission to its end on a warm worker
slot, over those of the same graph invoked with `durability="sync"` on a kept connection.
"""

from __future__ import annotations

import argparse
import operator
import statistics
import time
import uuid
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import psycopg
from celery import Celery
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import START, StateGraph
from psycopg.rows import dict_row

from celegraph.agent.migrate import migrate
from celegraph.agent.spec import Agent
from celegraph.dev.servers import LocalServers
from celegraph.ledger import runs
from celegraph.ledger.pool import ledger
from celegraph.tasks.eager import drive_inline
from celegraph.tasks.install import fit
from celegraph.tasks.installation import using
from celegraph.tasks.start import check_request
from tests.bench.effect import committed, flush_slower

STEPS = 5


class State(TypedDict):
    """A log that grows by 200 characters a step."""

    log: Annotated[list[str], operator.add]


def chain() -> StateGraph[State]:
    """Five nodes in a row."""
    graph, before = StateGraph(State), START
    for n in range(STEPS):
        graph.add_node(f"s{n}", lambda state: {"log": ["x" * 200]})
        graph.add_edge(before, f"s{n}")
        before = f"s{n}"
    return graph


_INPUT: State = {"log": ["y" * 1000]}


class Pair:
    """The two ways to run the chain on one database."""

    def __init__(self, url: str):
        app = Celery("celegraph-bench", broker="memory://", set_as_current=False)
        app.conf.update(task_always_eager=True, celegraph={"database_url": url})
        self._inst = fit(app, {"chain": Agent(graph=chain())})
        self._conn = psycopg.connect(url, autocommit=True, prepare_threshold=0, row_factory=dict_row)
        self._conn.execute("SET search_path TO celegraph")
        # Not a run, so the triggers let it pass: what is measured is LangGraph and PostgreSQL alone.
        self._bare = chain().compile(checkpointer=PostgresSaver(self._conn))

    def bare(self) -> None:
        """`graph.invoke`, every step durable before the next."""
        config: Any = {"configurable": {"thread_id": str(uuid.uuid4())}}
        self._bare.invoke(_INPUT, config, durability="sync")

    def durable(self) -> None:
        """Admitted, leased, driven and settled."""
        admission = check_request(self._inst, "chain", _INPUT)
        with using(self._inst):
            with ledger(self._inst.config) as conn:
                runs.admit(conn, admission)
            assert drive_inline(self._inst, admission.run_id).status == "finished"


def commits_of(url: str, work: Callable[[], None], times: int) -> float:
    """Transactions that wrote, per call of `work`."""
    with psycopg.connect(url, autocommit=True) as conn:
        before = committed(conn)
        for _ in range(times):
            work()
        return (committed(conn) - before) / times


def _timed(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _side_by_side(pair: Pair, times: int) -> str:
    bare, durable = zip(*((_timed(pair.bare), _timed(pair.durable)) for _ in range(times)), strict=True)
    ours, theirs = statistics.median(durable), statistics.median(bare)
    return f"durable_p50_ms={ours * 1e3:.2f} bare_p50_ms={theirs * 1e3:.2f} ratio={ours / theirs:.2f}"


def main() -> int:
    """Run it; exit status 0 when a durable run commits no more often than a bare one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    options = parser.parse_args()
    with LocalServers(fsync=True, temporary=True) as servers:
        migrate(servers.database_url)
        pair = Pair(servers.database_url)
        for _ in range(10):
            pair.bare()
            pair.durable()
        bare_commits = commits_of(servers.database_url, pair.bare, 20)
        durable_commits = commits_of(servers.database_url, pair.durable, 20)
        here = _side_by_side(pair, options.runs)
        flush_slower(servers.database_url, microseconds=2000)
        slower = _side_by_side(pair, options.runs // 4)
    print(  # noqa: T201
        f"durable_commits={durable_commits:.1f} bare_commits={bare_commits:.1f} {here}\n"
        f"with 2 ms more a flush, as on a network disk: {slower}"
    )
    return 0 if durable_commits <= bare_commits else 1


if __name__ == "__main__":
    raise SystemExit(main())
