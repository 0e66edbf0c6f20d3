"""F18: provider rejects the key's form."""

from __future__ import annotations

import re

import pytest

from celegraph import EffectCall, effect
from celegraph.testing.driver import Driver
from tests.support.log import Log
from tests.support.shapes import State, chain


@pytest.mark.parametrize("run_id", ["r" * 200, "order of anna@example.com", "überprüfung/zahlung 💶"])
def test_the_key_sent_out_is_short_plain_ascii_and_tells_nothing(
    drive: Driver, log: Log, run_id: str
) -> None:
    @effect("überprüfung/zahlung 💶")
    def pay(call: EffectCall) -> None:
        log(call.key)

    def node(state: State) -> None:
        pay()

    node.__name__ = "überprüfung/zahlung 💶"
    drive(chain(node), {}, run_id=run_id)

    (key,) = log.lines
    assert re.fullmatch(r"[a-z0-9-]{1,255}", key)
    assert "anna" not in key
    assert "example" not in key
