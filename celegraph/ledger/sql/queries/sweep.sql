-- name: tick
-- A periodic duty has run; only the last time is kept.
INSERT INTO ticks (name, at, report) VALUES (%(name)s, ledger_now(), %(report)s::jsonb)
ON CONFLICT (name) DO UPDATE SET at = excluded.at, report = excluded.report;

-- name: last_tick
-- Its age by the database's clock: the reader's may be wrong by more than a sweep.
SELECT at, report, extract(epoch FROM ledger_now() - at)::double precision AS age_s FROM ticks WHERE name = %(name)s;

-- name: running
-- Candidates, read before pg_locks: a run that is running here and has no lock a moment later has
-- lost its owner, or moved since, which the epoch in `recover` finds out.  A page; the next begins after
-- the last row of this one: live runs, however many, must not hide a dead one.
SELECT r.run_id, r.lock_key, r.updated_at, l.epoch,
       (l.expires_at <= ledger_now()) AS beatless,
       (l.loop_seen_at <= ledger_now() - %(hang_after)s::interval) AS loopless,
       -- Only as its present owner has promised it.
       coalesce(l.heartbeat_epoch = l.epoch AND l.heartbeat_due_at <= ledger_now(), false) AS silent
  FROM runs r JOIN run_leases l USING (run_id)
 WHERE r.status = 'running'
   AND (%(after_at)s::timestamptz IS NULL OR (r.updated_at, r.run_id) > (%(after_at)s, %(after_id)s))
 ORDER BY r.updated_at, r.run_id
 LIMIT %(limit)s;

-- name: wait_briefly
-- Before `recover`: a host's open transaction may hold the run's row for as long as it likes.
SET lock_timeout = '200ms';

-- name: wait_as_before
-- The pool gives this session to others.
RESET lock_timeout;

-- name: locks
-- Every run's lock and the backend that has it; of runs elsewhere in this database, too.
SELECT lock_key, pid FROM session_locks;

-- name: terminate
-- End a hung owner's backend; only while this very pid holds this very lock (pids are used again), and
-- is a pen of this schema: a run of the same id in another schema has the same lock.
SELECT pg_terminate_backend(pid) AS ended
  FROM session_locks JOIN pg_stat_activity s USING (pid)
 WHERE pid = %(pid)s AND lock_key = %(lock_key)s
   AND s.application_name = 'celegraph pen ' || left(encode(sha256(convert_to(current_schema(), 'UTF8')), 'hex'), 8);

-- name: orphan_locks
-- Locks of our runs whose holder no live lease names, seen for longer than a lease: an owner that
-- settled or was recovered, but whose backend stayed (a forked grandchild holds its socket).
SELECT r.run_id, r.lock_key, k.pid
  FROM session_locks k
  JOIN runs r USING (lock_key)
  JOIN run_leases l USING (run_id)
  JOIN pg_stat_activity s ON s.pid = k.pid
 WHERE r.status <> 'running' AND r.updated_at < ledger_now() - %(lease)s::interval
   AND l.backend_pid IS DISTINCT FROM k.pid
   AND s.application_name = 'celegraph pen ' || left(encode(sha256(convert_to(current_schema(), 'UTF8')), 'hex'), 8)
   AND s.state_change < ledger_now() - %(lease)s::interval;

-- name: consume_ended
-- Answers that came when their run was over (a doubt outlives its run, a click crosses the end): no
-- attempt will take them in, and they must not lie in the way of those that make a run due.
WITH oldest AS MATERIALIZED (
    SELECT approval_id, run_id FROM approvals
     WHERE status <> 'open' AND consumed_at IS NULL
     ORDER BY decided_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
UPDATE approvals a SET consumed_at = ledger_now()
  FROM oldest JOIN runs r USING (run_id)
 WHERE a.approval_id = oldest.approval_id AND r.status IN ('finished', 'failed', 'cancelled');

-- name: wake_decided
-- waiting | asleep -> ready: a person or a deadline has answered and no attempt has seen it yet.
-- This is the guarantee; `decide` and `settle` only make it faster.  SKIP LOCKED: a host's open transaction
-- may hold a run for as long as it likes, and must not hold up everybody else's; the next sweep comes soon.
WITH due AS (
    SELECT a.run_id
      FROM approvals a JOIN runs r USING (run_id)
     WHERE a.status <> 'open' AND a.consumed_at IS NULL
       -- An answer does not bring the code a run waits for; it is kept until that is there.
       AND (r.status = 'waiting' AND r.waits_for <> 'code' OR (r.status = 'ready' AND r.wake_at > ledger_now()))
     ORDER BY a.decided_at
     LIMIT %(limit)s FOR NO KEY UPDATE OF r SKIP LOCKED
), run AS (
    UPDATE runs r
       SET status = 'ready', reason = NULL, waits_for = NULL, wake_at = NULL, rung_at = NULL,
           ring_at = ledger_now(), updated_at = ledger_now()
     WHERE r.run_id IN (SELECT run_id FROM due)
       AND (r.status = 'waiting' OR (r.status = 'ready' AND r.wake_at > ledger_now()))
    RETURNING r.run_id
), event AS (
    INSERT INTO run_events (run_id, kind) SELECT run_id, 'woken' FROM run
)
SELECT run_id FROM run;

-- name: wake_one
-- The same for one run, right after its decision was committed.  Whoever holds the run just now is not
-- waited for: a settle looks again when it has committed, and after anybody else the sweep does.
WITH due AS (
    SELECT r.run_id FROM runs r
     WHERE r.run_id = %(run_id)s
       AND (r.status = 'waiting' AND r.waits_for <> 'code' OR (r.status = 'ready' AND r.wake_at > ledger_now()))
       AND EXISTS (SELECT FROM approvals a WHERE a.run_id = r.run_id AND a.status <> 'open' AND a.consumed_at IS NULL)
       FOR NO KEY UPDATE SKIP LOCKED
), run AS (
    UPDATE runs r
       SET status = 'ready', reason = NULL, waits_for = NULL, wake_at = NULL, rung_at = NULL,
           ring_at = ledger_now(), updated_at = ledger_now()
      FROM due WHERE r.run_id = due.run_id
    RETURNING r.run_id
), event AS (
    INSERT INTO run_events (run_id, kind) SELECT run_id, 'woken' FROM run
)
SELECT run_id FROM run;

-- name: wake_for_code
-- waiting for code -> ready: a worker has started, it may bring the code the run waits for.
WITH due AS (
    SELECT run_id FROM runs WHERE status = 'waiting' AND waits_for = 'code'
     ORDER BY updated_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
), run AS (
    UPDATE runs r
       SET status = 'ready', reason = NULL, waits_for = NULL, rung_at = NULL, ring_at = ledger_now(),
           updated_at = ledger_now()
      FROM due WHERE r.run_id = due.run_id
    RETURNING r.run_id
), event AS (
    INSERT INTO run_events (run_id, kind) SELECT run_id, 'woken' FROM run
)
SELECT run_id FROM run;

-- name: cancelling
-- Runs at rest with a cancellation requested (the request and the settle crossed, or a deadline asked).
-- Locked for this statement only, to leave out those that a host's open transaction holds just now.
SELECT run_id, coalesce(cancel_reason, 'cancelled on request') AS reason
  FROM runs
 WHERE cancel_requested_at IS NOT NULL AND status IN ('ready', 'waiting', 'paused', 'quarantined')
 ORDER BY cancel_requested_at LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED;

-- name: pause_requested
-- ready | waiting -> paused: the owner that was to pause it died, or is of an older release.
WITH due AS (
    SELECT run_id FROM runs
     WHERE pause_requested_at IS NOT NULL AND status IN ('ready', 'waiting') AND cancel_requested_at IS NULL
     ORDER BY pause_requested_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
), run AS (
    UPDATE runs r SET status = 'paused', reason = r.pause_reason, waits_for = NULL, wake_at = NULL, ring_at = NULL,
           updated_at = ledger_now()
      FROM due WHERE r.run_id = due.run_id
    RETURNING r.run_id, r.reason
), event AS (
    INSERT INTO run_events (run_id, kind, data) SELECT run_id, 'paused', jsonb_build_object('reason', reason) FROM run
)
SELECT run_id FROM run;

-- name: past_deadline
-- Any unfinished run whose own deadline has passed is asked to stop; its owner, or `cancelling`, does it.
WITH due AS (
    SELECT run_id FROM runs
     WHERE deadline_at <= ledger_now() AND cancel_requested_at IS NULL
       AND status NOT IN ('finished', 'failed', 'cancelled')
     ORDER BY deadline_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
), run AS (
    UPDATE runs r SET cancel_requested_at = ledger_now(), cancel_reason = 'deadline passed',
           updated_at = ledger_now()
      FROM due WHERE r.run_id = due.run_id
    RETURNING r.run_id
), event AS (
    INSERT INTO run_events (run_id, kind, data)
    SELECT run_id, 'cancel requested', jsonb_build_object('reason', 'deadline passed') FROM run
)
SELECT run_id FROM run;

-- name: unanswered
-- Ready runs that were rung a moment ago and have not begun: their doorbells lie in the queue or at a
-- busy worker, or are lost.  Bounded: beyond the limit the exact number does not matter.
SELECT count(*) FILTER (WHERE rung_at <= ledger_now() - interval '2 seconds') AS overdue, count(*) AS rung
  FROM (SELECT rung_at FROM runs WHERE status = 'ready' AND rung_at IS NOT NULL
         ORDER BY ring_at LIMIT %(limit)s) AS waiting;

-- name: lost_rings
-- More runs wait for their doorbell than doorbells lie in the queue: so many are lost.  Rung again, the
-- longest waiting first.
WITH due AS (
    SELECT run_id FROM runs
     WHERE status = 'ready' AND rung_at <= ledger_now() - interval '2 seconds'
     ORDER BY ring_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
UPDATE runs r SET rung_at = ledger_now(), ring_at = ledger_now() + interval '60 seconds'
  FROM due WHERE r.run_id = due.run_id
RETURNING r.run_id;

-- name: due_rings
-- Whom to ring.  The ring is booked before it is made: when publishing fails it is due again at once
-- (`unring`), when this process dies in between `lost_rings` finds it.
WITH due AS (
    SELECT run_id FROM runs
     WHERE status = 'ready' AND ring_at <= ledger_now() AND rung_at IS NULL
     ORDER BY ring_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
UPDATE runs r SET rung_at = ledger_now(), ring_at = ledger_now() + interval '60 seconds'
  FROM due WHERE r.run_id = due.run_id
RETURNING r.run_id;

-- name: due_again
-- Ready runs whose doorbell has not been answered for a minute.  `room` of them are rung again, the longest
-- waiting first; the others' turn is in a minute, because the queue holds messages enough and nobody is
-- answering.  After ten minutes everybody is rung: a queue that is always full of somebody else's messages
-- must not hide a lost one for ever.
WITH due AS MATERIALIZED (
    SELECT run_id, ring_at, rung_at FROM runs
     WHERE status = 'ready' AND ring_at <= ledger_now() AND rung_at IS NOT NULL
     ORDER BY ring_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
), placed AS (
    SELECT run_id, row_number() OVER (ORDER BY ring_at) <= %(room)s
                   OR rung_at <= ledger_now() - interval '10 minutes' AS again
      FROM due
), booked AS (
    UPDATE runs r
       SET rung_at = CASE WHEN placed.again THEN ledger_now() ELSE r.rung_at END,
           ring_at = ledger_now() + interval '60 seconds'
      FROM placed WHERE r.run_id = placed.run_id
    RETURNING r.run_id, placed.again
)
SELECT run_id FROM booked WHERE again;

-- name: unring
-- The broker did not take these doorbells; the next sweep tries again.  A run that somebody holds stays
-- booked, and `lost_rings` finds it.
WITH missed AS (
    SELECT run_id FROM runs WHERE run_id = ANY(%(run_ids)s) AND status = 'ready' FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE runs r SET rung_at = NULL, ring_at = ledger_now() FROM missed WHERE r.run_id = missed.run_id;
