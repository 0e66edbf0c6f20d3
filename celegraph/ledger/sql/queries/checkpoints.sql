-- name: forget_failures
-- What failed tasks left behind, in the root and in subgraphs: the error, half-written results (a router
-- failed after its node had returned), and the answers they had taken in.  They start over: effects
-- are in the ledger, decisions in `approvals`, and both are given to them again.  A stale error beside a
-- later result could not be told from a failed router, a stale answer would be given to the next
-- question.  Tasks with an error handler of the graph's own are left to it.
DELETE FROM checkpoint_writes w
 WHERE w.thread_id = %(run_id)s
   AND EXISTS (SELECT FROM checkpoint_writes e
                WHERE e.thread_id = w.thread_id AND e.checkpoint_ns = w.checkpoint_ns
                  AND e.checkpoint_id = w.checkpoint_id AND e.task_id = w.task_id AND e.channel = '__error__')
   AND NOT EXISTS (SELECT FROM checkpoint_writes h
                    WHERE h.thread_id = w.thread_id AND h.checkpoint_ns = w.checkpoint_ns
                      AND h.checkpoint_id = w.checkpoint_id AND h.task_id = w.task_id
                      AND h.channel = '__error_source_node__')
   AND current_setting('celegraph.fence', true) = (
       SELECT run_id || ':' || epoch FROM run_leases WHERE run_id = %(run_id)s FOR SHARE);

-- name: forget_writers
-- What the tasks left behind that wrote a value which no checkpoint can hold: they run again, and what they
-- did is in the ledger.  Without this every repetition would apply the same writes and fail the same way.
DELETE FROM checkpoint_writes w
 WHERE w.thread_id = %(run_id)s AND w.checkpoint_ns = %(namespace)s AND w.checkpoint_id = %(checkpoint_id)s
   AND EXISTS (SELECT FROM checkpoint_writes v
                WHERE v.thread_id = w.thread_id AND v.checkpoint_ns = w.checkpoint_ns
                  AND v.checkpoint_id = w.checkpoint_id AND v.task_id = w.task_id AND v.channel = %(channel)s)
   AND current_setting('celegraph.fence', true) = (
       SELECT run_id || ':' || epoch FROM run_leases WHERE run_id = %(run_id)s FOR SHARE);

-- name: paths_of_tasks
-- The tasks that wrote into this checkpoint.  A @task's path holds the path of the task that called it.
SELECT DISTINCT task_id, task_path FROM checkpoint_writes
 WHERE thread_id = %(run_id)s AND checkpoint_ns = '' AND checkpoint_id = %(checkpoint_id)s;

-- name: retries_so_far
-- Read again at the failure: a checkpoint written in this attempt has forgiven the earlier ones.
SELECT retry_count FROM runs WHERE run_id = %(run_id)s;
