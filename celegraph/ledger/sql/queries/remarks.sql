-- name: drift
-- A re-run reached a recorded call with other arguments.  Both sides go into the event.
INSERT INTO run_events (run_id, epoch, kind, data)
VALUES (%(run_id)s, %(epoch)s, 'effect drifted', jsonb_build_object('key', %(key)s::text, 'tool', %(tool)s::text,
        'answer', %(answer)s::text, 'recorded', %(recorded)s::jsonb, 'now', %(now)s::jsonb));

-- name: replay
-- A recorded result is given back instead of a second call; `saved` says what that spared (tokens).
WITH effect AS (
    UPDATE effects SET duplicates_prevented = duplicates_prevented + 1 WHERE idempotency_key = %(key)s
    RETURNING run_id, tool, mode
)
INSERT INTO run_events (run_id, epoch, kind, data)
SELECT run_id, %(epoch)s, CASE mode WHEN 'read' THEN 'read given back' ELSE 'effect deduplicated' END,
       jsonb_build_object('key', %(key)s::text, 'tool', tool) || %(saved)s::jsonb FROM effect;

-- name: advice
-- Once per run, node and subject.
INSERT INTO run_events (run_id, epoch, kind, data)
SELECT %(run_id)s, %(epoch)s, 'advice', noticed
  FROM jsonb_array_elements(%(noticed)s::jsonb) AS noticed
 WHERE NOT EXISTS (SELECT FROM run_events e
                    WHERE e.run_id = %(run_id)s AND e.kind = 'advice'
                      AND e.data ->> 'node' = noticed ->> 'node' AND e.data ->> 'about' = noticed ->> 'about');
