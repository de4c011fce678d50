"""The person for whom this process is writing, and their rights.

Where several people share a project, the page process sets a function that tells who is asking (`source`). Every write
for that person is checked against their role inside its own transaction: a role that was taken away a moment ago no
longer counts. A program of the project's owner on the machine (a command, the worker, the app's own threads) acts for
no person and may do everything; it could edit the file.
"""

from collections.abc import Callable

import sqlite_utils

from annotator.errors import Forbidden
from annotator.roles import ROLE_DESCRIPTIONS, Right, Role

NON_MEMBER_ID = 0  # the id of somebody who is no member

_member_sources: list[Callable[[], int | None]] = []


def set_member_source(get_member_id: Callable[[], int | None]) -> None:
    """Set the function that tells for whom the calling thread acts. The process that serves people calls this once.

    Args:
        get_member_id: Returns a member's id, NON_MEMBER_ID for a person who is no member, or None for the program
            itself.
    """
    _member_sources[:] = [get_member_id]


def get_acting_member_id() -> int | None:
    """Return the id of the person for whom the calling thread acts (see `source`); None for the program itself."""
    return _member_sources[0]() if _member_sources else None


def check(sql: sqlite_utils.Database, right: Right) -> None:
    """Raise Forbidden when the person this thread acts for does not have this right now."""
    if text := explain_denial(sql, right):
        raise Forbidden(text)


def explain_denial(sql: sqlite_utils.Database, right: Right) -> str | None:
    """Return why the person this thread acts for does not have this right; None where they have it."""
    id_ = get_acting_member_id()
    if id_ is None:
        return None
    row = sql.execute("SELECT name, role FROM member WHERE id = ?", [id_]).fetchone()
    name, role = row or ("Whoever is not signed in", Role.NONE)
    return format_denial(name, role, right) if Role(role).highest_right < right else None


def format_denial(name: str, role: str, right: Right) -> str:
    """Return the message for a person of this role who does not have this right."""
    return (
        f"{name} has the role {role} ({ROLE_DESCRIPTIONS[Role(role)]}); this needs {get_minimum_role(right)}. An owner "
        "of the project can change roles on the Members page."
    )


def get_minimum_role(right: Right) -> str:
    """Return the name of the least role with this right."""
    return next(role for role in Role if role.highest_right >= right).value
