"""F06: start is pressed twice, or an HTTP client repeats the call."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from celegraph import start_run
from celegraph.errors import RunConflict
from celegraph.ledger.runs import list_runs
from tests.support.scene import Scene

RUN = "refund-o-17"


def test_ten_starts_at_once_are_one_run_and_other_input_is_refused(scene: Scene) -> None:
    def press(_: int) -> str:
        return str(start_run.delay("retried", {"cents": 17}, run_id=RUN).id)

    with ThreadPoolExecutor(10) as hands:
        assert set(hands.map(press, range(10))) == {RUN}
    with pytest.raises(RunConflict, match=f"run '{RUN}' already exists with another input"):
        start_run.delay("retried", {"cents": 18}, run_id=RUN)

    scene.worker("w")
    assert scene.await_status(RUN, "finished").input == {"cents": 17}
    assert len(list_runs(scene.conn)) == 1
    assert [act.body["cents"] for act in scene.provider.acts()] == [17]
    assert scene.kinds(RUN).count("admitted") == 1
