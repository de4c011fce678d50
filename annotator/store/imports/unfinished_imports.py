"""Recovery from stopped or killed imports into an existing project. Their registered images are withdrawn."""

import json
from collections.abc import Sequence
from pathlib import Path

from annotator.store.database.database import Database
from annotator.store.database.decision_sql import NOT_UNDONE_SQL
from annotator.store.imports.past_imports import UNDONE_PROBLEM
from annotator.store.imports.staging import remove_stale_files
from annotator.store.pictures.files import escape_path

# setting: the folders whose images are being registered, and what was known of them before
_BEGUN_SETTING = "import_begun"
_IN_FOLDERS_SQL = """id IN (SELECT image_id FROM file f JOIN folder d ON d.id = f.folder_id
    WHERE d.path IN (SELECT value FROM json_each(:folders)))"""
_NEW_IMAGES_SQL = f"""problem = '' AND {_IN_FOLDERS_SQL} AND (id > :last OR
    id IN (SELECT CAST(key AS INTEGER) FROM json_each(:problems)))
    AND NOT EXISTS (SELECT 1 FROM decision d WHERE d.image_id = image.id AND d.action != 'undo'
        AND {NOT_UNDONE_SQL})"""
"""Of images that have come with an import, and that nobody has decided anything about."""


def begin(db: Database, folders: Sequence[Path]) -> None:
    """Record that an import starts to register the images of these folders."""
    places = json.dumps([escape_path(str(folder.resolve())) for folder in folders])
    last = db.value("SELECT coalesce(max(id), 0) FROM image")
    query = f"SELECT id, problem FROM image WHERE problem LIKE '{UNDONE_PROBLEM}%' AND {_IN_FOLDERS_SQL}"
    problems = json.dumps(dict(db.tuples(query, {"folders": places})))
    db.set_setting(_BEGUN_SETTING, {"last": last, "folders": places, "problems": problems})


def end(db: Database) -> None:
    db.set_setting(_BEGUN_SETTING, None)


def load_new_image_ids(db: Database) -> list[int]:
    """Return the images registered or restored since `begin`."""
    return [
        row[0]
        for row in db.tuples(
            f"SELECT id FROM image WHERE {_NEW_IMAGES_SQL} ORDER BY id", db.get_setting(_BEGUN_SETTING)
        )
    ]


def withdraw(db: Database) -> None:
    """Withdraw the images of an unfinished import from all queues."""
    begun = db.get_setting(_BEGUN_SETTING)
    if begun is None:
        return
    with db.writing() as sql:
        sql.execute(
            f"""UPDATE image SET problem = coalesce((SELECT value FROM json_each(:problems)
            WHERE CAST(key AS INTEGER) = image.id), :reason) WHERE {_NEW_IMAGES_SQL}""",
            begun | {"reason": f"{UNDONE_PROBLEM} that was not finished"},
        )
        end(db)


def recover(db: Database) -> None:
    """Withdraw the images of killed imports, unless an import is running."""
    if not remove_stale_files(db.paths.project):
        withdraw(db)
