-- name: server
-- The name for people, the number for comparing.
SELECT current_setting('server_version') AS version, current_setting('server_version_num')::integer AS number;

-- name: backlog
-- Runs that are due and that no worker has begun: how many, since when the oldest is ready, how late the
-- doorbell of the most overdue one is (the sweep's lag), how many were never rung; and how many runs
-- workers are at just now.
SELECT count(*)::integer AS runs,
       extract(epoch FROM ledger_now() - min(greatest(updated_at, wake_at)))::double precision AS oldest_s,
       coalesce(extract(epoch FROM ledger_now() - min(ring_at) FILTER (WHERE ring_at <= ledger_now())),
                0)::double precision AS ring_lag_s,
       (count(*) FILTER (WHERE rung_at IS NULL))::integer AS never_rung,
       (SELECT count(*) FROM runs WHERE status = 'running')::integer AS running
  FROM runs
 WHERE status = 'ready' AND (wake_at IS NULL OR wake_at <= ledger_now());
