"""The places where a run's process is killed: gates in nodes, and statements on the wire."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.support.scene import Scene
from tests.support.wire import Side, Statement, Wire, containing, ours
from tests.support.workers import Worker

_CHECKPOINT = containing("INSERT INTO checkpoints")
_WRITES = containing("INSERT INTO checkpoint_writes")


@dataclass(frozen=True)
class Place:
    """In a node at `gate`; or around the first such `statement` after `gate` was passed.

    `entered`: how often the paying node may be entered when a pool child is killed here.
    """

    name: str
    gate: str | None = None
    statement: Statement | None = None
    side: Side = "before"
    entered: tuple[int, ...] = (1,)
    # The record names only the effect's key.
    names_run: bool = True


# A doubt whose call window is not over yet is met once more after it.
_ONCE_MORE = (2,)
_IN_DOUBT = (2, 3)
_IF_NOT_WRITTEN = (1, 2)

GATES = (
    Place("first node", "one"),
    Place("second node", "two"),
    Place("paying node", "pay", entered=_ONCE_MORE),
    Place("reserved, not called", "pay:call", entered=_IN_DOUBT),
    Place("provider acted", "pay:acted", entered=_IN_DOUBT),
    Place("recorded", "pay:recorded", entered=_ONCE_MORE),
    Place("last node", "last"),
)
STATEMENTS = (
    Place("before begin", None, ours("leases", "begin"), "before"),
    Place("after begin", None, ours("leases", "begin"), "after"),
    Place("before first checkpoint", None, _CHECKPOINT, "before"),
    Place("after first checkpoint", None, _CHECKPOINT, "after"),
    Place("before reserve", "pay", ours("effects", "reserve"), "before", _ONCE_MORE),
    Place("after reserve", "pay", ours("effects", "reserve"), "after", _IN_DOUBT),
    Place("before record", "pay:acted", ours("effects", "record_sent"), "before", _IN_DOUBT, names_run=False),
    Place("after record", "pay:acted", ours("effects", "record_sent"), "after", _ONCE_MORE, names_run=False),
    # LangGraph writes a node's result twice, by itself and in the checkpoint, in either order.
    Place("before checkpoint", "pay:recorded", _CHECKPOINT, "before", _IF_NOT_WRITTEN),
    Place("after checkpoint", "pay:recorded", _CHECKPOINT, "after"),
    Place("before node's writes", "pay:recorded", _WRITES, "before", _IF_NOT_WRITTEN),
    Place("after node's writes", "pay:recorded", _WRITES, "after"),
    Place("before settle", "last", ours("leases", "settle"), "before"),
    Place("after settle", "last", ours("leases", "settle"), "after"),
)


@contextmanager
def standing_at(
    place: Place, scene: Scene, wire: Wire, agent: str, run_id: str, workers: list[Worker]
) -> Iterator[int]:
    """Start the run; inside the block process `pid` stands exactly at `place`, afterwards all go on."""

    def children() -> list[int]:
        return [pid for worker in workers for pid in worker.children()]

    if place.gate is not None:
        scene.gates.close(place.gate, run_id)
        scene.begin(agent, run_id=run_id)
        pid = scene.gates.await_arrival(place.gate, run_id).pid
    if place.statement is None:
        assert place.gate is not None
        yield pid
        scene.gates.open(place.gate, run_id)
        return
    with wire.hold(place.statement, place.side, about=run_id if place.names_run else "") as hold:
        if place.gate is None:
            scene.begin(agent, run_id=run_id)
        else:
            scene.gates.open(place.gate, run_id)
        yield hold.await_arrival(children)
