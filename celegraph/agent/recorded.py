"""`recorded(fn)`: the journal of expensive or non-deterministic reads.

An LLM call or a retrieval is made once per place of the run; its result is stored before anybody uses
it, and a re-run gets it back.  A crash in the middle of the call repeats the call, which is why effects
do not belong here.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import inspect
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any, ParamSpec, TypeVar, overload

from celegraph.agent.caller import Caller, arrive
from celegraph.agent.storable import culprit
from celegraph.errors import EffectMisuse, InvalidValue
from celegraph.ledger import effects, remarks
from celegraph.ledger.canonical import decode_result, encode_result
from celegraph.ledger.effect_row import Effect, Reservation
from celegraph.ledger.keys import effect_key
from celegraph.ledger.values import clean_json

P = ParamSpec("P")
R = TypeVar("R")

# Tags what LangGraph's own serialiser stored: messages and other objects come back as their class.
_SERDE = "$serde"


@overload
def recorded(fn: Callable[P, R], *, name: str | None = None) -> Callable[P, R]: ...
@overload
def recorded(*, name: str) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def recorded(fn: Any = None, *, name: str | None = None) -> Any:
    """`fn`, called once per place of the run; a re-run gets the stored result, whatever its arguments.

    Works on functions and coroutine functions, in sync and async nodes.  `name` (default: the function's)
    is part of the record's identity: keep it when the function is renamed.  The result is what LangGraph
    can store in a state; both passes get the same copy.
    """
    if fn is None:
        return functools.partial(recorded, name=name)
    tool = "recorded:" + (name or getattr(fn, "__qualname__", None) or type(fn).__qualname__)
    if inspect.iscoroutinefunction(fn):

        @functools.wraps(fn)
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            reading = _Reading(arrive(f"{tool!r}", None), tool, (args, kwargs))
            if (row := reading.find()) is not None:
                return await reading.replay(row)
            return await reading.keep(await fn(*args, **kwargs))

        return call_async

    @functools.wraps(fn)
    def call_sync(*args: Any, **kwargs: Any) -> Any:
        caller = arrive(f"{tool!r}", None)
        attempt = caller.attempt
        if attempt.on_loop_thread():
            raise EffectMisuse(
                f"{tool!r} is a plain function and was called on the event loop; record a coroutine function"
                " and await it, or call it from a plain 'def' node"
            )
        reading = _Reading(caller, tool, (args, kwargs))
        row = attempt.on_loop(reading.find_on_loop())
        if row is not None:
            return attempt.on_loop(reading.replay(row))
        return attempt.on_loop(reading.keep(fn(*args, **kwargs)))

    return call_sync


class _Reading:
    """One recorded call: its slot, its record, its result's way to the row and back."""

    def __init__(self, caller: Caller, tool: str, given: object):
        self._caller = caller
        self._tool = tool
        self._hash = hashlib.sha256(json.dumps(clean_json(given), sort_keys=True).encode()).hexdigest()
        self._slot = ""

    def find(self) -> Effect | None:
        """Claim the slot; the stored read, if there is one.  Other arguments do not matter: a read that
        was used once stays what it was."""
        attempt, step = self._caller.attempt, self._caller.step
        attempt.check_open()
        slots = attempt.slots(self._caller.place.execution, step, self._tool)
        slot = slots.claim(self._hash, ordered=self._caller.ordered)
        self._slot = slot.name
        return slot.recorded

    async def find_on_loop(self) -> Effect | None:
        """As `find`, for callers in a thread: slots are claimed on the loop only."""
        return self.find()

    async def replay(self, row: Effect) -> Any:
        """The stored result, counted as spared."""
        attempt = self._caller.attempt
        value = self._decode(row.result)
        await remarks.record_replay(attempt.pen, row, attempt.epoch, _tokens(value))
        return value

    async def keep(self, value: Any) -> Any:
        """Store the result and return what every later pass will get."""
        attempt = self._caller.attempt
        attempt.check_open()
        encoded = self._encode(value)
        row = await effects.record_read(attempt.pen, self._reservation(), encoded)
        if row is not None:
            attempt.effects.put(row)
        return self._decode(encoded)

    def _reservation(self) -> Reservation:
        attempt, step = self._caller.attempt, self._caller.step
        return Reservation(
            key=effect_key(attempt.run_id, step, self._tool, self._slot, self._hash),
            run_id=attempt.run_id,
            epoch=attempt.epoch,
            step=step,
            tool=self._tool,
            slot=self._slot,
            args_hash=self._hash,
            args={},
            owner="",
            horizon=timedelta(0),
        )

    def _encode(self, value: Any) -> Any:
        try:
            encoded = encode_result(value)
            if decode_result(encoded) == value:
                return encoded
        except InvalidValue:
            pass  # not plain: LangGraph's serialiser knows messages and the classes of the state
        serde = self._caller.attempt.saver.serde
        try:
            kind, data = serde.dumps_typed(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise culprit(serde, value, f"result of {self._tool!r}") or error from error
        return {_SERDE: kind, "data": base64.b64encode(data).decode()}

    def _decode(self, stored: Any) -> Any:
        if isinstance(stored, dict) and _SERDE in stored:
            data = base64.b64decode(stored["data"])
            return self._caller.attempt.saver.serde.loads_typed((stored[_SERDE], data))
        return decode_result(stored)


def _tokens(value: Any) -> dict[str, Any]:
    """The tokens a stored answer of a model has cost, which this replay did not cost again."""
    usage = getattr(value, "usage_metadata", None)
    if usage is None:
        generations = getattr(value, "generations", None) or []
        usage = (
            getattr(getattr(generations[0], "message", None), "usage_metadata", None) if generations else None
        )
    total = usage.get("total_tokens") if isinstance(usage, dict) else None
    return {"tokens": total} if isinstance(total, int) else {}
