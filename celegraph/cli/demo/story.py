"""What the ledger and the SMTP server's log say about the demo's runs; nothing else is believed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from celegraph.config import Config
from celegraph.dev.mailbox import Delivery
from celegraph.ledger import approvals, runs
from celegraph.ledger.approvals import Approval
from celegraph.ledger.pool import ledger
from celegraph.ledger.runs import Event, Run


@dataclass(frozen=True)
class Owned:
    """A run at the moment in which its owner was killed; `at` is the database's time of that look."""

    run_id: str
    epoch: int
    at: datetime


@dataclass(frozen=True)
class Kill:
    """One SIGKILL that hit: what died, when, and which runs it was driving."""

    what: str
    pid: int
    runs: tuple[Owned, ...]


@dataclass(frozen=True)
class Story:
    """One run with all its events."""

    run: Run
    events: tuple[Event, ...]
    asked: bool = False

    @property
    def attempts(self) -> int:
        """How often a worker took the run up."""
        return sum(event.kind == "leased" for event in self.events)

    @property
    def deaths(self) -> int:
        """How many of its owners died under it, by the ledger's count."""
        return sum(event.kind == "crashed" for event in self.events)

    def step(self) -> str:
        """The node it was about to do or doing, by its last checkpoint."""
        done = [event for event in self.events if event.kind == "checkpoint" and event.data.get("next")]
        return ", ".join(done[-1].data["next"]) if done else "read"

    def recovery(self, owned: Owned) -> float | None:
        """Seconds from the kill to the next owner; None if the run needed none or has none yet."""
        died = [e.seq for e in self.events if e.kind == "crashed" and e.epoch == owned.epoch]
        if not died:
            return None  # its attempt had ended between the look and the kill
        taken_up = [e.at for e in self.events if e.kind == "leased" and e.seq > died[0]]
        return (taken_up[0] - owned.at).total_seconds() if taken_up else None


@dataclass
class Ledger:
    """The demo's own runs, read by whoever watches them."""

    config: Config
    run_ids: Sequence[str]
    _told: dict[str, Story] = field(default_factory=dict)

    def stories(self) -> list[Story]:
        """All runs that have been started, in the order of the tickets."""
        with ledger(self.config) as conn:
            asked = {a.run_id for a in approvals.list_approvals(conn) if a.kind == "doubt"}
            for run in runs.list_runs(conn, limit=2 * len(self.run_ids) + 100):
                told = self._told.get(run.run_id)
                if run.run_id in self.run_ids and (told is None or told.run.updated_at != run.updated_at):
                    events = tuple(runs.events(conn, run.run_id))
                    self._told[run.run_id] = Story(run, events, run.run_id in asked)
        return [self._told[run_id] for run_id in self.run_ids if run_id in self._told]

    def tell(self, run_id: str) -> Story:
        """One run as it is now."""
        with ledger(self.config) as conn:
            run = runs.get_run(conn, run_id)
            asked = any(a.kind == "doubt" for a in approvals.list_approvals(conn, run_id=run_id))
            return Story(run, tuple(runs.events(conn, run_id)), asked)

    def running(self) -> list[Run]:
        """The demo's runs that somebody drives at this moment."""
        with ledger(self.config) as conn:
            found = runs.list_runs(conn, status="running")
        return [run for run in found if run.run_id in self.run_ids]

    def questions(self) -> list[Approval]:
        """What the agents have asked and nobody has answered; doubts are not the manager's to answer."""
        with ledger(self.config) as conn:
            found = approvals.list_approvals(conn)
        return [a for a in found if a.run_id in self.run_ids and a.kind != "doubt"]


def duplicates(mails: Sequence[Delivery]) -> int:
    """Mails that should not be: of a Message-ID, or for a run, that had one before."""
    ids, owners, surplus = set[str](), set[str](), 0
    for mail in mails:
        surplus += mail.message_id in ids or mail.run_id in owners
        ids.add(mail.message_id)
        owners.add(mail.run_id)
    return surplus


def accepted(mails: Sequence[Delivery]) -> Counter[str]:
    """How many mails the SMTP server accepted for each run."""
    return Counter(mail.run_id for mail in mails)
