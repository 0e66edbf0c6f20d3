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
