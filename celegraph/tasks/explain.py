"""`explain_run`: one sentence for a person, and the facts behind it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from celegraph.ledger.explain import Picture, picture
from celegraph.ledger.pool import ledger
from celegraph.tasks.installation import installation
from celegraph.tasks.sentence import sentence

_OF_THE_RUN = (
    "agent",
    "reason",
    "waits_for",
    "wake_at",
    "ring_at",
    "rung_at",
    "crash_count",
    "hang_count",
    "retry_count",
    "max_crashes",
    "cancel_requested_at",
    "pause_requested_at",
    "deadline_at",
    "created_at",
    "updated_at",
    "started_at",
    "finished_at",
    "epoch",
    "worker_id",
    "beat_at",
    "draining",
    "progress",
    "now",
)


@dataclass(frozen=True)
class Explanation:
    """One sentence for a person, and the facts behind it as plain JSON."""

    run_id: str
    status: str
    sentence: str
    facts: dict[str, Any]


def explain_run(run_id: str) -> Explanation:
    """Who holds the run, what it waits for, what happens next and when; `RunNotFound`."""
    config = installation().config
    with ledger(config) as conn:
        seen = picture(conn, run_id)
    return Explanation(run_id, seen.run.status, sentence(seen, config), _facts(seen))


def _facts(seen: Picture) -> dict[str, Any]:
    """Plain JSON: instants as ISO 8601, spans in seconds.  Neither input nor arguments."""
    run = seen.run
    facts = {name: getattr(run, name) for name in _OF_THE_RUN} | {
        "error": {"type": run.error.get("type"), "message": run.error.get("message")} if run.error else None,
        "holder": asdict(seen.holder) if seen.holder else None,
        "last_step": asdict(seen.last_step) if seen.last_step else None,
        "questions": [asdict(q) for q in seen.questions],
        "pending_effects": [asdict(p) for p in seen.pending],
        "intents": [asdict(i) for i in seen.intents],
        "tick_ages_s": dict(seen.ages),
    }
    return {name: _plain(value) for name, value in facts.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value
