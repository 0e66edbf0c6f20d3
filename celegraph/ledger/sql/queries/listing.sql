-- name: agents
-- Which agents have runs, by jumping from one to the next in the index: as dear as there are agents.
WITH RECURSIVE found AS (
    (SELECT agent FROM runs ORDER BY agent LIMIT 1)
    UNION ALL
    SELECT (SELECT r.agent FROM runs r WHERE r.agent > f.agent ORDER BY r.agent LIMIT 1)
      FROM found f WHERE f.agent IS NOT NULL
)
SELECT agent FROM found WHERE agent IS NOT NULL;

-- name: runs
-- A page of runs, the newest first, after (before_at, before_id).  One look into the index for each agent
-- and status, so a viewer of a rare agent does not read everybody's runs.
SELECT r.run_id, r.agent, r.status, r.reason, r.tags, r.created_at, r.updated_at, r.finished_at, r.wake_at,
       r.read_only, r.now
  FROM unnest(%(agents)s::text[]) AS a (agent)
 CROSS JOIN unnest(%(statuses)s::text[]) AS s (status)
 CROSS JOIN LATERAL (
       SELECT r.run_id, r.agent, r.status, r.reason, r.tags, r.created_at, r.updated_at, r.finished_at,
              r.wake_at, r.read_only, ledger_now() AS now
         FROM runs r
        WHERE r.agent = a.agent AND r.status = s.status
          AND (r.created_at, r.run_id)
              < (coalesce(%(before_at)s::timestamptz, 'infinity'), coalesce(%(before_id)s::text, ''))
          AND (%(text)s::text IS NULL OR position(lower(%(text)s::text) IN lower(r.run_id)) > 0)
          AND (%(tag)s::jsonb IS NULL OR r.tags @> %(tag)s::jsonb)
        ORDER BY r.created_at DESC, r.run_id DESC
        LIMIT %(limit)s) AS r
 ORDER BY r.created_at DESC, r.run_id DESC
 LIMIT %(limit)s;

-- name: inbox
-- A page of open questions, the oldest first, after (after_at, after_id).  The prompt is cut: a list shows
-- what it is about, the question's own page shows all of it.
SELECT a.approval_id, a.run_id, r.agent, r.status AS run_status, a.kind, a.tool, a.ask,
       left(a.prompt, %(longest)s) AS prompt, length(a.prompt) > %(longest)s AS cut,
       a.created_at, a.deadline_at, coalesce(a.deadline_at <= ledger_now(), false) AS overdue,
       a.silence IS NULL AS stays_open, ledger_now() AS now
  FROM approvals a JOIN runs r USING (run_id)
 WHERE a.status = 'open' AND r.agent = ANY(%(agents)s)
   AND (%(kinds)s::text[] IS NULL OR a.kind = ANY(%(kinds)s))
   AND (NOT %(overdue)s OR a.deadline_at <= ledger_now())
   AND (a.created_at, a.approval_id)
       > (coalesce(%(after_at)s::timestamptz, '-infinity'), coalesce(%(after_id)s::text, ''))
 ORDER BY a.created_at, a.approval_id
 LIMIT %(limit)s;

-- name: inbox_count
-- How many there are in all, and how many are past their deadline; counted no further than anybody reads.
SELECT count(*) AS open, count(*) FILTER (WHERE deadline_at <= ledger_now()) AS overdue
  FROM (SELECT a.deadline_at
          FROM approvals a JOIN runs r USING (run_id)
         WHERE a.status = 'open' AND r.agent = ANY(%(agents)s)
           AND (%(kinds)s::text[] IS NULL OR a.kind = ANY(%(kinds)s))
           AND (NOT %(overdue)s OR a.deadline_at <= ledger_now())
         LIMIT %(most)s) AS found;

-- name: effect_of
-- What the approved call has come to.  Neither arguments nor result.
SELECT idempotency_key, tool, status, provider_ref, attempts, updated_at,
       coalesce(doubt_after > ledger_now(), false) AND status = 'pending' AS under_way, doubt_after
  FROM effects WHERE idempotency_key = %(key)s;

-- name: run_approvals
-- The newest questions of a run.
SELECT approval_id, kind, tool, ask, left(prompt, %(longest)s) AS prompt, status, decided_by, created_at,
       deadline_at, decided_at
  FROM approvals WHERE run_id = %(run_id)s ORDER BY created_at DESC, ask DESC LIMIT %(limit)s;

-- name: run_effects
-- The newest effects of a run; of values beyond `longest` only the beginning, as text.
SELECT idempotency_key, tool, slot, step, mode, status, provider_ref, attempts, duplicates_prevented,
       left(args::text, %(longest)s) AS args_text, length(args::text) > %(longest)s AS args_cut,
       CASE WHEN length(args::text) <= %(longest)s THEN args END AS args,
       left(result::text, %(longest)s) AS result_text, length(result::text) > %(longest)s AS result_cut,
       CASE WHEN length(result::text) <= %(longest)s THEN result END AS result,
       left(error ->> 'message', %(longest)s) AS problem, error ->> 'type' AS problem_type,
       created_at, updated_at, doubt_after,
       status = 'pending' AND doubt_after IS NOT NULL AND doubt_after > ledger_now() AS under_way,
       status = 'pending' AND doubt_after IS NOT NULL AND doubt_after <= ledger_now() AS in_doubt,
       -- as `release_dead` of the outbox sees it
       mode = 'outbox' AND status = 'failed' AND next_try_at IS NULL
         AND NOT coalesce((error ->> 'skipped')::boolean, false) AS given_up
  FROM effects WHERE run_id = %(run_id)s ORDER BY created_at DESC, idempotency_key LIMIT %(limit)s;

-- name: newest_events
-- The newest events of a run, the oldest of them first.  Of an event that holds a call's arguments (a
-- drift's) the values stay away.
SELECT seq, at, epoch, kind, data
  FROM (SELECT seq, at, epoch, kind, data - 'recorded' - 'now' AS data
          FROM run_events WHERE run_id = %(run_id)s ORDER BY seq DESC LIMIT %(limit)s) AS newest
 ORDER BY seq;

-- name: run_values
-- Input, output and error as text, cut, and how long they really are.
SELECT left(input::text, %(longest)s) AS input, length(input::text) AS input_length,
       left(output::text, %(longest)s) AS output, length(output::text) AS output_length,
       left(error::text, %(longest)s) AS error, length(error::text) AS error_length
  FROM runs WHERE run_id = %(run_id)s;

-- name: run_value
-- One of the three in full.
SELECT agent, CASE %(part)s::text WHEN 'input' THEN input WHEN 'output' THEN output WHEN 'error' THEN error END AS value
  FROM runs WHERE run_id = %(run_id)s;

-- name: run_version
-- A word that changes whenever the run's page would say something else: with every event and beat, and,
-- because it tells spans of time, every minute while the run has not ended.
SELECT r.agent, r.status,
       md5(concat_ws('|', r.status, r.updated_at, r.cancel_requested_at, l.epoch, l.beat_at, l.draining,
                     l.expires_at <= ledger_now(),
                     (SELECT max(seq) FROM run_events e WHERE e.run_id = r.run_id),
                     (SELECT max(e.updated_at) FROM effects e WHERE e.run_id = r.run_id),
                     (SELECT concat_ws(',', count(*), max(a.decided_at), max(a.consumed_at)) FROM approvals a
                       WHERE a.run_id = r.run_id),
                     CASE WHEN r.finished_at IS NULL THEN date_trunc('minute', ledger_now()) END)) AS version
  FROM runs r JOIN run_leases l USING (run_id)
 WHERE r.run_id = %(run_id)s;
