"""The places where a run's process is killed: gates in nodes, and statements on the wire."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Literal, Self

from tests.support.scene import Scene
from tests.support.wire import Hold, Side, Statement, Wire, containing, ours
from tests.support.workers import Worker

_CHECKPOINT = containing("INSERT INTO checkpoints")
_WRITES = containing("INSERT INTO checkpoint_writes")
# Longer than a doubt's horizon and a dispatcher's pause together, on a busy machine.
_ARRIVES_WITHIN = 60.0


@dataclass(frozen=True)
class Place:
    """In a node at `gate`; or around the first such `statement` after `gate` was passed.

    `names`: what of the run is among the statement's parameters, its id or its effect's key.
    `entered`: how often the paying node may be entered when a pool child is killed here.
    """

    name: str
    gate: str | None = None
    statement: Statement | None = None
    side: Side = "before"
    entered: tuple[int, ...] = (1,)
    names: Literal["run", "key"] = "run"


# A doubt whose call window is not over yet is met once more after it.
_ONCE_MORE = (2,)
_IN_DOUBT = (2, 3)

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
    Place("before record", "pay:acted", ours("effects", "record_sent"), "before", _IN_DOUBT, names="key"),
    Place("after record", "pay:acted", ours("effects", "record_sent"), "after", _ONCE_MORE, names="key"),
    # A node's result is written twice, by itself and in the checkpoint: in one commit, unless this machine
    # is so busy that the checkpoint comes too late to be waited for.
    Place("before node's writes", "pay:recorded", _WRITES, "before", _ONCE_MORE),
    Place("after node's writes", "pay:recorded", _WRITES, "after"),
    Place("before checkpoint", "pay:recorded", _CHECKPOINT, "before", (1, 2)),
    Place("after checkpoint", "pay:recorded", _CHECKPOINT, "after"),
    Place("before settle", "last", ours("leases", "settle"), "before"),
    Place("after settle", "last", ours("leases", "settle"), "after"),
)


class Post:
    """Somebody who waits for one run's process at a place.  From the block's start nobody gets past
    unseen; with the block's end, or at `leave`, whoever stands there goes on."""

    def __init__(
        self, place: Place, scene: Scene, wire: Wire, run_id: str, children: Callable[[], Sequence[int]]
    ):
        self._place = place
        self._scene = scene
        self._wire = wire
        self._run_id = run_id
        self._children = children
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        if self._place.gate is not None:
            self._scene.gates.close(self._place.gate, self._run_id)
            self._stack.callback(self._scene.gates.open, self._place.gate, self._run_id)
        else:
            self._hold = self._held()
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Hold nobody any more."""
        self._stack.close()

    def await_arrival(self) -> int:
        """The process that stands exactly at the place now."""
        place, gates = self._place, self._scene.gates
        if place.gate is not None:
            pid = gates.await_arrival(place.gate, self._run_id, within=_ARRIVES_WITHIN).pid
            if place.statement is None:
                return pid
            self._hold = self._held()
            gates.open(place.gate, self._run_id)
        return self._hold.await_arrival(self._children, within=_ARRIVES_WITHIN)

    def _held(self) -> Hold:
        place = self._place
        assert place.statement is not None
        about = self._run_id
        if place.names == "key":
            about = self._scene.effects(self._run_id)[-1].idempotency_key
        return self._stack.enter_context(self._wire.hold(place.statement, place.side, about=about))


@contextmanager
def standing_at(
    place: Place, scene: Scene, wire: Wire, agent: str, run_id: str, workers: list[Worker]
) -> Iterator[int]:
    """Start the run; inside the block process `pid` stands exactly at `place`, afterwards all go on."""

    def children() -> list[int]:
        return [pid for worker in workers for pid in worker.children()]

    with Post(place, scene, wire, run_id, children) as post:
        scene.begin(agent, run_id=run_id)
        yield post.await_arrival()
