"""Renaming a member, as long as no decision carries their name.

Decisions keep the name they were given under, for ever: exports, the history of an image and figures of people rest on
it. What else is kept of a person follows them. Logs (of access, classes, imports) keep the earlier name.
"""

from annotator.errors import AnnotatorError
from annotator.store.database.database import Database
from annotator.store.people.members import Member, named, note, refuse_name

_FOLLOWS = ("assignment", "reached", "revealed", "speed_test")  # tables with the name of a person


def rename(db: Database, name: str, new: str, by: str) -> Member:
    """Give a member another name, and return them. Their sessions and their link go on.

    Args:
        db: The project's database.
        name: The member's name.
        new: Their new name; blanks around it are removed.
        by: The person who renames them.

    Raises:
        AnnotatorError: The member is unknown, the new name is invalid or taken, or decisions carry one of the names:
            those of one person would seem to be another's.
    """
    new = new.strip()
    with db.writing() as sql:
        member = named(sql, name)
        if new == name:
            return member
        refuse_name(sql, new, but=member.id)
        has_decided = "SELECT 1 FROM decision WHERE annotator = ? LIMIT 1"
        if sql.execute(has_decided, [name]).fetchone():
            raise AnnotatorError(
                f"{name} has answered already, and answers keep their name. Add a member called {new} instead."
            )
        if sql.execute(has_decided, [new]).fetchone():
            raise AnnotatorError(f"Somebody called {new} has answered here before. Choose another name.")
        sql.execute("UPDATE member SET name = ? WHERE id = ?", [new, member.id])
        for table in _FOLLOWS:
            sql.execute(f"UPDATE OR REPLACE {table} SET annotator = ? WHERE annotator = ?", [new, name])
        sql.execute("DELETE FROM lease WHERE annotator = ?", [name])  # a page of the old name is refused from now on
        note(sql, by, "renamed", new, f"from {name}")
        return named(sql, new)
