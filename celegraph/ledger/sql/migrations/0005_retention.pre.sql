-- Retention: when what an ended run no longer needs was last removed.  A run that was retried since ends
-- later than that, and is due again.
ALTER TABLE runs ADD COLUMN checkpoints_pruned_at timestamptz;
ALTER TABLE runs ADD COLUMN events_pruned_at timestamptz;
COMMENT ON COLUMN runs.checkpoints_pruned_at IS 'its superseded checkpoints and its recorded reads are gone';
COMMENT ON COLUMN runs.events_pruned_at IS 'its events are gone';

CREATE INDEX runs_checkpoints_to_prune ON runs (finished_at)
    WHERE finished_at IS NOT NULL AND (checkpoints_pruned_at IS NULL OR checkpoints_pruned_at < finished_at);
CREATE INDEX runs_events_to_prune ON runs (finished_at)
    WHERE finished_at IS NOT NULL AND (events_pruned_at IS NULL OR events_pruned_at < finished_at);
