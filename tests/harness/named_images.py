"""Projects of images that have only names, and what the names of a source stand for in them."""

from pathlib import Path

from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import ImportedLabel, Item
from annotator.exchange.imports.import_plan import ImportOptions, ImportPlan, prepare_import
from annotator.store.database.database import Database
from annotator.store.imports.staged_names import NameRules, resolve_names
from annotator.store.imports.staging import Staging

SEVERAL, UNKNOWN = "several", "unknown"


def of_names(folder: Path, *names: str) -> Database:
    """A project whose images have these names; nobody has to read them."""
    db = Database(folder, create=True)
    with db.writing() as sql:
        sql.execute("INSERT INTO folder (path) VALUES ('/photos')")
        sql.conn.executemany(
            "INSERT INTO image (name, sha256, width, height) VALUES (?, ?, 9, 9)",
            [(name, f"{number:064x}") for number, name in enumerate(names, start=1)],
        )
        sql.execute(
            "INSERT INTO file (folder_id, path, bytes, modified_ns, image_id) SELECT 1, name, 1, 1, id FROM image"
        )
    return db


def found(db: Database, *names: str, rules: NameRules | None = None) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """Name -> (image, kind), or (why, "") where it stands for none; and what is said to be wrong."""
    problems = Problems()
    with Staging(db.paths.project, problems.add) as staged:
        staged.add(Item(name, line, [ImportedLabel("fox", 1)]) for line, name in enumerate(names, start=2))
        resolve_names(staged, db, rules or NameRules({}), problems.add)
        with staged.attach(db) as sql:
            rows = sql.execute(
                """SELECT i.name, m.name, i.kind, i.reason FROM staged.item i LEFT JOIN image m ON m.id = i.image_id
                ORDER BY i.id"""
            ).fetchall()
    results = {}
    for name, image, kind, reason in rows:
        why = SEVERAL if reason == "several images have this name" else UNKNOWN
        results[name] = (image, kind or "name") if image else (why, "")
    return results, problems.sentences


def bring(project: Path, source: Path, **choices) -> ImportPlan:
    """Import a source, and return the plan with its preview and its result."""
    with prepare_import(project, source, ImportOptions(**choices), "Ann") as plan:
        plan.apply()
    return plan
