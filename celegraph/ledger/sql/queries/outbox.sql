-- name: enqueue
-- (nothing) -> pending, attempts 0: an intent.  The trigger on checkpoint_writes releases it with its
-- node's own writes.  A later pass through the node takes an unreleased intent over.
WITH lease AS (
    SELECT l.epoch, r.read_only FROM run_leases l JOIN runs r USING (run_id)
     WHERE l.run_id = %(run_id)s AND l.epoch = %(epoch)s FOR SHARE OF l
), effect AS (
    INSERT INTO effects (idempotency_key, run_id, step, tool, slot, args_hash, args, mode, attempts,
                         task_id, execution)
    SELECT %(key)s, %(run_id)s, %(step)s, %(tool)s, %(slot)s, %(args_hash)s, %(args)s::jsonb, 'outbox', 0,
           %(task_id)s, %(execution)s
      FROM lease WHERE NOT read_only
    ON CONFLICT (idempotency_key) DO UPDATE SET task_id = excluded.task_id, execution = excluded.execution
     WHERE effects.released_at IS NULL AND effects.status = 'pending'
    RETURNING *
), event AS (
    INSERT INTO run_events (run_id, epoch, kind, data)
    SELECT run_id, %(epoch)s, 'effect enqueued', jsonb_build_object('key', idempotency_key, 'tool', tool,
           'step', step, 'slot', slot) FROM effect
)
SELECT EXISTS (SELECT FROM lease) AS mine, (SELECT read_only FROM lease) AS read_only, effect.* FROM (SELECT 1) AS one LEFT JOIN effect ON true;

-- name: drop_stale
-- Intents of earlier passes through this task: the pass whose writes are about to become durable did not
-- want them.
WITH dropped AS (
    DELETE FROM effects e
     USING run_leases l
     WHERE l.run_id = %(run_id)s AND l.epoch = %(epoch)s AND e.run_id = l.run_id AND e.task_id = %(task_id)s
       AND e.mode = 'outbox' AND e.released_at IS NULL AND e.execution <> %(execution)s
    RETURNING e.run_id, e.idempotency_key, e.tool
)
INSERT INTO run_events (run_id, epoch, kind, data)
SELECT run_id, %(epoch)s, 'effect dropped', jsonb_build_object('key', idempotency_key, 'tool', tool) FROM dropped;

-- name: claim_next
-- The next released intent that may be called without asking anybody: never tried, or certainly not
-- done.  SKIP LOCKED: of many dispatchers each takes its own.  `horizons` is the time by which a call
-- of each tool is over, in seconds.
UPDATE effects e
   SET status = 'pending', attempts = e.attempts + 1, owner = %(owner)s, error = NULL,
       doubt_after = ledger_now() + make_interval(secs => (%(horizons)s::jsonb ->> e.tool)::double precision),
       next_try_at = ledger_now() + make_interval(secs => (%(horizons)s::jsonb ->> e.tool)::double precision),
       updated_at = ledger_now()
 WHERE e.idempotency_key = (
       SELECT idempotency_key FROM effects
        WHERE mode = 'outbox' AND released_at IS NOT NULL AND next_try_at <= ledger_now()
          AND (status = 'failed' OR (status = 'pending' AND attempts = 0))
          AND tool = ANY(%(tools)s)
        ORDER BY next_try_at LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING *;

-- name: claim_again
-- pending (past its horizon) -> pending, attempts + 1, after its doubt was answered by "call".
-- `error` as in effects.sql, claim.
UPDATE effects e
   SET attempts = e.attempts + 1, owner = %(owner)s,
       error = CASE WHEN NOT %(settled)s THEN coalesce(e.error, '{"type": "celegraph.NoRecord"}') END,
       doubt_after = ledger_now() + %(horizon)s::interval,
       next_try_at = ledger_now() + %(horizon)s::interval, updated_at = ledger_now()
 WHERE idempotency_key = %(key)s AND status = 'pending' AND attempts = %(attempts)s AND doubt_after <= ledger_now()
RETURNING *;

-- name: doubtful
-- Intents whose last call is over or must be taken for over, and nobody knows what it did.  Their next turn
-- is booked before anything is done: a look-up that hangs keeps one dispatcher, not all.
WITH due AS (
    SELECT idempotency_key FROM effects
     WHERE mode = 'outbox' AND released_at IS NOT NULL AND next_try_at <= ledger_now()
       AND status = 'pending' AND attempts > 0 AND tool = ANY(%(tools)s)
     ORDER BY next_try_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
UPDATE effects e
   SET next_try_at = ledger_now() + make_interval(secs => (%(horizons)s::jsonb ->> e.tool)::double precision)
  FROM due WHERE e.idempotency_key = due.idempotency_key
RETURNING e.*, doubt_after <= ledger_now() AS doubt_passed,
       extract(epoch FROM doubt_after - ledger_now())::double precision AS doubt_in_s,
       extract(epoch FROM ledger_now() - created_at)::double precision AS age_s,
       (SELECT r.agent FROM runs r WHERE r.run_id = e.run_id) AS agent;

-- name: try_later
-- When to look at an intent again; NULL: a dead letter, until a person releases it.  Only in the status
-- that was read: whoever answered its doubt meanwhile has made it due at once.
UPDATE effects SET next_try_at = ledger_now() + %(delay)s::interval
 WHERE idempotency_key = %(key)s AND attempts = %(attempts)s AND status = %(status)s;

-- name: release_dead
-- A person lets a dead letter be tried again.
WITH effect AS (
    UPDATE effects SET next_try_at = ledger_now(), updated_at = ledger_now()
     WHERE idempotency_key = %(key)s AND mode = 'outbox' AND status = 'failed' AND next_try_at IS NULL
       AND NOT coalesce((error ->> 'skipped')::boolean, false)
    RETURNING run_id, idempotency_key, tool
), event AS (
    INSERT INTO run_events (run_id, kind, data)
    SELECT run_id, 'effect released', jsonb_build_object('key', idempotency_key, 'tool', tool, 'by', %(by)s::text) FROM effect
)
SELECT run_id FROM effect;
