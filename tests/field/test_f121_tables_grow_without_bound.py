"""F121: tables grow without bound."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Annotated, Any, TypedDict

from langgraph.channels import DeltaChannel
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from celegraph import EffectCall, effect, recorded
from celegraph.ledger.connect import Conn
from celegraph.ledger.effects import effects_of
from celegraph.ledger.prune import PruneReport, Q, prune_once
from celegraph.tasks.control import retry_run
from celegraph.tasks.installation import using
from celegraph.testing.driver import Driven, Driver
from tests.support.driving import connection, taken_over
from tests.support.dying import die, process_dies
from tests.support.log import Log
from tests.support.shapes import Graph, State, chain

TABLES = ("checkpoints", "checkpoint_writes", "checkpoint_blobs")
COPIES = 200


def agent(log: Log, last: Any) -> Graph:
    """Three steps with a subgraph, a read and a payment, and then `last`."""

    @effect("pay", in_doubt="retry")
    def pay(call: EffectCall, order: str) -> str:
        log(f"act {call.run_id}")
        return "receipt"

    @recorded
    def read(order: str) -> str:
        return order.upper()

    def first(state: State) -> Any:
        return {"seen": [read("o-1"), "x" * 10_000]}

    def paying(state: State) -> Any:
        return {"seen": [pay("o-1")]}

    return chain(first, paying, last)


def done(state: State) -> Any:
    return {"seen": ["done"]}


def ask(state: State) -> Any:
    return {"seen": [interrupt("go?")]}


def multiply(conn: Conn, run_id: str, copies: int) -> None:
    """More runs like this one; a thread's rows come before its run, for whom nobody holds a lease."""
    names = f"SELECT '{run_id}-' || n AS name FROM generate_series(1, {copies}) n"
    for table in (*TABLES, "runs", "run_leases", "effects", "run_events"):
        key = "thread_id" if table in TABLES else "run_id"
        own = {key: "n.name", "idempotency_key": "t.idempotency_key || n.name"}
        rows = conn.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema()"
            " AND table_name = %s AND is_identity = 'NO' ORDER BY ordinal_position",
            (table,),
        ).fetchall()
        columns = [str(row["column_name"]) for row in rows]
        values = ", ".join(own.get(column, f"t.{column}") for column in columns)
        conn.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM {table} t, ({names}) n"
            f" WHERE t.{key} = '{run_id}'".encode()
        )


def count(conn: Conn, table: str, run_id: str) -> int:
    key = "thread_id" if table in TABLES else "run_id"
    row = conn.execute(f"SELECT count(*) AS n FROM {table} WHERE {key} = %s".encode(), (run_id,)).fetchone()
    assert row is not None
    return int(row["n"])


def pruned(conn: Conn, *, keep: str = "30d", rows: int = 2000) -> PruneReport:
    days = timedelta(days=30) if keep == "30d" else timedelta(0)
    return prune_once(conn, checkpoints=days, events=days, limit=10_000, rows=rows)


def test_f121_tables_grow_without_bound(lonely_drive: Driver, log: Log) -> None:
    def dying(state: State) -> Any:
        if log.count("died"):
            return {"seen": ["done"]}
        log("died")
        die()

    def failing(state: State) -> Any:
        log("failing")
        if log.count("failing") == 1:
            raise LookupError("a bug, since repaired")
        return {"seen": ["done"]}

    finished = lonely_drive(agent(log, done), {}, run_id="finished")
    failed = lonely_drive(agent(log, failing), {}, run_id="failed")
    waiting = lonely_drive(agent(log, ask), {}, run_id="waiting")
    process_dies(lambda: lonely_drive(agent(log, dying), {}, run_id="running"))
    with connection(finished) as conn:
        multiply(conn, "finished", COPIES)
        before = {(t, r): count(conn, t, r) for t in TABLES for r in ("waiting", "running", "failed")}
        for run in (finished, failed, waiting):
            run.pass_time("31d")
        conn.execute("UPDATE runs SET finished_at = now() - interval '31 days' WHERE run_id ~ 'finished-'")

        report = pruned(conn)

        assert report.runs == COPIES + 2
        for run_id in ("finished", "finished-1", f"finished-{COPIES}"):
            assert count(conn, "checkpoints", run_id) == 1
            assert count(conn, "checkpoint_writes", run_id) == 0
            assert count(conn, "run_events", run_id) == 0
            assert [e.mode for e in effects_of(conn, run_id)] == ["call"]
        for (table, run_id), number in before.items():
            left = count(conn, table, run_id)
            assert left == number if run_id != "failed" else 0 < left < number
        assert [e.mode for e in effects_of(conn, "failed")] == ["read", "call"]
        assert pruned(conn).counts() == PruneReport().counts()

    assert waiting.resume(["approve"]).output["seen"][-1] is True
    assert taken_over(lonely_drive(agent(log, dying), {}, run_id="running")).output["seen"][-1] == "done"
    with using(failed.installation):
        retry_run("failed")
    assert failed.resume().output["seen"][-1] == "done"
    # A click, a webhook or a doorbell that comes late finds the effect, and nothing is done again.
    assert lonely_drive(agent(log, done), {}, run_id="finished").status == "finished"
    assert sorted(line for line in log.lines if line.startswith("act")) == [
        f"act {run_id}" for run_id in ("failed", "finished", "running", "waiting")
    ]


def test_f121_a_prune_that_is_killed_anywhere_leaves_what_the_next_one_finishes(
    lonely_drive: Driver, log: Log
) -> None:
    def failing(state: State) -> Any:
        log("failing")
        if log.count("failing") == 1:
            raise LookupError("a bug, since repaired")
        return {"seen": ["done"]}

    run = lonely_drive(agent(log, failing), {}, run_id="failed")
    head = newest(run)

    def prune_and_die_after(number: int) -> None:
        met = 0
        with connection(run) as conn:
            execute = conn.execute

            def counted(*given: Any, **how: Any) -> Any:
                nonlocal met
                met += 1
                if met > number:
                    die()
                return execute(*given, **how)

            conn.execute = counted  # type: ignore[method-assign]
            pruned(conn, keep="0", rows=1)
            conn.execute = execute  # type: ignore[method-assign]

    for statements in (1, 2, 3, 4, 5, 6, 8, 9):
        process_dies(partial(prune_and_die_after, statements))
        # Whatever is gone by then, it is not what the run goes on from.
        assert newest(run) == head

    with connection(run) as conn:
        assert pruned(conn, keep="0").more is False
        assert count(conn, "checkpoints", "failed") == 1
    with using(run.installation):
        retry_run("failed")
    assert run.resume().output["seen"][-1] == "done"
    assert len([line for line in log.lines if line.startswith("act")]) == 1


def newest(run: Driven) -> Any:
    with connection(run) as conn:
        return conn.execute(
            "SELECT max(checkpoint_id) AS id FROM checkpoints WHERE thread_id = %s", (run.run_id,)
        ).fetchone()


def test_f121_two_prunes_at_once_take_different_runs_and_a_retry_is_not_in_their_way(
    lonely_drive: Driver, log: Log
) -> None:
    run = lonely_drive(agent(log, done), {}, run_id="finished")
    with connection(run) as one, connection(run) as two:
        multiply(one, "finished", 3)
        with one.transaction():
            first = one.execute(Q.due_checkpoints, {"keep": timedelta(0)}).fetchone()
            second = two.execute(Q.due_checkpoints, {"keep": timedelta(0)}).fetchone()
        assert first is not None
        assert second is not None
        assert first["run_id"] != second["run_id"]


def test_f121_a_thread_with_a_delta_channel_keeps_its_checkpoints(lonely_drive: Driver) -> None:
    def all_of(old: list[str] | None, new: Any) -> list[str]:
        return [*(old or []), *(line for lines in new for line in lines)]

    fields: Any = {"lines": Annotated[list[str], DeltaChannel(all_of)]}
    growing: Any = TypedDict("growing", fields, total=False)  # type: ignore[misc]

    def write(state: Any) -> Any:
        return {"lines": ["one"]}

    graph: Any = StateGraph(growing)
    for name in ("first", "second"):
        graph.add_node(name, write)
    graph.add_edge(START, "first")
    graph.add_edge("first", "second")
    run = lonely_drive(graph, {}, run_id="delta")
    with connection(run) as conn:
        before = {table: count(conn, table, "delta") for table in TABLES}
        assert pruned(conn, keep="0").runs == 1

        assert {table: count(conn, table, "delta") for table in TABLES} == before
