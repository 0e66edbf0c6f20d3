"""Flower's list says of each attempt whose it is, why it was made and how it ended."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from celegraph import decide, retry_run
from celegraph.contrib.flower import format_task
from celegraph.tasks.installation import installation
from celegraph.tasks.ring import ring
from tests.crash.conftest import scene as scene
from tests.support.flower import Flower
from tests.support.scene import Scene


@pytest.fixture
def flower(scene: Scene) -> Iterator[Flower]:
    """Beside a worker of one slot: there a doorbell that the sweep adds is never the first to begin."""
    with Flower(scene) as running:
        scene.worker("w", concurrency=1, options=["-E"])
        yield running


def test_the_list_shows_run_agent_reason_and_that_a_waiting_run_is_not_over(
    scene: Scene, flower: Flower
) -> None:
    run_id = scene.begin("approved")
    question = scene.question(run_id)
    flower.await_states(run_id, ["RETRY"])
    (waiting,) = flower.rows(run_id)

    decide(question.approval_id, "approve", by="ana")

    flower.await_states(run_id, ["RETRY", "SUCCESS"])
    assert waiting["uuid"] == run_id
    assert waiting["kwargs"] == f"run {run_id}, agent approved, started"
    assert waiting["result"] == "run is waiting"
    second = flower.rows(run_id)[1]
    assert second["uuid"] != run_id
    assert second["kwargs"] == f"run {run_id}, agent approved, decided"
    assert all(f'data-column="{name}"' in flower.columns() for name in ("name", "kwargs", "state", "result"))


def test_a_failed_run_is_a_failed_row_and_its_retry_says_who_wanted_it(scene: Scene, flower: Flower) -> None:
    run_id = scene.begin("failing")
    scene.await_status(run_id, "failed")
    flower.await_states(run_id, ["FAILURE"])

    retry_run(run_id, by="ana")

    flower.await_states(run_id, ["FAILURE", "FAILURE"])
    assert flower.rows(run_id)[1]["kwargs"] == f"run {run_id}, agent failing, asked to retry"


def test_a_doorbell_too_many_of_a_failed_run_says_its_end_once_more_and_begins_nothing(
    scene: Scene, flower: Flower
) -> None:
    run_id = scene.begin("failing")
    scene.await_status(run_id, "failed")
    before = scene.kinds(run_id)

    ring(installation(), [run_id], "asked twice")

    flower.await_states(run_id, ["FAILURE", "FAILURE"])
    assert scene.kinds(run_id) == before


class Row:
    """What the formatter reads and writes of Flower's copy of a task."""

    def __init__(self, name: str, kwargs: str | None):
        self.name, self.kwargs = name, kwargs
        self.args, self.state, self.result, self.exception = "(1,)", "RECEIVED", None, None


@pytest.mark.parametrize(
    ("kwargs", "shown"),
    [
        ("{'agent': 'refund', 'input': {'iban': 'DE00'}, 'run_id': 'r'}", "run r, agent refund"),
        ("{'agent': 'refund', 'input': {'iban': 'DE0...", ""),
        ("[1]", ""),
        (None, ""),
    ],
)
def test_what_a_foreign_producer_sent_along_is_not_shown(kwargs: str | None, shown: str) -> None:
    row = format_task(Row("celegraph.start_run", kwargs))

    assert (row.args, row.kwargs) == ("", shown)


def test_the_hosts_own_tasks_are_left_alone() -> None:
    row = format_task(Row("shop.mail", "{'to': 1}"))

    assert (row.args, row.kwargs) == ("(1,)", "{'to': 1}")
