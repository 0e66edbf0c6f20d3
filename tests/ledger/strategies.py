"""Generated values (plain JSON, and what effects may return) and what jsonb does to them."""

from __future__ import annotations

import json
from datetime import UTC
from decimal import Decimal

from hypothesis import strategies as st

from celegraph.ledger.plain import Json

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
finite = st.floats(allow_nan=False, allow_infinity=False)

plain: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=4),
    max_leaves=10,
)

# What needs no tag: the canonical form is the value's own JSON.
exact: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | finite | text,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(text.filter(lambda key: not key.startswith("$")), inner, max_size=4)
    ),
    max_leaves=10,
)

results: st.SearchStrategy[object] = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), finite, text, st.uuids(), st.binary(max_size=5),
        st.decimals(allow_nan=False, allow_infinity=False), st.dates(), st.times(),
        st.datetimes(timezones=st.none() | st.just(UTC)), st.timedeltas(),
    ),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(text | text.map("${}".format), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip


def through_jsonb(value: Json) -> Json:
    """What jsonb does to a document: keys by length, numbers as numeric, no sign on a zero."""

    def number(literal: str) -> object:
        numeric = Decimal(literal)
        return json.loads(format(numeric or abs(numeric), "f"))

    def by_length(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        return dict(sorted(pairs, key=lambda pair: (len(pair[0].encode()), pair[0].encode())))

    kept: Json = json.loads(json.dumps(value), parse_float=number, object_pairs_hook=by_length)
    return kept
