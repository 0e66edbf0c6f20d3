-- name: due_checkpoints
-- The longest ended run whose checkpoints may go.  Locked to the end of the transaction: two prunes take
-- two runs, and nobody retries a failed run in the middle.  SKIP LOCKED: nobody waits for it either.
SELECT run_id, status FROM runs
 WHERE finished_at IS NOT NULL AND (checkpoints_pruned_at IS NULL OR checkpoints_pruned_at < finished_at)
   AND finished_at <= ledger_now() - %(keep)s::interval
 ORDER BY finished_at LIMIT 1 FOR UPDATE SKIP LOCKED;

-- name: due_events
-- The same for events.
SELECT run_id, status FROM runs
 WHERE finished_at IS NOT NULL AND (events_pruned_at IS NULL OR events_pruned_at < finished_at)
   AND finished_at <= ledger_now() - %(keep)s::interval
 ORDER BY finished_at LIMIT 1 FOR UPDATE SKIP LOCKED;

-- name: is_delta
-- A DeltaChannel's state is put together from the writes of all checkpoints: nothing of it may go alone.
-- It leaves a counter in the metadata, or a snapshot: `true` in the checkpoint with a value beside it.
SELECT EXISTS (
    SELECT FROM checkpoints c
     WHERE c.thread_id = %(run_id)s
       AND (c.metadata ?| ARRAY['counters_since_delta_snapshot', 'delta_writes_versioned']
            OR EXISTS (SELECT FROM jsonb_each(c.checkpoint -> 'channel_values') AS v
                         JOIN checkpoint_blobs b
                           ON b.thread_id = c.thread_id AND b.checkpoint_ns = c.checkpoint_ns
                          AND b.channel = v.key AND b.version = c.checkpoint -> 'channel_versions' ->> v.key
                        WHERE v.value = 'true'))) AS delta;

-- name: drop_checkpoints
-- Checkpoints that are superseded within their (sub)graph; of a run that cannot go on also those of its
-- subgraphs.  Children before what they need: a prune that dies leaves rows too many, never too few.
WITH old AS (
    SELECT c.checkpoint_ns, c.checkpoint_id FROM checkpoints c
     WHERE c.thread_id = %(run_id)s
       AND ((NOT %(resumable)s AND c.checkpoint_ns <> '')
            OR c.checkpoint_id < (SELECT max(n.checkpoint_id) FROM checkpoints n
                                   WHERE n.thread_id = c.thread_id AND n.checkpoint_ns = c.checkpoint_ns))
     LIMIT %(rows)s
)
DELETE FROM checkpoints c USING old
 WHERE c.thread_id = %(run_id)s AND c.checkpoint_ns = old.checkpoint_ns AND c.checkpoint_id = old.checkpoint_id;

-- name: drop_writes
-- Writes whose checkpoint is gone; of a run that cannot go on all of them.
WITH old AS (
    SELECT w.checkpoint_ns, w.checkpoint_id, w.task_id, w.idx FROM checkpoint_writes w
     WHERE w.thread_id = %(run_id)s
       AND (NOT %(resumable)s
            OR NOT EXISTS (SELECT FROM checkpoints c
                            WHERE c.thread_id = w.thread_id AND c.checkpoint_ns = w.checkpoint_ns
                              AND c.checkpoint_id = w.checkpoint_id))
     LIMIT %(rows)s
)
DELETE FROM checkpoint_writes w USING old
 WHERE w.thread_id = %(run_id)s AND w.checkpoint_ns = old.checkpoint_ns
   AND w.checkpoint_id = old.checkpoint_id AND w.task_id = old.task_id AND w.idx = old.idx;

-- name: drop_blobs
-- Values that no checkpoint names any more.
WITH named AS MATERIALIZED (
    SELECT c.checkpoint_ns, v.key AS channel, v.value AS version
      FROM checkpoints c, jsonb_each_text(c.checkpoint -> 'channel_versions') AS v
     WHERE c.thread_id = %(run_id)s
), old AS (
    SELECT checkpoint_ns, channel, version FROM checkpoint_blobs WHERE thread_id = %(run_id)s
    EXCEPT
    SELECT checkpoint_ns, channel, version FROM named
     LIMIT %(rows)s
)
DELETE FROM checkpoint_blobs b USING old
 WHERE b.thread_id = %(run_id)s AND b.checkpoint_ns = old.checkpoint_ns
   AND b.channel = old.channel AND b.version = old.version;

-- name: drop_reads
-- The journal of reads, of a run that cannot go on: only a re-run would ask for them.  Effects stay: a late
-- webhook, a late decision and the same run_id started again are answered from them.
WITH old AS (
    SELECT idempotency_key FROM effects
     WHERE run_id = %(run_id)s AND mode = 'read' AND NOT %(resumable)s LIMIT %(rows)s
)
DELETE FROM effects e USING old WHERE e.idempotency_key = old.idempotency_key;

-- name: drop_events
-- The oldest first: see `leases.begin`, which knows by the first that none is missing.
WITH old AS (
    SELECT seq FROM run_events WHERE run_id = %(run_id)s ORDER BY seq LIMIT %(rows)s
)
DELETE FROM run_events e USING old WHERE e.seq = old.seq;

-- name: checkpoints_pruned
UPDATE runs SET checkpoints_pruned_at = ledger_now() WHERE run_id = %(run_id)s;

-- name: events_pruned
UPDATE runs SET events_pruned_at = ledger_now() WHERE run_id = %(run_id)s;
