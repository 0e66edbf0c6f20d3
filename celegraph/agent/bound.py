"""A call that has been described but not made: what an approval binds and a person sees."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True)
class BoundEffect(Generic[R_co]):
    """`effect.bind(...)`: the tool and its business arguments by name, defaults filled in."""

    tool: str
    args: dict[str, Any]
    # The arguments' form, for whoever edits them.
    schema: dict[str, Any] | None = field(default=None, compare=False, repr=False)
