"""The projects to serve, with their names, ports and problems."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.store.database.database import Database
from annotator.store.imports import unfinished_projects
from annotator.store.pictures.files import unescape_path

SAFE_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]*")
RESERVED_NAMES = ("open", "start")  # first parts of addresses of the start page itself
# setting of a project: cookies name the port, so it stays the same from one start to the next
PORT_SETTING = "home_port"
ARCHIVED_SETTING = "home_archived"  # setting of a project


@dataclass
class HostedProject:
    """One project to serve."""

    # folder name, used in URLs
    name: str
    path: Path
    port: int = 0
    # None if unusable
    db: Database | None = None
    # why it is unusable, or ""
    trouble: str = ""


@dataclass
class HostedProjects:
    """All projects, including unusable ones."""

    all: list[HostedProject] = field(default_factory=list[HostedProject])

    @property
    def openable(self) -> list[HostedProject]:
        return [place for place in self.all if place.db is not None]


def find_projects(paths: Sequence[Path]) -> HostedProjects:
    """Return the projects in these folders, usable or not. Raises AnnotatorError for missing or repeated folders."""
    folders = [folder for path in paths for folder in _find_project_folders(path)]
    places = [open_project(folder) for folder in dict.fromkeys(folders)]
    names = [place.name.lower() for place in places]
    if twice := sorted({place.name for place in places if names.count(place.name.lower()) > 1}):
        raise AnnotatorError(
            f"Two projects are called {', '.join(twice)}, and their addresses would be the same: "
            f"{', '.join(str(place.path) for place in places if place.name in twice)}.\n    Rename one of the folders."
        )
    return HostedProjects(places)


def check_name(name: str, places: Iterable[HostedProject]) -> None:
    """Raise AnnotatorError if the name is taken or not valid in URLs."""
    if not SAFE_NAME_PATTERN.fullmatch(name) or name.lower() in RESERVED_NAMES or name.startswith("."):
        raise AnnotatorError(
            f"A project cannot be called {name!r}: its name is part of its address. Use letters without accents, "
            "digits and . _ ~ - only, and begin with a letter or digit."
        )
    if any(place.name.lower() == name.lower() for place in places):
        raise AnnotatorError(f"There is a project called {name} already. Choose another name, or open that one.")


def choose_free_name(wanted: str, places: Iterable[HostedProject], folder: Path) -> str:
    """Return a valid, free name for a new project, numbered if necessary."""
    name = re.sub(r"[^A-Za-z0-9._~-]+", "-", wanted).strip("-._~")[:60] or "project"
    taken = {place.name.lower() for place in places} | set(RESERVED_NAMES)
    numbered = (name if number == 1 else f"{name}-{number}" for number in range(1, 10_000))
    return next(
        one
        for one in numbered
        if one.lower() not in taken and (not (folder / one).exists() or unfinished_projects.is_attempt(folder / one))
    )


def is_archived(place: HostedProject) -> bool:
    return place.db is not None and place.db.get_setting(ARCHIVED_SETTING) is True


def assign_ports(places: Iterable[HostedProject], first: int, is_free: Callable[[int], bool]) -> None:
    """Give each project its previous or the next free port."""
    good = [place for place in places if place.db is not None]
    had = {place.name: place.db.get_setting(PORT_SETTING) for place in good if place.db}
    used: set[int] = set()
    for place in good:
        port = had[place.name]
        if isinstance(port, int) and first <= port < 65536 and port not in used:
            place.port = port
            used.add(port)
    for place in good:
        if not place.port:
            place.port = next((port for port in range(first, 65536) if port not in used and is_free(port)), 0)
            used.add(place.port)
            assert place.db is not None
            place.db.set_setting(PORT_SETTING, place.port)


def _find_project_folders(path: Path) -> list[Path]:
    if (path / "project.db").is_file():
        return [path.resolve()]
    if not path.is_dir():
        raise AnnotatorError(f"There is no folder {path}. Is the path spelled right?")
    return sorted(inner.resolve() for inner in path.iterdir() if (inner / "project.db").is_file())


def open_project(folder: Path) -> HostedProject:
    """Open the project in a folder. If unusable, `trouble` has the reason."""
    name = unescape_path(folder.name)
    if not SAFE_NAME_PATTERN.fullmatch(name) or name in RESERVED_NAMES:
        why = f"Its name {name!r} cannot be part of an address: letters, digits and . _ ~ - can. Rename the folder."
        return HostedProject(name, folder, trouble=why)
    try:
        db = Database(folder)
        db.check_writable()
    except AnnotatorError as error:
        return HostedProject(name, folder, trouble=str(error))
    return HostedProject(name, folder, db=db)
