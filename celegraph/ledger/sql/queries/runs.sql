-- name: admit
-- (nothing) -> ready, epoch 0.  The caller's process writes the run, its lease row and the first event
-- in one statement.  `admitted` is false when the run_id was there before; `same` then says whether
-- it is the same request.  jsonb equality ignores key order and takes 1 and 1.0 for equal.
WITH run AS (
    INSERT INTO runs (run_id, lock_key, agent, input, max_crashes, wake_at, ring_at, rung_at, deadline_at,
                      read_only, tags, trace_parent)
    VALUES (%(run_id)s, %(lock_key)s, %(agent)s, %(input)s::jsonb, %(max_crashes)s,
            ledger_now() + %(delay)s::interval,
            -- Rung by the caller after the commit; the sweep rings at once when that did not happen.
            ledger_now() + coalesce(%(delay)s::interval, interval '0'), NULL,
            ledger_now() + %(deadline)s::interval, %(read_only)s, %(tags)s::jsonb, %(trace_parent)s)
    ON CONFLICT (run_id) DO NOTHING
    RETURNING run_id
), lease AS (
    INSERT INTO run_leases (run_id) SELECT run_id FROM run
), event AS (
    INSERT INTO run_events (run_id, epoch, kind, data)
    SELECT run_id, 0, 'admitted', jsonb_build_object('agent', %(agent)s::text) FROM run
)
SELECT EXISTS (SELECT FROM run) AS admitted, old.agent,
       coalesce(old.input = %(input)s::jsonb, true) AS same
  FROM (SELECT 1) AS one
  LEFT JOIN runs old ON old.run_id = %(run_id)s;

-- name: admitted_before
-- What stands under a run_id that two callers admitted at the same moment (the loser's snapshot in
-- `admit` could not see it).
SELECT agent, input = %(input)s::jsonb AS same FROM runs WHERE run_id = %(run_id)s;

-- name: rung
-- The doorbell is in the broker.  It may be lost there: due again in a minute.  A run that somebody holds
-- is rung once more than needed.
WITH taken AS (
    SELECT run_id FROM runs
     WHERE run_id = ANY(%(run_ids)s) AND status = 'ready' AND (wake_at IS NULL OR wake_at <= ledger_now())
       FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE runs r SET rung_at = ledger_now(), ring_at = ledger_now() + interval '60 seconds'
  FROM taken WHERE r.run_id = taken.run_id;

-- name: agents_of
-- For the doorbells' names in Flower.
SELECT run_id, agent FROM runs WHERE run_id = ANY(%(run_ids)s);

-- name: get
-- A run with its lease, and the database's time, by which its instants are to be read.
SELECT r.*, l.epoch, l.worker_id, l.beat_at, l.loop_seen_at, l.expires_at, l.draining, l.progress,
       ledger_now() AS now
  FROM runs r JOIN run_leases l USING (run_id)
 WHERE r.run_id = %(run_id)s;

-- name: list
-- The newest first; a condition that is NULL is none.
SELECT r.*, l.epoch, l.worker_id, l.beat_at, l.loop_seen_at, l.expires_at, l.draining, l.progress,
       ledger_now() AS now
  FROM runs r JOIN run_leases l USING (run_id)
 WHERE (%(status)s::text IS NULL OR r.status = %(status)s)
   AND (%(agent)s::text IS NULL OR r.agent = %(agent)s)
 ORDER BY r.created_at DESC, r.run_id
 LIMIT %(limit)s;

-- name: outcome
-- What RunResult polls: nothing wide.
SELECT status, reason, output, error FROM runs WHERE run_id = %(run_id)s;

-- name: standing
-- What a listener polls: nothing wide.
SELECT status FROM runs WHERE run_id = %(run_id)s;

-- name: events
-- By pages: a run that goes on for weeks has more than one answer should hold.
SELECT seq, at, epoch, kind, data FROM run_events
 WHERE run_id = %(run_id)s AND seq > %(after)s
 ORDER BY seq
 LIMIT %(limit)s;

-- name: record_event
-- For what is no change of the run's own rows; every transition writes its event itself.
INSERT INTO run_events (run_id, kind, data) VALUES (%(run_id)s, %(kind)s, %(data)s::jsonb);

-- name: cancel_resting
-- ready | waiting | paused | quarantined -> cancelled.  Its open questions close with it, doubts apart:
-- whether a call happened is worth knowing also when the run is over.
WITH run AS (
    UPDATE runs
       SET status = 'cancelled', reason = %(reason)s, waits_for = NULL, wake_at = NULL, ring_at = NULL,
           cancel_requested_at = coalesce(cancel_requested_at, ledger_now()),
           finished_at = ledger_now(), updated_at = ledger_now()
     WHERE run_id = %(run_id)s AND status IN ('ready', 'waiting', 'paused', 'quarantined')
    RETURNING run_id
), closed AS (
    UPDATE approvals a SET status = 'cancelled', decided_at = ledger_now(), consumed_at = ledger_now()
      FROM run WHERE a.run_id = run.run_id AND a.status = 'open' AND a.kind <> 'doubt'
), event AS (
    INSERT INTO run_events (run_id, kind, data)
    SELECT run_id, 'cancelled', jsonb_build_object('reason', %(reason)s::text) FROM run
)
SELECT run_id FROM run;

-- name: request_cancel
-- A running run is cancelled by its owner at the next step, or by the sweep when the owner is gone.
WITH run AS (
    UPDATE runs SET cancel_requested_at = coalesce(cancel_requested_at, ledger_now()),
           cancel_reason = coalesce(cancel_reason, %(reason)s), updated_at = ledger_now()
     WHERE run_id = %(run_id)s AND status NOT IN ('finished', 'failed', 'cancelled')
    RETURNING run_id, status
), event AS (
    INSERT INTO run_events (run_id, kind, data)
    SELECT run_id, 'cancel requested', jsonb_build_object('reason', %(reason)s::text) FROM run
)
SELECT run_id, status FROM run;

-- name: pause_resting
-- ready | waiting -> paused.  Its questions stay open and its decisions are kept; resume makes it ready.
WITH run AS (
    UPDATE runs SET status = 'paused', reason = %(reason)s, waits_for = NULL, wake_at = NULL, ring_at = NULL,
           pause_requested_at = coalesce(pause_requested_at, ledger_now()), pause_reason = %(reason)s,
           updated_at = ledger_now()
     WHERE run_id = %(run_id)s AND status IN ('ready', 'waiting')
    RETURNING run_id
), event AS (
    INSERT INTO run_events (run_id, kind, data)
    SELECT run_id, 'paused', jsonb_build_object('reason', %(reason)s::text) FROM run
)
SELECT run_id FROM run;

-- name: request_pause
-- A running run is paused by its owner at the next step, or by the sweep when the owner is gone.
WITH run AS (
    UPDATE runs SET pause_requested_at = coalesce(pause_requested_at, ledger_now()), pause_reason = %(reason)s,
           updated_at = ledger_now()
     WHERE run_id = %(run_id)s AND status = 'running'
    RETURNING run_id
), event AS (
    INSERT INTO run_events (run_id, kind, data)
    SELECT run_id, 'pause requested', jsonb_build_object('reason', %(reason)s::text) FROM run
)
SELECT run_id FROM run;

-- name: withdraw_pause
-- The run was not paused yet: it goes on as if nobody had asked.
WITH run AS (
    UPDATE runs SET pause_requested_at = NULL, pause_reason = NULL, updated_at = ledger_now()
     WHERE run_id = %(run_id)s AND status IN ('running', 'ready', 'waiting') AND pause_requested_at IS NOT NULL
    RETURNING run_id
), event AS (
    INSERT INTO run_events (run_id, kind, data)
    SELECT run_id, 'pause withdrawn', jsonb_strip_nulls(jsonb_build_object('by', %(by)s::text)) FROM run
)
SELECT run_id FROM run;

-- name: make_ready
-- %(from_statuses)s -> ready, with its counters forgiven: a person retries a failed run, releases a
-- quarantined one or resumes a paused one.  It goes on from where it stands.
WITH run AS (
    UPDATE runs
       SET status = 'ready', reason = NULL, waits_for = NULL, error = NULL, finished_at = NULL,
           crash_count = 0, hang_count = 0, retry_count = 0, wake_at = NULL,
           pause_requested_at = NULL, pause_reason = NULL,
           ring_at = ledger_now(), rung_at = NULL, updated_at = ledger_now()
     WHERE run_id = %(run_id)s AND status = ANY(%(from_statuses)s)
    RETURNING run_id
), event AS (
    INSERT INTO run_events (run_id, kind, data)
    SELECT run_id, %(event)s, jsonb_strip_nulls(jsonb_build_object('by', %(by)s::text)) FROM run
)
SELECT run_id FROM run;
