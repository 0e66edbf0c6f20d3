-- name: resolve
-- pending -> sent | failed by a person (or pending | sent | failed -> confirmed, pending -> failed by a
-- webhook: that it happened is believed at any time, that it did not only while nothing says it did).  What
-- had failed and would be called again fails for good when the provider says that it will not happen.
-- "It did not happen" is believed only past the horizon; until then a call may still be under way.
-- The open question about this effect is closed in the same statement.
WITH effect AS (
    UPDATE effects
       SET status = %(status)s, provider_ref = coalesce(%(ref)s, provider_ref),
           result = CASE WHEN %(status)s = 'failed' THEN NULL
                         WHEN status = 'sent' THEN result ELSE %(result)s::jsonb END,
           error = %(error)s::jsonb, updated_at = ledger_now(),
           -- An intent that did not happen is tried again; every other answer ends its dispatch.
           next_try_at = CASE WHEN mode = 'outbox' AND %(again)s THEN ledger_now() END
     WHERE idempotency_key = %(key)s
       AND (status = 'pending' OR (status IN ('sent', 'failed') AND %(status)s = 'confirmed')
            OR (status = 'failed' AND %(status)s = 'failed' AND %(certain)s
                AND NOT coalesce((error ->> 'final')::boolean OR (error ->> 'skipped')::boolean, false)))
       AND (%(status)s <> 'failed' OR %(certain)s OR doubt_after <= ledger_now())
       -- An answer to a question is about the call that was asked about, not about a later one.
       AND (%(attempts)s::integer IS NULL OR attempts = %(attempts)s)
    RETURNING idempotency_key, run_id, tool
), question AS (
    UPDATE approvals a
       SET status = CASE WHEN %(status)s = 'failed' THEN 'rejected' ELSE 'approved' END,
           decided_at = ledger_now(), decided_by = %(by)s, note = %(note)s, decision = %(decision)s::jsonb
      FROM effect
     WHERE a.idempotency_key = effect.idempotency_key AND a.kind = 'doubt' AND a.status = 'open'
), event AS (
    INSERT INTO run_events (run_id, kind, data)
    SELECT run_id, 'effect resolved', jsonb_strip_nulls(jsonb_build_object('key', %(key)s::text, 'tool', tool,
           'status', %(status)s::text, 'by', %(by)s::text)) FROM effect
)
SELECT run_id FROM effect;

-- name: resting
-- Calls in doubt, past their horizon, of runs that nobody advances just now; the longest unasked first.
-- Each goes to the end of the line, or a few that no look-up can ever tell would keep all others back.
WITH due AS (
    SELECT e.idempotency_key, r.status IN ('finished', 'failed', 'cancelled') AS run_ended
      FROM effects e JOIN runs r USING (run_id)
     WHERE e.status = 'pending' AND e.mode = 'call' AND e.doubt_after <= ledger_now()
       AND e.tool = ANY(%(tools)s) AND r.status <> 'running'
     ORDER BY e.updated_at LIMIT %(limit)s FOR UPDATE OF e SKIP LOCKED
)
UPDATE effects e SET updated_at = ledger_now()
  FROM due WHERE e.idempotency_key = due.idempotency_key
RETURNING e.*, true AS doubt_passed, due.run_ended;

-- name: unasked
-- Calls in doubt, past their horizon, of runs that have ended: no attempt will meet them and ask.  Of a tool
-- that may be looked up, here or by a worker that knows it, only those of which no look-up has told anything
-- for a while: `resting` has put its time on each that it has handed out.
SELECT e.*, r.agent
  FROM effects e JOIN runs r USING (run_id)
 WHERE e.status = 'pending' AND e.mode = 'call' AND e.doubt_after <= ledger_now()
   AND r.status IN ('finished', 'failed', 'cancelled')
   AND (e.tool = ANY(%(unaided)s)
        OR (e.doubt_after <= ledger_now() - %(look_up_for)s::interval
            AND (e.updated_at > e.doubt_after OR NOT e.tool = ANY(%(looked_up)s))))
   AND NOT EXISTS (SELECT FROM approvals a
                    WHERE a.run_id = e.run_id AND a.kind = 'doubt' AND a.idempotency_key = e.idempotency_key
                      AND a.ask = e.attempts)
 ORDER BY e.doubt_after LIMIT %(limit)s;

-- name: ask
-- The question about a call in doubt of which no attempt asks: an intent's, whose run goes on meanwhile, or
-- one that an ended run has left.
WITH asked AS (
    INSERT INTO approvals (approval_id, run_id, kind, ask, prompt, tool, args, args_hash, idempotency_key,
                           policy, asked, deadline_at)
    VALUES (%(approval_id)s, %(run_id)s, 'doubt', %(ask)s, %(prompt)s, %(tool)s, %(args)s::jsonb, %(args_hash)s, %(key)s,
            %(policy)s::jsonb, %(asked)s::jsonb,
            coalesce(%(deadline_at)s::timestamptz, ledger_now() + make_interval(secs => %(deadline_s)s)))
    ON CONFLICT DO NOTHING
    RETURNING approval_id, run_id, tool
)
INSERT INTO run_events (run_id, kind, data)
SELECT run_id, 'asked', jsonb_build_object('approval_id', approval_id, 'tool', tool) FROM asked;
