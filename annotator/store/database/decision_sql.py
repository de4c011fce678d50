"""SQL fragments for two common conditions: a decision is the newest, and a decision was not undone.

Decisions are appended and never deleted, so the newest one has the largest id.
"""

NEWEST_DECISION_ID_SQL = "(SELECT coalesce(max(id), 0) FROM decision)"  # 0 without decisions


def build_not_undone_sql(column: str, table: str = "decision") -> str:
    """Return the SQL condition that no row of `table` undoes the row whose id is `column`, such as `d.id`."""
    return f"NOT EXISTS (SELECT 1 FROM {table} u WHERE u.undoes = {column})"


NOT_UNDONE_SQL = build_not_undone_sql("d.id")  # of `decision d`
