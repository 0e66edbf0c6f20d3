"""Classes in a stored state that today's code does not have, or has with other fields.

LangGraph gives back a plain dict for them, or an object whose fields nobody has checked, and a node that
went on with it might pay with wrong fields.  What is noticed here stops the run until the code is back.
"""

from __future__ import annotations

import copy
import dataclasses
import importlib.util
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

import ormsgpack
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde import jsonplus
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import BaseModel

from celegraph.agent.storable import field_of
from celegraph.errors import CelegraphError

# LangGraph's own kinds of stored objects that name a class: module, name, what it is made of.
_NAMING_A_CLASS = frozenset(
    {
        jsonplus.EXT_CONSTRUCTOR_SINGLE_ARG,
        jsonplus.EXT_CONSTRUCTOR_POS_ARGS,
        jsonplus.EXT_CONSTRUCTOR_KW_ARGS,
        jsonplus.EXT_METHOD_SINGLE_ARG,
        jsonplus.EXT_PYDANTIC_V1,
        jsonplus.EXT_PYDANTIC_V2,
    }
)


class StateUnreadable(CelegraphError):
    """A field of the stored state holds something that today's code cannot make again."""

    def __init__(self, field: str, type_name: str, problem: str):
        super().__init__(f"{field} holds {type_name}, {problem}")
        self.field = field
        self.type_name = type_name


class WatchfulSerializer(JsonPlusSerializer):
    """LangGraph's serialiser; inside `watching` it says which classes it could not make again."""

    def __init__(self, **options: Any):
        super().__init__(**options)
        self._here = threading.local()

    @contextmanager
    def watching(self) -> Iterator[list[tuple[str, str]]]:
        """What this thread meets in the block: the class's dotted name, and what is wrong with it."""
        found: list[tuple[str, str]] = []
        self._here.found = found
        try:
            yield found
        finally:
            del self._here.found

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """As LangGraph's."""
        found = getattr(self._here, "found", None)
        if found is None or data[0] != "msgpack":
            return super().loads_typed(data)
        plain = self._unpack_ext_hook

        def hook(code: int, stored: bytes) -> Any:
            value = plain(code, stored)
            if code in _NAMING_A_CLASS:
                # With this hook: what is inside is looked at, too.
                parts = ormsgpack.unpackb(stored, ext_hook=hook, option=ormsgpack.OPT_NON_STR_KEYS)
                if (problem := _problem(parts, value)) is not None:
                    found.append((f"{parts[0]}.{parts[1]}", problem))
            return value

        once = copy.copy(self)
        once._unpack_ext_hook = hook
        return JsonPlusSerializer.loads_typed(once, data)


def _problem(parts: Any, value: Any) -> str | None:
    """What is wrong with `value`, made of these parts."""
    module, name, stored = str(parts[0]), str(parts[1]), parts[2]
    known = _class(module, name)
    if known is _GONE:
        return "which today's code does not have"
    if not isinstance(known, type):
        return None  # a function, or in a module that nobody has imported here yet: nothing can be said
    if issubclass(known, Enum):
        gone = not isinstance(value, known) and stored not in {member.value for member in known}
        return f"whose value {stored!r} today's code does not have" if gone else None
    if not isinstance(stored, dict) or (shape := _shape(known)) is None:
        return None
    fields, wanted = shape
    if dropped := [field for field in stored if field not in fields]:
        return f"whose field {dropped[0]!r} today's code does not have"
    if absent := [field for field in wanted if field not in stored]:
        return f"without the field {absent[0]!r}, which today's code wants"
    return None


_GONE = object()


def _class(module: str, name: str) -> object:
    """The class of this name; `_GONE` when today's code has none; None when that cannot be known.

    Nothing is imported and nothing called: a checkpoint must not be able to name code to run.
    """
    if module in sys.modules:
        return vars(sys.modules[module]).get(name, _GONE)
    parent = module.rpartition(".")[0]
    if parent and parent not in sys.modules:
        return None
    try:
        return None if importlib.util.find_spec(module) else _GONE
    except (ImportError, ValueError):
        return _GONE


def _shape(known: type) -> tuple[set[str], list[str]] | None:
    """The fields that a class of today knows, and those it cannot do without; None: it takes anything."""
    if issubclass(known, BaseModel):
        if known.model_config.get("extra") == "allow":
            return None
        fields = known.model_fields
        wanted = [name for name, one in fields.items() if one.is_required()]
        return {*fields, *known.model_computed_fields}, wanted
    if dataclasses.is_dataclass(known):
        declared = dataclasses.fields(known)
        return {one.name for one in declared}, [one.name for one in declared if one.init and _required(one)]
    if issubclass(known, tuple) and hasattr(known, "_fields"):
        names, defaults = list(known._fields), getattr(known, "_field_defaults", {})
        return set(names), [name for name in names if name not in defaults]
    return None


def _required(one: dataclasses.Field[Any]) -> bool:
    return one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING


class ReadingSaver(AsyncPostgresSaver):
    """AsyncPostgresSaver that raises `StateUnreadable` instead of giving back what was not stored."""

    def __init__(self, conn: Any):
        super().__init__(conn, serde=WatchfulSerializer())

    def _load_blobs(self, blob_values: list[tuple[bytes, bytes, bytes]]) -> dict[str, Any]:
        loaded: dict[str, Any] = {}
        for one in blob_values or ():
            with self._reading(one[0].decode()):
                loaded |= super()._load_blobs([one])
        return loaded

    def _load_writes(
        self, writes: list[tuple[bytes, bytes, bytes, bytes, bytes, bytes]] | None
    ) -> list[tuple[str, str, Any]]:
        try:
            with self._reading(""):
                return super()._load_writes(writes)
        except StateUnreadable:
            for one in writes or ():  # once more, to name the field
                with self._reading(one[1].decode()):
                    super()._load_writes([one])
            raise

    @contextmanager
    def _reading(self, channel: str) -> Iterator[None]:
        """`StateUnreadable` when what is read in the block is not what was stored."""
        assert isinstance(self.serde, WatchfulSerializer)
        with self.serde.watching() as found:
            yield
        for type_name, problem in found:
            raise StateUnreadable(field_of(channel), type_name, problem)
