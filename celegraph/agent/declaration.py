"""What `@effect` says of a function: how it is called, looked up, and judged when it fails; and which effects
this process has declared."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from celegraph.agent.shape import shape_of


@dataclass
class EffectCall:
    """One call of an effect: its identity for the provider, and what it learns from the provider.

    `key` is the same on every attempt: send it as the provider's idempotency key.  Set `provider_ref`
    to the provider's id as soon as it is known.  `timeout` is how long the call may take: give a client
    less than that.
    """

    key: str
    attempt: int
    run_id: str
    tool: str
    provider_ref: str | None = None
    timeout: timedelta = timedelta(seconds=60)

    def heartbeat(self, progress: object = None) -> None:
        """As `celegraph.heartbeat`, from a long call.  A dispatcher's call has no run that could hang:
        there it does nothing."""
        from celegraph.agent.attempt import attempt_here
        from celegraph.agent.heartbeat import report

        attempt = attempt_here()
        if attempt is not None:
            report(attempt, progress)


@dataclass(frozen=True)
class Happened:
    """A look-up found the act: `result` is what the effect would have returned."""

    result: Any = None
    ref: str | None = None


@dataclass(frozen=True)
class NotHappened:
    """A look-up is sure that there is no such act at the provider."""


@dataclass(frozen=True)
class Unknown:
    """A look-up could not tell."""

    reason: str = ""


Found = Happened | NotHappened | Unknown
# So begin the tools of notifications, each with the name of its channel.
NOTICE = "notify:"
InDoubt = Literal["ask", "retry", "reconcile"]
OnDrift = Literal["keep", "ask", "fail"]
Verdict = Literal["not_done", "doubt"]


@dataclass(frozen=True)
class Declaration:
    """Everything `@effect(...)` said.  `timeout` bounds one call; async calls are cancelled after it,
    a sync client must be given it."""

    tool: str
    function: Callable[..., Any]
    signature: inspect.Signature
    in_doubt: InDoubt = "ask"
    lookup: Callable[..., Found | Awaitable[Found]] | None = None
    timeout: timedelta | None = None
    key_ttl: timedelta | None = None
    requires_approval: bool = False
    on_drift: OnDrift | None = None
    not_done: tuple[type[BaseException], ...] = field(default=())
    classify: Callable[[BaseException], Verdict | None] | None = None
    # Nobody is asked about its doubts (see `tasks.notices`): a question about a notice would bring notices.
    unattended: bool = False
    # Calls that certainly or perhaps failed, after which nobody calls again unasked.
    tries: int = 8

    @property
    def is_async(self) -> bool:
        """The effect is awaited."""
        return inspect.iscoroutinefunction(self.function)

    @property
    def identity(self) -> tuple[str, str]:
        """Where the function lives; the same after a reload."""
        return self.function.__module__, self.function.__qualname__

    @functools.cached_property
    def shape(self) -> dict[str, Any] | None:
        """The JSON schema of the business arguments; None when their types cannot be read."""
        return shape_of(self.function, self.signature)

    @functools.cached_property
    def _by_place(self) -> tuple[str, ...] | None:
        """The business parameters, if all can be given without their names."""
        parameters = self.signature.parameters.values()
        plain = all(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)
        return tuple(p.name for p in parameters) if plain else None

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The business arguments by name, defaults filled in; TypeError as from the function itself."""
        names = self._by_place
        if names is not None and len(args) == len(names) and not kwargs:
            return dict(zip(names, args, strict=True))  # to bind them takes ten times as long
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)


_declared: dict[str, Declaration] = {}
_ambiguous: set[str] = set()


def remember(declaration: Declaration) -> None:
    """One tool name is one effect per process: its rows must not be performed by another function."""
    known = _declared.get(declaration.tool)
    if known is not None and known.identity != declaration.identity:
        # Two test modules may use one name for different effects; the dispatcher refuses to guess.
        _ambiguous.add(declaration.tool)
    _declared[declaration.tool] = declaration


def declared() -> dict[str, Declaration]:
    """The effects a dispatcher in this process can perform, by tool."""
    return {tool: d for tool, d in _declared.items() if tool not in _ambiguous}
