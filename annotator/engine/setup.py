"""Making a project from a folder of images, or adding to one: everything is checked before anything is written."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from annotator.engine import recipe
from annotator.errors import AnnotatorError
from annotator.records import Decision
from annotator.settings import DEFAULT_BACKBONE, IMPORTER
from annotator.store import classes, decisions, images
from annotator.store.database import Database
from annotator.store.files import list_files
from annotator.store.formats.class_list import read_classes
from annotator.store.formats.label_csv import ImportedLabel, read_labels
from annotator.store.images import Registered
from annotator.store.pixels import IMAGE_SUFFIXES

LABELS_AT_ONCE = 5000  # decisions in one transaction: a person at work never waits longer than that takes


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

    Raises AnnotatorError, before anything is written, for a missing folder, a bad class list or label file, an
    unknown method or backbone, or a folder that holds something else.
    """
    exists = (project / "project.db").exists()
    if not exists and project.exists() and (not project.is_dir() or any(project.iterdir())):
        raise AnnotatorError(
            f"{project} holds other things already and is not a project. Give a new folder's name, or an empty one."
        )
    if images_folder is None and not exists:
        raise AnnotatorError(f"A new project needs images: annotator init {project} --images FOLDER")
    if method is not None:
        recipe.about(method)
    paths = list_files(images_folder, leave_out=project.resolve()) if images_folder else []
    if images_folder and not exists and not any(_looks_like_image(path) for path in paths):
        raise AnnotatorError(
            f"No image was found in {images_folder} or below it ({len(paths):,} other files). "
            f"Read are: {', '.join(sorted(IMAGE_SUFFIXES))}."
        )
    listed = read_classes(class_file) if class_file else []
    db = Database(project) if exists else None
    labels = _read_labels(db, label_file, paths, listed) if label_file else []
    if not listed and label_file and not (db and classes.all_classes(db)):
        listed = [(name, "") for name in sorted({label.class_name for label in labels})]
    if backbone is not None:
        check_backbone(backbone)

    db = db or Database(project, create=True)
    if method is not None:
        recipe.choose_method(db, method)
    if backbone is not None:
        recipe.choose_backbone(db, backbone)
    registered = images.register(db, images_folder, paths, progress) if images_folder else Registered()
    warnings = classes.name_warnings((name for name, _ in listed), (one.name for one in classes.all_classes(db)))
    added = classes.add_classes(db, listed)
    return Setup(registered, added, warnings, *_import(db, labels))


def check_backbone(name: str) -> None:
    """Raises AnnotatorError when there is no such network, or its weights cannot be had."""
    if name == DEFAULT_BACKBONE:
        return
    from models.networks import load_backbone  # loads torch: only when another network than the default is asked for

    try:
        load_backbone(name)
    except ValueError as error:
        raise AnnotatorError(str(error)) from error


def _looks_like_image(path: str) -> bool:
    return Path(path).suffix.lower() in IMAGE_SUFFIXES


def _read_labels(
    db: Database | None, label_file: Path, paths: list[str], listed: list[tuple[str, str]]
) -> list[ImportedLabel]:
    names = images.with_short_names(dict.fromkeys(paths) | (images.names_to_ids(db) if db else {}))
    known = [name for name, _ in listed] + ([one.name for one in classes.all_classes(db)] if db else [])
    return read_labels(label_file, names, known or None)


def _import(db: Database, labels: list[ImportedLabel]) -> tuple[int, int, list[str]]:
    """Append what is new; a cell that anybody has answered since stays as it is."""
    if not labels:
        return 0, 0, []
    ids = images.with_short_names(images.names_to_ids(db))
    class_ids = {one.name: one.id for one in classes.all_classes(db)}
    answered = {(image_id, class_id) for image_id, class_id, _ in decisions.label_cells(db)[0]}
    batch = str(uuid.uuid4())
    new, without, known = [], [], 0
    for label in labels:
        image_id, class_id = ids.get(label.image), class_ids[label.class_name]
        if image_id is None:
            without.append(label.image)
        elif (image_id, class_id) in answered:
            known += 1
        else:
            answered.add((image_id, class_id))
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
