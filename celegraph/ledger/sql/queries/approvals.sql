-- name: of_run
-- Everything ever asked in this run, the newest question of an interrupt last.
SELECT * FROM approvals WHERE run_id = %(run_id)s ORDER BY created_at, ask;

-- name: get
-- With the database's time: whether it is overdue is not for the reader's clock to say.
SELECT a.*, r.agent, r.status AS run_status, r.read_only AS run_read_only, ledger_now() AS now
  FROM approvals a JOIN runs r USING (run_id) WHERE a.approval_id = %(approval_id)s;

-- name: list
-- The oldest first; a condition that is NULL is none.
SELECT a.*, r.agent, r.status AS run_status, r.read_only AS run_read_only, ledger_now() AS now
  FROM approvals a JOIN runs r USING (run_id)
 WHERE (%(status)s::text IS NULL OR a.status = %(status)s)
   AND (%(run_id)s::text IS NULL OR a.run_id = %(run_id)s)
 ORDER BY a.created_at
 LIMIT %(limit)s;

-- name: decide
-- open -> approved | rejected.  The first decision wins; after the deadline nobody's does, also when
-- the tick that writes "expired" has not come yet.  Where silence is no answer, the deadline closes nothing.
WITH decided AS (
    UPDATE approvals
       SET status = %(status)s, decision = %(decision)s::jsonb, decided_by = %(by)s, note = %(note)s,
           args = coalesce(%(args)s::jsonb, args), args_hash = coalesce(%(args_hash)s, args_hash),
           decided_at = ledger_now(), next_action_at = NULL
     WHERE approval_id = %(approval_id)s AND status = 'open' AND kind <> 'doubt'
       AND (deadline_at IS NULL OR silence IS NULL OR deadline_at > ledger_now())
    RETURNING approval_id, run_id, status
), event AS (
    INSERT INTO run_events (run_id, kind, data)
    SELECT run_id, 'decided', jsonb_strip_nulls(jsonb_build_object('approval_id', approval_id, 'status', status,
                                                                   'by', %(by)s::text)) FROM decided
)
SELECT run_id, status FROM decided;

-- name: move_due
-- What the policies of open questions say for this instant: remind, ask the next person, and at the
-- deadline answer (open -> expired | approved, by nobody) or ask again.  Everything that goes with a
-- question's move, its notices too, is in this statement: a process that dies right after it has left
-- nothing to do.  Each question once, however many ticks run at once.  After an outage every escalation
-- that was missed is made, and of the reminders the last.
-- The run is locked with its question and neither is waited for: `settle` and `cancel_resting` take them in
-- the other order, and a host's open transaction on one run must not hold up everybody's deadlines.
WITH due AS (
    SELECT a.* FROM approvals a JOIN runs r USING (run_id)
     WHERE a.status = 'open' AND a.next_action_at <= ledger_now()
     ORDER BY a.next_action_at
     LIMIT %(limit)s FOR UPDATE OF a SKIP LOCKED FOR NO KEY UPDATE OF r SKIP LOCKED
), judged AS MATERIALIZED (
    SELECT d.approval_id, d.run_id, d.created_at, d.deadline_at, d.policy, d.silence, d.stage,
           s.late, s.late AND d.silence IS NOT NULL AS closes,
           CASE WHEN s.late THEN greatest(d.stage, s.steps) + 1 ELSE greatest(d.stage, s.reached) END AS to_stage,
           d.stage > s.steps AS again
      FROM due d, LATERAL (
           SELECT coalesce(d.deadline_at <= ledger_now(), false) AS late,
                  jsonb_array_length(coalesce(d.policy -> 'stages', '[]')) AS steps,
                  (SELECT count(*) FROM generate_series(0, jsonb_array_length(coalesce(d.policy -> 'stages', '[]')) - 1) i
                    WHERE celegraph_step_at(d.created_at, d.policy, i) <= ledger_now())::integer AS reached) s
), closed AS (
    UPDATE approvals a
       SET status = CASE j.silence WHEN 'approve' THEN 'approved' ELSE 'expired' END, decided_at = ledger_now(),
           decision = jsonb_build_object('verb', 'expire', 'on_timeout', j.silence),
           stage = j.to_stage, next_action_at = NULL
      FROM judged j WHERE a.approval_id = j.approval_id AND j.closes
    RETURNING a.approval_id, a.run_id, a.status, j.silence
), moved AS (
    UPDATE approvals a
       SET stage = j.to_stage,
           next_action_at = CASE WHEN j.late
               THEN ledger_now() + make_interval(secs => coalesce((j.policy ->> 'ask_again')::double precision, 86400))
               ELSE least(celegraph_step_at(j.created_at, j.policy, j.to_stage), j.deadline_at) END
      FROM judged j WHERE a.approval_id = j.approval_id AND NOT j.closes
), meant AS (
    -- In the same statement: a process that dies right after must not leave an expired question whose
    -- run would take it for a reject.
    UPDATE runs r
       SET cancel_requested_at = CASE WHEN c.cancels THEN coalesce(r.cancel_requested_at, ledger_now())
                                      ELSE r.cancel_requested_at END,
           cancel_reason = coalesce(r.cancel_reason, 'approval ' || c.cancelling || ' expired'),
           read_only = r.read_only OR c.reads
      FROM (SELECT run_id, bool_or(silence = 'cancel') AS cancels, bool_or(silence = 'read_only') AS reads,
                   min(approval_id) FILTER (WHERE silence = 'cancel') AS cancelling
              FROM closed WHERE silence IN ('cancel', 'read_only') GROUP BY run_id) c
     WHERE r.run_id = c.run_id AND r.status NOT IN ('finished', 'failed', 'cancelled')
), steps AS (
    -- Where the deadline closes nothing, whoever an outage has passed over is asked at it: the question is
    -- still theirs to answer.
    SELECT j.approval_id, j.run_id, s.n::integer AS n, s.step ->> 'what' AS what, s.step, j.late
      FROM judged j, jsonb_array_elements(j.policy -> 'stages') WITH ORDINALITY AS s (step, n)
     WHERE NOT j.closes AND s.n > j.stage AND s.n <= j.to_stage
       AND (s.step ->> 'what' = 'escalation' OR (s.n = j.to_stage AND NOT j.late))
       AND (NOT j.late OR celegraph_step_at(j.created_at, j.policy, s.n::integer - 1) < j.deadline_at)
), chain AS (
    -- Whom the policy has reached so far: those it told at once, and its steps up to now.
    SELECT j.approval_id, coalesce(j.policy -> 'notify', '[]') AS first,
           coalesce(jsonb_agg(s.step ORDER BY s.n) FILTER (WHERE s.step ->> 'what' = 'escalation'
                        AND (s.n <= greatest(j.stage, CASE WHEN j.late THEN 0 ELSE j.to_stage END))), '[]') AS reached,
           (jsonb_agg(s.step ORDER BY s.n DESC) FILTER (WHERE s.step ->> 'what' = 'escalation')) -> 0 AS last
      FROM judged j LEFT JOIN LATERAL jsonb_array_elements(coalesce(j.policy -> 'stages', '[]')) WITH ORDINALITY AS s (step, n) ON true
     GROUP BY j.approval_id, j.policy, j.stage, j.late, j.to_stage
), news AS (
    SELECT s.approval_id, s.run_id, s.what, s.n,
           CASE s.what WHEN 'escalation' THEN jsonb_build_array(s.step) ELSE c.first || c.reached END AS people
      FROM steps s JOIN chain c USING (approval_id)
     WHERE NOT s.late OR s.step <> c.last  -- who is told of the deadline itself
    UNION ALL
    SELECT j.approval_id, j.run_id, CASE WHEN j.again THEN 'again' ELSE 'deadline' END, j.to_stage,
           CASE WHEN j.closes THEN c.first || c.reached
                WHEN c.last IS NULL THEN c.first ELSE jsonb_build_array(c.last) END
      FROM judged j JOIN chain c USING (approval_id) WHERE j.late
), notices AS (
    INSERT INTO effects (idempotency_key, run_id, step, tool, slot, args_hash, args, mode, attempts,
                         released_at, next_try_at)
    SELECT n.*, 'outbox', 0, ledger_now(), ledger_now()
      FROM news, LATERAL celegraph_notices(news.approval_id, news.run_id, news.what, news.n, news.people) AS n
    ON CONFLICT DO NOTHING
), events AS (
    INSERT INTO run_events (run_id, kind, data)
    SELECT run_id, 'expired', jsonb_build_object('approval_id', approval_id, 'on_timeout', silence, 'status', status)
      FROM closed
    UNION ALL
    SELECT n.run_id, 'escalated', jsonb_build_object('approval_id', n.approval_id, 'what', n.what, 'n', n.n,
           'to', (SELECT coalesce(jsonb_agg(DISTINCT p ->> 'to'), '[]') FROM jsonb_array_elements(n.people) p))
      FROM news n JOIN judged j USING (approval_id) WHERE NOT j.closes
)
SELECT j.approval_id, j.run_id, c.silence, c.approval_id IS NOT NULL AS closed
  FROM judged j LEFT JOIN closed c USING (approval_id);

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
