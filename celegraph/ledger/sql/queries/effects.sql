-- name: of_run
-- In the order they were reserved; the key decides between those of one instant.
SELECT * FROM effects WHERE run_id = %(run_id)s ORDER BY created_at, idempotency_key;

-- name: state
-- Read again under the attempt: has the horizon passed, did somebody else record the answer?
SELECT *, doubt_after <= ledger_now() AS doubt_passed,
       extract(epoch FROM doubt_after - ledger_now())::double precision AS doubt_in_s,
       extract(epoch FROM ledger_now() - created_at)::double precision AS age_s
  FROM effects WHERE idempotency_key = %(key)s;

-- name: reserve
-- (nothing) -> pending: the row and the first right to call, in one commit, before the call.
-- FOR SHARE on the lease: a new epoch waits for this row or refuses it.  A run that has become read-only
-- under its owner (a question expired) gets no row either.  Comes back: what the caller does not know yet;
-- twenty more columns would be a tenth of an effect's time.
WITH lease AS (
    SELECT l.epoch, r.read_only FROM run_leases l JOIN runs r USING (run_id)
     WHERE l.run_id = %(run_id)s AND l.epoch = %(epoch)s FOR SHARE OF l
), effect AS (
    INSERT INTO effects (idempotency_key, run_id, step, tool, slot, args_hash, args, owner, doubt_after)
    SELECT %(key)s, %(run_id)s, %(step)s, %(tool)s, %(slot)s, %(args_hash)s, %(args)s::jsonb, %(owner)s,
           ledger_now() + %(horizon)s::interval
      FROM lease WHERE NOT read_only
    ON CONFLICT DO NOTHING
    RETURNING idempotency_key, doubt_after, created_at, updated_at
), event AS (
    INSERT INTO run_events (run_id, epoch, kind, data)
    SELECT %(run_id)s, %(epoch)s, 'effect reserved', jsonb_build_object('key', %(key)s::text, 'tool', %(tool)s::text,
           'step', %(step)s::text, 'slot', %(slot)s::text) FROM effect
)
SELECT EXISTS (SELECT FROM lease) AS mine, (SELECT read_only FROM lease) AS read_only, effect.* FROM (SELECT 1) AS one LEFT JOIN effect ON true;

-- name: reserve_approved
-- The same for an effect that requires an approval: an approved, unused approval that binds this tool
-- and these arguments is used up in the same statement.  No approval: no row, no call.
WITH lease AS (
    SELECT l.epoch, r.read_only FROM run_leases l JOIN runs r USING (run_id)
     WHERE l.run_id = %(run_id)s AND l.epoch = %(epoch)s FOR SHARE OF l
), approval AS (
    UPDATE approvals SET effect_key = %(key)s
     WHERE approval_id = (
           SELECT approval_id FROM approvals a, lease
            WHERE a.run_id = %(run_id)s AND a.tool = %(tool)s AND a.args_hash = %(args_hash)s
              AND NOT lease.read_only AND a.status = 'approved' AND a.effect_key IS NULL AND a.kind <> 'doubt'
              AND NOT EXISTS (SELECT FROM effects WHERE idempotency_key = %(key)s)
            ORDER BY a.decided_at LIMIT 1 FOR UPDATE OF a)
    RETURNING approval_id
), effect AS (
    INSERT INTO effects (idempotency_key, run_id, step, tool, slot, args_hash, args, owner, doubt_after)
    SELECT %(key)s, %(run_id)s, %(step)s, %(tool)s, %(slot)s, %(args_hash)s, %(args)s::jsonb, %(owner)s,
           ledger_now() + %(horizon)s::interval
      FROM lease, approval
    ON CONFLICT DO NOTHING
    RETURNING idempotency_key, doubt_after, created_at, updated_at
), event AS (
    INSERT INTO run_events (run_id, epoch, kind, data)
    SELECT %(run_id)s, %(epoch)s, 'effect reserved', jsonb_build_object('key', %(key)s::text, 'tool', %(tool)s::text,
           'step', %(step)s::text, 'slot', %(slot)s::text, 'approval_id', approval_id) FROM effect, approval
)
SELECT EXISTS (SELECT FROM lease) AS mine, (SELECT read_only FROM lease) AS read_only, effect.* FROM (SELECT 1) AS one LEFT JOIN effect ON true;

-- name: claim
-- pending (past its horizon) | failed -> pending, attempts + 1: the right to call once more.  Compare
-- and set on (status, attempts): of all who read the same row, one calls.  `error` keeps what is not
-- known of the calls before: a proof that this one did nothing says nothing about them.
WITH lease AS (
    SELECT l.epoch, r.read_only FROM run_leases l JOIN runs r USING (run_id)
     WHERE l.run_id = %(run_id)s AND l.epoch = %(epoch)s FOR SHARE OF l
), effect AS (
    UPDATE effects e
       SET status = 'pending', attempts = e.attempts + 1, owner = %(owner)s,
           error = CASE WHEN e.status = 'pending' AND NOT %(settled)s
                        THEN coalesce(e.error, '{"type": "celegraph.NoRecord"}') END,
           doubt_after = ledger_now() + %(horizon)s::interval, updated_at = ledger_now()
      FROM lease
     WHERE NOT lease.read_only AND e.idempotency_key = %(key)s AND e.status = %(status)s AND e.attempts = %(attempts)s
       AND (e.status = 'failed' OR e.doubt_after <= ledger_now())
    RETURNING e.*
), event AS (
    INSERT INTO run_events (run_id, epoch, kind, data)
    SELECT %(run_id)s, %(epoch)s, 'effect claimed', jsonb_build_object('key', %(key)s::text, 'tool', tool, 'attempt', attempts)
      FROM effect
)
SELECT EXISTS (SELECT FROM lease) AS mine, (SELECT read_only FROM lease) AS read_only, effect.* FROM (SELECT 1) AS one LEFT JOIN effect ON true;

-- name: record_sent
-- pending | failed -> sent.  Not fenced: what a call has done is a fact, also when its owner lost the run,
-- and also over a "did not happen" that came too early.  Fenced out is only a call that was not the last.
-- A webhook that was faster has made the row confirmed: it stays so, and what the webhook did not bring
-- comes from here.  The open question about this effect is answered.
WITH effect AS (
    UPDATE effects
       SET status = CASE status WHEN 'confirmed' THEN 'confirmed' ELSE 'sent' END,
           result = CASE WHEN status = 'confirmed' AND result <> 'null' THEN result ELSE %(result)s::jsonb END,
           provider_ref = coalesce(%(ref)s, provider_ref), error = NULL,
           next_try_at = NULL,  -- of an intent: nothing more to try
           updated_at = ledger_now()
     WHERE idempotency_key = %(key)s AND attempts = %(attempts)s AND status IN ('pending', 'failed', 'confirmed')
    RETURNING idempotency_key, run_id, tool, attempts, status, result, provider_ref, updated_at
), question AS (
    UPDATE approvals a
       SET status = 'approved', decided_at = ledger_now(), decided_by = %(by)s, note = 'the call has returned',
           decision = '{"verb": "answer", "value": "happened"}'
      FROM effect
     WHERE a.idempotency_key = effect.idempotency_key AND a.kind = 'doubt' AND a.status = 'open'
), event AS (
    INSERT INTO run_events (run_id, epoch, kind, data)
    SELECT run_id, %(epoch)s, 'effect sent', jsonb_strip_nulls(jsonb_build_object('key', %(key)s::text, 'tool', tool,
           'attempt', attempts, 'by', %(by)s::text,
           -- The run has gone on under another owner meanwhile.
           'late', CASE WHEN %(epoch)s > 0 AND EXISTS (SELECT FROM run_leases l WHERE l.run_id = effect.run_id
                                                         AND l.epoch <> %(epoch)s) THEN true END))
      FROM effect
)
SELECT status, result, provider_ref, updated_at FROM effect;

-- name: record_failed
-- pending -> failed: the provider certainly did nothing, or refused for good.
WITH effect AS (
    UPDATE effects SET status = 'failed', error = %(error)s::jsonb, updated_at = ledger_now()
     WHERE idempotency_key = %(key)s AND attempts = %(attempts)s AND status = 'pending'
    RETURNING run_id, tool, attempts
), event AS (
    INSERT INTO run_events (run_id, epoch, kind, data)
    SELECT run_id, %(epoch)s, 'effect failed', jsonb_build_object('key', %(key)s::text, 'tool', tool, 'attempt', attempts)
      FROM effect
)
SELECT run_id FROM effect;

-- name: record_doubt
-- pending stays pending: the call of this attempt is over and nobody knows what it did.  `over` brings
-- its horizon forward, for providers that know the key: the caller itself says that it calls no more.
-- Without such a key the request may still be on its way to the provider, and the horizon stays.
WITH effect AS (
    UPDATE effects
       SET doubt_after = CASE WHEN %(over)s THEN least(doubt_after, ledger_now()) ELSE doubt_after END,
           error = %(error)s::jsonb, updated_at = ledger_now()
     WHERE idempotency_key = %(key)s AND attempts = %(attempts)s AND status = 'pending'
    RETURNING run_id, tool, attempts
), event AS (
    INSERT INTO run_events (run_id, epoch, kind, data)
    SELECT run_id, %(epoch)s, 'effect in doubt', jsonb_build_object('key', %(key)s::text, 'tool', tool, 'attempt', attempts)
      FROM effect
)
SELECT run_id FROM effect;

-- name: record_read
-- (nothing) -> sent: the journal of an expensive read, stored before its result is used.  Fenced.
WITH lease AS (
    SELECT epoch FROM run_leases WHERE run_id = %(run_id)s AND epoch = %(epoch)s FOR SHARE
), effect AS (
    INSERT INTO effects (idempotency_key, run_id, step, tool, slot, args_hash, args, mode, status, result)
    SELECT %(key)s, %(run_id)s, %(step)s, %(tool)s, %(slot)s, %(args_hash)s, '{}', 'read', 'sent', %(result)s::jsonb
      FROM lease
    ON CONFLICT DO NOTHING
    RETURNING *
), event AS (
    INSERT INTO run_events (run_id, epoch, kind, data)
    SELECT %(run_id)s, %(epoch)s, 'read recorded', jsonb_build_object('key', %(key)s::text, 'tool', %(tool)s::text,
           'step', %(step)s::text, 'slot', %(slot)s::text) FROM effect
)
SELECT EXISTS (SELECT FROM lease) AS mine, effect.* FROM (SELECT 1) AS one LEFT JOIN effect ON true;

-- name: key_of_ref
-- Two rows mean that the reference names no single effect; more need not be read to know that.
SELECT idempotency_key FROM effects WHERE provider_ref = %(ref)s ORDER BY created_at LIMIT 2;
