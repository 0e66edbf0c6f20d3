-- name: sessions
-- Sessions of the product: pens, hearts, the web side, hand-backs.
SELECT pid FROM pg_stat_activity
 WHERE usename = %(role)s AND application_name LIKE 'celegraph%%' ORDER BY pid;

-- name: end_session
SELECT pg_terminate_backend(%(pid)s);

-- name: some_runs
-- The newest of a kind: any, live (not ended), resting (what may be paused).
SELECT run_id FROM celegraph.runs
 WHERE CASE %(which)s WHEN 'live' THEN finished_at IS NULL
                      WHEN 'resting' THEN status IN ('ready', 'waiting')
                      ELSE true END
 ORDER BY created_at DESC, run_id LIMIT 40;

-- name: owners
-- Processes that hold a run.
SELECT split_part(worker_id, ':', 2)::integer AS pid FROM celegraph.run_leases WHERE worker_id IS NOT NULL;

-- name: pens_at_work
-- The session that has been at work on one run for the longest.
SELECT backend_pid AS pid FROM celegraph.run_leases JOIN pg_stat_activity ON pid = backend_pid
 WHERE worker_id IS NOT NULL ORDER BY beat_at;
