-- The lists of the pages: an agent's runs of one status, the newest first, and which agents there are.
-- One index for both.  It does not make status changes dearer by more than its own entry: they are no HOT
-- updates anyway, for other indexes name the status, too.
CREATE INDEX runs_by_agent ON runs (agent, status, created_at DESC, run_id DESC);
