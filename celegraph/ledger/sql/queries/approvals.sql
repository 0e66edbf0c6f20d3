-- name: of_run
-- Everything ever asked in this run, the newest question of an interrupt last.
SELECT * FROM approvals WHERE run_id = %(run_id)s ORDER BY created_at, ask;

-- name: get
-- With the database's time: whether it is overdue is not for the reader's clock to say.
SELECT a.*, r.agent, r.status AS run_status, ledger_now() AS now
  FROM approvals a JOIN runs r USING (run_id) WHERE a.approval_id = %(approval_id)s;

-- name: list
-- The oldest first; a condition that is NULL is none.
SELECT a.*, r.agent, r.status AS run_status, ledger_now() AS now
  FROM approvals a JOIN runs r USING (run_id)
 WHERE (%(status)s::text IS NULL OR a.status = %(status)s)
   AND (%(run_id)s::text IS NULL OR a.run_id = %(run_id)s)
 ORDER BY a.created_at
 LIMIT %(limit)s;

-- name: decide
-- open -> approved | rejected.  The first decision wins; after the deadline nobody's does, also when
-- the tick that writes "expired" has not come yet.
WITH decided AS (
    UPDATE approvals
       SET status = %(status)s, decision = %(decision)s::jsonb, decided_by = %(by)s, note = %(note)s,
           args = coalesce(%(args)s::jsonb, args), args_hash = coalesce(%(args_hash)s, args_hash),
           decided_at = ledger_now(), next_action_at = NULL
     WHERE approval_id = %(approval_id)s AND status = 'open' AND kind <> 'doubt'
       AND (deadline_at IS NULL OR deadline_at > ledger_now())
    RETURNING approval_id, run_id, status
), event AS (
    INSERT INTO run_events (run_id, kind, data)
    SELECT run_id, 'decided', jsonb_strip_nulls(jsonb_build_object('approval_id', approval_id, 'status', status,
                                                                   'by', %(by)s::text)) FROM decided
)
SELECT run_id, status FROM decided;

-- name: expire_due
-- open -> expired, by the database's time; nobody's no.  `on_timeout` says what it means for the run.
WITH due AS (
    SELECT approval_id FROM approvals
     WHERE status = 'open' AND next_action_at <= ledger_now()
     ORDER BY next_action_at
     LIMIT %(limit)s FOR UPDATE SKIP LOCKED
), expired AS (
    UPDATE approvals a
       SET status = 'expired', decided_at = ledger_now(), next_action_at = NULL,
           decision = jsonb_build_object('verb', 'expire')
      FROM due WHERE a.approval_id = due.approval_id AND a.deadline_at <= ledger_now()
    RETURNING a.approval_id, a.run_id, coalesce(a.policy ->> 'on_timeout', 'reject') AS on_timeout
), cancelling AS (
    -- In the same statement: a process that dies right after must not leave an expired question whose
    -- run would take it for a reject.
    UPDATE runs r SET cancel_requested_at = coalesce(r.cancel_requested_at, ledger_now())
      FROM expired e
     WHERE r.run_id = e.run_id AND e.on_timeout = 'cancel'
       AND r.status NOT IN ('finished', 'failed', 'cancelled')
), event AS (
    INSERT INTO run_events (run_id, kind, data)
    SELECT run_id, 'expired', jsonb_build_object('approval_id', approval_id, 'on_timeout', on_timeout) FROM expired
)
SELECT approval_id, run_id, on_timeout FROM expired;

-- name: close_answered_doubts
-- open -> approved | rejected | cancelled: the call in question was answered (by a webhook, a look-up, its
-- own late reply) or made anew while the question was on its way, so nobody's answer would be taken any
-- more.  Not consumed: it makes the run due.  %(run_id)s null: of every run.
WITH due AS (
    SELECT a.approval_id, e.status, e.attempts
      FROM approvals a JOIN effects e USING (idempotency_key)
     WHERE a.status = 'open' AND a.kind = 'doubt' AND (%(run_id)s::text IS NULL OR a.run_id = %(run_id)s)
       AND (e.status <> 'pending' OR e.attempts <> a.ask)
     ORDER BY a.created_at LIMIT %(limit)s FOR UPDATE OF a SKIP LOCKED
), closed AS (
    UPDATE approvals a
       SET status = CASE WHEN due.attempts <> a.ask THEN 'cancelled'
                         WHEN due.status = 'failed' THEN 'rejected' ELSE 'approved' END,
           decided_at = ledger_now(), note = 'the effect was settled before anybody answered',
           decision = '{"verb": "answer"}'
      FROM due WHERE a.approval_id = due.approval_id
    RETURNING a.approval_id, a.run_id, a.status
), event AS (
    INSERT INTO run_events (run_id, kind, data)
    SELECT run_id, 'decided', jsonb_build_object('approval_id', approval_id, 'status', status, 'by', 'ledger') FROM closed
)
SELECT run_id FROM closed;
