"""Why a run does not move, or what it does, as one sentence.  A pure function of the ledger's picture."""

from __future__ import annotations

from collections.abc import Callable

from celegraph.config import Config
from celegraph.ledger.explain import Picture
from celegraph.tasks import phrases as say
from celegraph.tasks.words import moment, span


def sentence(seen: Picture, config: Config) -> str:
    """Who holds the run, what it waits for, what happens next and when."""
    parts = [*_SAID[seen.run.status](seen, config), say.intents(seen)]
    return f"Run {seen.run.run_id!r} {'; '.join(part for part in parts if part)}."


# -- one function per status; each returns the sentence's parts in order, empty ones are left out -----


def _ready(seen: Picture, config: Config) -> list[str]:
    run = seen.run
    if run.cancel_requested_at is not None:
        return [f"is to be cancelled, {say.asked_to_stop(seen)}", say.sweep(seen, "ends it")]
    if run.pause_requested_at is not None:
        return [f"is to be paused, {say.asked_to_pause(seen)}", say.sweep(seen, "holds it")]
    wake_in = say.seconds(seen, run.wake_at)
    if run.wake_at is not None and wake_in is not None and wake_in > 0:
        why = say.reason(seen) or "it was started with a delay"
        asleep = f"sleeps until {moment(run.wake_at)} (in {span(wake_in)}): {why}"
        woken = say.sweep(seen, f"wakes it now, since {say.answered(seen)}") if seen.answers else ""
        return [
            asleep,
            say.deaths(seen),
            say.doubts(seen),
            woken,
            say.asked(seen, "meanwhile "),
            say.limit(seen),
        ]
    if run.started_at is None:
        due = f"was admitted {say.ago(seen, run.created_at)} and has not started"
    else:
        due = f"has been due for {span(-(say.seconds(seen, run.wake_at or run.updated_at) or 0))}"
        due += f", because {say.reason(seen)}" if run.reason else ", to go on from where it stands"
    return [due, say.deaths(seen), say.doorbell(seen, config), say.asked(seen, "meanwhile "), say.limit(seen)]


def _running(seen: Picture, config: Config) -> list[str]:
    run, holder = seen.run, seen.holder
    if holder is None:
        return ["is running under no lease", say.sweep(seen, "moves it on")]
    held = f"is held by worker {run.worker_id}"
    held += f" for {span(-(say.seconds(seen, holder.since) or 0))}" if holder.since else ""
    held += f", last beat {span(holder.beat_age_s or 0)} ago, {say.step(seen)}"
    parts = [held, say.progress(seen), say.calls(seen)]
    if not holder.locked:
        parts.append("that worker is gone: " + say.sweep(seen, "moves it on"))
    elif holder.expired:
        parts.append("it has not beaten for a lease: " + say.sweep(seen, "fences it and moves it on"))
    elif (holder.loop_age_s or 0) > config.hang_after.total_seconds():
        parts.append(
            f"its event loop hangs for {span(holder.loop_age_s or 0)}: " + say.sweep(seen, "fences it")
        )
    elif (holder.heartbeat_due_s or 0) < 0:
        late = span(-(holder.heartbeat_due_s or 0))
        parts.append(f"its agent's heartbeat is overdue for {late}: " + say.sweep(seen, "fences it"))
    if run.cancel_requested_at is not None:
        parts.append(f"it stops at its next step, {say.asked_to_stop(seen)}")
    elif run.pause_requested_at is not None:
        parts.append(f"it is paused at its next step, {say.asked_to_pause(seen)}")
    elif run.draining:
        parts.append("its worker drains and hands it back at the next step")
    return parts


def _waiting(seen: Picture, config: Config) -> list[str]:
    run = seen.run
    if run.cancel_requested_at is not None:
        return [f"is to be cancelled, {say.asked_to_stop(seen)}", say.sweep(seen, "ends it")]
    if run.pause_requested_at is not None:
        return [f"is to be paused, {say.asked_to_pause(seen)}", say.sweep(seen, "holds it")]
    if run.waits_for == "code":
        return [
            f"has waited for other code for {span(-(say.seconds(seen, run.updated_at) or 0))}: {run.reason}",
            "its decisions are kept",
            "start a worker whose code knows it again, or cancel it",
        ]
    if seen.answers:
        return [
            f"waited, and {say.answered(seen)}",
            say.sweep(seen, "makes it ready"),
            say.asked(seen, "still "),
        ]
    if seen.open:
        return [say.asked(seen, ""), say.doubts(seen), say.overdue(seen), say.limit(seen)]
    # Someone removed the question; no statement of ours leaves a run like this.
    return [f"waits ({run.reason}), but nothing is asked of anybody", "see `celegraph trace`, or cancel it"]


def _paused(seen: Picture, config: Config) -> list[str]:
    since = say.ago(seen, seen.run.updated_at)
    if seen.run.cancel_requested_at is not None:
        return [
            f"was paused {since} and is to be cancelled, {say.asked_to_stop(seen)}",
            say.sweep(seen, "ends it"),
        ]
    kept = f"{say.answered(seen)}, which is kept" if seen.answers else ""
    return [
        f"was paused {since} ({seen.run.reason}), {say.step(seen)}",
        kept,
        say.doubts(seen),
        say.asked(seen, "meanwhile "),
        f"`celegraph resume {seen.run.run_id}` makes it ready",
    ]


def _quarantined(seen: Picture, config: Config) -> list[str]:
    if seen.run.cancel_requested_at is not None:
        return [f"is quarantined and to be cancelled, {say.asked_to_stop(seen)}", say.sweep(seen, "ends it")]
    since = span(-(say.seconds(seen, seen.run.updated_at) or 0))
    return [
        f"has been quarantined for {since}: it {seen.run.reason}",
        say.doubts(seen),
        f"when the cause is repaired, `celegraph release {seen.run.run_id}` lets it go on",
    ]


def _failed(seen: Picture, config: Config) -> list[str]:
    run = seen.run
    error = run.error if isinstance(run.error, dict) else {}
    message = str(error.get("message") or "").strip().split("\n")[0][:300]
    return [
        f"failed {say.ago(seen, run.finished_at)}, {say.step(seen)}: {run.reason}"
        + (f": {message}" if message else ""),
        say.settled_by(seen),
        f"`celegraph retry {run.run_id}` goes on from its last durable step",
    ]


def _cancelled(seen: Picture, config: Config) -> list[str]:
    return [
        f"was cancelled {say.ago(seen, seen.run.finished_at)} ({seen.run.reason}), {say.step(seen)}",
        say.settled_by(seen),
    ]


def _finished(seen: Picture, config: Config) -> list[str]:
    run = seen.run
    took = (run.finished_at - run.created_at).total_seconds() if run.finished_at else 0.0
    return [
        f"finished {say.ago(seen, run.finished_at)}, {span(took)} after it was admitted",
        say.settled_by(seen),
    ]


_SAID: dict[str, Callable[[Picture, Config], list[str]]] = {
    "ready": _ready,
    "running": _running,
    "waiting": _waiting,
    "paused": _paused,
    "quarantined": _quarantined,
    "failed": _failed,
    "cancelled": _cancelled,
    "finished": _finished,
}
