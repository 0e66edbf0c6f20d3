"""The verdict: counted in the SMTP server's own log and in the ledger, nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from rich import box
from rich.table import Table

from celegraph.cli.demo.play import Played
from celegraph.cli.demo.story import Story, accepted, duplicates
from celegraph.dev.mailbox import Delivery


@dataclass(frozen=True)
class Report:
    """What the demo claims, and whether it may."""

    played: Played
    mails: Sequence[Delivery]
    expected: int

    @property
    def lost(self) -> int:
        """Runs that neither ended in exactly their mail nor stopped with an open question."""
        counted = accepted(self.mails)
        kept = sum(
            s.asked or (s.run.status == "finished" and counted[s.run.run_id] > 0) for s in self._stories
        )
        return self.expected - kept

    @property
    def asked(self) -> int:
        """Runs that wait for a person to say whether their mail went out."""
        return sum(story.asked for story in self._stories)

    @property
    def recoveries(self) -> list[float]:
        """Seconds from each kill to the next owner of each run it hit."""
        told = {story.run.run_id: story for story in self._stories}
        found = [told[owned.run_id].recovery(owned) for kill in self.played.kills for owned in kill.runs]
        return [seconds for seconds in found if seconds is not None]

    @property
    def problem(self) -> str:
        """Why it failed; empty if all is well."""
        if self.played.problem:
            return self.played.problem
        if duplicates(self.mails):
            return "a mail was sent twice"
        return "runs were lost" if self.lost else ""

    def last_line(self) -> str:
        """The one line that counts."""
        numbers = {
            "runs": self.expected,
            "kills": len(self.played.kills),
            "emails": len(self.mails),
            "duplicates": duplicates(self.mails),
            "lost": self.lost,
            "asked": self.asked,
            "recovery_p50_s": f"{median(self.recoveries):.2f}" if self.recoveries else "-",
            "recovery_max_s": f"{max(self.recoveries):.2f}" if self.recoveries else "-",
        }
        verdict = f"DEMO FAILED ({self.problem})" if self.problem else "DEMO OK"
        return " ".join([verdict, *(f"{name}={value}" for name, value in numbers.items())])

    def table(self) -> Table:
        """One row per run."""
        counted = accepted(self.mails)
        title = "\nWhat the SMTP server's own log and the ledger say"
        table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("run", no_wrap=True)
        table.add_column("status", no_wrap=True)
        for title in ("mails", "attempts", "kills survived"):
            table.add_column(title, justify="right", no_wrap=True)
        table.add_column("the mail was", no_wrap=True)
        for story in self._stories:
            table.add_row(
                story.run.run_id,
                story.run.status,
                str(counted[story.run.run_id]),
                str(story.attempts),
                str(story.deaths),
                settled(story),
            )
        return table

    @property
    def _stories(self) -> Sequence[Story]:
        return self.played.stories


def settled(story: Story) -> str:
    """In words, how the ledger came to know that the mail went out."""
    if story.asked:
        return "put to a person"
    sent = [event for event in story.events if event.kind == "effect sent"]
    if not sent:
        return "-"
    return "found by Message-ID" if sent[-1].data.get("by") == "look-up" else "recorded"
