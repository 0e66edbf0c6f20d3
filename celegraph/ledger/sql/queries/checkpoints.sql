-- name: forget_writes
-- A router failed after its node had returned: without these rows the node runs again (its effects
-- are in the ledger) and its router with it.  RESUME rows (idx -4) stay: the answer was consumed.
DELETE FROM checkpoint_writes
 WHERE thread_id = %(run_id)s AND checkpoint_ns = '' AND checkpoint_id = %(checkpoint_id)s
   AND task_id = ANY(%(task_ids)s) AND idx <> -4
   AND current_setting('celegraph.fence', true) = (
       SELECT run_id || ':' || epoch FROM run_leases WHERE run_id = %(run_id)s FOR SHARE);

-- name: retries_so_far
-- Read again at the failure: a checkpoint written in this attempt has forgiven the earlier ones.
SELECT retry_count FROM runs WHERE run_id = %(run_id)s;
