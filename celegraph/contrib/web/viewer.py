"""Who is looking, and what they may do.  The host says so; there is no open default."""

from __future__ import annotations

from typing import Literal, Protocol

# view: see runs and questions of this agent; decide: answer its questions; operate: cancel, pause,
# resume, retry and release its runs, settle its doubts and try given up effects again.
Action = Literal["view", "decide", "operate"]


class Viewer(Protocol):
    """A person, as the host knows them.  Asked several times per page: answer from memory."""

    @property
    def name(self) -> str:
        """Who it is, as it shall stand in the record of a decision."""

    def may(self, action: Action, agent: str) -> bool:
        """Whether they may do this with runs of this agent."""
