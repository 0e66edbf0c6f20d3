-- name: due
-- The channels that have something to tell now; most of the time none.
SELECT DISTINCT tool FROM effects
 WHERE mode = 'outbox' AND released_at IS NOT NULL AND next_try_at <= ledger_now() AND tool LIKE 'notify:%%';
