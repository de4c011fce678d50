"""Bringing data in: a source is recognised, read into a staging file, previewed, and stored as one.

    with prepare(project, source, Choices(), by="Ann") as plan:
        print(plan.preview)
        done = plan.apply()

Images come first, batch by batch as registration.py commits them, so that a killed import goes on where it was; labels
follow in one transaction. A project that does not exist yet is made as a whole or not at all.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from annotator.errors import AnnotatorError, did_you_mean, several
from annotator.exchange.formats import all_formats, find_format
from annotator.exchange.formats.class_map import read_class_map
from annotator.exchange.formats.contents import Contents, Item, Problems
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.provenance import read_sidecars, sidecars
from annotator.settings import DATABASE
from annotator.store import staged_cells, staged_names
from annotator.store.database import Database
from annotator.store.files import Listing, content_of, escaped, list_files
from annotator.store.import_commit import Imported, Source, commit
from annotator.store.imports import taken_back_images
from annotator.store.registration import Registered, register
from annotator.store.staged_cells import Preview
from annotator.store.staged_names import Rules
from annotator.store.staging import Staging
from annotator.store.unfinished import holds_other_things, making
from annotator.store.versions import class_version

CONFLICTS = ("keep", "replace")
BEGUN = "import_begun"  # setting: the source whose images are being registered, and the last image before them

Progress = Callable[[str, int, int], None]
"""Called with what is done, how much of it, and of how much (0: not known); what it raises ends the work."""


@dataclass(frozen=True)
class Choices:
    """How a source is brought in.

    format       its name; None: recognised
    images       a folder with the images; None: where the source says, or those that the project has
    class_map    a file that says which class of the project a name of the source stands for
    conflicts    keep: answers of the project stay where the source says something else; replace: they do not
    exhaustive   the source names all that is present: other classes of it are absent
    """

    format: str | None = None
    images: Path | None = None
    class_map: Path | None = None
    conflicts: str = "keep"
    exhaustive: bool = False


@dataclass(frozen=True)
class Done:
    """What an import did. registered: None without images."""

    imported: Imported
    registered: Registered | None


class Plan:
    """An import that is read and can be carried out.

    format, why    of what format the source is, and by what it was recognised
    said           how the source was understood, in sentences
    preview        what would change
    """

    def __init__(
        self, db: Database, staging: Staging, source: Path, choices: Choices, by: str, rules: Rules | None = None
    ):
        self.db, self._staging, self._source, self._choices, self._by = db, staging, source, choices, by
        self.format, self.why = choose_format(source, choices.format)
        self.said: Sequence[str] = ()
        self._folder: Path | None = choices.images
        self._rules = rules or Rules(read_class_map(choices.class_map) if choices.class_map else {})
        self._listing = Listing([], [])
        self.done: Done | None = None
        self.preview: Preview

    def read(self, progress: Progress | None = None, coming: Sequence[str] = ()) -> None:
        """Read the source and work out what it would change. Raises AnnotatorError for all that is wrong with it.

        coming    files that will be registered before it is applied
        """
        problems = Problems()
        assert self.format.read is not None  # choose_format
        contents = self.format.read(self._source, problems)
        self._staging.place_word, self._staging.note = contents.place, problems.add
        if contents.folder and not self._folder:
            self._folder = contents.folder
            self._rules = replace(self._rules, folder=contents.folder)
        self._staging.add_classes(contents.classes)
        shown = (lambda items: progress("Reading", items, 0)) if progress else None
        self._staging.add(self._items(contents, problems), shown)
        self.reread(self._list(self._folder) if self._folder else coming, problems)
        self.said = [*contents.said, *(f"also read: {path.name}" for path in sidecars(self._source))]

    def reread(self, coming: Sequence[str], problems: Problems | None = None) -> None:
        """Work out anew what would change, now that other files are to be registered. Raises AnnotatorError as `read`
        does."""
        self._staging.expect(coming)
        self._resolve(problems or Problems())
        self.preview = staged_cells.preview(self._staging, self.db)

    def apply(self, progress: Progress | None = None) -> Done:
        """Carry it out. Raises AnnotatorError where two images are one and the source contradicts itself on it."""
        registered, new = None, []
        if self._folder:
            registered, new = self._register(self._folder, progress)
            self._staging.expect(())
        if progress:
            progress("Storing", 0, 0)
        version = class_version(self.db)
        problems = Problems()
        self._resolve(problems)
        digest = content_of(self._source) if self._source.is_file() else ""
        source = Source(str(self._source.resolve()), self.format.name, self._by, digest)
        over = self._choices.conflicts == "replace"
        imported = commit(self._staging, self.db, source, replace=over, new_images=new, version=version)
        if registered and self.db.paths.file == DATABASE:
            self.db.set_setting(BEGUN, None)
        self.done = Done(imported, registered)
        return self.done

    def _items(self, contents: Contents, problems: Problems) -> Iterator[Item]:
        for item in contents.items:
            if self._choices.images:
                item.file = ""
            item.exhaustive |= self._choices.exhaustive and item.answered
            yield item
        yield from read_sidecars(self._source, problems)

    def _resolve(self, problems: Problems) -> None:
        staged_names.resolve(self._staging, self.db, self._rules, problems.add)
        if not problems.count:
            staged_cells.build(self._staging, self.db, problems.add)
        if problems.count:
            raise problems.error(f"{self._source} cannot be imported, and no label was stored:")

    def _list(self, folder: Path) -> list[str]:
        """List the folder; returns the image files that registration would add."""
        rows = self.db.tuples(
            "SELECT f.path FROM file f JOIN folder d ON d.id = f.folder_id WHERE d.path = ?",
            [escaped(str(folder.resolve()))],
        )
        known, listing = {row[0] for row in rows}, list_files(folder, leave_out=self.db.paths.project)
        if not known:  # what else lies in a data set is no image that was skipped
            listing = Listing(listing.images(), listing.kept_out)
        self._listing = listing
        return [path for path in listing.images() if path not in known]

    def _register(self, folder: Path, progress: Progress | None) -> tuple[Registered, list[int]]:
        """Register the images; returns the ids of those that are new, also to an import that was killed before."""
        name, last = str(self._source.resolve()), 0
        if self.db.paths.file == DATABASE:  # all images of a new project came with the import
            last = self.db.value("SELECT coalesce(max(id), 0) FROM image")
            begun = self.db.setting(BEGUN)
            if begun and begun["source"] == name:
                last = min(last, begun["after"])
            self.db.set_setting(BEGUN, {"source": name, "after": last})
        before = taken_back_images(self.db)
        shown = (lambda done, of: progress("Reading images", done, of)) if progress else None
        registered = register(self.db, folder, self._listing.paths, shown, self._listing.kept_out)
        back = before - taken_back_images(self.db)
        rows = self.db.tuples(
            """SELECT DISTINCT image_id FROM file f JOIN folder d ON d.id = f.folder_id
            WHERE d.path = ? AND image_id > ?""",
            [escaped(str(folder.resolve())), last],
        )
        return registered, sorted({row[0] for row in rows} | back)


class _NotAppliedError(Exception):
    """A new project was previewed and not made."""


@contextmanager
def prepare(
    project: Path, source: Path, choices: Choices, by: str, progress: Progress | None = None
) -> Generator[Plan]:
    """A plan, ready to be applied. Where there is no project yet, one is made when it is applied.

    by    who imports, for the history

    Raises AnnotatorError for a source that cannot be read or is of no known format, with all that is wrong with it.
    """
    if choices.conflicts not in CONFLICTS:
        raise AnnotatorError(
            f"--conflicts cannot be {choices.conflicts!r}. {did_you_mean(choices.conflicts, CONFLICTS)}"
        )
    if not source.exists():
        raise AnnotatorError(f"There is nothing at {source} to import. Is the path spelled right?")
    format_, _ = choose_format(source, choices.format)
    try:
        with ExitStack() as stack:
            if (project / "project.db").exists():
                db = Database(project)
                db.refuse_read_only()
            else:
                db = stack.enter_context(making(project, _folder_of_new(project, source, format_, choices)))
            staging = stack.enter_context(Staging(db.paths.project, lambda sentence: None))
            plan = Plan(db, staging, source, choices, by)
            plan.read(progress)
            yield plan
            if plan.done is None and not (project / "project.db").exists():
                raise _NotAppliedError
    except _NotAppliedError:
        pass


def choose_format(source: Path, name: str | None) -> tuple[Format, str]:
    """The format of a source, and why. Raises AnnotatorError where none or several fit."""
    if name is not None:
        return find_format(name, "read"), "as you say"
    readable = {format_.name: format_ for format_ in all_formats().values() if format_.read}
    found = [
        (format_, why) for format_ in readable.values() if format_.recognise and (why := format_.recognise(source))
    ]
    if not found and source.suffix.lower() in (".csv", ".tsv"):
        return readable[source.suffix.lower()[1:]], "by its name"  # whose reader says which columns it needs
    if not found:
        raise AnnotatorError(
            f"{source} is of no format that is known. Known are: {', '.join(readable)}. Name one with --format."
        )
    if len(found) > 1:
        fits = [f"{format_.name}: {why}" for format_, why in found]
        raise several(f"{source} fits several formats. Say which with --format:", fits)
    return found[0]


def _folder_of_new(project: Path, source: Path, format_: Format, choices: Choices) -> Path:
    """The folder with the images of a new project. Raises AnnotatorError where there is none."""
    if project.exists() and (not project.is_dir() or holds_other_things(project)):
        raise AnnotatorError(
            f"{project} holds other things already and is not a project. Give a new folder's name, or an empty one."
        )
    assert format_.read is not None
    folder = choices.images or format_.read(source, Problems()).folder
    if folder is None:
        raise AnnotatorError(
            f"There is no project in {project}, and {source} brings no images to make one of. "
            f"Say where they are: annotator import {project} {source} --images FOLDER"
        )
    return folder
