"""Imports into an existing project that did not end: what they leave behind when they are stopped or killed.

Images are registered in batches before the labels are stored at once. When an import does not end, nobody is asked
about the images that came with it, as if it had been taken back; when it is repeated, their files are not read again.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from annotator.store.database.database import Database
from annotator.store.imports.imports import TAKEN_BACK
from annotator.store.imports.staging import sweep
from annotator.store.pictures.files import escaped

_BEGUN = "import_begun"  # setting: the folders whose images are being registered, and what was known of them before
_OURS = """id IN (SELECT image_id FROM file f JOIN folder d ON d.id = f.folder_id
    WHERE d.path IN (SELECT value FROM json_each(:folders)))"""
_NEW = f"""problem = '' AND {_OURS} AND (id > :last OR id IN (SELECT CAST(key AS INTEGER) FROM json_each(:problems)))
    AND NOT EXISTS (SELECT 1 FROM decision d WHERE d.image_id = image.id AND d.action != 'undo'
        AND NOT EXISTS (SELECT 1 FROM decision u WHERE u.undoes = d.id))"""
"""Of images that have come with an import, and that nobody has decided anything about."""


def begin(db: Database, folders: Sequence[Path]) -> None:
    """Record that images of these folders are being registered from now on."""
    places = json.dumps([escaped(str(folder.resolve())) for folder in folders])
    last = db.value("SELECT coalesce(max(id), 0) FROM image")
    query = f"SELECT id, problem FROM image WHERE problem LIKE '{TAKEN_BACK}%' AND {_OURS}"
    problems = json.dumps(dict(db.tuples(query, {"folders": places})))
    db.set_setting(_BEGUN, {"last": last, "folders": places, "problems": problems})


def end(db: Database) -> None:
    """Record that the import is stored."""
    db.set_setting(_BEGUN, None)


def new_images(db: Database) -> list[int]:
    """Return the images registered since `begin`, including those of an import taken back that are in use again."""
    return [row[0] for row in db.tuples(f"SELECT id FROM image WHERE {_NEW} ORDER BY id", db.setting(_BEGUN))]


def withdraw(db: Database) -> None:
    """Withdraw the images of an import that did not end: nobody is asked about them."""
    begun = db.setting(_BEGUN)
    if begun is None:
        return
    with db.writing() as sql:
        sql.execute(
            f"""UPDATE image SET problem = coalesce((SELECT value FROM json_each(:problems)
            WHERE CAST(key AS INTEGER) = image.id), :reason) WHERE {_NEW}""",
            begun | {"reason": f"{TAKEN_BACK} that was not finished"},
        )
        end(db)


def recover(db: Database) -> None:
    """Remove what killed imports have left; does nothing while an import is running."""
    if not sweep(db.paths.project):
        withdraw(db)
