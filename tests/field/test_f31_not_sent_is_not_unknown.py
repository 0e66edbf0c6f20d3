"""F31: a refused connection is no doubt; it may be tried again, and nobody is asked."""

from __future__ import annotations

import pytest

from celegraph.testing.driver import Driver
from tests.support.paying import paying
from tests.support.provider import FakeProvider


@pytest.mark.parametrize("in_doubt", ["retry", "ask"])
def test_refused_twice_then_fine_is_one_act_in_three_attempts(
    drive: Driver, provider: FakeProvider, in_doubt: str
) -> None:
    provider.switch(refuses_connect=True)
    run = drive(paying(provider, in_doubt=in_doubt), {}, sleeps=False)
    assert (run.status, run.effects[0].status) == ("ready", "failed")
    run.pass_time("5m").resume()
    provider.switch(refuses_connect=False)

    run.pass_time("5m").resume()

    (act,) = provider.acts()
    assert (run.status, run.output["seen"]) == ("finished", [act.ref])
    assert [(a.status, a.attempts) for a in run.effects] == [("sent", 3)]
    assert run.approvals == []
