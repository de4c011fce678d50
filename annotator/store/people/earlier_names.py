"""The names that members had before they were renamed, read from the log of access.

An earlier name stays its person's: what was given under it and comes late is theirs, and nobody else gets it.
"""

import sqlite_utils

RENAMED_ENTRY, DETAIL_PREFIX = "renamed", "from "  # in the log: what, and the beginning of the detail


def load_earlier_names(sql: sqlite_utils.Database) -> dict[str, str]:
    """Return earlier name -> the name that this member has now."""
    statement = "SELECT detail, member FROM access_log WHERE what = ? ORDER BY id"
    now: dict[str, str] = {}
    for detail, new in sql.execute(statement, [RENAMED_ENTRY]).fetchall():
        old = detail.removeprefix(DETAIL_PREFIX)
        now = {earlier: new if name == old else name for earlier, name in now.items()} | {old: new}
        now.pop(new, None)  # they have it again
    return now
