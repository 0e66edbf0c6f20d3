"""Why a run does not move, or what it does, as one sentence.  A pure function of the ledger's picture."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime

from celegraph.config import Config
from celegraph.ledger.explain import Pending, Picture, Question
from celegraph.tasks.words import listed, moment, span

# Seconds.  Workers sweep themselves when the last sweep is 10 s old, and look every 5 s.
SWEEP_IS_LATE = 20.0

# Characters of an agent's own progress.
_LONGEST_WORD = 200

# What the statement that moves a run from a gone owner writes as its reason.
_CAUSES = {
    "crashed": "its last worker died",
    "hung": "its last worker hung and was fenced",
    "drained": "its last worker was drained",
    "abandoned": "its last worker lost its connection or the run",
}


def sentence(seen: Picture, config: Config) -> str:
    """Who holds the run, what it waits for, what happens next and when."""
    parts = _SAID[seen.run.status](seen, config)
    return f"Run {seen.run.run_id!r} {'; '.join(part for part in parts if part)}."


# -- one function per status; each returns the sentence's parts in order, empty ones are left out -----


def _ready(seen: Picture, config: Config) -> list[str]:
    run = seen.run
    if run.cancel_requested_at is not None:
        return [f"is to be cancelled, {_asked_to_stop(seen)}", _sweep(seen, "ends it")]
    if run.pause_requested_at is not None:
        return [f"is to be paused, {_asked_to_pause(seen)}", _sweep(seen, "holds it")]
    wake_in = _seconds(seen, run.wake_at)
    if run.wake_at is not None and wake_in is not None and wake_in > 0:
        why = _reason(seen) or "it was started with a delay"
        asleep = f"sleeps until {moment(run.wake_at)} (in {span(wake_in)}): {why}"
        woken = _sweep(seen, f"wakes it now, since {_answered(seen)}") if seen.answers else ""
        return [asleep, _deaths(seen), _doubts(seen), woken, _asked(seen, "meanwhile "), _limit(seen)]
    if run.started_at is None:
        due = f"was admitted {_ago(seen, run.created_at)} and has not started"
    else:
        due = f"has been due for {span(-(_seconds(seen, run.wake_at or run.updated_at) or 0))}"
        due += f", because {_reason(seen)}" if run.reason else ", to go on from where it stands"
    return [due, _deaths(seen), _doorbell(seen, config), _asked(seen, "meanwhile "), _limit(seen)]


def _running(seen: Picture, config: Config) -> list[str]:
    run, holder = seen.run, seen.holder
    if holder is None:
        return ["is running under no lease", _sweep(seen, "moves it on")]
    held = f"is held by worker {run.worker_id}"
    held += f" for {span(-(_seconds(seen, holder.since) or 0))}" if holder.since else ""
    held += f", last beat {span(holder.beat_age_s or 0)} ago, {_step(seen)}"
    parts = [held, _progress(seen), _calls(seen)]
    if not holder.locked:
        parts.append("that worker is gone: " + _sweep(seen, "moves it on"))
    elif holder.expired:
        parts.append("it has not beaten for a lease: " + _sweep(seen, "fences it and moves it on"))
    elif (holder.loop_age_s or 0) > config.hang_after.total_seconds():
        parts.append(f"its event loop hangs for {span(holder.loop_age_s or 0)}: " + _sweep(seen, "fences it"))
    elif (holder.heartbeat_due_s or 0) < 0:
        late = span(-(holder.heartbeat_due_s or 0))
        parts.append(f"its agent's heartbeat is overdue for {late}: " + _sweep(seen, "fences it"))
    if run.cancel_requested_at is not None:
        parts.append(f"it stops at its next step, {_asked_to_stop(seen)}")
    elif run.pause_requested_at is not None:
        parts.append(f"it is paused at its next step, {_asked_to_pause(seen)}")
    elif run.draining:
        parts.append("its worker drains and hands it back at the next step")
    return parts


def _waiting(seen: Picture, config: Config) -> list[str]:
    run = seen.run
    if run.cancel_requested_at is not None:
        return [f"is to be cancelled, {_asked_to_stop(seen)}", _sweep(seen, "ends it")]
    if run.pause_requested_at is not None:
        return [f"is to be paused, {_asked_to_pause(seen)}", _sweep(seen, "holds it")]
    if run.waits_for == "code":
        return [
            f"has waited for other code for {span(-(_seconds(seen, run.updated_at) or 0))}: {run.reason}",
            "its decisions are kept",
            "start a worker that knows the node again, or cancel it",
        ]
    if seen.answers:
        return [f"waited, and {_answered(seen)}", _sweep(seen, "makes it ready"), _asked(seen, "still ")]
    if seen.open:
        return [_asked(seen, ""), _doubts(seen), _overdue(seen), _limit(seen)]
    # Someone removed the question; no statement of ours leaves a run like this.
    return [f"waits ({run.reason}), but nothing is asked of anybody", "see `celegraph trace`, or cancel it"]


def _paused(seen: Picture, config: Config) -> list[str]:
    since = _ago(seen, seen.run.updated_at)
    if seen.run.cancel_requested_at is not None:
        return [f"was paused {since} and is to be cancelled, {_asked_to_stop(seen)}", _sweep(seen, "ends it")]
    kept = f"{_answered(seen)}, which is kept" if seen.answers else ""
    return [
        f"was paused {since} ({seen.run.reason}), {_step(seen)}",
        kept,
        _doubts(seen),
        _asked(seen, "meanwhile "),
        f"`celegraph resume {seen.run.run_id}` makes it ready",
    ]


def _quarantined(seen: Picture, config: Config) -> list[str]:
    if seen.run.cancel_requested_at is not None:
        return [f"is quarantined and to be cancelled, {_asked_to_stop(seen)}", _sweep(seen, "ends it")]
    return [
        f"has been quarantined for {span(-(_seconds(seen, seen.run.updated_at) or 0))}: it {seen.run.reason}",
        _doubts(seen),
        f"when the cause is repaired, `celegraph release {seen.run.run_id}` lets it go on",
    ]


def _failed(seen: Picture, config: Config) -> list[str]:
    run = seen.run
    error = run.error if isinstance(run.error, dict) else {}
    message = str(error.get("message") or "").strip().split("\n")[0][:300]
    return [
        f"failed {_ago(seen, run.finished_at)}, {_step(seen)}: {run.reason}"
        + (f": {message}" if message else ""),
        _doubts(seen),
        f"`celegraph retry {run.run_id}` goes on from its last durable step",
    ]


def _cancelled(seen: Picture, config: Config) -> list[str]:
    return [
        f"was cancelled {_ago(seen, seen.run.finished_at)} ({seen.run.reason}), {_step(seen)}",
        _doubts(seen),
    ]


def _finished(seen: Picture, config: Config) -> list[str]:
    run = seen.run
    took = (run.finished_at - run.created_at).total_seconds() if run.finished_at else 0.0
    return [f"finished {_ago(seen, run.finished_at)}, {span(took)} after it was admitted", _doubts(seen)]


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


# -- the parts -------------------------------------------------------------------------------------


def _seconds(seen: Picture, at: datetime | None) -> float | None:
    """From the reading to `at`, both by the database's clock; negative when it has passed."""
    if at is None or seen.run.now is None:
        return None
    return (at - seen.run.now).total_seconds()


def _asked_to_stop(seen: Picture) -> str:
    asked = _ago(seen, seen.run.cancel_requested_at)
    late = (_seconds(seen, seen.run.deadline_at) or 0) < 0
    return f"for its deadline has passed (asked {asked})" if late else f"as asked {asked}"


def _asked_to_pause(seen: Picture) -> str:
    return f"as asked {_ago(seen, seen.run.pause_requested_at)}"


def _limit(seen: Picture) -> str:
    at = seen.run.deadline_at
    return f"it is cancelled unless it ends by {moment(at)}" if at is not None else ""


def _ago(seen: Picture, at: datetime | None) -> str:
    return f"{span(-(_seconds(seen, at) or 0))} ago"


def _reason(seen: Picture) -> str:
    return _CAUSES.get(seen.run.reason or "", seen.run.reason or "")


def _deaths(seen: Picture) -> str:
    run = seen.run
    died = run.crash_count + run.hang_count
    if not died:
        return ""
    return f"it has stopped its worker {died} times in a row and is quarantined at {run.max_crashes}"


def _progress(seen: Picture) -> str:
    """What the agent's heartbeat has said, as its author wrote it."""
    said = seen.run.progress
    if said is None:
        return ""
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    return f"its last word: {text if len(text) <= _LONGEST_WORD else text[:_LONGEST_WORD] + '...'}"


def _step(seen: Picture) -> str:
    if seen.last_step is None:
        return "before its first step was done"
    following = f" (next: {listed(seen.last_step.next)})" if seen.last_step.next else ""
    return f"after step {seen.last_step.step}{following}"


def _doorbell(seen: Picture, config: Config) -> str:
    run = seen.run
    if run.rung_at is None:
        return "no doorbell has reached the broker yet: " + _sweep(seen, "rings")
    rings_in = _seconds(seen, run.ring_at) or 0.0
    again = f"in {span(rings_in)} the sweep rings again" if rings_in > 0 else _sweep(seen, "rings again")
    return (
        f"its doorbell was sent {_ago(seen, run.rung_at)} and no worker has taken it, so every slot is busy"
        f" or nobody serves the queue {config.queue!r}: {again}"
    )


def _sweep(seen: Picture, does: str) -> str:
    if seen.sweep_age_s is None:
        return f"the sweep {does}, but none has ever run here: start beat or a worker"
    if seen.sweep_age_s > SWEEP_IS_LATE:
        age = span(seen.sweep_age_s)
        return f"the sweep {does}, but the last one was {age} ago: start beat or a worker"
    return f"the next sweep {does}"


def _asked(seen: Picture, when: str) -> str:
    if not seen.open:
        return ""
    named = listed(_question(seen, q) for q in seen.open)
    return f"{when}waits for {'an answer' if len(seen.open) == 1 else f'{len(seen.open)} answers'}: {named}"


def _question(seen: Picture, q: Question) -> str:
    about = {
        "interrupt": f"approval of {q.tool!r}" if q.tool else "a question of the graph",
        "effect": f"approval of {q.tool!r}",
        "doubt": f"whether {q.tool!r} happened",
        "drift": f"whether {q.tool!r} shall be called again with other arguments",
    }[q.kind]
    until = ""
    if q.deadline_at is not None and q.deadline_in_s is not None:
        passed = f"passed {span(-q.deadline_in_s)} ago"
        until = f", deadline {f'in {span(q.deadline_in_s)}' if q.deadline_in_s > 0 else passed}"
    return f"{about} ({q.approval_id}, open for {span(q.open_for_s)}{until})"


def _overdue(seen: Picture) -> str:
    late = [q for q in seen.open if q.deadline_in_s is not None and q.deadline_in_s <= 0]
    if any(q.silence is not None for q in late):
        return "the escalation tick on beat closes what is past its deadline"
    return "silence is no answer to it: the escalation tick on beat brings it up again" if late else ""


def _answered(seen: Picture) -> str:
    answers = (
        f"{q.approval_id} was {q.status}" + (f" by {q.decided_by}" if q.decided_by else "")
        for q in seen.answers
    )
    return listed(answers)


def _calls(seen: Picture) -> str:
    under_way = [p for p in seen.pending if p.doubt_in_s > 0]
    if not under_way:
        return _doubts(seen)
    return "calling " + listed(f"{p.tool!r} (call {p.attempts}, key {p.key})" for p in under_way)


def _doubts(seen: Picture) -> str:
    return "in doubt: " + listed(_doubt(p) for p in seen.pending) if seen.pending else ""


def _doubt(p: Pending) -> str:
    horizon = f", a call may be under way for {span(p.doubt_in_s)}" if p.doubt_in_s > 0 else ""
    return f"effect {p.tool!r} (call {p.attempts}, key {p.key}{horizon})"
