"""Import of a source: recognize, read into a staging file, preview, and store all or nothing.

    with prepare_import(project, source, ImportOptions(), by="Ann") as plan:
        print(plan.preview)
        done = plan.apply()

Images are committed first in batches, so a repeated import reads no file twice. Labels follow in one transaction.

`progress` receives (step, done, total), total 0 if unknown. Its exceptions and Ctrl+C cancel the import, and
`ImportPlan.is_stored` tells whether it was stored.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from annotator.errors import AnnotatorError, combine_problems, did_you_mean
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents, Item
from annotator.exchange.formats.images_only import IMAGES
from annotator.exchange.formats.keywords import KEYWORDS
from annotator.exchange.formats.shared.data_card_reader import find_card, read_class_facts
from annotator.exchange.formats.shared.sidecars import find_sidecars, read_sidecars
from annotator.exchange.imports.class_map import read_class_map
from annotator.exchange.imports.image_folders import (
    ListedFolder,
    check_has_images,
    check_usable_images,
    list_folders,
    register_folders,
)
from annotator.exchange.imports.import_checks import check_no_open_questions, explain_missing_answers
from annotator.exchange.imports.joined_contents import join_contents
from annotator.exchange.imports.label_files import read_label_file
from annotator.exchange.imports.located_source import LocatedSource, locate_source, relocate_source
from annotator.exchange.imports.unread_keywords import describe_unread_keywords
from annotator.exchange.reading.field_roles import FieldRole, shorten_roles
from annotator.exchange.reading.reading_file import format_reading_options
from annotator.exchange.reading.reading_options import NONE_VALUE, Interpretation, ReadingOptions, has_facts_only
from annotator.exchange.sources.fetch_folder import apply_changed_images
from annotator.exchange.sources.source import FolderPaths
from annotator.progress_callbacks import StepCallback
from annotator.settings import DATABASE_FILE
from annotator.store.database.database import Database
from annotator.store.database.versions import get_class_version
from annotator.store.disk.system_errors import translate_system_errors
from annotator.store.images import name_matching
from annotator.store.images.registration import RegistrationResult
from annotator.store.imports import staged_cells, staged_names, unfinished_imports
from annotator.store.imports.commit import ImportResult, ImportSource, commit_import
from annotator.store.imports.project_creation import create_project, has_other_files
from annotator.store.imports.staged_cells import ImportPreview
from annotator.store.imports.staged_names import NameRules
from annotator.store.imports.staging import Staging
from annotator.store.locations.addresses import Address
from annotator.store.pictures.files import compute_sha256

CONFLICT_MODES = ("keep", "replace")
MATCHING_STEP, COUNTING_STEP, STORING_STEP = "Matching names", "Counting what would change", "Storing"
MAX_OPTION_CHARS = 1000  # of an option that the import records


@dataclass(frozen=True)
class ImportOptions:
    """The options of an import."""

    # format name. None recognizes it
    format: str | None = None
    # image folder. None selects images of source or project
    images: Path | None = None
    # project class by source name ("" omits it), or a file
    class_map: Path | Mapping[str, str] | None = None
    # "keep" or "replace" the project's answers
    conflicts: str = "keep"
    # unnamed classes are absent
    exhaustive: bool = False
    # allow URLs of this machine and network
    may_be_own: bool = True
    reading: ReadingOptions = field(default_factory=ReadingOptions)


@dataclass(frozen=True)
class ImportOutcome:
    """The result of an import. `registered` is None without images."""

    imported: ImportResult
    registered: RegistrationResult | None
    # answers of the preview whose images could not be read
    unread: int = 0


class ImportPlan:
    """An import whose source was read, ready to be stored by `apply`.

    Attributes:
        interpretations: Decisions about meaning. Unsure ones must be resolved before `apply`.
        roles: What each field of a table is read as.
        samples: First items as labels, such as "a.jpg: fox present".
        interpretation_by_field: All decisions, including the user's.
        is_stored: Also true if interrupted after storing.
    """

    def __init__(
        self,
        db: Database,
        staging: Staging,
        origin: LocatedSource,
        choices: ImportOptions,
        by: str,
        rules: NameRules | None = None,
    ):
        self.db, self._staging, self._origin, self._choices, self._by = db, staging, origin, choices, by
        self.format, self.why = origin.format, origin.why
        self.sentences: list[str] = []
        self.interpretations: Sequence[Interpretation] = ()
        self.roles: Sequence[FieldRole] = ()
        self.samples: Sequence[str] = ()
        self.interpretation_by_field: dict[str, Interpretation] = {}
        self._rules = replace(rules or NameRules(_load_class_map(choices)), match=choices.reading.match)
        self._staging.names_all = choices.exhaustive
        self._folders: list[ListedFolder] = []
        self._coming_files: Sequence[str] = ()
        self._duplicate_files: Mapping[str, int] = {}
        self._resolved_at: tuple[int, int, int] | None = None  # moment of the project at which names were matched
        self._prefix = ""
        self._source: ImportSource | None = None
        self.is_stored = False
        self.done: ImportOutcome | None = None
        self.preview: ImportPreview

    @property
    def has_changes(self) -> bool:
        waits = bool(self._origin.fetched and self._origin.fetched.changed)
        return self.preview.has_changes or waits or any(folder.has_changes for folder in self._folders)

    @property
    def open_questions(self) -> Sequence[Interpretation]:
        return [one for one in self.interpretations if not one.is_sure]

    @property
    def has_no_answers(self) -> bool:
        """Return whether the source has rows without any answer, field or note."""
        preview = self.preview
        is_table = any(one.field in ("label_columns", "class_columns", "image_column") for one in self.interpretations)
        counts = (
            0 if is_table else preview.attributes_new + preview.attributes_other.count,
            preview.answers_new,
            preview.answers_known,
            preview.completed,
            preview.conflicts_with_people.count,
            preview.conflicts_with_imports.count,
            preview.remarks_new,
            preview.event_labels,
        )
        is_told = self._choices.reading.labels == NONE_VALUE or has_facts_only(self._choices.reading)
        return bool(self._staging.items) and not any(counts) and not is_told and self.format is not IMAGES

    @property
    def kept_folders(self) -> Sequence[Path]:
        """Return folders with fetched files of an import that was not applied. The same import uses them again."""
        fetched = self._origin.fetched
        waits = fetched and (fetched.changed or any(folder.new for folder in self._folders))
        return fetched.fetch_folders if fetched and waits and self.done is None else ()

    def read_source(self, progress: StepCallback | None = None, coming: Sequence[str] = ()) -> None:
        """Read the source and compute the preview. Raises AnnotatorError that lists all problems.

        `coming` are files that will be registered before `apply`.
        """
        problems = Problems()
        contents = self._read_contents(problems)
        self._keep_interpretations(contents)
        self._staging.place_word, self._staging.note = contents.place, problems.add
        folders = self._find_folders(contents)
        is_one = self._origin.path.is_file() and not self._origin.other_paths
        beside = self._origin.path.parent.resolve() if is_one else None
        root = folders[0][0] if folders else self._rules.origin.root
        self._rules = replace(self._rules, origin=name_matching.NameOrigin(beside, root))
        self._staging.set_original_names(self._origin.fetched.renamed if self._origin.fetched else {})
        if folders:
            found = list_folders(self.db, folders, self.db.paths.project, True, progress)
            # A folder without files is left out if it was fetched (labels only) or if all of its images are known.
            self._duplicate_files = {file: image_id for folder in found for file, image_id in folder.duplicates.items()}
            left = [
                one for one in found if one.listing.paths or one.missing or not (self._origin.fetched or one.duplicates)
            ]
            self._folders = left
            if self.db.paths.file != DATABASE_FILE and left and not any(folder.new for folder in left):
                check_has_images(left[0].path, left[0].listing)
            coming = [file for folder in self._folders for file in folder.new]
        facts = self._add_classes(contents)
        shown = (lambda done, of: progress("Reading", done, of)) if progress else None
        self._staging.add(self._iter_items(contents, problems), shown)
        # again: a reader may decide when it has read all
        self._keep_interpretations(contents)
        self.roles = contents.roles
        self.samples = self._staging.format_samples()
        self.update_preview(coming, problems, progress)
        also = [f"also read: {path.name}" for path in find_sidecars(self._origin.path)]
        if facts and (card := find_card(self._origin.path)):
            also.append(f"also read: {card.name}, for what it says of the classes")
        found = (sentence for folder in self._folders for sentence in folder.format_sentences())
        self.sentences = [*self._origin.sentences, *contents.sentences, *also, *found]
        if self.format is not KEYWORDS:
            self.sentences += [said for folder in self._folders for said in describe_unread_keywords(folder)]

    def _keep_interpretations(self, contents: Contents) -> None:
        self.interpretations = [*self._origin.interpretations, *contents.interpretations]
        self.interpretation_by_field |= {one.field: one for one in self.interpretations}

    def _read_contents(self, problems: Problems) -> Contents:
        reading = self._choices.reading
        declared = (*(reading.accepted_names or ()), *self._rules.class_map)  # a class map says what each name is
        reading = replace(reading, accepted_names=declared)
        files = [self._origin.path, *self._origin.other_paths]
        each = [read_label_file(self.format, file, problems, reading) for file in files]
        return each[0] if len(each) == 1 else join_contents(files, each, self._origin.folder)

    def _add_classes(self, contents: Contents) -> bool:
        """Stage the classes that the source lists, and return whether a data card describes them."""
        listed = dict(contents.classes)
        facts = [one for one in read_class_facts(self._origin.path) if one.name in listed or not listed]
        said = {one.name: one.description for one in facts}
        self._staging.add_classes(
            [*said.items(), *((name, about) for name, about in listed.items() if name not in said)]
        )
        self._staging.class_facts = {one.name: one for one in facts}
        return bool(facts)

    def _find_folders(self, contents: Contents) -> FolderPaths:
        """Return the image folders. Files of items are relative to the first one, after `_prefix` is added."""
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

    def update_preview(
        self, coming: Sequence[str], problems: Problems | None = None, progress: StepCallback | None = None
    ) -> None:
        """Compute the preview again, with `coming` as the files that will be registered before `apply`."""
        self._coming_files = coming
        self._staging.set_coming_files(coming, self._duplicate_files)
        self._match_names(problems or Problems(), progress)
        self._report_step(COUNTING_STEP, progress)
        self.preview = staged_cells.compute_preview(self._staging, self.db)
        self._resolved_at = self.db.get_change_key()

    def change_options(self, choices: ImportOptions, progress: StepCallback | None = None) -> None:
        """Compute the preview again for other options, which may read the source again.

        After AnnotatorError, call it again before `apply`.
        """
        is_other = choices.reading != self._choices.reading
        self._choices = choices
        self._rules = replace(self._rules, class_map=_load_class_map(choices), match=choices.reading.match)
        self._staging.names_all = choices.exhaustive
        if is_other:
            self._origin = relocate_source(self._origin, choices.format, choices.reading)
            self.format, self.why = self._origin.format, self._origin.why
            self._staging.clear()
            self.read_source(progress)
        else:
            self.update_preview(self._coming_files, progress=progress)

    def apply(self, progress: StepCallback | None = None) -> ImportOutcome:
        """Register the images and store the labels.

        Raises AnnotatorError for unclear classes, or equal images with contradictory labels.
        """
        self._check_class_names()
        self._check_no_open_questions()
        for place in self._origin.fetched.fetch_folders if self._origin.fetched else ():
            apply_changed_images(place)
        try:
            result, new = self._register_images(progress) if self._folders else (None, [])
            version = get_class_version(self.db)
            without = self._staging.count_answers_without_image()
            if self._folders or self._coming_files or self._resolved_at != self.db.get_change_key():
                self._staging.set_coming_files((), self._duplicate_files)
                self._match_names(Problems(), progress)
                self._check_class_names()  # a class may have been archived meanwhile
            is_file = self._origin.path.is_file() and not self._origin.fetched  # archives may be too large to hash
            digest = compute_sha256(self._origin.path) if is_file else ""
            self._source = ImportSource(self._origin.name, self.format.name, self._by, digest, self._describe_reading())
            over = self._choices.conflicts == "replace"
            self._report_step(STORING_STEP, progress)
            imported = commit_import(
                self._staging, self.db, self._source, replace=over, new_images=new, version=version
            )
        finally:
            query = "SELECT 1 FROM import WHERE uuid = ?"
            self.is_stored = self._source is not None and self.db.value(query, [self._source.uuid]) is not None
            if self._folders and self.db.paths.file == DATABASE_FILE:
                (unfinished_imports.end if self.is_stored else unfinished_imports.withdraw)(self.db)
        self.done = ImportOutcome(imported, result, self._staging.count_answers_without_image() - without)
        return self.done

    def _describe_reading(self) -> dict[str, Any]:
        words = format_reading_options(self.interpretations, self._choices.reading)
        options = [word if len(word) <= MAX_OPTION_CHARS else f"{word[:MAX_OPTION_CHARS]}…" for word in words]
        return {"options": options, "fields": [[one.field, one.role, one.why] for one in shorten_roles(self.roles)]}

    def _check_no_open_questions(self) -> None:
        check_no_open_questions(self._origin.name, self.open_questions)
        if self.has_no_answers:
            raise AnnotatorError(explain_missing_answers(self._origin.name, self.preview))

    def _check_class_names(self) -> None:
        if self._staging.unclear:
            why = [f"{why} (say what {name!r} is by a class map)" for name, why in self._staging.unclear.items()]
            raise combine_problems(f"{self._origin.name} cannot be imported, and nothing was stored:", why)

    def _report_step(self, step: str, progress: StepCallback | None) -> None:
        """Report a step now and repeatedly while its SQLite statements run."""
        self._staging.beat = (lambda: progress(step, 0, 0)) if progress else (lambda: None)
        self._staging.beat()

    def _iter_items(self, contents: Contents, problems: Problems) -> Iterator[Item]:
        path_of = self._origin.fetched.find_path if self._origin.fetched else None
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
        # An exhaustive source names all of its own classes, such as the chosen columns: no others may become absent.
        listed = {name for name, _ in contents.classes} if names_all else set()
        for item in read_sidecars(self._origin.path, problems):
            item.answered = False  # a sidecar says who gave answers, not that others are absent
            if listed:
                item.labels = [given for given in item.labels if given.class_name in listed]
            yield item

    def _match_names(self, problems: Problems, progress: StepCallback | None) -> None:
        self._report_step(MATCHING_STEP, progress)
        staged_names.resolve_names(self._staging, self.db, self._rules, problems.add)
        if not problems.count:
            staged_cells.build(self._staging, self.db, problems.add)
        if problems.count:
            raise problems.error(f"{self._origin.name} cannot be imported, and no label was stored:")

    def _register_images(self, progress: StepCallback | None) -> tuple[RegistrationResult, list[int]]:
        is_new = self.db.paths.file != DATABASE_FILE  # all images of a new project came with the import
        if not is_new:
            unfinished_imports.begin(self.db, [folder.path for folder in self._folders])
        shown = (lambda done, of: progress("Reading images", done, of)) if progress else None
        result = register_folders(self.db, self._folders, shown)
        if is_new:
            check_usable_images(self._origin.name, result)
            return result, [row[0] for row in self.db.tuples("SELECT id FROM image ORDER BY id")]
        return result, unfinished_imports.load_new_image_ids(self.db)


def _load_class_map(choices: ImportOptions) -> Mapping[str, str]:
    return read_class_map(choices.class_map) if isinstance(choices.class_map, Path) else choices.class_map or {}


class _NotAppliedError(Exception):
    """An internal error that undoes the creation of a project whose import was only previewed."""


@contextmanager
def prepare_import(
    project: Database | Path,
    source: Address | Path,
    choices: ImportOptions,
    by: str,
    progress: StepCallback | None = None,
    name: str = "",
) -> Generator[ImportPlan]:
    """Yield a plan to apply, which creates a missing project.

    Archives are unpacked and URLs downloaded now. Without `apply`, these files stay for the next plan.

    Args:
        by: Annotator for the history.
        name: Source name in messages. "" selects path or URL.

    Raises:
        AnnotatorError: Lists all problems of the source.
    """
    if choices.conflicts not in CONFLICT_MODES:
        raise AnnotatorError(
            f"--conflicts cannot be {choices.conflicts!r}. {did_you_mean(choices.conflicts, CONFLICT_MODES)}"
        )

    folder = project.paths.project if isinstance(project, Database) else project

    def find() -> LocatedSource:
        origin = locate_source(folder, source, choices.format, progress, choices.may_be_own, choices.reading)
        origin = _rename_origin(origin, name)
        _check_no_predictions(folder, origin)
        return origin

    try:
        with translate_system_errors(), ExitStack() as stack:
            if isinstance(project, Database) or (folder / DATABASE_FILE).exists():
                opened = project.lend() if isinstance(project, Database) else closing(Database(folder))
                db = stack.enter_context(opened)
                db.check_writable()
                unfinished_imports.recover(db)
                origin = find()
            else:
                check_project_folder(folder)
                origin = find()
                db = stack.enter_context(create_project(folder, _find_new_project_folder(folder, origin, choices)))
            staging = stack.enter_context(Staging(db.paths.project, lambda sentence: None))
            plan = ImportPlan(db, staging, origin, choices, by)
            plan.read_source(progress)
            yield plan
            if plan.done is None and not (folder / DATABASE_FILE).exists():
                raise _NotAppliedError
    except _NotAppliedError:
        pass


def _check_no_predictions(project: Path, origin: LocatedSource) -> None:
    """Raise AnnotatorError if the source has only predictions, because scores are never labels."""
    if by := origin.format.predicted_by:
        raise AnnotatorError(
            f"{origin.name} holds predictions of {by} ({origin.format.name}) and no answers of people, so there is "
            "nothing to import as labels, and nothing was stored.\n    Bring them in as predictions: annotator "
            f"predictions {project} {origin.path} --name NAME (--scores-as NAME here does the same)"
        )


def _rename_origin(origin: LocatedSource, name: str) -> LocatedSource:
    return replace(origin, name=name) if name else origin


def check_project_folder(project: Path) -> None:
    """Raise AnnotatorError if a new project's path is a file or non-empty folder."""
    if project.exists() and (not project.is_dir() or has_other_files(project)):
        raise AnnotatorError(
            f"{project} holds other things already and is not a project. Give a new folder's name, or an empty one."
        )


def _find_new_project_folder(project: Path, origin: LocatedSource, choices: ImportOptions) -> Path:
    if origin.fetched:
        with_images = [one.path for one in list_folders(None, origin.fetched.folders, project, True) if one.new]
        folder = choices.images or next(iter(with_images), None)
    else:
        brought = read_label_file(origin.format, origin.path, Problems(), choices.reading).folder
        folder = choices.images or brought or origin.folder
    if folder is None:
        raise AnnotatorError(
            f"There is no project in {project}, and {origin.name} brings no images to make one of. "
            f"Say where they are: annotator import {project} {origin.name} --images FOLDER"
        )
    return folder
