"""F28: a second call while the first is in flight gets 409; wait, and ask again with the same key."""

from __future__ import annotations

import httpx

from celegraph.testing.driver import Driver
from tests.support.driving import kinds, taken_over
from tests.support.dying import process_dies
from tests.support.paying import die_once, paying
from tests.support.provider import FakeProvider
from tests.support.waiting import eventually


def test_the_next_owner_waits_while_the_dead_ones_request_is_at_work(
    drive: Driver, provider: FakeProvider
) -> None:
    provider.switch(busy_409=3.0)

    def killed() -> None:
        die_once(provider.acts)
        drive(paying(provider), {}, run_id="busy")

    process_dies(killed)
    run = taken_over(drive(paying(provider), {}, run_id="busy", sleeps=False))
    run.pass_time("2m").resume()

    # Told that the key is busy: in doubt and asleep, neither failed nor asked about.
    (act,) = provider.acts()
    assert provider.calls(act.key) >= 2
    assert (run.status, run.effects[0].status) == ("ready", "pending")

    eventually(lambda: _answered(provider))
    run.pass_time("2m").resume()

    assert (run.status, run.output["seen"]) == ("finished", [act.ref])
    assert [(a.status, a.key) for a in run.effects] == [("sent", act.key)]
    assert len(provider.acts()) == 1
    assert "effect failed" not in kinds(run)
    assert run.approvals == []


def _answered(provider: FakeProvider) -> bool:
    (act,) = provider.acts()
    headers = {"Idempotency-Key": act.key}
    return httpx.post(f"{provider.url}/pay", json=act.body, headers=headers).status_code == 200
