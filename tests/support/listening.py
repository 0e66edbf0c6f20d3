"""A listener in a thread of the test: hears a run until it ends, or until it is told to hang up."""

from __future__ import annotations

import threading
from typing import Self

from celegraph import StreamItem, stream_run
from tests.support.waiting import eventually


class Listener:
    """Listens for the length of the block; `items` grows."""

    def __init__(self, run_id: str, after: str | None = None):
        self.items: list[StreamItem] = []
        self.error: BaseException | None = None
        self._run_id = run_id
        self._after = after
        self._hang_up = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.hang_up()

    def hang_up(self) -> str | None:
        """Stop listening; returns the cursor to go on from."""
        self._hang_up.set()
        self._thread.join(30)
        if self.error is not None:
            raise self.error
        return self.items[-1].cursor if self.items else self._after

    def until_end(self, within: float = 60.0) -> list[StreamItem]:
        """Everything, once the stream has said that the run has ended."""
        eventually(lambda: self.error is not None or (self.items and self.items[-1].kind == "end"), within)
        self.hang_up()
        return self.items

    def _listen(self) -> None:
        try:
            for item in stream_run(self._run_id, self._after, idle=0.1):
                if item.kind != "idle":
                    self.items.append(item)
                if self._hang_up.is_set():
                    return
        except BaseException as error:
            self.error = error


def tokens(items: list[StreamItem]) -> list[str]:
    """What the model said, word by word."""
    return [str(item.data["text"]) for item in items if item.kind == "token"]


def kept_tokens(items: list[StreamItem]) -> list[str]:
    """What a page shows that heeds "retracted"."""
    kept: list[StreamItem] = []
    for item in items:
        if item.kind == "retracted":
            kept = [k for k in kept if k.task != item.task]
        elif item.kind == "token":
            kept.append(item)
    return tokens(kept)


def events(items: list[StreamItem]) -> list[str]:
    """The kinds of the events."""
    return [str(item.data["event"]) for item in items if item.kind == "event"]


def kinds(items: list[StreamItem]) -> list[str]:
    """Events by their kind, everything else by its own."""
    return [str(i.data["event"]) if i.kind == "event" else i.kind for i in items]
