"""The base class of all scenes, the project that most of them begin with, and readers of a project's state."""

import hashlib
import random
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from harness import projects

from annotator.records import Decision
from annotator.store.database import database_copies
from annotator.store.database.database import Database
from annotator.store.labels import decisions
from annotator.store.upkeep import consistency

SCENE_IMAGES, SCENE_CLASSES = 24, 3
_ROW_QUERIES = {
    "steps": "SELECT name FROM _sqlite_migrations ORDER BY id",
    "decisions": "SELECT id, uuid, action, image_id, class_id, state, undoes, annotator FROM decision ORDER BY id",
    "labels": "SELECT image_id, class_id, state FROM label ORDER BY 1, 2",
    "images": "SELECT id, name, sha256 FROM image ORDER BY id",
}
DECISION_COLUMNS = "action, image_id, class_id, state, source, annotator, undoes, run_id"


class Scene:
    """One command, in a folder that holds all that it reads and writes; the folder is made anew before each kill.

    Attributes:
        name: The name in figures.
        is_repeatable: Whether the same command also succeeds when all of it is done already.
        is_timed: Whether kills come only after some seconds, and none at a step.
        ending: Seconds that processes which it has started may take to end after it.
        loads: The modules to load before the process is forked.
    """

    name = ""
    is_repeatable = True
    is_timed = False
    ending = 5.0
    loads: tuple[str, ...] = ()

    def __init__(self, folder: Path):
        self.folder = folder

    @property
    def project(self) -> Path:
        """Return the folder of the scene's project."""
        return self.folder / "project"

    def make(self) -> None:
        """Write the files that exist before the command, into an empty folder."""
        make_project(self.folder)

    def build_command(self) -> Sequence[object]:
        """Return the command line, as Dying.run takes it."""
        raise NotImplementedError

    def build_next_command(self) -> Sequence[object]:
        """Return the command that continues after a kill; by default the killed command itself."""
        return self.build_command()

    def read_state(self) -> Any:
        """Return the state of the folder in a comparable form, without times and randomly drawn names."""
        raise NotImplementedError

    def is_allowed(self, state: Any, before: Any, after: Any) -> bool:
        """Return whether a kill may leave this state; by default only the states before and after the command."""
        return state in (before, after)

    def check_always(self) -> list[str]:
        """Return sentences on faults that no kill may cause, at whatever moment it comes."""
        return find_project_problems(self.project)

    def check_completed(self) -> list[str]:
        """Return sentences on faults after the command has ended without error."""
        return []

    def find_leftovers(self) -> list[str]:
        """Return temporary files and folders, and SQLite's files beside a database that is no longer open."""
        return [
            str(path.relative_to(self.folder))
            for path in sorted(self.folder.rglob("*"))
            if ".part" in path.name or path.name.endswith((".restoring", ".restoring.lock", "-journal", ".unfinished"))
        ]


def make_project(folder: Path, seed: int = 0) -> None:
    """Make a project of small random images, with decisions of every kind by two people."""
    projects.write_noise_images(folder / "images", SCENE_IMAGES, (32, 24))
    db, chance = projects.make_empty_project(folder, SCENE_CLASSES), random.Random(seed)
    for number in range(60):
        image, person = chance.randint(1, SCENE_IMAGES), chance.choice(["Ann", "Bob"])
        if number % 11 == 10:
            decisions.undo(db, person)
            continue
        kind = chance.choice(["label"] * 6 + ["done", "flag", "skip"])
        cell = {"class_id": chance.randint(1, SCENE_CLASSES), "state": chance.choice([1, 1, -1, 0])}
        save_decision(db, f"made-{number}", kind, person, image, **(cell if kind == "label" else {}))
    db.close()


def save_decision(
    db: Database, uuid: str, kind: str = "label", person: str = "Ann", image: int = 1, **more: Any
) -> None:
    """Store one decision, as a page would."""
    cell: dict[str, Any] = {"class_id": 1, "state": 1} if kind == "label" else {}
    decisions.save(db, [Decision(uuid, kind, person, "done" if kind == "done" else "click", image, **cell | more)])


def read_comparable_contents(project: Path) -> dict[str, list[tuple]]:
    """Return all decisions and the tables derived from them, without times and randomly drawn names."""
    with closing(Database(project)) as db:
        queries = {
            "decisions": f"SELECT id, {DECISION_COLUMNS} FROM decision ORDER BY id",
            "labels": "SELECT image_id, class_id, state, decision_id FROM label ORDER BY 1, 2",
            "stages": "SELECT id, stage FROM image ORDER BY id",
            "disagreements": "SELECT image_id, class_id FROM contradiction ORDER BY 1, 2",
            "classes": "SELECT id, name, key, position, archived, merged_into FROM class ORDER BY id",
            "tally": "SELECT kind, one, two, n FROM tally WHERE n != 0 ORDER BY 1, 2, 3",
        }
        return {name: db.tuples(query) for name, query in queries.items()}


def read_decisions(project: Path) -> list[tuple]:
    """Return all decisions as tuples that begin with their uuid."""
    return [(row[1], row[0], *row[2:]) for row in read_database_copy(project / "project.db")["decisions"]]


def read_database_copy(database: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return the schema steps, decisions, labels and images of a project.db without changing it."""
    return database_copies.query_copy(database, _ROW_QUERIES)


def find_project_problems(project: Path) -> list[str]:
    """Return the contradictions between a project's decisions and its derived tables (store/upkeep/consistency.py)."""
    db = Database(project)
    try:
        return consistency.find_problems(db)
    finally:
        db.close()


def compute_digests(folder: Path, leave_out: Sequence[str] = ()) -> dict[str, str]:
    """Return name -> the beginning of the sha256 of each file below a folder; {} if it does not exist."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()[:12]
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in leave_out
    }
