"""However a call is written, its arguments are the same by name."""

from __future__ import annotations

import pytest

from celegraph import EffectCall, effect
from celegraph.agent.effect import EffectFunction


@effect("test.arguments.plain")
def plain(call: EffectCall, order: str, cents: int = 5) -> None:
    """All by place or by name."""


@effect("test.arguments.named")
def named(call: EffectCall, order: str, *, cents: int = 5) -> None:
    """One by name alone."""


@effect("test.arguments.none")
def none(call: EffectCall) -> None:
    """None at all."""


@pytest.mark.parametrize("function", [plain, named])
@pytest.mark.parametrize(
    ("args", "kwargs", "cents"),
    [
        (("o",), {}, 5),
        ((), {"order": "o"}, 5),
        (("o",), {"cents": 7}, 7),
        ((), {"cents": 7, "order": "o"}, 7),
    ],
)
def test_arguments_go_by_name_in_the_order_of_the_signature(
    function: EffectFunction[..., None], args: tuple[str, ...], kwargs: dict[str, object], cents: int
) -> None:
    assert list(function.declaration.arguments(args, kwargs).items()) == [("order", "o"), ("cents", cents)]


def test_all_arguments_by_place_are_those_by_name() -> None:
    assert plain.declaration.arguments(("o", 7), {}) == {"order": "o", "cents": 7}
    assert none.declaration.arguments((), {}) == {}


@pytest.mark.parametrize(
    ("function", "args", "kwargs"),
    [
        (plain, (), {}),
        (plain, ("o", 1, 2), {}),
        (plain, ("o", 1), {"cents": 2}),
        (plain, ("o",), {"euros": 2}),
        (named, ("o", 1), {}),
        (none, ("o",), {}),
    ],
)
def test_what_the_signature_refuses_is_a_type_error(
    function: EffectFunction[..., None], args: tuple[object, ...], kwargs: dict[str, object]
) -> None:
    with pytest.raises(TypeError):
        function.declaration.arguments(args, kwargs)
