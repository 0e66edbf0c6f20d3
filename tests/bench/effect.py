"""`make bench-effect`: what an effect costs beside two bare commits, in one run and by turns.

Prints ratios, not verdicts on a machine: commits (transaction ids used) and round trips (the server's own
log) per effect, and the median of one effect over the median of two commits.  Bare are two things: the
commits of the ledger's own rows, its two statements sent by psycopg with nothing around them, and the commits
of the smallest rows that could serve, which leave out what the ledger promises.

An effect is measured with one of them at a time, each always after the other: three in a round would not do,
because the ledger's own commits would find warm what an effect has just used, and the effect would not.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, TypedDict

import psycopg
from langgraph.graph import START, StateGraph
from psycopg import sql
from psycopg.types.json import Jsonb

from celegraph import EffectCall, effect
from celegraph.agent.migrate import migrate
from celegraph.dev.servers import LocalServers
from celegraph.ledger.effect_row import Reservation
from celegraph.ledger.effects import Q
from celegraph.testing.database import Ledger
from celegraph.testing.driver import Driver

_MARK = "celegraph bench mark"
_ROW = "x" * 200
_RESERVE = b"""
WITH lease AS (SELECT 1 FROM run_leases WHERE run_id = %(run)s FOR SHARE),
     row AS (INSERT INTO bench_effects SELECT %(n)s, 'pending', %(data)s FROM lease RETURNING n)
INSERT INTO bench_events SELECT n, 'reserved' FROM row
"""
_RECORD = b"""
WITH row AS (UPDATE bench_effects SET status = 'sent' WHERE n = %(n)s RETURNING n)
INSERT INTO bench_events SELECT n, 'sent' FROM row
"""


# What the bare commits write of a call; the ledger's statements want no less.
_CALL = {"step": "node@1", "tool": "bench", "args_hash": "0" * 64, "owner": "bench"}


class State(TypedDict, total=False):
    """Nothing: the node measures."""

    n: int


@effect("bench")
async def act(call: EffectCall, n: int, data: str) -> int:
    """A provider that answers at once."""
    return n


@dataclass
class Pair:
    """Seconds of effects and of the bare commits that they took turns with."""

    effects: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)

    def told(self, name: str) -> str:
        """Both medians and their ratio."""
        effect, bare = statistics.median(self.effects), statistics.median(self.bare)
        return f"effect_p50_ms={effect * 1e3:.3f} {name}_p50_ms={bare * 1e3:.3f} ratio={effect / bare:.2f}"


class Measured:
    """What the node found out."""

    def __init__(self, url: str, effects: int):
        self.url = url
        self.effects = effects
        self.own_rows = Pair()
        self.smallest = Pair()

    def graph(self) -> StateGraph[State]:
        """One node that performs effects and bare commits by turns."""

        async def node(state: State) -> State:
            async with await psycopg.AsyncConnection.connect(
                self.url, autocommit=True, prepare_threshold=0
            ) as conn:
                await conn.execute("SET search_path TO celegraph")
                await conn.execute(
                    "INSERT INTO runs (run_id, lock_key, agent, input, max_crashes, ring_at)"
                    " VALUES ('bench-bare', 0, 'bench', '{}', 3, ledger_now())"
                )
                await conn.execute("INSERT INTO run_leases (run_id) VALUES ('bench-bare')")
                for pair, bare in (
                    (self.own_rows, self._ledgers_commits),
                    (self.smallest, self._smallest_commits),
                ):
                    for n in range(-20, self.effects):
                        effect = await self._one(act(n, _ROW))
                        commits = await self._one(bare(conn, n))
                        if n >= 0:  # before, both connections were getting to know their statements
                            pair.effects.append(effect)
                            pair.bare.append(commits)
            return {"n": 1}

        graph = StateGraph(State)
        graph.add_node("node", node)
        graph.add_edge(START, "node")
        return graph

    @staticmethod
    async def _one(work: Any) -> float:
        start = time.perf_counter()
        await work
        return time.perf_counter() - start

    @staticmethod
    async def _ledgers_commits(conn: psycopg.AsyncConnection[Any], n: int) -> None:
        call = Reservation(
            key=f"bench-{n}", run_id="bench-bare", epoch=0, slot=f"#{n}", args={"n": n, "data": _ROW},
            horizon=timedelta(seconds=70), **_CALL,
        )  # fmt: skip
        await (await conn.execute(Q.reserve, call.params())).fetchone()
        sent = {"key": call.key, "attempts": 1, "epoch": 0, "result": Jsonb(n), "ref": None, "by": "call"}
        await (await conn.execute(Q.record_sent, sent)).fetchone()

    @staticmethod
    async def _smallest_commits(conn: psycopg.AsyncConnection[Any], n: int) -> None:
        await conn.execute(_RESERVE, {"run": "bench-bare", "n": n, "data": _ROW})
        await conn.execute(_RECORD, {"n": n})


def committed(conn: psycopg.Connection[Any]) -> int:
    """Write transactions that the cluster has begun so far."""
    # Every transaction that writes takes the next id; exact, and not delayed like the statistics views.
    row = conn.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").fetchone()
    assert row is not None
    return int(row[0])


def commits_per_effect(url: str, effects: int) -> float:
    """Two runs that differ in nothing but their number of effects."""
    with psycopg.connect(url, autocommit=True) as conn:
        counts = []
        for number in (effects, 2 * effects):
            before = committed(conn)
            _run(url, number)
            counts.append(committed(conn) - before)
    return (counts[1] - counts[0]) / effects


def round_trips_per_effect(url: str, log: Path, effects: int) -> float:
    """Statements of the pen in the server's log; the pen sends one at a time and waits for each."""
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("ALTER SYSTEM SET log_statement = 'all'")
        conn.execute("ALTER SYSTEM SET log_line_prefix = '%a|'")
        conn.execute("SELECT pg_reload_conf()")
    # A session sees the new settings at its next statement; pens of runs before keep theirs.
    counts = []
    for number in (effects, 2 * effects):
        before = _pen_lines(log)
        _run(url, number)
        counts.append(_pen_lines(log) - before)
    return (counts[1] - counts[0]) / effects


def _run(url: str, number: int) -> None:
    async def node(state: State) -> State:
        for n in range(number):
            await act(n, _ROW)
        return {"n": number}

    graph = StateGraph(State)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    assert Driver(Ledger(url, "celegraph"))(graph, {}).status == "finished"


def _pen_lines(log: Path) -> int:
    return sum(
        line.startswith("celegraph pen ") and "|LOG:" in line
        for line in log.read_text(errors="replace").splitlines()
    )


def _measure(url: str, effects: int) -> str:
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("DROP TABLE IF EXISTS celegraph.bench_effects, celegraph.bench_events")
        conn.execute("CREATE TABLE celegraph.bench_effects (n int PRIMARY KEY, status text, data text)")
        conn.execute("CREATE TABLE celegraph.bench_events (n int, kind text)")
        conn.execute("DELETE FROM celegraph.runs WHERE run_id = 'bench-bare'")
    measured = Measured(url, effects)
    assert Driver(Ledger(url, "celegraph"))(measured.graph(), {}).status == "finished"
    own_rows = measured.own_rows.told("two_commits_of_its_rows")
    return f"{own_rows} | {measured.smallest.told('two_smallest_commits')}"


def flush_slower(url: str, microseconds: int) -> None:
    """Every flush waits longer, also when nobody else commits."""
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(sql.SQL("ALTER SYSTEM SET commit_delay = {}").format(microseconds))
        conn.execute("ALTER SYSTEM SET commit_siblings = 0")
        conn.execute("SELECT pg_reload_conf()")


def main() -> int:
    """Run it; exit status 0 when the counts are what the design says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--effects", type=int, default=1000)
    options = parser.parse_args()
    with LocalServers(fsync=True, temporary=True) as servers:
        url = servers.database_url
        migrate(url)
        commits = commits_per_effect(url, 200)
        here = _measure(url, options.effects)
        flush_slower(url, microseconds=2000)
        slower = _measure(url, options.effects // 4)
        statements = round_trips_per_effect(url, servers.postgres.directory / "log", 200)
    print(  # noqa: T201
        f"commits_per_effect={commits:.2f} round_trips_per_effect={statements:.2f}\n{here}\n"
        f"with 2 ms more a flush, as on a network disk: {slower}"
    )
    return 0 if commits <= 2.05 and statements <= 2.05 else 1


if __name__ == "__main__":
    raise SystemExit(main())
