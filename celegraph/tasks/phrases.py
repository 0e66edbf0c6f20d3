"""The parts of `sentence`: what is said of a run's doorbell, questions, doubts, intents and ticks."""

from __future__ import annotations

import json
from datetime import datetime

from celegraph.config import Config
from celegraph.ledger.explain import Intent, Pending, Picture, Question
from celegraph.tasks.words import listed, moment, span

# Seconds.  Workers sweep themselves when the last sweep is 10 s old, and look every 5 s.
TICK_IS_LATE = 20.0

# Characters of an agent's own progress.
_LONGEST_WORD = 200

# What the statement that moves a run from a gone owner writes as its reason.
_CAUSES = {
    "crashed": "its last worker died",
    "hung": "its last worker hung and was fenced",
    "drained": "its last worker was drained",
    "abandoned": "its last worker lost its connection or the run",
}


def seconds(seen: Picture, at: datetime | None) -> float | None:
    """From the reading to `at`, both by the database's clock; negative when it has passed."""
    if at is None or seen.run.now is None:
        return None
    return (at - seen.run.now).total_seconds()


def asked_to_stop(seen: Picture) -> str:
    """Who wants the end of the run, and since when."""
    asked = ago(seen, seen.run.cancel_requested_at)
    late = (seconds(seen, seen.run.deadline_at) or 0) < 0
    return f"for its deadline has passed (asked {asked})" if late else f"as asked {asked}"


def asked_to_pause(seen: Picture) -> str:
    """Since when somebody wants it held."""
    return f"as asked {ago(seen, seen.run.pause_requested_at)}"


def limit(seen: Picture) -> str:
    """The run's own deadline."""
    at = seen.run.deadline_at
    return f"it is cancelled unless it ends by {moment(at)}" if at is not None else ""


def ago(seen: Picture, at: datetime | None) -> str:
    """How long ago by the database's clock."""
    return f"{span(-(seconds(seen, at) or 0))} ago"


def reason(seen: Picture) -> str:
    """The run's reason as people say it."""
    return _CAUSES.get(seen.run.reason or "", seen.run.reason or "")


def deaths(seen: Picture) -> str:
    """How near the run is to its quarantine."""
    run = seen.run
    died = run.crash_count + run.hang_count
    if not died:
        return ""
    return f"it has stopped its worker {died} times in a row and is quarantined at {run.max_crashes}"


def progress(seen: Picture) -> str:
    """What the agent's heartbeat has said, as its author wrote it."""
    said = seen.run.progress
    if said is None:
        return ""
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    return f"its last word: {text if len(text) <= _LONGEST_WORD else text[:_LONGEST_WORD] + '...'}"


def step(seen: Picture) -> str:
    """Where it stands in its graph."""
    if seen.last_step is None:
        return "before its first step was done"
    following = f" (next: {listed(seen.last_step.next)})" if seen.last_step.next else ""
    return f"after step {seen.last_step.step}{following}"


def doorbell(seen: Picture, config: Config) -> str:
    """What has become of the message that shall start it."""
    run = seen.run
    if run.rung_at is None:
        return "no doorbell has reached the broker yet: " + sweep(seen, "rings")
    rings_in = seconds(seen, run.ring_at) or 0.0
    again = f"in {span(rings_in)} the sweep rings again" if rings_in > 0 else sweep(seen, "rings again")
    return (
        f"its doorbell was sent {ago(seen, run.rung_at)} and no worker has taken it, so every slot is busy"
        f" or nobody serves the queue {config.queue!r}: {again}"
    )


def sweep(seen: Picture, does: str) -> str:
    """What the next sweep does, and whether there is one."""
    return _tick(seen.ages.get("sweep"), "sweep", does)


def _tick(age: float | None, name: str, does: str) -> str:
    if age is None:
        return f"the {name} {does}, but none has ever run here: start beat or a worker"
    if age > TICK_IS_LATE:
        return f"the {name} {does}, but the last one was {span(age)} ago: start beat or a worker"
    return f"the next {name} {does}"


def asked(seen: Picture, when: str) -> str:
    """The questions nobody has answered."""
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


def overdue(seen: Picture) -> str:
    """A question past its deadline is closed by a tick."""
    late = [q for q in seen.open if q.deadline_in_s is not None and q.deadline_in_s <= 0]
    age = seen.ages.get("escalate")
    if any(q.silence is not None for q in late):
        return _tick(age, "escalation", "closes what is past its deadline")
    return "silence is no answer to it: " + _tick(age, "escalation", "brings it up again") if late else ""


def answered(seen: Picture) -> str:
    """Answers that no attempt has taken in."""
    answers = (
        f"{q.approval_id} was {q.status}" + (f" by {q.decided_by}" if q.decided_by else "")
        for q in seen.answers
    )
    return listed(answers)


def calls(seen: Picture) -> str:
    """What a running run is calling just now."""
    under_way = [p for p in seen.pending if p.doubt_in_s > 0]
    if not under_way:
        return doubts(seen)
    return "calling " + listed(f"{p.tool!r} (call {p.attempts}, key {p.key})" for p in under_way)


def doubts(seen: Picture) -> str:
    """Calls whose end nobody knows."""
    return "in doubt: " + listed(_doubt(p) for p in seen.pending) if seen.pending else ""


def _doubt(p: Pending) -> str:
    horizon = f", a call may be under way for {span(p.doubt_in_s)}" if p.doubt_in_s > 0 else ""
    return f"effect {p.tool!r} (call {p.attempts}, key {p.key}{horizon})"


def settled_by(seen: Picture) -> str:
    """Calls whose end nobody knows, of a run that will not look itself any more."""
    known = doubts(seen)
    over = [p for p in seen.pending if p.doubt_in_s <= 0]
    return f"{known}; `celegraph resolve {over[0].key} ...` settles it" if over else known


def intents(seen: Picture) -> str:
    """Enqueued effects that are not made yet, dead letters first."""
    dead = [i for i in seen.intents if i.tries_in_s is None]
    said = []
    if dead:
        said.append(
            f"{listed(_intent(i) for i in dead)} failed {dead[0].attempts} times and is tried no more:"
            " celegraph.release_effect lets it be tried again"
        )
    if due := [i for i in seen.intents if i.tries_in_s is not None]:
        soonest = min(i.tries_in_s or 0 for i in due)
        when = f" in {span(soonest)}" if soonest > 0 else ""
        makes = f"makes {listed(_intent(i) for i in due)}{when}"
        said.append(_tick(seen.ages.get("dispatch"), "dispatch", makes))
    return "; ".join(said)


def _intent(intent: Intent) -> str:
    tried = f", tried {intent.attempts} times" if intent.attempts and intent.tries_in_s is not None else ""
    return f"the enqueued effect {intent.tool!r} (key {intent.key}{tried})"
