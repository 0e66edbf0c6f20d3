-- name: holder
-- Who has the run: since when this epoch is leased, and whether the session behind it is still there.
-- The lock vanishes with its owner at once, the lease's expiry only later.
SELECT (SELECT e.at FROM run_events e
         WHERE e.run_id = r.run_id AND e.kind = 'leased' AND e.epoch = l.epoch
         ORDER BY e.seq DESC LIMIT 1) AS since,
       EXISTS (SELECT FROM session_locks k WHERE k.pid = l.backend_pid AND k.lock_key = r.lock_key) AS locked,
       extract(epoch FROM ledger_now() - l.beat_at)::double precision AS beat_age_s,
       extract(epoch FROM ledger_now() - l.loop_seen_at)::double precision AS loop_age_s,
       (l.expires_at <= ledger_now()) AS expired,
       CASE WHEN l.heartbeat_epoch = l.epoch
            THEN extract(epoch FROM l.heartbeat_due_at - ledger_now())::double precision END AS heartbeat_due_s,
       l.progress
  FROM runs r JOIN run_leases l USING (run_id)
 WHERE r.run_id = %(run_id)s AND l.worker_id IS NOT NULL;

-- name: last_step
-- Where it stands: the newest durable step, and what the graph wanted to do next.
SELECT at, (data ->> 'step')::integer AS step, coalesce(data -> 'next', '[]') AS next
  FROM run_events
 WHERE run_id = %(run_id)s AND kind = 'checkpoint' AND NOT data ? 'ns'
 ORDER BY seq DESC LIMIT 1;

-- name: questions
-- What people still have to answer, and answers that no attempt has taken in yet.
SELECT approval_id, kind, tool, idempotency_key AS key, status, created_at, deadline_at, decided_at, decided_by,
       silence,
       extract(epoch FROM ledger_now() - created_at)::double precision AS open_for_s,
       extract(epoch FROM deadline_at - ledger_now())::double precision AS deadline_in_s
  FROM approvals
 WHERE run_id = %(run_id)s AND (status = 'open' OR consumed_at IS NULL)
 ORDER BY created_at, ask;

-- name: pending
-- Calls that may be under way, or whose end nobody saw.  An intent that was never tried has no horizon.
SELECT idempotency_key AS key, tool, step, attempts, owner,
       extract(epoch FROM doubt_after - ledger_now())::double precision AS doubt_in_s
  FROM effects
 WHERE run_id = %(run_id)s AND status = 'pending' AND doubt_after IS NOT NULL
   -- No run waits for the notices about its questions.
   AND tool NOT LIKE 'notify:%%'
 ORDER BY created_at, idempotency_key;

-- name: intents
-- Enqueued effects that were never tried or certainly not done; those in doubt are among `pending`.
SELECT idempotency_key AS key, tool, attempts,
       extract(epoch FROM next_try_at - ledger_now())::double precision AS tries_in_s
  FROM effects
 WHERE run_id = %(run_id)s AND mode = 'outbox' AND released_at IS NOT NULL
   AND (status = 'failed' OR (status = 'pending' AND attempts = 0))
   AND NOT coalesce((error ->> 'skipped')::boolean OR (error ->> 'final')::boolean, false)
 ORDER BY created_at, idempotency_key;
