"""How the demo looks: a live table in a terminal, plain lines anywhere else."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from celegraph.cli.demo.story import Story, accepted
from celegraph.dev.mailbox import Delivery

_COLOURS = {
    "ready": "cyan",
    "running": "yellow",
    "waiting": "magenta",
    "finished": "green",
    "failed": "red",
    "quarantined": "red",
}


class Screen:
    """`say` tells what happened, with the seconds since the beginning; `show` draws all runs."""

    def __init__(self, console: Console, subjects: Mapping[str, str]):
        self._console = console
        self._subjects = subjects
        self._began = time.monotonic()
        self._told = 0
        self._live = Live(console=console, refresh_per_second=10, transient=True)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        """One line that stays."""
        seconds = time.monotonic() - self._began
        colour = "bold red" if text.startswith("SIGKILL") else ""
        self._console.print(Text(f"{seconds:5.1f} s  ", "dim") + Text(text, colour), soft_wrap=True)

    def show(self, stories: Sequence[Story], mails: Sequence[Delivery]) -> None:
        """All runs as they are now; without a terminal only the mails that are new."""
        if self._live.is_started:
            self._live.update(self._table(stories, accepted(mails)))
        else:
            for mail in mails[self._told :]:
                self.say(f"mail accepted for {mail.run_id}: {mail.subject}")
        self._told = len(mails)

    def _table(self, stories: Sequence[Story], counted: Mapping[str, int]) -> Table:
        table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
        for title in ("run", "ticket", "status", "step", "attempts", "died under it", "mails"):
            table.add_column(title, no_wrap=True, overflow="ellipsis", max_width=36)
        for story in stories:
            status = story.run.status
            table.add_row(
                story.run.run_id,
                self._subjects[story.run.run_id],
                Text(status, _COLOURS.get(status, "")),
                "" if story.run.terminal else story.step(),
                str(story.attempts),
                Text("■ " * story.deaths, "red"),
                Text("✉ " * counted[story.run.run_id], "green"),
            )
        return table
