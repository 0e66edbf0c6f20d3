"""`heartbeat()`: a node says that it is alive and how far it is.

Calling it costs no statement: the slot's heart sends what was said last with its next beat.
"""

from __future__ import annotations

import json
import time

from celegraph.agent.attempt import Attempt, current_attempt
from celegraph.errors import AttemptOver, InvalidValue
from celegraph.ledger.values import check_json

# A word for people, written at every beat: whoever has more to say has a state for it.
_LARGEST_PROGRESS = 4096


def heartbeat(progress: object = None) -> None:
    """Tell that this node is alive, and perhaps how far it is: `heartbeat({"page": 3, "of": 12})`.

    For agents with `heartbeat_timeout`: silence for so long is taken for a hang.  `progress` (plain JSON,
    at most 4 KiB, nothing of customers') is shown by `explain` with the next beat; None leaves the last
    one.  Raises AttemptOver when the run has another owner: stop working.  InvalidValue, EffectOutsideRun.
    """
    report(current_attempt("heartbeat"), progress)


def report(attempt: Attempt, progress: object = None) -> None:
    """`heartbeat` for an attempt at hand; from any thread."""
    if attempt.over or attempt.lost:
        raise AttemptOver(attempt.run_id)
    if progress is not None:
        # Text at once: the caller may go on changing what it has passed.
        said = json.dumps(check_json(progress, path="progress"), ensure_ascii=False)
        if (size := len(said.encode())) > _LARGEST_PROGRESS:
            raise InvalidValue("progress", f"{size} bytes of JSON, the limit is {_LARGEST_PROGRESS}")
        attempt.progress = said
    attempt.heard_at = time.monotonic()
