-- What must be true when everything has been healthy for a while.  Each query returns the runs for which
-- it is not, and what is the matter with them.

-- name: stuck
-- Every run has ended, or waits for something that can be named.
SELECT run_id, status || coalesce(', ' || reason, '') AS what FROM runs r
 WHERE NOT (status IN ('finished', 'failed', 'cancelled')
            OR (status = 'waiting' AND EXISTS (
                    SELECT FROM approvals a WHERE a.run_id = r.run_id AND a.status = 'open')));

-- name: stuck_intents
-- Nothing is left in the outbox of a finished run.
SELECT run_id, 'intent ' || idempotency_key || ' is ' || e.status || coalesce(' ' || e.error::text, '') AS what
  FROM effects e JOIN runs r USING (run_id)
 WHERE r.status = 'finished' AND e.mode = 'outbox' AND e.status NOT IN ('sent', 'confirmed');

-- name: stuck_answers
-- No answer waits to be taken in.
SELECT run_id, 'answer ' || approval_id || ' was not taken in' AS what FROM approvals
 WHERE status <> 'open' AND consumed_at IS NULL;

-- name: stuck_locks
-- A run that is not running holds no lock, and its lease names nobody.
SELECT run_id, 'lock held by backend ' || pid AS what FROM session_locks JOIN runs r USING (lock_key)
 WHERE r.status <> 'running'
UNION ALL
SELECT run_id, 'lease names worker ' || worker_id FROM run_leases JOIN runs r USING (run_id)
 WHERE r.status <> 'running' AND worker_id IS NOT NULL;

-- name: stale_owners
-- One owner per epoch, and epochs only grow.
SELECT run_id, format('epoch %%s leased after epoch %%s', epoch, before) AS what
  FROM (SELECT run_id, epoch, lag(epoch) OVER (PARTITION BY run_id ORDER BY seq) AS before
          FROM run_events WHERE kind = 'leased') AS leased
 WHERE epoch <= before
UNION ALL
SELECT run_id, format('epoch %%s was leased, the lease says %%s', max(e.epoch), l.epoch)
  FROM run_events e JOIN run_leases l USING (run_id) WHERE e.kind = 'leased'
 GROUP BY run_id, l.epoch HAVING max(e.epoch) > l.epoch;

-- name: stale_events
-- Nothing that only an owner may write was written by an older epoch after a newer one.
SELECT run_id, format('%%s in epoch %%s after epoch %%s', kind, epoch, newest) AS what
  FROM (SELECT run_id, kind, epoch, max(epoch) OVER (PARTITION BY run_id ORDER BY seq) AS newest
          FROM run_events
         WHERE kind IN ('leased', 'checkpoint', 'effect reserved', 'effect claimed', 'effect enqueued',
                        'read recorded')) AS fenced
 WHERE epoch < newest;

-- name: stale_writes
-- The fence itself, by the witness: the session that wrote carried the epoch of that moment.
SELECT run_id, format('%%s written under %%s in epoch %%s', what, coalesce(nullif(fence, ''), 'no fence'), epoch) AS what
  FROM witness WHERE fence IS DISTINCT FROM run_id || ':' || epoch;

-- name: stale_heads
-- The newest checkpoint is the one that was written last, by the last owner who wrote any.
SELECT run_id, format('head %%s, but %%s was written last', head, last) AS what
  FROM (SELECT c.thread_id AS run_id, max(c.checkpoint_id) AS head,
               (SELECT e.data ->> 'checkpoint_id' FROM run_events e
                 WHERE e.run_id = c.thread_id AND e.kind = 'checkpoint' AND NOT e.data ? 'ns'
                 ORDER BY e.seq DESC LIMIT 1) AS last
          FROM checkpoints c WHERE c.checkpoint_ns = '' GROUP BY c.thread_id) AS heads
 WHERE head IS DISTINCT FROM last;

-- name: stale_forks
-- Two checkpoints with one parent are two owners.
SELECT thread_id AS run_id, 'two checkpoints after ' || parent_checkpoint_id AS what FROM checkpoints
 WHERE checkpoint_ns = '' AND parent_checkpoint_id IS NOT NULL
 GROUP BY thread_id, parent_checkpoint_id HAVING count(*) > 1;

-- name: doubled_decisions
-- Decided once, by a person or by its deadline.
SELECT run_id, format('%%s was decided %%s times', data ->> 'approval_id', count(*)) AS what FROM run_events
 WHERE kind IN ('decided', 'expired')
 GROUP BY run_id, data ->> 'approval_id' HAVING count(*) > 1;

-- name: doubled_payments
-- An approval that paid was a yes, and paid for an effect that is there.
SELECT a.run_id, format('%%s (%%s) paid for %%s', a.approval_id, a.status, a.effect_key) AS what
  FROM approvals a LEFT JOIN effects e ON e.idempotency_key = a.effect_key
 WHERE a.effect_key IS NOT NULL AND (a.status <> 'approved' OR e.idempotency_key IS NULL)
UNION ALL
SELECT e.run_id, format('%%s was called without an approval', e.idempotency_key) FROM effects e
 WHERE e.tool = ANY(%(guarded)s)
   AND NOT EXISTS (SELECT FROM approvals a WHERE a.effect_key = e.idempotency_key AND a.status = 'approved');

-- name: lost_runs
-- What was started is there, and nothing has failed that nobody meant to fail.
SELECT run_id, 'start_run returned, and there is no such run' AS what
  FROM unnest(%(started)s::text[]) AS run_id WHERE NOT EXISTS (SELECT FROM runs r WHERE r.run_id = run_id.run_id)
UNION ALL
SELECT run_id, status || ': ' || coalesce(reason, '') || coalesce(' ' || (error ->> 'message'), '') FROM runs
 WHERE status = 'failed'
UNION ALL
SELECT run_id, 'cancelled, and nobody asked for it' FROM runs
 WHERE status = 'cancelled' AND cancel_requested_at IS NULL;
