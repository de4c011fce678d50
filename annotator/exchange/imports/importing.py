"""Bringing data in: a source is recognised, read into a staging file, previewed, and stored as one.

    with prepare(project, source, Choices(), by="Ann") as plan:
        print(plan.preview)
        done = plan.apply()

Images come first, batch by batch as registration.py commits them, so that no file is read twice when a killed import is
repeated; labels follow in one transaction. A project that does not exist yet is made as a whole or not at all.

A `progress` is called many times a second with (what is done, how much of it, of how much; 0: not known): fetching,
reading, matching, counting, storing. What it raises ends the import, and so does Ctrl+C: `Plan.is_stored` says whether
the import was stored. If not, the project is as it was, and the next attempt reads only files that were not read yet.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from annotator.errors import AnnotatorError, did_you_mean, several
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents, Item
from annotator.exchange.formats.shared.card_beside import card_path, class_facts
from annotator.exchange.formats.shared.provenance import read_sidecars, sidecars
from annotator.exchange.imports.class_map import read_class_map
from annotator.exchange.imports.folders import Folder, listed, refuse_without_images, registered
from annotator.exchange.imports.origin import Origin, origin_of
from annotator.exchange.sources.landing import settle
from annotator.exchange.sources.source import Paths, Progress
from annotator.settings import DATABASE
from annotator.store.database.database import Database
from annotator.store.database.versions import class_version
from annotator.store.disk.system_errors import told
from annotator.store.images.registration import Registered
from annotator.store.imports import leftovers as unfinished_imports
from annotator.store.imports import staged_cells, staged_names
from annotator.store.imports.commit import Imported, Source, commit
from annotator.store.imports.project_creation import holds_other_things, making
from annotator.store.imports.staged_cells import Preview
from annotator.store.imports.staged_names import Rules
from annotator.store.imports.staging import Staging
from annotator.store.pictures.files import content_of

CONFLICTS = ("keep", "replace")
MATCHING, COUNTING, STORING = "Matching names", "Counting what would change", "Storing"


@dataclass(frozen=True)
class Choices:
    """How a source is brought in.

    Attributes:
        format: Its name; None: recognised.
        images: A folder with the images; None: where the source says, or those that the project has.
        class_map: Which class of the project a name of the source stands for ("": left out), or a file that says so.
        conflicts: Keep: answers of the project stay where the source says something else; replace: they do not.
        exhaustive: The source names all that is present: other classes of it are absent.
        may_be_own: An address may be one of this machine or its network.
    """

    format: str | None = None
    images: Path | None = None
    class_map: Path | Mapping[str, str] | None = None
    conflicts: str = "keep"
    exhaustive: bool = False
    may_be_own: bool = True


@dataclass(frozen=True)
class Done:
    """What an import did. registered: None without images."""

    imported: Imported
    registered: Registered | None


class Plan:
    """An import that is read and can be carried out.

    Attributes:
        format, why: Of what format the source is, and by what it was recognised.
        said: How the source was understood, in sentences.
        preview: What would change.
        is_stored: Whether the import is in the project: also true when it was interrupted after its last moment.
    """

    def __init__(
        self, db: Database, staging: Staging, origin: Origin, choices: Choices, by: str, rules: Rules | None = None
    ):
        self.db, self._staging, self._origin, self._choices, self._by = db, staging, origin, choices, by
        self.format, self.why = origin.format, origin.why
        self.said: Sequence[str] = ()
        self._rules = rules or Rules(_class_map(choices))
        self._staging.names_all = choices.exhaustive
        self._folders: list[Folder] = []
        self._coming: Sequence[str] = ()
        self._held: Mapping[str, int] = {}
        self._resolved_at: tuple[int, int, int] | None = None  # names are matched as of this moment of the project
        self._prefix = ""
        self._source: Source | None = None
        self.is_stored = False
        self.done: Done | None = None
        self.preview: Preview

    @property
    def changes(self) -> bool:
        """Whether anything would change, also among files that are registered."""
        waits = bool(self._origin.fetched and self._origin.fetched.changed)
        return self.preview.changes or waits or any(folder.changes for folder in self._folders)

    @property
    def kept(self) -> Sequence[Path]:
        """Folders of the project with what was unpacked or downloaded and is no part of it before `apply`; the same
        import finds it there again."""
        fetched = self._origin.fetched
        waits = fetched and (fetched.changed or any(folder.new for folder in self._folders))
        return fetched.places if fetched and waits and self.done is None else ()

    def read(self, progress: Progress | None = None, coming: Sequence[str] = ()) -> None:
        """Read the source and work out what it would change. Raises AnnotatorError for all that is wrong with it.

        Args:
            coming: Files that will be registered before it is applied.
        """
        problems = Problems()
        assert self.format.read is not None  # choose_format
        contents = self.format.read(self._origin.path, problems)
        self._staging.place_word, self._staging.note = contents.place, problems.add
        if folders := self._folders_of(contents):
            found = listed(self.db, folders, self.db.paths.project, True, progress)
            # An archive may hold labels only.
            self._held = {file: image_id for folder in found for file, image_id in folder.held.items()}
            left = [one for one in found if one.listing.paths or one.gone or not (self._origin.fetched or one.held)]
            self._folders = left
            if self.db.paths.file != DATABASE and left and not any(folder.new for folder in left):
                refuse_without_images(left[0].path, left[0].listing)
            coming = [file for folder in self._folders for file in folder.new]
        facts = self._add_classes(contents)
        shown = (lambda items: progress("Reading", items, 0)) if progress else None
        self._staging.add(self._items(contents, problems), shown)
        self.reread(coming, problems, progress)
        beside = [f"also read: {path.name}" for path in sidecars(self._origin.path)]
        if facts and (card := card_path(self._origin.path)):
            beside.append(f"also read: {card.name}, for what it says of the classes")
        found = (sentence for folder in self._folders for sentence in folder.said())
        self.said = [*self._origin.said, *contents.said, *beside, *found]

    def _add_classes(self, contents: Contents) -> bool:
        """Stage the classes that the source lists; those of its data card where it lists none. Returns whether a card
        says more of them than their names."""
        listed = dict(contents.classes)
        facts = [one for one in class_facts(self._origin.path) if one.name in listed or not listed]
        said = {one.name: one.description for one in facts}
        self._staging.add_classes(
            [*said.items(), *((name, about) for name, about in listed.items() if name not in said)]
        )
        self._staging.class_facts = {one.name: one for one in facts}
        return bool(facts)

    def _folders_of(self, contents: Contents) -> Paths:
        """The folders with the images; files of items are relative to the first one, after `_prefix`."""
        fetched = self._origin.fetched
        if self._choices.images:
            return [(self._choices.images, None)]
        if fetched:
            root = fetched.folders[0][0]
            self._rules = replace(self._rules, folder=root)
            if contents.folder and contents.folder.is_relative_to(root) and contents.folder != root:
                self._prefix = f"{contents.folder.relative_to(root).as_posix()}/"
            return fetched.folders
        if contents.folder:
            self._rules = replace(self._rules, folder=contents.folder)
            return [(contents.folder, None)]
        return [(self._origin.folder, None)] if self._origin.folder else []

    def reread(self, coming: Sequence[str], problems: Problems | None = None, progress: Progress | None = None) -> None:
        """Work out anew what would change, now that other files are to be registered. Raises AnnotatorError as `read`
        does."""
        self._coming = coming
        self._staging.expect(coming, self._held)
        self._resolve(problems or Problems(), progress)
        self._begin(COUNTING, progress)
        self.preview = staged_cells.preview(self._staging, self.db)
        self._resolved_at = self.db.moment()

    def choose(self, choices: Choices, progress: Progress | None = None) -> None:
        """Work out anew what would change by another class map, or another choice about conflicts or what the source
        names; the source is not read again. Raises AnnotatorError as `read` does; then `choose` comes before `apply`.
        """
        self._choices, self._rules = choices, replace(self._rules, class_map=_class_map(choices))
        self._staging.names_all = choices.exhaustive
        self.reread(self._coming, progress=progress)

    def apply(self, progress: Progress | None = None) -> Done:
        """Carry it out. Raises AnnotatorError where two images are one and the source contradicts itself on it, and
        where names of classes are unclear."""
        self._refuse_unclear()
        for place in self._origin.fetched.places if self._origin.fetched else ():
            settle(place)
        try:
            result, new = self._register(progress) if self._folders else (None, [])
            version = class_version(self.db)
            if self._folders or self._coming or self._resolved_at != self.db.moment():
                self._staging.expect((), self._held)
                self._resolve(Problems(), progress)
                self._refuse_unclear()  # a class may have been archived meanwhile
            is_file = self._origin.path.is_file() and not self._origin.fetched  # archives are large
            digest = content_of(self._origin.path) if is_file else ""
            self._source = Source(self._origin.name, self.format.name, self._by, digest)
            over = self._choices.conflicts == "replace"
            self._begin(STORING, progress)
            imported = commit(self._staging, self.db, self._source, replace=over, new_images=new, version=version)
        finally:
            query = "SELECT 1 FROM import WHERE uuid = ?"
            self.is_stored = self._source is not None and self.db.value(query, [self._source.uuid]) is not None
            if self._folders and self.db.paths.file == DATABASE:
                (unfinished_imports.end if self.is_stored else unfinished_imports.withdraw)(self.db)
        self.done = Done(imported, result)
        return self.done

    def _refuse_unclear(self) -> None:
        if self._staging.unclear:
            why = [f"{why} (say what {name!r} is by a class map)" for name, why in self._staging.unclear.items()]
            raise several(f"{self._origin.name} cannot be imported, and nothing was stored:", why)

    def _begin(self, what: str, progress: Progress | None) -> None:
        """The next step is done by statements of SQLite, of which nobody knows how long they take."""
        self._staging.beat = (lambda: progress(what, 0, 0)) if progress else (lambda: None)
        self._staging.beat()

    def _items(self, contents: Contents, problems: Problems) -> Iterator[Item]:
        path_of = self._origin.fetched.path_of if self._origin.fetched else None
        names_all = False
        for item in contents.items:
            names_all |= item.exhaustive
            if self._choices.images:
                item.file = ""
            elif path_of:
                item.file = path_of(str(item.place))
            elif item.file:
                item.file = self._prefix + item.file
            yield item
        # It names all of its own classes, such as the chosen columns of a table: no other ones may become absent.
        listed = {name for name, _ in contents.classes} if names_all else set()
        for item in read_sidecars(self._origin.path, problems):
            item.answered = False  # it says who gave an answer, not what else there is
            if listed:
                item.labels = [given for given in item.labels if given.class_name in listed]
            yield item

    def _resolve(self, problems: Problems, progress: Progress | None) -> None:
        self._begin(MATCHING, progress)
        staged_names.resolve(self._staging, self.db, self._rules, problems.add)
        if not problems.count:
            staged_cells.build(self._staging, self.db, problems.add)
        if problems.count:
            raise problems.error(f"{self._origin.name} cannot be imported, and no label was stored:")

    def _register(self, progress: Progress | None) -> tuple[Registered, list[int]]:
        """Register the images; returns the ids of those that are new, also to an import that was killed before."""
        is_new = self.db.paths.file != DATABASE  # all images of a new project came with the import
        if not is_new:
            unfinished_imports.begin(self.db, [folder.path for folder in self._folders])
        shown = (lambda done, of: progress("Reading images", done, of)) if progress else None
        result = registered(self.db, self._folders, shown)
        if is_new:
            return result, [row[0] for row in self.db.tuples("SELECT id FROM image ORDER BY id")]
        return result, unfinished_imports.new_images(self.db)


def _class_map(choices: Choices) -> Mapping[str, str]:
    return read_class_map(choices.class_map) if isinstance(choices.class_map, Path) else choices.class_map or {}


class _NotAppliedError(Exception):
    """A new project was previewed and not made."""


@contextmanager
def prepare(
    project: Path, source: Path | str, choices: Choices, by: str, progress: Progress | None = None, name: str = ""
) -> Generator[Plan]:
    """A plan, ready to be applied. Where there is no project yet, one is made when it is applied.

    Args:
        source: A path or an address; an archive is unpacked and an address downloaded here (sources/), so that a plan
            that is not applied leaves files in the project's folder, with which the next one goes on.
        by: Who imports, for the history.
        name: What messages and the history call the source; "": its path or address.

    Raises:
        AnnotatorError: For a source that cannot be read or is of no known format, with all that is wrong with it.
    """
    if choices.conflicts not in CONFLICTS:
        raise AnnotatorError(
            f"--conflicts cannot be {choices.conflicts!r}. {did_you_mean(choices.conflicts, CONFLICTS)}"
        )

    def find() -> Origin:
        return _named(origin_of(project, source, choices.format, progress, choices.may_be_own), name)

    try:
        with told(), ExitStack() as stack:
            if (project / "project.db").exists():
                db = Database(project)
                stack.callback(db.close)
                db.refuse_read_only()
                unfinished_imports.recover(db)
                origin = find()
            else:
                refuse_other_things(project)
                origin = find()
                db = stack.enter_context(making(project, _folder_of_new(project, origin, choices)))
            staging = stack.enter_context(Staging(db.paths.project, lambda sentence: None))
            plan = Plan(db, staging, origin, choices, by)
            plan.read(progress)
            yield plan
            if plan.done is None and not (project / "project.db").exists():
                raise _NotAppliedError
    except _NotAppliedError:
        pass


def _named(origin: Origin, name: str) -> Origin:
    return replace(origin, name=name) if name else origin


def refuse_other_things(project: Path) -> None:
    """Raises AnnotatorError where a new project cannot be made in this folder."""
    if project.exists() and (not project.is_dir() or holds_other_things(project)):
        raise AnnotatorError(
            f"{project} holds other things already and is not a project. Give a new folder's name, or an empty one."
        )


def _folder_of_new(project: Path, origin: Origin, choices: Choices) -> Path:
    """The folder with the images of a new project. Raises AnnotatorError where there is none."""
    assert origin.format.read is not None
    if origin.fetched:
        with_images = [one.path for one in listed(None, origin.fetched.folders, project, True) if one.new]
        folder = choices.images or next(iter(with_images), None)
    else:
        folder = choices.images or origin.format.read(origin.path, Problems()).folder or origin.folder
    if folder is None:
        raise AnnotatorError(
            f"There is no project in {project}, and {origin.name} brings no images to make one of. "
            f"Say where they are: annotator import {project} {origin.name} --images FOLDER"
        )
    return folder
