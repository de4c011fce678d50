"""SQL lists of decision sources, built from `SOURCES`."""

from annotator.records import list_sources


def format_source_list(**wanted: object) -> str:
    """Return the decision sources with these properties (property=value) as an SQL list: "('grid', 'audit')"."""
    return f"({', '.join(repr(name) for name in list_sources(**wanted))})"


def build_counted_view() -> str:
    """Return the SQL of the view `counted`, which lists the stored counts that each decision counts in.

    A new decision source needs a schema step that recreates the view.
    """
    kind, scored = (
        "CASE WHEN action IN ('skip', 'flag', 'clear', 'comment') THEN action ELSE source END",
        format_source_list(scored=True),
    )
    return f"""CREATE VIEW counted (decision_id, kind, one, two) AS
SELECT id, 'annotator', annotator, '' FROM decision WHERE action IN ('label', 'done')
UNION ALL
SELECT id, 'source', {kind}, ''
FROM decision WHERE action != 'undo'
UNION ALL
SELECT id, 'hour', CAST(decided_at / 3600 AS INTEGER),
    {kind}
FROM decision WHERE action != 'undo' AND source NOT IN {format_source_list(chosen_by="file")}
UNION ALL
SELECT id, 'score', max(0, min(19, CAST(score * 20 AS INTEGER))), state FROM decision
WHERE action = 'label' AND score IS NOT NULL AND source IN {scored}
UNION ALL
SELECT id, 'run', run_id, state FROM decision
WHERE action = 'label' AND score IS NOT NULL AND run_id IS NOT NULL
    AND source IN {scored}"""
