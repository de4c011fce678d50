"""Making a project from a folder of images, or adding to one: everything is checked before anything is written."""

import uuid
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from annotator.errors import AnnotatorError, several
from annotator.exchange.formats.class_list import read_classes
from annotator.exchange.formats.label_csv import ImportedLabel, conflicts_of_contents, read_labels
from annotator.records import BadFile, Decision
from annotator.settings import IMPORTER
from annotator.shares import counted
from annotator.store import classes, configuration, decisions, images
from annotator.store.database import Database
from annotator.store.files import Listing, escaped, list_files
from annotator.store.pixels import IMAGE_SUFFIXES
from annotator.store.registration import Registered, register
from annotator.store.unfinished import holds_other_things, making

LABELS_AT_ONCE = 5000  # decisions in one transaction, for which a person at work may have to wait


@dataclass(frozen=True)
class Setup:
    """What `set_up` did."""

    registered: Registered
    classes_added: list[str]
    class_warnings: list[str]
    labels_added: int
    labels_known: int
    labels_without_image: list[str]


def set_up(
    project: Path,
    *,
    images_folder: Path | None,
    class_file: Path | None = None,
    label_file: Path | None = None,
    method: str | None = None,
    backbone: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Setup:
    """Make the project, or add images, classes and labels to it. Repeating it changes nothing.

    A new project is made as a whole or not at all, even if the process is killed; the next call resumes the work.

    Raises AnnotatorError, before anything is written, for a missing folder, a bad class list or label file, an
    unknown method, or a folder that holds something else; and, when images have been added but no label,
    for labels that contradict each other on one picture with several names.
    """
    exists = (project / "project.db").exists()
    if not exists and project.exists() and (not project.is_dir() or holds_other_things(project)):
        raise AnnotatorError(
            f"{project} holds other things already and is not a project. Give a new folder's name, or an empty one."
        )
    if images_folder is None and not exists:
        raise AnnotatorError(f"A new project needs images: annotator init {project} --images FOLDER")
    if method is not None:
        configuration.about(method)
    listing = list_files(images_folder, leave_out=project) if images_folder else Listing([], [])
    if images_folder and not exists:
        _refuse_without_images(images_folder, listing)
    listed = read_classes(class_file) if class_file else []
    known = Database(project) if exists else None
    labels = _read_labels(known, label_file, listing.paths, listed) if label_file else []
    if not listed and label_file and not (known and classes.all_classes(known)):
        listed = [(name, "") for name in sorted({label.class_name for label in labels})]

    with nullcontext(known) if known or not images_folder else making(project, images_folder) as db:
        assert db is not None  # a new project has images
        registered = Registered()
        if images_folder:
            registered = register(db, images_folder, listing.paths, progress, listing.kept_out)
        if known is None and not registered.added and not registered.known:
            raise several(f"No image of {images_folder} can be used:", kept_out_in_words(registered.bad))
        ids = images.with_short_names(images.names_to_ids(db)) if labels else {}
        if problems := conflicts_of_contents(labels, ids):
            raise several(f"The label file {label_file} cannot be used, and no label was read:", problems)
        if method is not None:
            configuration.choose_method(db, method)
        if backbone is not None:
            configuration.choose_backbone(db, backbone)
        gone = {class_.name for class_ in classes.archived(db)} - classes.by_name(db).keys()
        warnings = [f"{name!r} is archived and stays so." for name, _ in listed if name in gone]
        listed = [pair for pair in listed if pair[0] not in gone]
        warnings += classes.name_warnings((name for name, _ in listed), classes.by_name(db))
        added = classes.add_classes(db, listed)
        return Setup(registered, added, warnings, *_import(db, labels, ids))


def add_folder(
    db: Database, folder: Path, progress: Callable[[int, int], None] | None = None, threads: int | None = None
) -> Registered:
    """Add the images of a folder to an open project, or look again at one that was added. Repeating it changes nothing.

    progress    called with (files looked at, files in all); what it raises ends the work, and what was committed stays
    threads     files read at a time; None: as many as there are cores

    Raises AnnotatorError, before anything is written, for a folder that is missing, cannot be read, or is new and holds
    no image.
    """
    listing = list_files(folder, leave_out=db.paths.project)
    if escaped(str(folder.resolve())) not in {known.path for known in images.folders(db)}:
        _refuse_without_images(folder, listing)
    return register(db, folder, listing.paths, progress, listing.kept_out, threads)


def registered_in_words(registered: Registered) -> str:
    """What a scan of a folder came to, in one line; the first three also where there are none."""
    counts = [
        (registered.added, counted(registered.added, "image added", "images added")),
        (registered.known, f"{registered.known:,} already there"),
        (len(registered.bad), counted(len(registered.bad), "file skipped", "files skipped")),
        (registered.moved, f"{registered.moved:,} moved or renamed"),
        (registered.copies, counted(registered.copies, "duplicate")),
        (len(registered.missing), f"{len(registered.missing):,} missing"),
    ]
    return ", ".join(words for place, (count, words) in enumerate(counts) if count or place < 3)


def _refuse_without_images(folder: Path, listing: Listing) -> None:
    if not listing.images():
        raise AnnotatorError(
            f"No image was found in {folder} or below it ({len(listing.paths):,} other files, "
            f"{len(listing.kept_out):,} folders that cannot be read). Read are: {', '.join(sorted(IMAGE_SUFFIXES))}."
        )


def kept_out_in_words(bad: Sequence[BadFile]) -> list[str]:
    """Files that were kept out: one sentence per reason, with an example."""
    groups = images.by_reason(bad).items()
    return [f"{counted(len(paths), 'file')} skipped: {reason} (such as {paths[0]!a})" for reason, paths in groups]


def _read_labels(
    db: Database | None, label_file: Path, paths: list[str], listed: list[tuple[str, str]]
) -> list[ImportedLabel]:
    names = images.with_short_names(dict.fromkeys(paths) | (images.names_to_ids(db) if db else {}))
    known = [name for name, _ in listed] + (list(classes.by_name(db)) if db else [])
    return read_labels(label_file, names, known or None)


def _import(db: Database, labels: list[ImportedLabel], ids: dict[str, int]) -> tuple[int, int, list[str]]:
    """Store the labels of cells that have none yet.

    ids        name -> image
    returns    labels added, labels of answered cells, names without an image
    """
    if not labels:
        return 0, 0, []
    class_ids = {name: class_.id for name, class_ in classes.by_name(db).items()}
    answered = {(image_id, class_id) for image_id, class_id, _ in decisions.label_cells(db)[0]}
    given: set[tuple[int, int]] = set()  # by this file, in which an image may have several names
    batch = str(uuid.uuid4())
    new: list[Decision] = []
    without: list[str] = []
    known = 0
    for label in labels:
        image_id, class_id = ids.get(label.image), class_ids[label.class_name]
        if image_id is None:
            without.append(label.image)
        elif (image_id, class_id) in given:
            continue
        elif (image_id, class_id) in answered:
            known += 1
        else:
            given.add((image_id, class_id))
            new.append(
                Decision(
                    str(uuid.uuid4()),
                    "label",
                    IMPORTER,
                    "import",
                    image_id=image_id,
                    class_id=class_id,
                    state=label.state,
                    batch=batch,
                )
            )
    for start in range(0, len(new), LABELS_AT_ONCE):
        decisions.decide(db, new[start : start + LABELS_AT_ONCE])
    return len(new), known, list(dict.fromkeys(without))
