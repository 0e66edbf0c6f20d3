-- name: try_lock
-- Not waited for: who has the lock may have it for hours.  It stays with the session, whatever commits.
SELECT pg_try_advisory_lock(%(key)s) AS locked;

-- name: unlock_all
-- The fence goes with the locks: nothing this session writes later may pass for the old attempt.
SELECT pg_advisory_unlock_all(), set_config('celegraph.fence', '', false);

-- name: drop_fence
-- An attempt is stopped from inside: the lock stays until settle, writes are refused from now on.
SELECT set_config('celegraph.fence', '', false);

-- name: busy
-- Does this running run have an owner that may be trusted to go on?
SELECT r.status, (l.expires_at > ledger_now()) AS held
  FROM runs r JOIN run_leases l USING (run_id)
 WHERE r.run_id = %(run_id)s;

-- name: begin
-- ready -> running, under the advisory lock.  The epoch goes up in the same statement: the last
-- owner's writes in flight end first or are refused, and only then does the new owner read state.
-- The run first: one that is cancelled or paused just now gets no owner.
WITH run AS (
    UPDATE runs r
       SET status = 'running', reason = NULL, wake_at = NULL, ring_at = NULL,
           started_at = coalesce(r.started_at, ledger_now()), updated_at = ledger_now()
     WHERE r.run_id = %(run_id)s AND r.status = 'ready'
       AND (r.wake_at IS NULL OR r.wake_at <= ledger_now())
    RETURNING r.*
), lease AS (
    UPDATE run_leases l
       SET epoch = l.epoch + 1, worker_id = %(worker_id)s, backend_pid = pg_backend_pid(),
           beat_at = ledger_now(), loop_seen_at = ledger_now(), lease_for = %(lease)s::interval,
           expires_at = ledger_now() + %(lease)s::interval, draining = false,
           heartbeat_due_at = NULL, progress = NULL
      FROM run
     WHERE l.run_id = run.run_id
    RETURNING l.run_id, l.epoch
), event AS (
    INSERT INTO run_events (run_id, epoch, kind, data)
    SELECT run_id, epoch, 'leased', jsonb_build_object('worker', %(worker_id)s::text) FROM lease
)
SELECT run.*, lease.epoch, set_config('celegraph.fence', run.run_id || ':' || lease.epoch, false) AS fence,
       -- By the journal, not by the epoch: the first attempts may have died before they stored anything.  A
       -- run whose events were pruned has lost the first of them first.
       EXISTS (SELECT FROM run_events e WHERE e.run_id = run.run_id AND e.kind = 'admitted')
       AND NOT EXISTS (SELECT FROM run_events e WHERE e.run_id = run.run_id AND e.kind = 'checkpoint') AS fresh
  FROM run JOIN lease USING (run_id);

-- name: recover
-- running -> ready | quarantined | cancelled: the owner of this epoch is gone.  The only statement that
-- counts a death; `epoch` makes sure it is counted once, however many sweeps and doorbells see it.
-- A drained owner did not die of the run.  The second death in a row waits a little, the next longer.
-- `detail` says what a hung owner had stopped doing.
WITH old AS (
    SELECT l.run_id, l.epoch, l.worker_id, l.progress,
           CASE WHEN l.draining THEN 'drained' ELSE %(cause)s END AS cause
      FROM run_leases l JOIN runs r USING (run_id)
     WHERE l.run_id = %(run_id)s AND l.epoch = %(epoch)s AND r.status = 'running'
       FOR UPDATE OF l
), lease AS (
    UPDATE run_leases l
       SET epoch = l.epoch + 1, worker_id = NULL, backend_pid = NULL, lease_for = NULL, expires_at = NULL,
           draining = false, heartbeat_due_at = NULL
      FROM old WHERE l.run_id = old.run_id
), counted AS (
    SELECT r.run_id, old.cause, old.epoch, old.worker_id, old.progress,
           CASE WHEN old.cause = 'hung' THEN %(detail)s::text END AS detail,
           r.crash_count + (old.cause = 'crashed')::integer AS crashes,
           r.hang_count + (old.cause = 'hung')::integer AS hangs,
           r.cancel_requested_at IS NOT NULL AS cancelled,
           r.crash_count + r.hang_count + (old.cause IN ('crashed', 'hung'))::integer >= r.max_crashes
               AND old.cause IN ('crashed', 'hung') AS poisonous
      FROM runs r JOIN old USING (run_id)
), delayed AS (
    SELECT run_id, interval '1 second' * least(60, power(2, crashes + hangs - 1)) AS pause
      FROM counted
     WHERE cause IN ('crashed', 'hung') AND crashes + hangs > 1 AND NOT (cancelled OR poisonous)
), last_step AS (
    SELECT e.data ->> 'step' AS step, e.data -> 'next' AS next
      FROM run_events e JOIN old USING (run_id)
     WHERE e.kind = 'checkpoint' ORDER BY e.seq DESC LIMIT 1
), run AS (
    UPDATE runs r
       SET status = CASE WHEN c.cancelled THEN 'cancelled' WHEN c.poisonous THEN 'quarantined' ELSE 'ready' END,
           crash_count = c.crashes, hang_count = c.hangs,
           reason = CASE
               WHEN c.cancelled THEN coalesce(r.cancel_reason, 'cancelled on request')
               WHEN c.poisonous THEN format('stopped its worker %%s times without progress after step %%s (next: %%s)%%s',
                   c.crashes + c.hangs, coalesce((SELECT step FROM last_step), '-'),
                   coalesce((SELECT string_agg(n, ', ') FROM last_step, jsonb_array_elements_text(next) n), 'the first node'),
                   ', the last time ' || c.detail)
               ELSE c.cause END,
           wake_at = ledger_now() + p.pause,
           ring_at = CASE WHEN NOT (c.cancelled OR c.poisonous)
                          THEN ledger_now() + coalesce(p.pause, interval '0') END,
           rung_at = NULL,
           finished_at = CASE WHEN c.cancelled THEN ledger_now() END,
           updated_at = ledger_now()
      FROM counted c LEFT JOIN delayed p USING (run_id)
     WHERE r.run_id = c.run_id AND r.status = 'running'
    RETURNING r.run_id, r.status, c.cause, c.epoch, c.worker_id, c.crashes, c.hangs, c.detail, c.progress
), closed AS (
    UPDATE approvals a SET status = 'cancelled', decided_at = ledger_now(), consumed_at = ledger_now()
      FROM run WHERE a.run_id = run.run_id AND run.status = 'cancelled' AND a.status = 'open' AND a.kind <> 'doubt'
), event AS (
    INSERT INTO run_events (run_id, epoch, kind, data)
    SELECT run_id, epoch, cause, jsonb_strip_nulls(jsonb_build_object('worker', worker_id, 'crashes', crashes,
           'hangs', hangs, 'status', status, 'reason', detail, 'progress', progress)) FROM run
)
SELECT status FROM run;

-- name: beat
-- The heartbeat's row: is this still my epoch, shall I stop?  `loop_age` is how long ago the event
-- loop was last seen, `heartbeat_due` how long the agent may still be silent (NULL: as long as it likes);
-- differences measured by one clock, so no two clocks are compared.
UPDATE run_leases l
   SET beat_at = ledger_now(), expires_at = ledger_now() + l.lease_for,
       loop_seen_at = ledger_now() - %(loop_age)s::interval, draining = l.draining OR %(draining)s,
       heartbeat_due_at = ledger_now() + %(heartbeat_due)s::interval, heartbeat_epoch = l.epoch,
       progress = coalesce(%(progress)s::jsonb, l.progress)
  FROM runs r
 WHERE l.run_id = %(run_id)s AND l.epoch = %(epoch)s AND r.run_id = l.run_id
RETURNING r.cancel_requested_at IS NOT NULL AS cancelled, r.pause_requested_at IS NOT NULL AS pausing;

-- name: look
-- The same questions without renewing anything: no write, no commit.
SELECT r.cancel_requested_at IS NOT NULL AS cancelled, r.pause_requested_at IS NOT NULL AS pausing
  FROM run_leases l JOIN runs r USING (run_id)
 WHERE l.run_id = %(run_id)s AND l.epoch = %(epoch)s;

-- name: settle
-- running -> whatever the outcome says, in one statement: status, new epoch (which ends this owner's
-- right to write), questions opened, answers taken in.  No row: another owner has the run.
WITH lease AS (
    UPDATE run_leases
       SET epoch = epoch + 1, worker_id = NULL, backend_pid = NULL, lease_for = NULL, expires_at = NULL,
           draining = false, heartbeat_due_at = NULL, progress = NULL
     WHERE run_id = %(run_id)s AND epoch = %(epoch)s
    RETURNING run_id
), run AS (
    UPDATE runs r
       SET status = %(status)s,
           reason = coalesce(CASE WHEN %(status)s = 'cancelled' THEN r.cancel_reason END, %(reason)s),
           waits_for = %(waits_for)s,
           output = %(output)s::jsonb, error = %(error)s::jsonb,
           fingerprint = coalesce(%(fingerprint)s, r.fingerprint),
           retry_count = r.retry_count + %(retried)s,
           wake_at = ledger_now() + %(sleep)s::interval,
           ring_at = CASE WHEN %(status)s = 'ready' THEN ledger_now() + coalesce(%(sleep)s::interval, interval '0') END,
           rung_at = NULL,
           finished_at = CASE WHEN %(status)s IN ('finished', 'failed', 'cancelled') THEN ledger_now() END,
           updated_at = ledger_now()
      FROM lease
     WHERE r.run_id = lease.run_id AND r.status = 'running'
    RETURNING r.run_id, r.status, r.reason
), consumed AS (
    UPDATE approvals a SET consumed_at = ledger_now()
      FROM run
     WHERE a.run_id = run.run_id AND a.status <> 'open' AND a.consumed_at IS NULL
       AND (a.approval_id = ANY(%(seen)s) OR run.status IN ('finished', 'failed', 'cancelled'))
), closed AS (
    UPDATE approvals a SET status = 'cancelled', decided_at = ledger_now(), consumed_at = ledger_now()
      FROM run
     WHERE a.run_id = run.run_id AND a.status = 'open' AND a.kind <> 'doubt'
       AND run.status IN ('finished', 'failed', 'cancelled')
), asked AS (
    INSERT INTO approvals (approval_id, run_id, kind, interrupt_id, ask, prompt, tool, args, args_hash,
                           idempotency_key, policy, deadline_at, asked, previous, args_schema)
    SELECT q.approval_id, run.run_id, q.kind, q.interrupt_id, q.ask, q.prompt, q.tool, q.args, q.args_hash,
           q.idempotency_key, q.policy,
           coalesce(q.deadline_at, ledger_now() + make_interval(secs => q.deadline_s)),
           q.asked, q.previous, q.args_schema
      FROM run, jsonb_to_recordset(%(asks)s::jsonb) AS q (
           approval_id text, kind text, interrupt_id text, ask integer, prompt text, tool text, args jsonb,
           args_hash text, idempotency_key text, policy jsonb, deadline_s double precision,
           deadline_at timestamptz, asked jsonb, previous jsonb, args_schema jsonb)
     WHERE run.status NOT IN ('finished', 'failed', 'cancelled')
    ON CONFLICT DO NOTHING
    RETURNING approval_id, run_id, tool
), events AS (
    INSERT INTO run_events (run_id, epoch, kind, data)
    SELECT run_id, %(epoch)s, %(event)s,
           jsonb_strip_nulls(jsonb_build_object('reason', reason)) FROM run
    UNION ALL
    SELECT run_id, %(epoch)s, 'asked', jsonb_strip_nulls(jsonb_build_object('approval_id', approval_id, 'tool', tool))
      FROM asked
)
SELECT run_id, status FROM run;

-- name: recheck
-- After settle has committed: a decision, a cancellation or a pause that came in meanwhile.  A level, not
-- an edge: facts that move the run, whoever wrote them, are looked at again in a new snapshot.
WITH due AS (
    SELECT r.run_id,
           CASE WHEN r.cancel_requested_at IS NOT NULL THEN 'cancelled'
                WHEN r.pause_requested_at IS NOT NULL THEN 'paused' ELSE 'ready' END AS becomes
      FROM runs r
     WHERE r.run_id = %(run_id)s AND r.status IN ('waiting', 'ready')
       AND (r.cancel_requested_at IS NOT NULL OR r.pause_requested_at IS NOT NULL
            -- An answer does not bring the code a run waits for; it is kept until that is there.
            OR ((r.status = 'waiting' AND r.waits_for <> 'code' OR r.wake_at > ledger_now())
                AND EXISTS (SELECT FROM approvals a WHERE a.run_id = r.run_id AND a.status <> 'open' AND a.consumed_at IS NULL)))
), run AS (
    UPDATE runs r
       SET status = due.becomes,
           reason = CASE due.becomes WHEN 'cancelled' THEN coalesce(r.cancel_reason, 'cancelled on request')
                                     WHEN 'paused' THEN r.pause_reason END,
           waits_for = NULL, wake_at = NULL, rung_at = NULL,
           ring_at = CASE WHEN due.becomes = 'ready' THEN ledger_now() END,
           finished_at = CASE WHEN due.becomes = 'cancelled' THEN ledger_now() END,
           updated_at = ledger_now()
      FROM due
     WHERE r.run_id = due.run_id
       -- Asked again of the row itself: `decide` may have woken it, or a person taken the pause back, since
       -- `due` was read, and once is enough.
       AND (r.status = 'waiting' OR (r.status = 'ready' AND (due.becomes <> 'ready' OR r.wake_at > ledger_now())))
       AND (due.becomes <> 'paused' OR r.pause_requested_at IS NOT NULL)
    RETURNING r.run_id, r.status, r.reason
), closed AS (
    UPDATE approvals a SET status = 'cancelled', decided_at = ledger_now(), consumed_at = ledger_now()
      FROM run WHERE a.run_id = run.run_id AND run.status = 'cancelled' AND a.status = 'open' AND a.kind <> 'doubt'
), event AS (
    INSERT INTO run_events (run_id, kind, data)
    SELECT run_id, CASE status WHEN 'ready' THEN 'woken' ELSE status END,
           jsonb_strip_nulls(jsonb_build_object('reason', reason)) FROM run
)
SELECT run_id, status FROM run;
