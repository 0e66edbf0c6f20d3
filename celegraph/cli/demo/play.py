"""The play: tickets come in, the manager approves, the killer strikes, until every run has ended."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from celegraph import decide, start_run
from celegraph.cli.demo.killer import Killer
from celegraph.cli.demo.screen import Screen
from celegraph.cli.demo.story import Kill, Ledger, Story
from celegraph.cli.stage import Stage
from celegraph.errors import RunNotFound
from celegraph.ledger.states import TERMINAL

# Seconds.  Slow enough to be watched.
_TICKET_EVERY = 0.4
_DECISION_EVERY = 0.2
_LOOK_EVERY = 0.1
# A doorbell that died with its worker before the run was begun is rung again within a minute.
_LONGEST = 120.0


@dataclass(frozen=True)
class Played:
    """What is left to judge when the curtain falls."""

    stories: Sequence[Story]
    kills: Sequence[Kill]
    problem: str = ""


@dataclass
class Play:
    """Tickets by run_id, and who acts on them."""

    stage: Stage
    ledger: Ledger
    screen: Screen
    tickets: dict[str, dict[str, str]]
    agent: str
    _started: list[str] = field(default_factory=list)
    _next_ticket: float = 0.0
    _next_decision: float = 0.0

    def perform(self) -> Played:
        """From the first ticket to the last run's end, or until it takes too long."""
        held = list(self.tickets)[-1]
        killer = Killer(self.stage, self.ledger, held, self.screen.say)
        killer.start()
        problem = f"not over after {_LONGEST:.0f} s"
        end = time.monotonic() + _LONGEST
        try:
            while time.monotonic() < end:
                stories = self.ledger.stories()
                self.screen.show(stories, self.stage.smtp.deliveries())
                if killer.error is not None:
                    problem = f"the killer failed: {killer.error!r}"
                    break
                if killer.left == 0 and self._over(stories):
                    problem = ""
                    break
                self._let_in(killer, stories)
                self._approve(killer, held)
                time.sleep(_LOOK_EVERY)
        finally:
            killer.call_off()
        return Played([self.ledger.tell(run_id) for run_id in self._started], killer.kills, problem)

    def _over(self, stories: Sequence[Story]) -> bool:
        ended = all(story.run.status in TERMINAL or story.asked for story in stories)
        return ended and len(stories) == len(self.tickets)

    def _let_in(self, killer: Killer, stories: Sequence[Story]) -> None:
        """The next ticket; the last ones only when the killer needs something that moves."""
        waiting = [run_id for run_id in self.tickets if run_id not in self._started]
        if not waiting or time.monotonic() < self._next_ticket:
            return
        moving = any(story.run.status in ("ready", "running") for story in stories)
        if len(waiting) <= killer.left and (moving or not (killer.hunting or killer.holding.is_set())):
            return
        self._next_ticket = time.monotonic() + _TICKET_EVERY
        run_id = waiting[0]
        start_run.delay(self.agent, self.tickets[run_id], run_id=run_id)
        self._started.append(run_id)

    def _approve(self, killer: Killer, held: str) -> None:
        """One question, as a manager would: not all in the same instant."""
        if time.monotonic() < self._next_decision:
            return
        for question in self.ledger.questions():
            if question.run_id == held and not killer.holding.is_set():
                continue  # its mail would be through before the killer is ready
            decide(question.approval_id, "approve", by="manager")
            self._next_decision = time.monotonic() + _DECISION_EVERY
            return


def doomed(play: Play) -> list[str]:
    """What the last events of unfinished runs say; for the report of a failure."""
    lines = []
    for run_id in play.tickets:
        with contextlib.suppress(RunNotFound):
            story = play.ledger.tell(run_id)
            if story.run.status != "finished":
                last = "; ".join(f"{e.at:%X} {e.kind}" for e in story.events[-6:])
                lines.append(f"{run_id} is {story.run.status} ({story.run.reason or '-'}): {last}")
    return lines
