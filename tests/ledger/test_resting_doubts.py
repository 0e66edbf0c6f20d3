"""Look-ups on beat take turns among the effects in doubt."""

from __future__ import annotations

from celegraph.config import load_config
from celegraph.ledger import doubts
from celegraph.ledger.connect import connect
from celegraph.ledger.pen import Pen
from tests.support.pens import with_pen


def test_doubts_that_no_look_up_can_tell_do_not_keep_the_others_back(database_url: str) -> None:
    config = load_config({"database_url": database_url})
    with connect(config) as conn:
        conn.execute(
            "INSERT INTO runs (run_id, lock_key, agent, input, max_crashes, status, waits_for)"
            " VALUES ('r', 1, 'a', '{}', 3, 'waiting', 'decision')"
        )
        conn.execute(
            "INSERT INTO effects (idempotency_key, run_id, step, tool, slot, args_hash, args, doubt_after)"
            " SELECT 'k' || n, 'r', 's', 'pay', '#' || n, '', '{}', ledger_now() FROM generate_series(1, 3) n"
        )

    async def three_turns(pen: Pen) -> list[str]:
        turns = [await doubts.resting(pen, ["pay"], 1) for _ in range(3)]
        return [row.idempotency_key for turn in turns for row in turn]

    assert sorted(with_pen(config, three_turns)) == ["k1", "k2", "k3"]
