"""Renaming of members. Decisions follow, but earlier exports and logs keep the old name."""

from annotator.errors import AnnotatorError
from annotator.store.database.database import Database
from annotator.store.people.earlier_names import DETAIL_PREFIX, RENAMED_ENTRY
from annotator.store.people.members import Member, add_log_entry, check_name, load_member

# Tables with people's names.
_ANNOTATOR_TABLES = ("decision", "acceptance", "assignment", "event_edit", "reached", "revealed", "speed_test")
# of a person: labels/answer_mode.py, ui/shared/work/last_export.py
_SETTING_PREFIXES = ("labels_an_image/", "last_export:")


def rename(db: Database, name: str, new: str, by: str) -> Member:
    """Rename a member, keeping answers, sessions and link. Raises AnnotatorError for a bad, taken or used name."""
    new = new.strip()
    with db.writing() as sql:
        member = load_member(sql, name)
        if new == name:
            return member
        check_name(sql, new, own_id=member.id)
        if sql.execute("SELECT 1 FROM decision WHERE annotator = ? LIMIT 1", [new]).fetchone():
            raise AnnotatorError(f"Somebody called {new} has answered here before. Choose another name.")
        sql.execute("UPDATE member SET name = ? WHERE id = ?", [new, member.id])
        for table in _ANNOTATOR_TABLES:
            sql.execute(f"UPDATE OR REPLACE {table} SET annotator = ? WHERE annotator = ?", [new, name])
        sql.execute("UPDATE OR REPLACE tally SET one = ? WHERE kind = 'annotator' AND one = ?", [new, name])
        for key in _SETTING_PREFIXES:
            sql.execute("UPDATE OR REPLACE setting SET key = ? WHERE key = ?", [f"{key}{new}", f"{key}{name}"])
        sql.execute("DELETE FROM lease WHERE annotator = ?", [name])  # a page of the old name is refused from now on
        # Every process keeps figures of people by the newest decision and this number.
        sql.execute("UPDATE class_version SET changes = changes + 1")
        add_log_entry(sql, by, RENAMED_ENTRY, new, f"{DETAIL_PREFIX}{name}")
        return load_member(sql, new)
