"""Many runs that wait, written straight into the ledger, and somebody who looks at them."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from celery import Celery

from celegraph.contrib.web import ROUTES, Action, PageRequest, Pages, Route
from celegraph.tasks.install import fit

_FILL = """
TRUNCATE runs CASCADE;
INSERT INTO runs (run_id, lock_key, agent, status, waits_for, reason, input, max_crashes, tags, created_at)
SELECT 'run-' || n, n, 'agent-' || n %% 5, 'waiting', 'decision', 'waits for a decision', '{"order": 1}', 3,
       jsonb_build_object('customer', n::text), ledger_now() - n * interval '1 minute'
  FROM generate_series(1, %(many)s) AS n;
INSERT INTO run_leases (run_id) SELECT run_id FROM runs;
INSERT INTO approvals (approval_id, run_id, kind, interrupt_id, prompt, tool, args, args_hash, policy,
                       deadline_at, created_at)
SELECT 'ap-' || n, 'run-' || n, 'interrupt', 'i', repeat('Refund it? ', 200), 'refund',
       jsonb_build_object('order', n, 'note', repeat('x', 2000)), 'hash', '{}',
       ledger_now() + interval '1 hour', ledger_now() - n * interval '1 minute'
  FROM generate_series(1, %(many)s) AS n;
INSERT INTO run_events (run_id, epoch, kind, data)
SELECT 'run-1', n, 'checkpoint', jsonb_build_object('step', n)
  FROM generate_series(1, least(%(many)s, 300)) AS n;
INSERT INTO effects (idempotency_key, run_id, step, tool, slot, args_hash, args, status, result)
SELECT 'cg-' || n, 'run-1', 's', 'refund', n::text, 'hash', '{"order": 1}', 'sent', '"receipt"'
  FROM generate_series(1, least(%(many)s, 90)) AS n;
ANALYZE;
"""


@dataclass(frozen=True)
class Everybody:
    """May see everything."""

    name: str = "ada"

    def may(self, action: Action, agent: str) -> bool:
        """See `Viewer`."""
        return True


def crowded(database_url: str, many: int) -> None:
    """The ledger with so many runs that wait, and nothing else."""
    with psycopg.connect(database_url, cursor_factory=psycopg.ClientCursor) as conn:
        conn.execute("SET search_path TO celegraph, public")
        conn.execute(_FILL, {"many": many})  # type: ignore[arg-type,unused-ignore]


def pages_of(database_url: str) -> Pages:
    """The pages of an app on this database."""
    app = Celery("crowd", broker="memory://", set_as_current=False)
    app.conf.update(celegraph={"database_url": database_url})
    return Pages(fit(app, {"agent-1": "nowhere:graph"}))


_PARAMS = {"approval": {"approval": "ap-1"}, "run": {"run": "run-1"}, "run_live": {"run": "run-1"}}


def request_of(name: str) -> tuple[Route, PageRequest]:
    """A GET of this route."""
    route = next(route for route in ROUTES if route.name == name)

    def url(route: str, **params: str) -> str:
        return "/".join(["", route, *params.values()])

    return route, PageRequest("GET", url, Everybody(), params=_PARAMS.get(name, {}))
