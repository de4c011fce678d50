"""Step 4: the tallies count the sources that Autopilot and Review have of their own."""

from sqlite_utils import Database


def m004(db: Database) -> None:
    """Count the sources of Autopilot and Review in the tallies of scores too.

    These are random images, lessons, second looks and settled disagreements. No older decision has one of these
    sources, so the tallies stay as they are.
    """
    db.execute("DROP VIEW counted")
    db.execute(_COUNTED)


# As sources.counted_view() made it when this step was written; a later source has a step of its own.
_COUNTED = """CREATE VIEW counted (decision_id, kind, one, two) AS
SELECT id, 'annotator', annotator, '' FROM decision WHERE action IN ('label', 'done')
UNION ALL
SELECT id, 'source', CASE WHEN action IN ('skip', 'flag') THEN action ELSE source END, ''
FROM decision WHERE action != 'undo'
UNION ALL
SELECT id, 'hour', CAST(decided_at / 3600 AS INTEGER), CASE WHEN action IN ('skip', 'flag') THEN action ELSE source END
FROM decision WHERE action != 'undo' AND source NOT IN ('import')
UNION ALL
SELECT id, 'score', max(0, min(19, CAST(score * 20 AS INTEGER))), state FROM decision
WHERE action = 'label' AND score IS NOT NULL AND source IN ('suggestion', 'grid', 'audit', 'random', 'exploration')
UNION ALL
SELECT id, 'run', run_id, state FROM decision
WHERE action = 'label' AND score IS NOT NULL AND run_id IS NOT NULL
    AND source IN ('suggestion', 'grid', 'audit', 'random', 'exploration')"""
