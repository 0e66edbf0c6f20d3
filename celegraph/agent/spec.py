"""What a host says about an agent: where its graph is and how it shall be treated.

Light on purpose: web processes read this and must never import LangGraph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from pydantic import BaseModel, ConfigDict, Field

from celegraph.agent.class_names import names_of
from celegraph.agent.policy import ApprovalPolicy, span
from celegraph.config import Positive
from celegraph.errors import ConfigError

STREAMED = ("tokens", "custom", "progress")
_SHORTEST_HEARTBEAT = timedelta(seconds=1)


class RetryPolicy(BaseModel):
    """When a failed node is tried again.  The waiting is done in PostgreSQL, no worker sleeps.

    Transient errors (timeouts, connections, 429, 5xx) are always retried within `max_attempts`;
    `retry_on` adds exception classes of the host's own, by class or by dotted name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    max_attempts: int = Field(default=5, ge=1)
    first_delay: Positive = timedelta(seconds=1)
    factor: float = Field(default=2.0, ge=1)
    max_delay: Positive = timedelta(minutes=5)
    retry_on: tuple[type[BaseException] | str, ...] = ()

    def delay(self, retries: int) -> timedelta:
        """The pause before retry number `retries` + 1."""
        seconds = self.first_delay.total_seconds() * self.factor ** min(retries, 30)
        return min(timedelta(seconds=seconds), self.max_delay)

    def covers(self, error: BaseException) -> bool:
        """The host asked for retries of this kind of error."""
        names = names_of(error)
        return any((k in names) if isinstance(k, str) else isinstance(error, k) for k in self.retry_on)


@dataclass(frozen=True, kw_only=True)
class Agent:
    """A graph and its settings.  `graph`: "package.module:name" of a StateGraph, a compiled graph, an
    `@entrypoint` or a zero-argument factory, or such an object itself.

    `heartbeat_timeout`: when no node of a run has ended or called `heartbeat()` for so long, its owner is
    taken for hung: the run moves on elsewhere, and the hang counts as a death.  None: slow is not hung.
    `stream`: what its runs tell while they work, of "tokens", "custom" and "progress"; True is all of them.
    """

    graph: object
    retry: RetryPolicy = field(default_factory=lambda: RetryPolicy())
    approval: ApprovalPolicy | None = None
    max_crashes: int | None = None
    heartbeat_timeout: timedelta | str | None = None
    deadline: timedelta | str | None = None
    stream: bool | Sequence[str] = False

    @classmethod
    def of(cls, name: str, value: object) -> Agent:
        """What `install(agents={name: value})` accepts."""
        agent = value if isinstance(value, Agent) else cls(graph=value)
        if isinstance(agent.graph, str):
            module, colon, attribute = agent.graph.partition(":")
            if not (colon and module and attribute):
                raise ConfigError(
                    f"agent {name!r}: {agent.graph!r} is not an import path; write 'package.module:graph'"
                )
        _check_heartbeat(name, agent)
        _check_stream(name, agent)
        return agent

    @property
    def streamed(self) -> tuple[str, ...]:
        """What its runs tell while they work."""
        if isinstance(self.stream, bool):
            return STREAMED if self.stream else ()
        return (self.stream,) if isinstance(self.stream, str) else tuple(self.stream)

    def heartbeat_within(self) -> timedelta | None:
        """How long its nodes may be silent; None: as long as they like."""
        return None if self.heartbeat_timeout is None else span(self.heartbeat_timeout)

    def deadline_after_start(self) -> timedelta | None:
        """How long a run of this agent may take in all."""
        return None if self.deadline is None else span(self.deadline)


def _check_heartbeat(name: str, agent: Agent) -> None:
    try:
        within = agent.heartbeat_within()
    except ValueError as error:
        raise ConfigError(f"agent {name!r}: heartbeat_timeout: {error}") from error
    if within is not None and within < _SHORTEST_HEARTBEAT:
        # It is looked at once a second, and a busy machine is not a hung one.
        raise ConfigError(
            f"agent {name!r}: heartbeat_timeout is {within.total_seconds():g} s; give it at least"
            f" {_SHORTEST_HEARTBEAT.total_seconds():g} s"
        )


def _check_stream(name: str, agent: Agent) -> None:
    for kind in agent.streamed:
        if kind not in STREAMED:
            raise ConfigError(
                f"agent {name!r}: cannot stream {kind!r}; stream= is True, False or some of"
                f" {', '.join(STREAMED)}"
            )
