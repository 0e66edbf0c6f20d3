"""What LangGraph and PostgreSQL can keep of a state: refused with the field's path, and never half kept.

LangGraph serialises a value whole and says only what kind of thing it met; PostgreSQL says not even the
field.  Here the culprit is looked for, once something has been refused.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.types import Interrupt, Send
from pydantic import BaseModel

from celegraph.agent import langgraph_words as words
from celegraph.errors import InvalidValue
from celegraph.ledger.plain import MAX_STORED_INT, MIN_STORED_INT, at_key, check_float, check_int, check_text

# What values of LangGraph's own channels are, in words for a person.
_CALLED = {
    words.INTERRUPT: "interrupt",
    words.RESUME: "answer",
    words.RETURN: "result of the task",
    words.TASKS: "Send",
    words.END: "result",
    words.PREVIOUS: "result",
    words.START: "input",
    words.ROOT: "state",
}
_REMEDY = "keep its id, or its data as text, list or dict"


class UnstorableState(InvalidValue):
    """A node left a value in the state that cannot be kept; what the node did is recorded all the same.

    `namespace`, `checkpoint_id` and `channel` say whose writes must go before the node can run again.
    """

    def __init__(self, problem: InvalidValue, namespace: str, checkpoint_id: str | None, channel: str):
        super().__init__(problem.path, problem.problem)
        self.namespace = namespace
        self.checkpoint_id = checkpoint_id
        self.channel = channel


def check_inlined(channel: str, value: object) -> None:
    """Raise `InvalidValue` for a plain value that the checkpoint's own jsonb would refuse.

    Inside lists, dicts and objects the same text or number is kept as bytes and does no harm.
    """
    path = field_of(channel)
    if isinstance(value, str):
        check_text(value, path)
    elif isinstance(value, float):
        check_float(value, path)
    elif isinstance(value, int):
        check_int(value, path)


def field_of(channel: str) -> str:
    """A channel as the state's author knows it."""
    return _CALLED.get(channel, at_key("state", channel))


def culprit(serde: SerializerProtocol, value: object, path: str, depth: int = 0) -> InvalidValue | None:
    """The innermost part of `value` that `serde` refuses; None: it takes it."""
    try:
        serde.dumps_typed(value)
        return None
    except RecursionError:
        return InvalidValue(path, "contains itself or is nested too deep")
    except Exception as error:
        if depth > _DEEPEST:
            return InvalidValue(path, "contains itself or is nested too deep")
        for inner_path, inner in _parts(value, path):
            if (found := culprit(serde, inner, inner_path, depth + 1)) is not None:
                return found
        return InvalidValue(path, _said(value, error))


# Beyond what the serialiser itself follows.
_DEEPEST = 300


def _parts(value: object, path: str) -> Iterator[tuple[str, object]]:
    """What `value` is made of, as the serialiser takes it apart."""
    if isinstance(value, Interrupt):
        yield path, value.value
    elif isinstance(value, Send):
        yield f"{path}({value.node!r})", value.arg
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield (at_key(path, key) if isinstance(key, str) else f"{path}[{key!r}]"), item
    elif isinstance(value, list | tuple | set | frozenset):
        for n, item in enumerate(value):
            # LangGraph's own list of the questions of one task.
            yield (path if isinstance(item, Interrupt) else f"{path}[{n}]"), item
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield at_key(path, name), getattr(value, name)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for one in dataclasses.fields(value):
            yield at_key(path, one.name), getattr(value, one.name)


def _said(value: object, error: Exception) -> str:
    if isinstance(value, int) and not MIN_STORED_INT <= value <= MAX_STORED_INT:
        return "is an integer of more than 64 bits, which a state cannot hold; keep it as text"
    if isinstance(value, str):
        return "contains half a character (a lone surrogate)"
    if isinstance(value, Mapping):
        return f"has a key that a state cannot hold ({error})"
    return f"is of type {type(value).__name__}, which a state cannot hold; {_REMEDY}"


def first_culprit(
    serde: SerializerProtocol, values: Sequence[tuple[str, Any]]
) -> tuple[str, InvalidValue] | None:
    """The first of these channels whose value `serde` refuses, and why."""
    for channel, value in values:
        if (found := culprit(serde, value, field_of(channel))) is not None:
            return channel, found
    return None
