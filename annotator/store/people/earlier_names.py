"""Earlier names of renamed members, read from the access log.

Late data under an earlier name belongs to that member, and no other member gets the name.
"""

import sqlite_utils

RENAMED_ENTRY, DETAIL_PREFIX = "renamed", "from "  # in the log: what, and the beginning of the detail


def load_earlier_names(sql: sqlite_utils.Database) -> dict[str, str]:
    """Return earlier name -> current name."""
    statement = "SELECT detail, member FROM access_log WHERE what = ? ORDER BY id"
    now: dict[str, str] = {}
    for detail, new in sql.execute(statement, [RENAMED_ENTRY]).fetchall():
        old = detail.removeprefix(DETAIL_PREFIX)
        now = {earlier: new if name == old else name for earlier, name in now.items()} | {old: new}
        now.pop(new, None)  # they have it again
    return now
