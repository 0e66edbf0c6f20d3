"""What we use of LangGraph without its promise; when a release changes it, these fail and name it."""

from __future__ import annotations

import asyncio
import inspect
import time
from dataclasses import dataclass
from importlib import resources
from uuid import UUID

import pytest
from langgraph._internal import _constants as theirs
from langgraph.checkpoint.base import WRITES_IDX_MAP
from langgraph.checkpoint.base import id as checkpoint_ids
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import _CHANNEL_BRANCH_TO
from langgraph.pregel._algo import task_path_str

from celegraph.agent import clock
from celegraph.agent import langgraph_words as ours
from celegraph.agent.readable import WatchfulSerializer
from celegraph.agent.saver import Saver
from celegraph.config import load_config
from celegraph.ledger.pen import Pen
from celegraph.ledger.queries import load
from tests.support.pens import with_pen
from tests.support.shapes import State


@dataclass
class Kept:
    cents: int


@pytest.mark.parametrize(
    "name",
    [
        "TASKS",
        "ERROR",
        "ERROR_SOURCE_NODE",
        "NO_WRITES",
        "PREVIOUS",
        "PULL",
        "PUSH",
        "RESUME",
        "RETURN",
        "NULL_TASK_ID",
        "INPUT",
        "INTERRUPT",
    ],
)
def test_a_word_of_ours_is_langgraphs(name: str) -> None:
    assert getattr(ours, name) == getattr(theirs, name)


def test_the_public_words_are_langgraphs() -> None:
    assert (ours.START, ours.END) == (START, END)


def test_a_join_is_a_channel_of_its_name_and_a_state_of_one_value_has_a_channel_too() -> None:
    graph = StateGraph(list)  # type: ignore[type-var]
    for name in ("one", "two", "then"):
        graph.add_node(name, lambda state: state)
    graph.add_edge(START, "one")
    graph.add_edge(START, "two")
    graph.add_edge(["one", "two"], "then")
    channels = graph.compile().channels

    assert f"{ours.JOIN}one+two:then" in channels
    assert ours.ROOT in channels


def test_the_serialiser_hands_what_names_a_class_to_its_hook() -> None:
    # `readable` looks at what this hook is given: kind, and module, name and parts in msgpack.
    serde = WatchfulSerializer(allowed_msgpack_modules=True)
    kept = serde.dumps_typed({"order": Kept(1999)})

    with serde.watching() as found:
        assert serde.loads_typed(kept) == {"order": Kept(1999)}
    assert found == []

    gone = kept[0], kept[1].replace(b"tests.contracts.test_langgraph", b"tests.contracts.no_such_module")
    with serde.watching() as found:
        serde.loads_typed(gone)
    assert found == [("tests.contracts.no_such_module.Kept", "which today's code does not have")]


def test_an_edge_to_a_node_is_a_channel_of_its_name() -> None:
    assert _CHANNEL_BRANCH_TO.format("node") == f"{ours.BRANCH_TO}node"


@pytest.mark.parametrize(
    "path",
    [(ours.PULL, "node"), (ours.PUSH, 3, False), (ours.PUSH, (ours.PULL, "node"), 2, "id", True)],
)
def test_a_path_reads_as_it_is_stored(path: tuple[object, ...]) -> None:
    assert ours.path_text(path) == task_path_str(path)


def test_the_ledgers_statements_use_the_same_words() -> None:
    forget = load("checkpoints").forget_failures.decode()
    migrations = resources.files("celegraph.ledger").joinpath("sql/migrations")
    trigger = migrations.joinpath("0001_ledger.pre.sql").read_text("utf-8")

    assert f"'{ours.ERROR}'" in forget
    assert f"'{ours.ERROR_SOURCE_NODE}'" in forget
    assert f"LIKE '{ours.BRANCH_TO}%'" in trigger
    assert f"substr(channel, {len(ours.BRANCH_TO) + 1})" in trigger
    assert f"NEW.channel <> '{ours.ERROR_SOURCE_NODE}'" in trigger


def test_special_writes_have_a_negative_number_and_results_do_not() -> None:
    assert {theirs.ERROR, theirs.INTERRUPT, theirs.RESUME} <= set(WRITES_IDX_MAP)
    assert all(number < 0 for number in WRITES_IDX_MAP.values())
    # Told apart by name, because its number is that of a result.
    assert theirs.ERROR_SOURCE_NODE not in WRITES_IDX_MAP


def test_the_saver_waits_for_the_pens_lock(database_url: str) -> None:
    async def scenario(pen: Pen) -> None:
        saver = Saver(pen)
        async with pen.lock:
            reading = asyncio.ensure_future(saver.aget_tuple({"configurable": {"thread_id": "run-1"}}))
            # It takes a millisecond when nothing holds it up.
            done, _ = await asyncio.wait([reading], timeout=0.5)
            assert not done
        assert await reading is None

    with_pen(load_config({"database_url": database_url}), scenario)


def test_the_function_of_a_conditional_edge_can_be_found() -> None:
    def choose(state: State) -> str:
        return "node"

    async def choose_async(state: State) -> str:
        return "node"

    graph = StateGraph(State)
    graph.add_node("node", lambda state: state)
    graph.add_conditional_edges(START, choose, ["node"])
    graph.add_conditional_edges("node", choose_async, ["node"])
    branches = graph.compile().builder.branches

    (plain,), (other,) = branches[START].values(), branches["node"].values()
    assert getattr(plain.path, "func", None) is choose
    assert getattr(other.path, "afunc", None) is choose_async


def test_the_saver_sends_everything_through_its_private_cursor() -> None:
    # `Saver._cursor` makes a step's two statements one transaction: both must go through it.
    for method in (AsyncPostgresSaver.aput, AsyncPostgresSaver.aput_writes):
        assert "self._cursor(pipeline=True)" in inspect.getsource(method)


def test_checkpoint_ids_go_on_after_the_newest_one_seen() -> None:
    before = checkpoint_ids._last_v6_timestamp
    try:
        ahead = (time.time_ns() + 3600 * 10**9) // 100 + 0x01B21DD213814000
        seen = UUID(int=(ahead >> 12) << 80 | 6 << 76 | (ahead & 0x0FFF) << 64 | 2 << 62)

        clock.catch_up(str(seen))

        assert str(checkpoint_ids.uuid6(clock_seq=-2)) > str(seen)
    finally:
        checkpoint_ids._last_v6_timestamp = before
