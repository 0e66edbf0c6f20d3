"""The refund agent against its provider: the provider's log says what happened."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from celegraph.testing.driver import Driver
from examples.payments.agent import graph
from examples.payments.provider import Provider
from tests.support.driving import kinds, taken_over
from tests.support.dying import die, process_dies
from tests.support.scripted import free_port
from tests.support.waiting import eventually


@pytest.fixture
def provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    """Serving, and named in the environment."""
    server = Provider(tmp_path / "refunds.jsonl")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    monkeypatch.setenv("PAYMENTS_URL", server.url)
    monkeypatch.setenv("PAYMENTS_KEY", "test")
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def refunds(provider: Provider) -> list[dict[str, Any]]:
    """The provider's own log."""
    log = provider.books.log
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def claim(cents: int = 1999) -> dict[str, Any]:
    return {"charge": "ch_20000", "cents": cents, "reason": "broken"}


def test_a_small_refund_is_made_and_its_reference_kept(drive: Driver, provider: Provider) -> None:
    run = drive(graph, claim())

    (made,) = refunds(provider)
    assert (run.output["outcome"], run.output["refund"]) == ("refunded", made["id"])
    (act,) = run.effects
    assert (act.key, act.provider_ref) == (made["key"], made["id"])
    assert made["metadata"] == {"run": run.run_id}


@pytest.mark.parametrize(
    ("decision", "outcome", "made"), [("approve", "refunded", 1), ("reject", "not approved", 0)]
)
def test_a_large_refund_is_a_persons_to_decide(
    drive: Driver, provider: Provider, decision: str, outcome: str, made: int
) -> None:
    run = drive(graph, claim(9_000), [decision])

    assert run.output["outcome"] == outcome
    assert len(refunds(provider)) == made


def test_a_refund_that_the_provider_refuses_ends_with_its_reason(drive: Driver, provider: Provider) -> None:
    run = drive(graph, {"charge": "ch_100", "cents": 500})

    assert run.output["outcome"] == "refused: ch_100 has only 100 left to refund"
    assert [(a.status, a.attempts) for a in run.effects] == [("failed", 1)]
    assert refunds(provider) == []


def test_a_worker_killed_while_the_provider_answers_refunds_once(drive: Driver, provider: Provider) -> None:
    provider.books.hold.touch()

    def die_when_it_has_refunded() -> None:
        eventually(lambda: refunds(provider))
        die()

    def killed() -> None:
        threading.Thread(target=die_when_it_has_refunded, daemon=True).start()
        drive(graph, claim(), run_id="refund-killed")

    process_dies(killed)
    provider.books.hold.unlink()
    run = taken_over(drive(graph, claim(), run_id="refund-killed"))

    assert run.output["outcome"] == "refunded"
    assert len(refunds(provider)) == 1
    assert [(a.status, a.attempts) for a in run.effects] == [("sent", 2)]


def test_a_provider_that_is_down_is_called_again_and_nobody_is_asked(
    drive: Driver, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAYMENTS_URL", f"http://127.0.0.1:{free_port()}")
    run = drive(graph, claim(), sleeps=False)
    assert (run.status, run.effects[0].status) == ("ready", "failed")

    monkeypatch.setenv("PAYMENTS_URL", provider.url)
    run.pass_time("5m").resume()

    assert run.output["outcome"] == "refunded"
    assert "asked" not in kinds(run)


def test_the_provider_answers_as_stripe_does(provider: Provider) -> None:
    with httpx.Client(base_url=provider.url, headers={"Authorization": "Bearer test"}) as client:

        def ask(body: object, **headers: str) -> tuple[int, str]:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            answer = client.post("/v1/refunds", json=body, headers=named)
            return answer.status_code, answer.json().get("error", {}).get("type", "")

        body = {"charge": "ch_100", "amount": 60}
        assert ask(body) == (400, "invalid_request_error")
        assert ask({"charge": "ch_x", "amount": 1}, Idempotency_Key="k0") == (404, "invalid_request_error")
        assert ask({"charge": "ch_1", "amount": 0}, Idempotency_Key="k1") == (400, "invalid_request_error")
        assert ask(body, Idempotency_Key="k2") == (200, "")
        assert ask(body, Idempotency_Key="k2") == (200, "")
        assert ask({**body, "amount": 1}, Idempotency_Key="k2") == (400, "idempotency_error")
        assert ask(body, Idempotency_Key="k3") == (402, "card_error")
        provider.books.begin("k4", body)
        assert ask(body, Idempotency_Key="k4") == (409, "idempotency_error")
        assert client.post("/v1/charges", json={}).status_code == 404
        assert httpx.post(f"{provider.url}/v1/refunds", json=body).status_code == 401

    assert [made["amount"] for made in refunds(provider)] == [60]
