"""The SQL of two questions about decisions that many queries ask: which one is the newest, and was this one undone.

Decisions are appended and never deleted, so the newest one has the largest id.
"""

NEWEST_DECISION_ID_SQL = "(SELECT coalesce(max(id), 0) FROM decision)"  # 0 without decisions


def build_not_undone_sql(column: str, table: str = "decision") -> str:
    """Return the condition that no row of a table undoes the row whose id is in a column, such as `d.id`."""
    return f"NOT EXISTS (SELECT 1 FROM {table} u WHERE u.undoes = {column})"


NOT_UNDONE_SQL = build_not_undone_sql("d.id")  # of `decision d`
