-- The ledger, first form.
--
-- Data dictionary (one row means / written by):
--   runs        a long-lived execution of one agent; run_id is LangGraph's thread_id
--               / admission, the lease's owner, the sweep, people
--   run_leases  who may advance the run: the newest epoch wins.  Hot, therefore apart from runs
--               / the owner and its heartbeat, the sweep
--   effects     one intended act at a provider, found again by its idempotency key
--               / the owner, look-ups, people
--   approvals   one question to a person (to approve a call, or to resolve a doubt) and its answer
--               / the owner asks, people and deadlines answer
--   run_events  what happened, in order; append-only / every transition, in its own transaction
--   ticks       when a periodic duty last ran / sweep and its siblings
-- and one view, session_locks: whose session holds which run's lock just now.
-- LangGraph's checkpoints, checkpoint_blobs and checkpoint_writes live in the same schema; two
-- triggers below guard them.

-- Time has one door.  A test may set celegraph.now in its session; everything else gets the wall
-- clock of the database.  STABLE, although it reads a clock: a volatile function cannot be compared
-- with an index, and the sweep must not read a million waiting runs.
CREATE FUNCTION ledger_now() RETURNS timestamptz LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
    RETURN coalesce(nullif(current_setting('celegraph.now', true), '')::timestamptz, clock_timestamp());
END $$;

CREATE TABLE runs (
    run_id              text PRIMARY KEY,
    lock_key            bigint NOT NULL,
    agent               text NOT NULL,
    fingerprint         text,
    status              text NOT NULL DEFAULT 'ready',
    reason              text,
    waits_for           text,
    input               jsonb NOT NULL,
    output              jsonb,
    error               jsonb,
    crash_count         integer NOT NULL DEFAULT 0,
    hang_count          integer NOT NULL DEFAULT 0,
    retry_count         integer NOT NULL DEFAULT 0,
    max_crashes         integer NOT NULL,
    wake_at             timestamptz,
    ring_at             timestamptz,
    rung_at             timestamptz,
    deadline_at         timestamptz,
    cancel_requested_at timestamptz,
    read_only           boolean NOT NULL DEFAULT false,
    tags                jsonb NOT NULL DEFAULT '{}',
    trace_parent        text,
    created_at          timestamptz NOT NULL DEFAULT ledger_now(),
    updated_at          timestamptz NOT NULL DEFAULT ledger_now(),
    started_at          timestamptz,
    finished_at         timestamptz,
    CONSTRAINT runs_run_id_length CHECK (length(run_id) BETWEEN 1 AND 200),
    CONSTRAINT runs_status CHECK (status IN
        ('ready', 'running', 'waiting', 'paused', 'finished', 'failed', 'cancelled', 'quarantined')),
    CONSTRAINT runs_finished_at_iff_terminal CHECK
        ((finished_at IS NOT NULL) = (status IN ('finished', 'failed', 'cancelled'))),
    CONSTRAINT runs_ring_at_iff_ready CHECK ((ring_at IS NOT NULL) = (status = 'ready')),
    CONSTRAINT runs_wake_at_only_ready CHECK (wake_at IS NULL OR status = 'ready'),
    CONSTRAINT runs_waits_for_iff_waiting CHECK
        ((waits_for IS NOT NULL) = (status = 'waiting') AND waits_for IN ('decision', 'code')),
    CONSTRAINT runs_output_only_finished CHECK (output IS NULL OR status = 'finished')
);
COMMENT ON COLUMN runs.ring_at IS 'when a doorbell is next due: at once, at wake_at, or a minute after the last one';
COMMENT ON COLUMN runs.waits_for IS 'decision: a person; code: a deploy that knows the pending node again';

-- Every periodic query has its partial index and is ordered by the indexed time.
CREATE INDEX runs_ringing ON runs (ring_at) WHERE status = 'ready';
CREATE INDEX runs_running ON runs (updated_at) WHERE status = 'running';
CREATE INDEX runs_cancelling ON runs (cancel_requested_at)
    WHERE cancel_requested_at IS NOT NULL AND status IN ('ready', 'waiting', 'paused', 'quarantined');
CREATE INDEX runs_waiting_for_code ON runs (updated_at) WHERE status = 'waiting' AND waits_for = 'code';
CREATE INDEX runs_deadlines ON runs (deadline_at)
    WHERE deadline_at IS NOT NULL AND cancel_requested_at IS NULL
      AND status NOT IN ('finished', 'failed', 'cancelled');
-- For the sweep's look at locks nobody names: from a held lock to its run.
CREATE INDEX runs_by_lock ON runs (lock_key);
CREATE INDEX runs_listing ON runs (created_at DESC, run_id);

CREATE TABLE run_leases (
    run_id       text PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
    epoch        bigint NOT NULL DEFAULT 0,
    worker_id    text,
    backend_pid  integer,
    beat_at      timestamptz,
    loop_seen_at timestamptz,
    lease_for    interval,
    expires_at   timestamptz,
    draining     boolean NOT NULL DEFAULT false,
    progress     jsonb,
    CONSTRAINT run_leases_owner_whole CHECK
        ((worker_id IS NULL) = (backend_pid IS NULL) AND (worker_id IS NULL) = (expires_at IS NULL)
         AND (worker_id IS NULL) = (lease_for IS NULL))
) WITH (fillfactor = 70);  -- renewed at every step: room for HOT updates

CREATE TABLE effects (
    idempotency_key text PRIMARY KEY,
    run_id          text NOT NULL REFERENCES runs ON DELETE CASCADE,
    step            text NOT NULL,
    tool            text NOT NULL,
    slot            text NOT NULL,
    args_hash       text NOT NULL,
    args            jsonb NOT NULL,
    mode            text NOT NULL DEFAULT 'call',
    status          text NOT NULL DEFAULT 'pending',
    provider_ref    text,
    result          jsonb,
    error           jsonb,
    attempts        integer NOT NULL DEFAULT 1,
    duplicates_prevented integer NOT NULL DEFAULT 0,
    owner           text,
    doubt_after     timestamptz,
    task_id         text,
    execution       text,
    released_at     timestamptz,
    next_try_at     timestamptz,
    created_at      timestamptz NOT NULL DEFAULT ledger_now(),
    updated_at      timestamptz NOT NULL DEFAULT ledger_now(),
    CONSTRAINT effects_once_per_slot UNIQUE (run_id, step, tool, slot),
    CONSTRAINT effects_mode CHECK (mode IN ('call', 'outbox', 'read')),
    CONSTRAINT effects_status CHECK (status IN ('pending', 'sent', 'confirmed', 'failed')),
    -- Only an intent that nobody has tried yet is pending without a call to be in doubt about.
    CONSTRAINT effects_pending_has_horizon CHECK
        (status <> 'pending' OR doubt_after IS NOT NULL OR (mode = 'outbox' AND attempts = 0)),
    CONSTRAINT effects_outbox_whole CHECK
        (mode = 'outbox' OR (task_id IS NULL AND released_at IS NULL AND next_try_at IS NULL)),
    CONSTRAINT effects_failed_says_why CHECK (status <> 'failed' OR error IS NOT NULL)
);
CREATE INDEX effects_in_doubt ON effects (doubt_after) WHERE status = 'pending';
CREATE INDEX effects_resting ON effects (updated_at) WHERE status = 'pending' AND mode = 'call';
CREATE INDEX effects_unreleased ON effects (run_id, task_id)
    WHERE mode = 'outbox' AND released_at IS NULL;
CREATE INDEX effects_dispatching ON effects (next_try_at)
    WHERE mode = 'outbox' AND released_at IS NOT NULL AND next_try_at IS NOT NULL;
CREATE INDEX effects_by_ref ON effects (provider_ref) WHERE provider_ref IS NOT NULL;

CREATE TABLE approvals (
    approval_id     text PRIMARY KEY,
    run_id          text NOT NULL REFERENCES runs ON DELETE CASCADE,
    kind            text NOT NULL,
    interrupt_id    text,
    ask             integer NOT NULL DEFAULT 1,
    prompt          text NOT NULL,
    tool            text,
    args            jsonb,
    args_hash       text,
    idempotency_key text,
    effect_key      text UNIQUE,
    status          text NOT NULL DEFAULT 'open',
    decision        jsonb,
    decided_by      text,
    note            text,
    decided_at      timestamptz,
    consumed_at     timestamptz,
    policy          jsonb NOT NULL DEFAULT '{}',
    stage           integer NOT NULL DEFAULT 0,
    next_action_at  timestamptz,
    deadline_at     timestamptz,
    created_at      timestamptz NOT NULL DEFAULT ledger_now(),
    CONSTRAINT approvals_kind CHECK (kind IN ('interrupt', 'effect', 'doubt', 'drift')),
    CONSTRAINT approvals_interrupt_named CHECK ((kind = 'interrupt') = (interrupt_id IS NOT NULL)),
    CONSTRAINT approvals_effect_named CHECK (kind = 'interrupt' OR idempotency_key IS NOT NULL),
    CONSTRAINT approvals_status CHECK (status IN ('open', 'approved', 'rejected', 'expired', 'cancelled')),
    CONSTRAINT approvals_decided_iff_closed CHECK ((decided_at IS NOT NULL) = (status <> 'open')),
    CONSTRAINT approvals_consumed_only_closed CHECK (consumed_at IS NULL OR status <> 'open'),
    -- An expiry is never recorded as somebody's answer.
    CONSTRAINT approvals_expired_by_nobody CHECK (status <> 'expired' OR decided_by IS NULL)
);
COMMENT ON COLUMN approvals.kind IS
    'interrupt: the graph asked; effect: a call that requires an approval was reached without one; doubt: did this call happen?; drift: a re-run wants other arguments';
COMMENT ON COLUMN approvals.effect_key IS 'the effect this approval paid for; unique: it pays once';
COMMENT ON COLUMN approvals.consumed_at IS 'an attempt that knew the answer has settled; until then the answer makes its run due';
CREATE INDEX approvals_by_run ON approvals (run_id, created_at);
CREATE INDEX approvals_acting ON approvals (next_action_at) WHERE status = 'open' AND next_action_at IS NOT NULL;
CREATE INDEX approvals_unconsumed ON approvals (decided_at) WHERE status <> 'open' AND consumed_at IS NULL;
CREATE INDEX approvals_open ON approvals (created_at) WHERE status = 'open';
CREATE INDEX approvals_open_doubts ON approvals (created_at) WHERE status = 'open' AND kind = 'doubt';
CREATE UNIQUE INDEX approvals_one_open_per_interrupt ON approvals (run_id, interrupt_id) WHERE status = 'open' AND kind = 'interrupt';
CREATE UNIQUE INDEX approvals_one_open_per_effect ON approvals (idempotency_key, kind) WHERE status = 'open' AND kind <> 'interrupt';

CREATE TABLE run_events (
    seq    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id text NOT NULL REFERENCES runs ON DELETE CASCADE,
    at     timestamptz NOT NULL DEFAULT ledger_now(),
    epoch  bigint,
    kind   text NOT NULL,
    data   jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX run_events_by_run ON run_events (run_id, seq);

CREATE TABLE ticks (
    name   text PRIMARY KEY,
    at     timestamptz NOT NULL,
    report jsonb NOT NULL DEFAULT '{}'
);

-- Who holds our kind of session lock in this database (64 bit keys: objsubid 1).
CREATE VIEW session_locks AS
SELECT ((classid::bigint << 32) | objid::bigint) AS lock_key, pid
  FROM pg_locks
 WHERE locktype = 'advisory' AND objsubid = 1 AND granted
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database());

-- The fence.  FOR SHARE, so that a new epoch waits for this write or refuses it; FOR KEY SHARE does
-- not conflict with the epoch's UPDATE and lets a stale owner through.
-- SET search_path FROM CURRENT: the trigger must find run_leases whatever path the writer has.
CREATE FUNCTION celegraph_fence() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    newest bigint;
BEGIN
    SELECT epoch INTO newest FROM run_leases WHERE run_id = NEW.thread_id FOR SHARE;
    IF FOUND AND current_setting('celegraph.fence', true) IS DISTINCT FROM NEW.thread_id || ':' || newest THEN
        RAISE EXCEPTION 'a stale owner or an outsider wrote to run %', NEW.thread_id USING ERRCODE = 'CG001';
    END IF;
    RETURN NEW;
END $$;

-- A step is done: its event, the renewed lease and the forgiven crashes commit with the checkpoint.
CREATE FUNCTION celegraph_journal() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    at_step integer := (NEW.metadata ->> 'step')::integer;
    holder bigint;
BEGIN
    UPDATE run_leases
       SET expires_at = ledger_now() + lease_for, loop_seen_at = ledger_now()
     WHERE run_id = NEW.thread_id AND worker_id IS NOT NULL
    RETURNING epoch INTO holder;
    IF NOT FOUND THEN
        RETURN NULL;  -- a thread that is no run
    END IF;
    INSERT INTO run_events (run_id, epoch, kind, data)
    VALUES (NEW.thread_id, holder, 'checkpoint', jsonb_strip_nulls(jsonb_build_object(
        'step', at_step, 'ns', nullif(NEW.checkpoint_ns, ''), 'checkpoint_id', NEW.checkpoint_id,
        'next', (SELECT jsonb_agg(substr(channel, 11))
                   -- null in a checkpoint that update_state wrote (the input of an @entrypoint)
                   FROM jsonb_array_elements_text(coalesce(nullif(NEW.checkpoint -> 'updated_channels', 'null'), '[]')) AS channel
                  WHERE channel LIKE 'branch:to:%'))));
    -- Only a finished step is progress: the input of a nested entrypoint (step -1) is written anew by
    -- every re-run and would forgive a poisonous node for ever.
    IF at_step > 0 THEN
        UPDATE runs SET crash_count = 0, hang_count = 0, retry_count = 0, updated_at = ledger_now()
         WHERE run_id = NEW.thread_id AND (crash_count, hang_count, retry_count) <> (0, 0, 0);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER celegraph_fence BEFORE INSERT OR UPDATE ON checkpoints
    FOR EACH ROW EXECUTE FUNCTION celegraph_fence();
CREATE TRIGGER celegraph_fence BEFORE INSERT OR UPDATE ON checkpoint_writes
    FOR EACH ROW EXECUTE FUNCTION celegraph_fence();
-- The outbox: an intent is released in the transaction that makes its node's writes durable.  Negative
-- idx are LangGraph's special rows (error, interrupt, resume), which do not mean that the node is done;
-- nor does the name of a failed node, which LangGraph leaves for that node's error handler.
CREATE FUNCTION celegraph_release_outbox() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    WITH released AS (
        UPDATE effects SET released_at = ledger_now(), next_try_at = ledger_now()
         WHERE run_id = NEW.thread_id AND task_id = NEW.task_id AND mode = 'outbox' AND released_at IS NULL
        RETURNING run_id, idempotency_key, tool
    )
    INSERT INTO run_events (run_id, kind, data)
    SELECT run_id, 'effect released', jsonb_build_object('key', idempotency_key, 'tool', tool) FROM released;
    RETURN NULL;
END $$;
CREATE TRIGGER celegraph_release_outbox AFTER INSERT ON checkpoint_writes
    FOR EACH ROW WHEN (NEW.idx >= 0 AND NEW.channel <> '__error_source_node__')
    EXECUTE FUNCTION celegraph_release_outbox();

CREATE TRIGGER celegraph_journal AFTER INSERT ON checkpoints
    FOR EACH ROW EXECUTE FUNCTION celegraph_journal();
