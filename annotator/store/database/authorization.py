"""Rights of the member for whom this process writes, checked inside each transaction.

The owner's own programs act for no member and may do everything.
"""

from collections.abc import Callable

import sqlite_utils

from annotator.errors import Forbidden
from annotator.roles import ROLE_DESCRIPTIONS, Right, Role

NON_MEMBER_ID = 0  # the id of somebody who is no member

_member_sources: list[Callable[[], int | None]] = []


def set_member_source(get_member_id: Callable[[], int | None]) -> None:
    """Set the function that returns the member for whom the calling thread acts.

    Args:
        get_member_id: Returns a member id, NON_MEMBER_ID, or None for the program itself.
    """
    _member_sources[:] = [get_member_id]


def get_acting_member_id() -> int | None:
    """Return the member for whom this thread acts, or None for the program itself."""
    return _member_sources[0]() if _member_sources else None


def check(sql: sqlite_utils.Database, right: Right) -> None:
    """Raise Forbidden if the member for whom this thread acts lacks this right."""
    if text := explain_denial(sql, right):
        raise Forbidden(text)


def explain_denial(sql: sqlite_utils.Database, right: Right) -> str | None:
    """Return why the member for whom this thread acts lacks this right, or None."""
    id_ = get_acting_member_id()
    if id_ is None:
        return None
    row = sql.execute("SELECT name, role FROM member WHERE id = ?", [id_]).fetchone()
    name, role = row or ("Whoever is not signed in", Role.NONE)
    return format_denial(name, role, right) if Role(role).highest_right < right else None


def format_denial(name: str, role: str, right: Right) -> str:
    """Return the error message for a role that lacks this right."""
    return (
        f"{name} has the role {role} ({ROLE_DESCRIPTIONS[Role(role)]}); this needs {get_minimum_role(right)}. An owner "
        "of the project can change roles on the Members page."
    )


def get_minimum_role(right: Right) -> str:
    """Return the name of the lowest role with this right."""
    return next(role for role in Role if role.highest_right >= right).value
