-- The documentation as searchable passages, in a schema of the example's own.
--
-- passages: one row per section of a page, between one heading and the next.  Written by index_docs
--           only.  `words` is computed by PostgreSQL, so it can never be older than the text.

-- name: lock
-- One indexer at a time: two that create the same schema at once would collide in the catalogue.
-- The number is arbitrary and belongs to this example; the lock ends with the transaction.
SELECT pg_advisory_xact_lock(7230418);

-- name: create_schema
CREATE SCHEMA IF NOT EXISTS support_demo;

-- name: create_passages
CREATE TABLE IF NOT EXISTS support_demo.passages (
    page     text    NOT NULL,
    position integer NOT NULL,
    title    text    NOT NULL,
    body     text    NOT NULL,
    words    tsvector NOT NULL GENERATED ALWAYS AS (
        setweight(to_tsvector('english', title), 'A') ||
        setweight(to_tsvector('english', body), 'B')
    ) STORED,
    PRIMARY KEY (page, position)
);

-- name: create_index
CREATE INDEX IF NOT EXISTS passages_words ON support_demo.passages USING gin (words);

-- name: put_passage
-- The WHERE spares the index a rewrite when nothing changed, which is the usual case.
INSERT INTO support_demo.passages (page, position, title, body)
VALUES (%(page)s, %(position)s, %(title)s, %(body)s)
ON CONFLICT (page, position) DO UPDATE
   SET title = excluded.title, body = excluded.body
 WHERE (passages.title, passages.body) IS DISTINCT FROM (excluded.title, excluded.body);

-- name: drop_leftovers
-- Sections and pages that the documentation no longer has.
DELETE FROM support_demo.passages AS p
 WHERE NOT EXISTS (
    SELECT FROM unnest(%(pages)s::text[], %(positions)s::integer[]) AS kept (page, position)
     WHERE kept.page = p.page AND kept.position = p.position
 );

-- name: search
-- Passages that share words with the ticket, best first.  A ticket is prose, so any of its words may
-- match; what keeps chance hits out is that a passage must share at least two different ones, or
-- all of them when the ticket has only one.  Rank 1 divides by the logarithm of the length, else
-- the longest section would win every time.
WITH asked AS (
    SELECT websearch_to_tsquery('english', %(query)s) AS query,
           tsvector_to_array(to_tsvector('english', %(words)s)) AS lexemes
), shared AS (
    SELECT p.*, asked.query, (
               SELECT count(*)
                 FROM unnest(asked.lexemes) AS lexeme
                WHERE lexeme = ANY (tsvector_to_array(p.words))
           ) AS lexemes_shared, cardinality(asked.lexemes) AS lexemes_asked
      FROM support_demo.passages AS p, asked
     WHERE p.words @@ asked.query
)
SELECT page, title, body,
       ts_headline('english', body, query,
                   'MaxFragments=2, MinWords=12, MaxWords=40, StartSel="", StopSel=""') AS headline,
       ts_rank(words, query, 1) AS rank
  FROM shared
 WHERE lexemes_shared >= least(2, lexemes_asked)
 ORDER BY ts_rank(words, query, 1) DESC, page, position
 LIMIT %(limit)s;
