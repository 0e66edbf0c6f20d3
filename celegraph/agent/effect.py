"""`@effect`: declares a function that changes the world outside, so that it happens once.

What it says is a `declaration`; how a call is claimed, made and recorded is in `calls` and `claims`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from celegraph.agent.bound import BoundEffect
from celegraph.agent.declaration import (
    NOTICE,
    Declaration,
    EffectCall,
    Found,
    InDoubt,
    OnDrift,
    Verdict,
    remember,
)
from celegraph.config import parse_duration
from celegraph.errors import EffectMisuse

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class EffectFunction(Protocol[P, R_co]):
    """What `@effect` returns: the function without its `call` argument, and more ways to call it."""

    declaration: Declaration
    __name__: str

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Perform the effect once in this place of the run, or give back what it returned."""
        ...

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> BoundEffect[R_co]:
        """Describe the call without making it, for `ask_approval`."""
        ...

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Write the call into the outbox: it is made after this node's writes are durable, by a worker's
        dispatcher, under the same policies.  Returns the effect's key (str) for `celegraph.get_effect`;
        an async effect's is awaited."""
        ...

    def slot(self, name: str) -> Callable[P, R_co]:
        """The same effect under a slot of the author's own: recognised by name, not by order."""
        ...


def effect(
    tool: str,
    *,
    in_doubt: InDoubt = "ask",
    lookup: Callable[..., Found | Awaitable[Found]] | None = None,
    timeout: timedelta | str | float | None = None,
    key_ttl: timedelta | str | None = None,
    requires_approval: bool = False,
    on_drift: OnDrift | None = None,
    not_done: tuple[type[BaseException], ...] = (),
    classify: Callable[[BaseException], Verdict | None] | None = None,
) -> Callable[[Callable[Concatenate[EffectCall, P], R]], EffectFunction[P, R]]:
    """Declare a side effect.  The decorated function's first parameter is the `EffectCall`.

    `in_doubt` answers "did it happen?" after a crash between the call and its record: "retry" calls
    again with the same key (the provider must honour it, within `key_ttl`), "reconcile" asks `lookup`,
    "ask" asks a person.

    An exception that proves that nothing happened (connection refused, a 4xx; see `not_done`) is no
    doubt: it goes on to the node, and the effect may be called again.  `not_done` names more such
    exceptions; `classify` says "not_done", "doubt" or None (the built-in table decides) of each.
    Make the act the last thing the function does: the table speaks of the request that failed.

    `on_drift` answers "this re-run wants other arguments than were recorded here": "keep" the recorded
    call (default in a named slot and in a model's tool call, where a model words things differently),
    "ask" a person (default elsewhere), or "fail".
    """
    if in_doubt == "reconcile" and lookup is None:
        raise EffectMisuse(f"effect {tool!r}: in_doubt='reconcile' needs lookup=")
    if lookup is not None and in_doubt != "reconcile":
        raise EffectMisuse(f"effect {tool!r}: lookup= is used only with in_doubt='reconcile'")
    if not tool or len(tool) > 100 or not tool.isprintable():
        raise EffectMisuse(f"effect {tool!r}: the name is 1 to 100 printable characters")
    if tool.startswith(NOTICE):
        raise EffectMisuse(f"effect {tool!r}: names that begin with {NOTICE!r} are celegraph's notifications")

    def declare(function: Callable[Concatenate[EffectCall, P], R]) -> EffectFunction[P, R]:
        declaration = Declaration(
            tool=tool,
            function=function,
            signature=_business_signature(tool, function),
            in_doubt=in_doubt,
            lookup=lookup,
            timeout=None if timeout is None else parse_duration(timeout),
            key_ttl=None if key_ttl is None else parse_duration(key_ttl),
            requires_approval=requires_approval,
            on_drift=on_drift,
            not_done=not_done,
            classify=classify,
        )
        remember(declaration)
        return cast("EffectFunction[P, R]", _wrap(declaration))

    return declare


def _business_signature(tool: str, function: Callable[..., Any]) -> inspect.Signature:
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if not parameters:
        raise EffectMisuse(f"effect {tool!r}: the first parameter must be the EffectCall")
    for parameter in parameters[1:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise EffectMisuse(
                f"effect {tool!r}: *args and **kwargs have no stable names; list the parameters"
            )
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise EffectMisuse(f"effect {tool!r}: parameter {parameter.name!r} must not be positional-only")
    return signature.replace(parameters=parameters[1:])


def _wrap(declaration: Declaration) -> Callable[..., Any]:
    # A plain function, not an object: LangChain's tool() and inspect must see name, doc and types.
    # Imported by the first call, here and below: a web process that declares effects pays for no LangGraph.
    if declaration.is_async:

        async def call_async(*args: Any, **kwargs: Any) -> Any:
            from celegraph.agent.calls import perform_async

            return await perform_async(declaration, declaration.arguments(args, kwargs))

        wrapper: Callable[..., Any] = call_async
    else:

        def call_sync(*args: Any, **kwargs: Any) -> Any:
            from celegraph.agent.calls import perform_sync

            return perform_sync(declaration, declaration.arguments(args, kwargs))

        wrapper = call_sync
    return _dress(wrapper, declaration)


def _dress(wrapper: Callable[..., Any], declaration: Declaration) -> Callable[..., Any]:
    functools.update_wrapper(wrapper, declaration.function)
    del wrapper.__wrapped__  # type: ignore[attr-defined]  # inspect would show the `call` parameter again
    first = next(iter(inspect.signature(declaration.function).parameters))
    hints = {k: v for k, v in declaration.function.__annotations__.items() if k != first}
    wrapper.__annotations__ = hints
    wrapper.__signature__ = declaration.signature  # type: ignore[attr-defined]
    wrapper.declaration = declaration  # type: ignore[attr-defined]
    wrapper.bind = functools.partial(_bind, declaration)  # type: ignore[attr-defined]
    wrapper.enqueue = functools.partial(_enqueue, declaration)  # type: ignore[attr-defined]
    wrapper.slot = functools.partial(_in_slot, declaration)  # type: ignore[attr-defined]
    return wrapper


def _bind(declaration: Declaration, *args: Any, **kwargs: Any) -> BoundEffect[Any]:
    return BoundEffect(declaration.tool, declaration.arguments(args, kwargs), declaration.shape)


def _in_slot(declaration: Declaration, name: str) -> Callable[..., Any]:
    from celegraph.agent.calls import perform_async, perform_sync

    if not name or len(name) > 200:
        raise EffectMisuse(f"effect {declaration.tool!r}: a slot's name is 1 to 200 characters")
    perform: Callable[..., Any] = perform_async if declaration.is_async else perform_sync
    return lambda *a, **k: perform(declaration, declaration.arguments(a, k), slot=name)


def _enqueue(declaration: Declaration, *args: Any, **kwargs: Any) -> Any:
    from celegraph.agent.intents import enqueue_async, enqueue_sync

    write = enqueue_async if declaration.is_async else enqueue_sync
    return write(declaration, declaration.arguments(args, kwargs))
