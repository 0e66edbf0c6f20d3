-- People: what exactly was asked, what silence means, and the notices that go out about a question.
--
-- Safe while older workers run: what they do not know is filled in by the triggers, and a question they
-- close at its deadline is closed as expired.

ALTER TABLE approvals
    ADD COLUMN asked       jsonb,
    ADD COLUMN previous    jsonb,
    ADD COLUMN args_schema jsonb,
    ADD COLUMN silence     text,
    ADD CONSTRAINT approvals_silence CHECK (silence IN ('reject', 'cancel', 'approve', 'read_only')),
    -- A policy's yes is nobody's, as its no is.
    ADD CONSTRAINT approvals_silence_is_nobody CHECK
        (decision ->> 'verb' IS DISTINCT FROM 'expire' OR decided_by IS NULL);
COMMENT ON COLUMN approvals.asked IS 'who asks: agent, node, step';
COMMENT ON COLUMN approvals.previous IS 'when asked again: the arguments that were decided on, or why';
COMMENT ON COLUMN approvals.args_schema IS 'JSON schema of the arguments, for edits: web processes do not know the effect';
COMMENT ON COLUMN approvals.silence IS 'what the ledger answers at the deadline; NULL: nothing, the question stays open and is brought up again';
COMMENT ON COLUMN approvals.stage IS 'steps of the policy taken; beyond its last step: times it was brought up after the deadline';

-- What silence means is decided when a question is opened, and by its kind first: nobody's answer to
-- "did it happen?" would be a guess.
CREATE FUNCTION celegraph_silence(kind text, policy jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN kind = 'interrupt' THEN nullif(coalesce(policy ->> 'on_timeout', 'reject'), 'escalate') END
$$;

-- When the policy's step number `stage` (from 0) is due; NULL: there is none.
CREATE FUNCTION celegraph_step_at(asked_at timestamptz, policy jsonb, stage integer) RETURNS timestamptz
LANGUAGE sql STABLE AS $$
    SELECT asked_at + make_interval(secs => (policy -> 'stages' -> stage ->> 'after')::double precision)
$$;

-- The notices to `people` ([{to, by}]) about one thing, as intents of the outbox.  The key is made of what
-- the notice says, so whoever enqueues it again, and however often, enqueues the same one.
CREATE FUNCTION celegraph_notices(approval_id text, run_id text, what text, n integer, people jsonb)
RETURNS TABLE (key text, run text, step text, tool text, slot text, hash text, args jsonb)
LANGUAGE sql IMMUTABLE AS $$
    SELECT 'cg-' || left(encode(sha256(convert_to(
               jsonb_build_array('notice', approval_id, what, n, p."to", p.by)::text, 'UTF8')), 'hex'), 32),
           run_id, 'notice of ' || approval_id, 'notify:' || p.by, what || ' ' || n || ' to ' || p."to",
           encode(sha256(convert_to(jsonb_build_array(approval_id, what, n, p."to")::text, 'UTF8')), 'hex'),
           jsonb_build_object('approval_id', approval_id, 'what', what, 'n', n, 'to', p."to")
      FROM jsonb_to_recordset(coalesce(people, '[]')) AS p ("to" text, by text)
$$;

CREATE FUNCTION celegraph_asking() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    NEW.silence := celegraph_silence(NEW.kind, NEW.policy);
    NEW.next_action_at := least(celegraph_step_at(NEW.created_at, NEW.policy, 0), NEW.deadline_at);
    RETURN NEW;
END $$;
CREATE TRIGGER celegraph_asking BEFORE INSERT ON approvals
    FOR EACH ROW WHEN (NEW.status = 'open') EXECUTE FUNCTION celegraph_asking();

-- Whichever statement opens a question, its notices are enqueued in the same transaction.
CREATE FUNCTION celegraph_asked() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO effects (idempotency_key, run_id, step, tool, slot, args_hash, args, mode, attempts,
                         released_at, next_try_at)
    SELECT n.*, 'outbox', 0, ledger_now(), ledger_now()
      FROM celegraph_notices(NEW.approval_id, NEW.run_id, 'opened', 0, NEW.policy -> 'notify') AS n
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER celegraph_asked AFTER INSERT ON approvals
    FOR EACH ROW WHEN (NEW.status = 'open' AND NEW.policy ? 'notify') EXECUTE FUNCTION celegraph_asked();

UPDATE approvals SET silence = celegraph_silence(kind, policy) WHERE status = 'open';
