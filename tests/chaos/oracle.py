"""The oracle: the ledger's rows, the provider's own log and the agents' outputs must tell one story."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from celegraph import explain_run
from celegraph.ledger.canonical import decode_result
from celegraph.ledger.queries import parse
from tests.chaos.shapes import SHAPES
from tests.support.provider import Act
from tests.support.scene import Scene

Q = parse("chaos/invariants", Path(__file__).with_name("invariants.sql").read_text("utf-8"))
# The effects of the agents that must not be called without an approval.
GUARDED = ["chaos_allowed"]
_KINDS = ("duplicates", "lost", "stuck", "stale_writes")
# Where the violations of a query of this name are counted.
_OF_QUERY = {"stuck": "stuck", "stale": "stale_writes", "doubled": "duplicates", "lost": "lost"}


@dataclass(frozen=True)
class Violation:
    """Something that must not be, and the run whose trace tells more."""

    kind: str
    rule: str
    run_id: str
    what: str

    def __str__(self) -> str:
        return f"{self.rule}: run {self.run_id}: {self.what}"


@dataclass
class Verdict:
    """What a chaos has come to; its text is the last line."""

    seed: int
    faults: int
    runs: int
    violations: list[Violation] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Everything is as promised."""
        return not self.violations

    def __str__(self) -> str:
        counts = Counter(violation.kind for violation in self.violations)
        told = " ".join(f"{kind}={counts[kind]}" for kind in _KINDS)
        word = "OK" if self.good else "FAILED"
        return f"CHAOS {word} seed={self.seed} faults={self.faults} runs={self.runs} {told}"


def judge(scene: Scene, started: Iterable[str]) -> list[Violation]:
    """All violations.  `started`: the runs whose start_run has returned."""
    params = {"started": sorted(started), "guarded": GUARDED}
    found = [
        Violation(_OF_QUERY[name.partition("_")[0]], name, row["run_id"], row["what"])
        for name, query in Q
        for row in scene.conn.execute(query, params).fetchall()
    ]
    return [*found, *_by_the_log(scene), *_unexplained(scene)]


def _by_the_log(scene: Scene) -> list[Violation]:
    """Each act once, none without a row, no row without an act, and outputs that say the same."""
    acts: dict[str, list[Act]] = defaultdict(list)
    for act in scene.provider.acts():
        acts[act.body["run_id"]].append(act)
    effects: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in scene.conn.execute("SELECT * FROM effects").fetchall():
        effects[row["run_id"]].append(row)
    runs = scene.conn.execute("SELECT run_id, agent, status, output FROM runs").fetchall()
    known = {run["run_id"] for run in runs}
    found = [
        Violation("lost", "act without a run", run_id, f"{len(of_run)} acts")
        for run_id, of_run in acts.items()
        if run_id not in known
    ]
    for run in runs:
        found += _of_run(run, acts[run["run_id"]], effects[run["run_id"]])
    return found


def _of_run(run: Mapping[str, Any], acts: list[Act], effects: list[Mapping[str, Any]]) -> Iterable[Violation]:
    run_id = run["run_id"]
    numbers = Counter(act.body["cents"] for act in acts)
    for number, times in numbers.items():
        if times > 1:
            keys = sorted({act.key for act in acts if act.body["cents"] == number})
            yield Violation("duplicates", "act", run_id, f"number {number} was paid {times} times: {keys}")
    rows = {row["idempotency_key"]: row for row in effects if row["mode"] != "read"}
    for act in acts:
        if act.key not in rows:
            yield Violation("lost", "act without a row", run_id, act.key)
        elif rows[act.key]["status"] not in ("sent", "confirmed"):
            yield Violation(
                "lost", "act whose row denies it", run_id, f"{act.key}: {rows[act.key]['status']}"
            )
    happened = {act.key for act in acts}
    for key, row in rows.items():
        if row["status"] in ("sent", "confirmed") and key not in happened:
            yield Violation("lost", "recorded, but not done", run_id, key)
    if run["status"] == "finished":
        yield from _of_output(run, set(numbers), effects)


def _of_output(
    run: Mapping[str, Any], acts: set[int], effects: list[Mapping[str, Any]]
) -> Iterable[Violation]:
    run_id, shape, output = run["run_id"], SHAPES[run["agent"]], run["output"]
    paid = Counter(output.get("paid", []))
    if set(paid) != acts or max(paid.values(), default=0) > 1:
        yield Violation("lost", "output", run_id, f"says it paid {paid}, the provider says {acts}")
    if not shape.asks and set(paid) != shape.paid:
        yield Violation("lost", "output", run_id, f"paid {sorted(paid)} instead of {sorted(shape.paid)}")
    if output["steps"] != shape.steps:
        yield Violation("lost", "output", run_id, f"{output['steps']} steps instead of {shape.steps}")
    reads: list[Any] = sorted(decode_result(row["result"]) for row in effects if row["mode"] == "read")
    if reads != sorted(output.get("reads", [])):
        yield Violation("lost", "output", run_id, f"read {output.get('reads')}, recorded {reads}")


def _unexplained(scene: Scene) -> Iterable[Violation]:
    """Whoever waits can be told why."""
    waiting = scene.conn.execute("SELECT run_id FROM runs WHERE finished_at IS NULL").fetchall()
    for run_id in (row["run_id"] for row in waiting):
        told = explain_run(run_id).sentence
        if "nothing is asked of anybody" in told or len(told) < 20:
            yield Violation("stuck", "explain", run_id, told)
