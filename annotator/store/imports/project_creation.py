"""Creating a project completely or not at all.

The database is named project.db.unfinished until it is complete. A retry keeps only registered files.
"""

import contextlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from annotator.errors import AlreadyRunning, AnnotatorError
from annotator.settings import IMPORTED_FOLDER, UNFINISHED_DATABASE_FILE, Paths
from annotator.store.database.database import Database
from annotator.store.database.project_identity import HOME_SETTING
from annotator.store.disk.durable import sync_folder
from annotator.store.imports.staging import is_staging_file
from annotator.store.locations.addresses import Address
from annotator.store.locations.staged_listing import is_listing_file
from annotator.store.pictures.files import escape_path

LOCK_FILE = f"{UNFINISHED_DATABASE_FILE}.lock"
ATTEMPT_FILES = (
    UNFINISHED_DATABASE_FILE,
    f"{UNFINISHED_DATABASE_FILE}-wal",
    f"{UNFINISHED_DATABASE_FILE}-shm",
    f"{UNFINISHED_DATABASE_FILE}-journal",
    LOCK_FILE,
)


def has_other_files(project: Path) -> bool:
    """Return whether a folder contains anything besides an unfinished project."""
    ours = (*ATTEMPT_FILES, IMPORTED_FOLDER)
    names = [entry.name for entry in project.iterdir()]
    return any(name not in ours and not is_staging_file(name) and not is_listing_file(name) for name in names)


@contextmanager
def create_project(project: Path, folder: Address | Path) -> Generator[Database]:
    """Yield the database of a new project, which becomes project.db when the block succeeds.

    Raises:
        AlreadyRunning: Another process is creating it.
        AnnotatorError: It exists, or its folder is not writable.
    """
    place = Paths(project.resolve())
    # That of an attempt which was killed is as new.
    made_folder = not place.project.exists() or (place.project / UNFINISHED_DATABASE_FILE).exists()
    try:
        place.project.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = FileLock(place.project / LOCK_FILE)
        lock.acquire(timeout=0)
    except Timeout as error:
        raise AlreadyRunning(f"Another process is making {project} right now. Wait until it has ended.") from error
    except OSError as error:
        raise AnnotatorError(f"The project folder {project} cannot be written: {error}.") from error
    try:
        if place.database.exists():
            raise AnnotatorError(f"{project} was made by another process just now. Run the command again to add to it.")
        db = None
        try:
            db = _open_unfinished(place.project, folder)
            yield db
            _close_connection(db)
        except BaseException as error:
            begun = db is not None and db.value("SELECT count(*) FROM file")
            if db:
                _close_connection(db)
            # The next attempt resumes after Ctrl+C, and always with an address, whose files take long to read.
            if (isinstance(error, Exception) and not isinstance(folder, Address)) or not begun:
                _remove_files(place.project, ATTEMPT_FILES[:-1])
            raise
        _publish_database(db.paths.database, place.database)
    finally:
        with contextlib.suppress(OSError):  # not empty: it holds the project, or an attempt to resume
            _remove_files(place.project, [LOCK_FILE])
            lock.release()
            if made_folder:
                place.project.rmdir()


def _open_unfinished(project: Path, folder: Address | Path) -> Database:
    """Return an unfinished database if it contains only files of this folder, else a new one."""
    try:
        db = Database(project, create=True, file=UNFINISHED_DATABASE_FILE)
        named = folder.plain if isinstance(folder, Address) else escape_path(str(folder.resolve()))
        others = db.value("SELECT count(*) FROM folder WHERE path != ?", [named])
        others += db.value("SELECT (SELECT count(*) FROM class) + (SELECT count(*) FROM decision)")
        others += db.value("SELECT count(*) FROM setting WHERE key NOT IN ('registrations', ?)", [HOME_SETTING])
        if not others:
            return db
        _close_connection(db)
    except AnnotatorError:  # damaged, or of another version
        pass
    _remove_files(project, ATTEMPT_FILES[:-1])
    return Database(project, create=True, file=UNFINISHED_DATABASE_FILE)


def _close_connection(db: Database) -> None:
    """Close the connection, so that SQLite merges its log."""
    db.sql.conn.close()


def _publish_database(unfinished: Path, database: Path) -> None:
    log = unfinished.with_name(f"{unfinished.name}-wal")
    if log.exists() and log.stat().st_size:
        raise AnnotatorError(f"{unfinished} is still open in another program, so the project was not made. Try again.")
    unfinished.replace(database)
    sync_folder(database.parent)


def _remove_files(project: Path, names: tuple[str, ...] | list[str]) -> None:
    for name in names:
        (project / name).unlink(missing_ok=True)
