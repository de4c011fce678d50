"""Creation and extension of projects, with all checks before any write."""

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from annotator.errors import AnnotatorError, combine_problems
from annotator.exchange.band_selection import choose_bands
from annotator.exchange.formats.shared.class_list import is_indented, parse_class_list, read_classes, resolve_class_list
from annotator.exchange.imports.image_folders import (
    check_has_images,
    describe_skipped_files,
    list_folders,
    register_folders,
)
from annotator.exchange.imports.import_checks import check_no_open_questions
from annotator.exchange.imports.import_plan import ImportOptions, ImportPlan, check_project_folder
from annotator.exchange.imports.label_files import choose_format
from annotator.exchange.imports.located_source import LocatedSource
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.exchange.sources import fetch_source
from annotator.exchange.sources.fetch_folder import apply_changed_images
from annotator.exchange.sources.source import FolderPaths
from annotator.progress_callbacks import ProgressCallback, StepCallback
from annotator.settings import IMPORT_ANNOTATOR
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.images import images, name_matching
from annotator.store.images.address_cache import set_cache_gb
from annotator.store.images.address_registration import register_address
from annotator.store.images.registration import RegistrationResult, load_file_states, register_folder
from annotator.store.imports.project_creation import create_project
from annotator.store.imports.staged_cells import Tally
from annotator.store.imports.staged_names import NameRules
from annotator.store.imports.staging import Staging
from annotator.store.labels import answer_mode
from annotator.store.locations.addresses import Address
from annotator.store.locations.remote_files import to_folder_address
from annotator.store.networks import configuration
from annotator.store.pictures.bands import BandTriple
from annotator.store.pictures.files import escape_path, list_files


@dataclass(frozen=True)
class SetupResult:
    """The result of `set_up_project`."""

    registered: RegistrationResult
    classes_added: list[str]
    class_warnings: list[str]
    labels_added: int
    # labels already answered in the project
    labels_known: int
    # number of labels for skipped images
    labels_skipped: Tally
    sentences: Sequence[str] = ()


@dataclass(frozen=True)
class SetupSettings:
    """Settings for `set_up_project`. None keeps the present one."""

    method: str | None = None
    backbone: str | None = None
    # bands shown for images that do not declare red, green and blue
    bands: BandTriple | None = None
    # disk space in GB for images read from URLs
    cache_gb: float | None = None
    # answer_mode.MODE_ONE or MODE_ALL
    mode: str | None = None
    # name_lists.SPLIT or KEEP: "fox, deer" in the class list is two classes or one. None raises AnnotatorError for
    # such names
    commas: str | None = None


UNCHANGED_SETTINGS = SetupSettings()


def set_up_project(
    project: Path,
    *,
    images_folder: Address | Path | None,
    class_file: Path | None = None,
    class_text: str = "",
    label_file: Path | None = None,
    settings: SetupSettings = UNCHANGED_SETTINGS,
    progress: ProgressCallback | None = None,
    fetching: StepCallback | None = None,
    in_place: bool = False,
    reading: ReadingOptions | None = None,
) -> SetupResult:
    """Create a project, or add images, classes and labels to an existing one. The call is idempotent.

    A new project is created all or nothing. After a kill, the next call resumes.

    Args:
        images_folder: Folder or URL, or an archive, table or list of paths, which is fetched first.
        progress: Receives (files checked, all files).
        fetching: Receives the progress of unpacking or downloading.
        in_place: Read images from the URL `images_folder` without downloading it.
        reading: The user's decisions about the meaning of `label_file`.

    Raises:
        AnnotatorError: Before any write for invalid or ambiguous arguments. After images are added, but before
            any label is, if labels of equal images contradict each other.
    """
    exists = (project / "project.db").exists()
    if not exists:
        check_project_folder(project)
    if images_folder is None and not exists:
        raise AnnotatorError(f"A new project needs images: annotator init {project} --images FOLDER")
    known_db = Database(project) if exists else None
    if settings.method is not None:
        configuration.check_method_needs(settings.method, known_db, settings.backbone)
    address = _require_address(images_folder) if in_place else None
    fetched = fetch_source(images_folder, project, fetching) if images_folder and not address else None
    paths: FolderPaths = fetched.folders if fetched else []
    if isinstance(images_folder, Path) and not fetched:
        paths = [(images_folder, None)]
    listed = read_classes(class_file) if class_file else parse_class_list(class_text) if class_text.strip() else []
    named = classes.load_classes_by_name(known_db).keys() if known_db else ()
    listed = resolve_class_list(listed, named, str(class_file or "the list"), settings.commas)
    folders = list_folders(known_db, paths, project, images_only=fetched is not None, copies=True)
    if folders and not exists and not any(folder.listing.list_images() for folder in folders):
        check_has_images(folders[0].path, folders[0].listing)
    with ExitStack() as stack:
        new = address or (folders[0].path if folders else None)
        db = known_db or (stack.enter_context(create_project(project, new)) if new else Database(project))
        if settings.bands:
            choose_bands(db, settings.bands)
        registered = register_address(db, address, fetching) if address else RegistrationResult()
        said = [
            *(fetched.sentences if fetched else ()),
            *(sentence for folder in folders for sentence in folder.format_sentences()),
        ]
        plan = None
        if label_file:
            known = {row[0] for row in db.tuples("SELECT path FROM file")}
            coming = [path for folder in folders for path in folder.listing.paths if path not in known]
            root = folders[0].path if folders else None
            plan = stack.enter_context(
                _plan_label_import(db, label_file, coming, listed, reading or ReadingOptions(), root)
            )
        for place in fetched.fetch_folders if fetched else ():
            apply_changed_images(place)
        if not address:
            registered = register_folders(db, folders, progress)
        if not exists and not registered.added and not registered.known:
            raise combine_problems(f"No image of {images_folder} can be used:", describe_skipped_files(registered.bad))
        if plan:
            plan.update_preview(())
        if settings.backbone is not None:
            configuration.set_backbone(db, settings.backbone)
        if settings.method is not None:
            configuration.set_method(db, settings.method)
        if settings.mode is not None:
            answer_mode.set_project_mode(db, settings.mode)
        added, warnings = _add_classes(db, listed)
        if class_file and is_indented(class_file):
            said.append(
                f"{class_file} is indented; its lines are classes. If those further in are kinds of those above them, "
                f"declare it: annotator relations {project} --from {class_file}"
            )
        done = SetupResult(registered, added, warnings, 0, 0, Tally(), said)
        if plan:
            preview = plan.preview
            known = preview.answers_known + preview.conflicts_with_people.count + preview.conflicts_with_imports.count
            imported = plan.apply().imported if preview.has_changes else None
            added = [*added, *(imported.classes if imported else ())]
            done = SetupResult(registered, added, warnings, preview.answers_new, known, preview.images_skipped, said)
        if settings.cache_gb is not None:
            set_cache_gb(db, settings.cache_gb)
        return done


def _require_address(named: Address | Path | None) -> Address:
    if not isinstance(named, Address):
        raise AnnotatorError(
            f"--in-place is for addresses, such as s3://bucket/birds; {named or 'none'} is none. Images in folders are "
            "always read where they lie."
        )
    return to_folder_address(named)


def _add_classes(db: Database, listed: Sequence[tuple[str, str]]) -> tuple[list[str], list[str]]:
    gone = {class_.name for class_ in classes.load_archived_classes(db)} - classes.load_classes_by_name(db).keys()
    warnings = [f"{name!r} is archived and stays so." for name, _ in listed if name in gone]
    listed = [pair for pair in listed if pair[0] not in gone]
    warnings += classes.find_name_warnings((name for name, _ in listed), classes.load_classes_by_name(db))
    return classes.add_classes(db, listed), warnings


@contextmanager
def _plan_label_import(
    db: Database,
    label_file: Path,
    coming: Sequence[str],
    listed: Sequence[tuple[str, str]],
    reading: ReadingOptions,
    root: Path | None,
) -> Generator[ImportPlan]:
    """Yield a label import to apply. Raises AnnotatorError for unknown images or classes and for open questions."""
    with Staging(db.paths.project, print) as staging:
        origin = LocatedSource(str(label_file.resolve()), label_file, *choose_format(label_file, None))
        rules = NameRules({}, strict=True, listed=[*dict(listed)], origin=name_matching.NameOrigin(root=root))
        plan = ImportPlan(db, staging, origin, ImportOptions(reading=reading), IMPORT_ANNOTATOR, rules)
        plan.read_source(coming=coming)
        check_no_open_questions(
            f"{label_file} (annotator import takes these options; init a file of them, by --reading)",
            plan.open_questions,
        )
        yield plan


def add_folder(
    db: Database, folder: Address | Path, progress: ProgressCallback | None = None, threads: int | None = None
) -> RegistrationResult:
    """Add or update the images of a folder in an open project. The call is idempotent.

    Raises AnnotatorError before any write if the folder is unreadable, or new and empty.

    Args:
        progress: Receives (files checked, all files). An exception cancels, and committed images stay.
        threads: Parallel file reads. None selects one per core.
    """
    if isinstance(folder, Address):
        return register_address(db, folder, (lambda what, done, of: progress(done, of)) if progress else None)
    listing = list_files(folder, leave_out=db.paths.project, known=load_file_states(db, folder))
    if escape_path(str(folder.resolve())) not in {known.path for known in images.load_folders(db)}:
        check_has_images(folder, listing)
    done = register_folder(db, folder, listing.paths, progress, listing.kept_out, threads)
    done.left_out = listing.left_out
    return done
