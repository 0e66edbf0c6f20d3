"""F27: the client's timeout fires after the provider has acted; unknown is not failed."""

from __future__ import annotations

from celegraph.testing.driver import Driver
from tests.support.driving import kinds
from tests.support.paying import paying
from tests.support.provider import FakeProvider


def test_the_same_key_is_sent_again_and_the_run_ends_with_one_act(
    drive: Driver, provider: FakeProvider
) -> None:
    provider.switch(acts_then_hangs=2)

    run = drive(paying(provider), {})

    (act,) = provider.acts()
    assert (run.status, run.output["seen"]) == ("finished", [act.ref])
    assert [(a.status, a.key) for a in run.effects] == [("sent", act.key)]
    assert run.effects[0].attempts >= 2
    assert "effect failed" not in kinds(run)
