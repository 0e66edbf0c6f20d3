"""The form of an effect's arguments, carried from the worker that knows it to the page where they are edited.

Workers write it as JSON schema into the question; web processes, which never import an agent, check an
edit against it and get values of the types the effect expects.  What a schema cannot say is left open:
an edit is then checked by the effect itself.
"""

from __future__ import annotations

import inspect
import logging
import typing
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, Union
from uuid import UUID

import typing_extensions
from pydantic import BeforeValidator, ConfigDict, Field, PydanticUserError, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticOmit, core_schema

from celegraph.errors import InvalidValue

logger = logging.getLogger("celegraph")

# A type that contains itself is followed so far; deeper values are not looked at.
_DEEPEST = 12


class _Schema(GenerateJsonSchema):
    """pydantic's, with one form per type, so that the way back is unambiguous."""

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        """A number that JSON would round."""
        words = {"ge": "minimum", "le": "maximum", "gt": "exclusiveMinimum", "lt": "exclusiveMaximum"}
        given: dict[str, Any] = dict(schema)
        limits = {word: float(given[ours]) for ours, word in words.items() if given.get(ours) is not None}
        return {"type": "string", "format": "decimal"} | limits

    def handle_invalid_for_json_schema(
        self, schema: core_schema.CoreSchema, error_info: str
    ) -> JsonSchemaValue:
        """A type that JSON has no word for is left open."""
        return {}


def shape_of(function: Callable[..., Any], signature: inspect.Signature) -> dict[str, Any] | None:
    """The JSON schema of the arguments in `signature`; None when their types cannot be read here."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        fields = {name: hints.get(name, Any) for name in signature.parameters}
        kind = _typed_dict("Arguments", fields, ConfigDict(extra="forbid", arbitrary_types_allowed=True))
        return TypeAdapter(kind).json_schema(schema_generator=_Schema)
    except (NameError, TypeError, AttributeError, ValueError, PydanticUserError, PydanticOmit) as error:
        # Names under TYPE_CHECKING, annotations that are no types.  The edit's names are still checked.
        logger.debug("no shape of %s: %s", function, type(error).__name__)
        return None


def checked(schema: Mapping[str, Any], edited: Mapping[str, Any]) -> dict[str, Any]:
    """The edited arguments with the types that `schema` names, or `InvalidValue` with the field's name."""
    defs = schema.get("$defs", {})
    fields = {name: _type(schema["properties"].get(name, {}), defs, 0) for name in edited}
    kind = _typed_dict("Edited", fields, ConfigDict(extra="forbid"))
    try:
        return dict(TypeAdapter(kind).validate_python(dict(edited)))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidValue(where, first["msg"].removeprefix("Value error, ")) from None


# -- from a schema to a type -----------------------------------------------------------------------


def _no_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("Input should be a number, not true or false")
    return value


_NUMBER = BeforeValidator(_no_bool)
_BY_FORMAT: dict[str, Any] = {
    "date-time": datetime,
    "date": date,
    "time": time,
    "duration": timedelta,
    "uuid": UUID,
    "binary": bytes,
    "decimal": Annotated[Decimal, _NUMBER],
}
_LIMITS = {
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_length",
    "maxItems": "max_length",
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "multipleOf": "multiple_of",
}


def _type(schema: Any, defs: Mapping[str, Any], depth: int) -> Any:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return Any
    if "$ref" in schema:
        return _type(defs.get(str(schema["$ref"]).rpartition("/")[2], {}), defs, depth + 1)
    if "const" in schema:
        return _one_of([schema["const"]])
    if "enum" in schema:
        return _one_of(schema["enum"])
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return Union[tuple(_type(part, defs, depth + 1) for part in schema[word])]  # noqa: UP007
    return _limited(_plain(schema, defs, depth), schema)


def _one_of(values: list[Any]) -> Any:
    plain = all(v is None or isinstance(v, str | int | bool) for v in values)
    return Literal[tuple(values)] if plain else Any


def _plain(schema: Mapping[str, Any], defs: Mapping[str, Any], depth: int) -> Any:
    match schema.get("type"):
        case "string":
            return _BY_FORMAT.get(schema.get("format", ""), str)
        case "integer":
            return Annotated[int, _NUMBER]
        case "number":
            return Annotated[float, _NUMBER]
        case "boolean":
            return bool
        case "null":
            return None
        case "array":
            return list[_type(schema.get("items", {}), defs, depth + 1)]  # type: ignore[misc]
        case "object" if "properties" in schema:
            return _object(schema, defs, depth)
        case "object":
            return dict[str, _type(schema.get("additionalProperties", {}), defs, depth + 1)]  # type: ignore[misc]
    return Any


def _object(schema: Mapping[str, Any], defs: Mapping[str, Any], depth: int) -> Any:
    required = schema.get("required", ())
    fields: dict[str, Any] = {}
    for name, part in schema["properties"].items():
        kind = _type(part, defs, depth + 1)
        fields[name] = kind if name in required else typing_extensions.NotRequired[kind]
    closed = schema.get("additionalProperties") is False
    return _typed_dict("Object", fields, ConfigDict(extra="forbid" if closed else "allow"))


def _typed_dict(name: str, fields: dict[str, Any], config: ConfigDict) -> Any:
    # Not a model: an argument may be called "json", "copy" or "_id".
    make: Any = typing_extensions.TypedDict
    made = make(name, fields)
    made.__pydantic_config__ = config
    return made


def _limited(kind: Any, schema: Mapping[str, Any]) -> Any:
    """With the limits the schema sets; a limit that does not go with the type is no limit."""
    limits = {ours: schema[theirs] for theirs, ours in _LIMITS.items() if theirs in schema}
    if not limits or kind is Any:
        return kind
    limited = Annotated[kind, Field(**limits)]
    try:
        TypeAdapter(limited)
    except (TypeError, PydanticUserError):
        return kind
    return limited
