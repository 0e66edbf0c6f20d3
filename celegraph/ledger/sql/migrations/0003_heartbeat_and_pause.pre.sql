-- Heartbeats of an agent's own, a pause that is asked for while a node is at work, and why a run that is
-- at work is to be cancelled.
--
-- Safe while older workers run: they neither read nor write these columns.  A lease that one of them
-- takes after us still carries our instant; `heartbeat_epoch` tells that it was promised by another owner.
ALTER TABLE run_leases
    ADD COLUMN heartbeat_due_at timestamptz,
    ADD COLUMN heartbeat_epoch bigint;
COMMENT ON COLUMN run_leases.heartbeat_due_at IS
    'Agent(heartbeat_timeout=): when the owner of heartbeat_epoch hangs unless a node reports or ends before';
COMMENT ON COLUMN run_leases.progress IS 'what heartbeat() said last in this lease; for people';

ALTER TABLE runs
    ADD COLUMN pause_requested_at timestamptz,
    ADD COLUMN pause_reason text,
    ADD COLUMN cancel_reason text;
COMMENT ON COLUMN runs.pause_requested_at IS 'a running run is paused by its owner at the next step';

-- Requests that an older worker's settle has passed over; the sweep takes them in.
CREATE INDEX runs_pausing ON runs (pause_requested_at)
    WHERE pause_requested_at IS NOT NULL AND status IN ('ready', 'waiting');
