-- name: pass_time
-- Time passes for one run, without waiting and without another clock: what it waits for comes nearer,
-- what it has behind it lies further back.  Events keep their times; they are a history, not a wait.
WITH run AS (
    UPDATE runs
       SET wake_at = wake_at - %(by)s::interval, ring_at = ring_at - %(by)s::interval,
           rung_at = rung_at - %(by)s::interval, pause_requested_at = pause_requested_at - %(by)s::interval,
           deadline_at = deadline_at - %(by)s::interval,
           created_at = created_at - %(by)s::interval, updated_at = updated_at - %(by)s::interval,
           started_at = started_at - %(by)s::interval, finished_at = finished_at - %(by)s::interval
     WHERE run_id = %(run_id)s
), lease AS (
    UPDATE run_leases
       SET beat_at = beat_at - %(by)s::interval, loop_seen_at = loop_seen_at - %(by)s::interval,
           expires_at = expires_at - %(by)s::interval,
           heartbeat_due_at = heartbeat_due_at - %(by)s::interval
     WHERE run_id = %(run_id)s
), effect AS (
    UPDATE effects
       SET doubt_after = doubt_after - %(by)s::interval, next_try_at = next_try_at - %(by)s::interval,
           released_at = released_at - %(by)s::interval, created_at = created_at - %(by)s::interval,
           updated_at = updated_at - %(by)s::interval
     WHERE run_id = %(run_id)s
)
UPDATE approvals
   SET deadline_at = deadline_at - %(by)s::interval, next_action_at = next_action_at - %(by)s::interval,
       created_at = created_at - %(by)s::interval
 WHERE run_id = %(run_id)s;
