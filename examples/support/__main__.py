"""`python -m examples.support T-05`: start a run for one of the tickets; without a name for all."""

from __future__ import annotations

import sys
import uuid

from celegraph import start_run
from examples.support import app as support_app
from examples.support.tickets import load_tickets


def main(*wanted: str) -> None:
    """Start the runs and print their run_ids."""
    tickets = {ticket["ticket_id"]: ticket for ticket in load_tickets()}
    unknown = [name for name in wanted if name not in tickets]
    if unknown:
        raise SystemExit(f"no ticket {unknown[0]!r}; there are {', '.join(tickets)}")
    for name in wanted or tickets:
        # A new run each time: the same ticket may be played with more than once.
        run_id = f"{name}-{uuid.uuid4().hex[:6]}"
        start_run.delay("support", tickets[name], run_id=run_id)
        sys.stdout.write(f"{run_id}\n")


if __name__ == "__main__":
    assert support_app.app  # importing it installed celegraph
    main(*sys.argv[1:])
