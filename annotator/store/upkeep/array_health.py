"""Checks of array files: damage, what is lost, and how to recreate them.

Audit samples, predictions and export tags hold users' work. Trainings or the worker recreate all other arrays.
"""

import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open

from annotator.store.database import jobs
from annotator.store.database.arrays import open_array
from annotator.store.database.database import Database
from annotator.store.features.stored_basis import BASIS_FILE, read_basis
from annotator.store.features.stored_image_codes import CODES_FOLDER, INDEX_FILE, read_codes
from annotator.store.labels import audits
from annotator.store.networks import configuration
from annotator.store.runs import prediction_boxes, prediction_sources, probabilities, runs

CHUNK_VALUES = 1 << 20  # values
MAP_POINT_DTYPE = np.dtype([("image_id", "<i8"), ("x", "<f4"), ("y", "<f4")])
_ANY_SIZE = None
TRAIN_ADVICE = "the next training makes it anew: annotator train PROJECT"
ID_DTYPE = np.dtype(np.int64)


@dataclass(frozen=True)
class ArrayDamage:
    """A report of unusable array files."""

    # files and problems, as a sentence
    what: str
    files: Sequence[Path]
    # consequence, as a sentence
    lost: str
    # user action, or what recreates the files
    todo: str
    # whether a repair may delete the files
    removable: bool = True
    # whether a training recreates them
    from_training: bool = False


class _ExpectedFile(NamedTuple):
    """The expected dtype, shape and value bounds of an array file, None where unknown."""

    file: Path
    kind: np.dtype[Any] | None
    shape: tuple[int | None, ...]
    low: float | None = None
    high: float | None = None


def find_damages(db: Database) -> Iterator[ArrayDamage]:
    """Yield a report per group of unusable array files."""
    yield from find_suggestion_damages(db)
    yield from _find_head_damages(db)
    backbone = configuration.get_backbone(db)
    yield from _find_file_damages(
        [_ExpectedFile(db.paths.map(backbone) / "points.npy", MAP_POINT_DTYPE, (_ANY_SIZE,), 0.0, 1.0)],
        "The map of the images cannot be used",
        "The Map page shows nothing",
        "the worker lays the map out anew when the app runs",
    )
    if runs.load_current_run(db) is None:
        yield from _find_file_damages(
            [_ExpectedFile(file, ID_DTYPE, (_ANY_SIZE,), 0) for file in _list_orders(db.paths.first_orders)],
            "The first order of the images cannot be used",
            "Images come in random order",
            "the worker makes it anew when it starts",
        )
    yield from _find_file_damages(
        [_ExpectedFile(file, ID_DTYPE, (_ANY_SIZE,), 0) for file in sorted(db.paths.selections.glob("*.npy"))],
        "Selections on the map cannot be used",
        "Links to these selections say that they are gone",
        "select the images again on the Map page",
    )
    yield from _find_feature_damages(db, db.paths.features(backbone))
    yield from _find_guess_damages(db)
    yield from _find_prediction_damages(db)
    if told := audits.describe_damage(db):
        yield ArrayDamage(
            f"Samples of audits cannot be used: {'; '.join(told)}",
            (),
            "The answers in them count as labels, and no longer for the certificate.",
            "Restore the folder audits from a backup, or draw a new audit on the Certificate page",
            removable=False,
        )


def remove_damaged(db: Database, damages: Sequence[ArrayDamage]) -> list[ArrayDamage]:
    """Delete and return removable damages, requesting a training if needed."""
    removed = [damage for damage in damages if damage.removable]
    for file in (file for damage in removed for file in damage.files):
        file.unlink(missing_ok=True)
    if any(damage.from_training for damage in removed):
        jobs.request_training(db)
    return removed


def _list_orders(folder: Path) -> list[Path]:
    return sorted((folder / "orders").glob("*.npy"))


def find_suggestion_damages(db: Database, thorough: bool = True) -> Iterator[ArrayDamage]:
    """Yield damages of arrays that suggestions read. `thorough` checks every number."""
    run = runs.load_current_run(db)
    if run is None:
        return
    folder, newest = db.paths.run(run.id), db.paths.run(run.id, run.version)
    classes = len(run.class_ids)
    half, count = np.dtype(np.float16), _count_rows(folder / "image_ids.npy")
    wrong: list[tuple[Path, str]] = []
    parts: list[_ExpectedFile] = [_ExpectedFile(folder / "image_ids.npy", ID_DTYPE, (_ANY_SIZE,), 1)]
    for version in sorted({0, *probabilities.find_needed_versions(db.paths, run.id, run.version)}):
        place = db.paths.run(run.id, version)
        names = (probabilities.WHOLE_FILE, probabilities.COLUMNS_FILE, probabilities.COLUMN_PLACES_FILE)
        shapes = ((count, classes), (_ANY_SIZE, count), (classes + 1, 2))
        for name, shape in zip(names, shapes, strict=True):
            if (place / name).exists() or (version == 0 and name == probabilities.WHOLE_FILE):
                kind = ID_DTYPE if name == probabilities.COLUMN_PLACES_FILE else half
                bounds = (-1, _ANY_SIZE) if name == probabilities.COLUMN_PLACES_FILE else (0.0, 1.0)
                parts.append(_ExpectedFile(place / name, kind, shape, *bounds))
    wrong += _find_wrong_files(parts, thorough)
    if not wrong:
        try:
            probabilities.open_probabilities(db, run.id, run.version)
        except (OSError, ValueError) as error:
            wrong.append((newest / probabilities.COLUMN_PLACES_FILE, str(error)))
    if wrong:
        yield _build_damage(
            wrong,
            f"Arrays of run {run.id} cannot be used",
            "There are no suggestions until the next training",
            "a training makes them anew: the app's worker by itself, or annotator train PROJECT",
            from_training=True,
        )
    yield from _find_ranking_damages(folder, newest, classes, count, thorough)


def _find_ranking_damages(
    folder: Path, newest: Path, classes: int, count: int | None, thorough: bool
) -> Iterator[ArrayDamage]:
    half, whole, last = np.dtype(np.float16), np.dtype(np.int32), None if count is None else count - 1
    ranked = [
        _ExpectedFile(newest / "by_class.npy", whole, (classes, _ANY_SIZE), -1, last),
        _ExpectedFile(newest / "scores.npy", half, (classes, _ANY_SIZE), 0, 1),
        _ExpectedFile(newest / "by_image.npy", whole, (_ANY_SIZE,), -1, last),
        _ExpectedFile(newest / "likeliest.npy", half, (_ANY_SIZE,), 0, 1),
        _ExpectedFile(newest / "expected.npy", np.dtype(np.float64), (classes,), 0),
        _ExpectedFile(newest / "disagreements.npy", whole, (_ANY_SIZE, 2), 0),
        _ExpectedFile(newest / "cooccurrence.npy", whole, (classes, classes), 0),
    ]
    if any(part.file.exists() for part in ranked) and (wrong := _find_wrong_files(ranked, thorough)):
        yield _build_damage(
            wrong,
            f"Rankings of run {folder.name} cannot be used",
            "Pages work them out again in a small project; in a large one Review and Grid have nothing to show",
            TRAIN_ADVICE,
            from_training=True,
            files=[part.file for part in ranked],  # a ranking without the others is of no use
        )


def _find_head_damages(db: Database) -> Iterator[ArrayDamage]:
    run = runs.load_current_run(db)
    if run is None:
        return
    folder = db.paths.run(run.id)
    if problem := _find_head_problem(folder / "head.safetensors"):
        what, lost = f"The head of run {run.id} cannot be used", "There are no heat maps until the next training"
        yield _build_damage([(folder / "head.safetensors", problem)], what, lost, TRAIN_ADVICE, from_training=True)
    if wrong := _find_wrong_files([_ExpectedFile(file, ID_DTYPE, (_ANY_SIZE,), 1) for file in _list_orders(folder)]):
        lost = "Images come in random order where one of these is chosen"
        yield _build_damage(wrong, f"Orders of run {run.id} cannot be used", lost, TRAIN_ADVICE, from_training=True)


def _count_rows(image_ids: Path) -> int | None:
    try:
        return len(open_array(image_ids))
    except (OSError, ValueError, TypeError):
        return None


def _find_head_problem(file: Path) -> str:
    try:
        opened_file: Any = safe_open(file, framework="numpy")  # not typed
        with opened_file as opened:
            for name in opened.keys():  # noqa: SIM118  not a dict
                values = opened.get_tensor(name)
                # a class without positives has a bias of nan (spmll.linear.training.Head)
                is_usable = ~np.isinf(values) if name == "bias" else np.isfinite(values)
                if not is_usable.all():
                    return f"{name} holds numbers that are not finite"
    except FileNotFoundError:
        return "is not there"
    except (OSError, SafetensorError, ValueError, TypeError) as error:
        return "is empty" if not file.stat().st_size else f"is cut off or overwritten ({error})"
    return ""


def _find_feature_damages(db: Database, folder: Path) -> Iterator[ArrayDamage]:
    wrong: list[tuple[Path, str]] = []
    if (folder / BASIS_FILE).exists() and read_basis(folder) is None:
        wrong.append((folder / BASIS_FILE, "is damaged"))
    if (folder / CODES_FOLDER / INDEX_FILE).exists() and read_codes(folder) is None:
        wrong += [(file, "is damaged, or one that belongs to it") for file in sorted((folder / CODES_FOLDER).glob("*"))]
    if wrong:
        yield _build_damage(
            wrong,
            "What is worked out from features cannot be used",
            "Nothing is lost",
            "the worker makes it anew when it starts",
        )


def _find_guess_damages(db: Database) -> Iterator[ArrayDamage]:
    wrong: list[tuple[Path, str]] = []
    for file in sorted(db.paths.patch_scores("x").parent.glob("*/*.npz")):
        try:
            with np.load(file, allow_pickle=False) as opened:
                for name in opened.files:
                    opened[name]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            wrong.append((file, f"is empty, cut off or overwritten ({error})"))
    if wrong:
        yield _build_damage(
            wrong,
            "What patches of images say of the names of classes cannot be used",
            "Nothing is lost",
            "the worker computes it anew",
        )


def _find_prediction_damages(db: Database) -> Iterator[ArrayDamage]:
    for source in prediction_sources.load_sources(db):
        folder = db.paths.predictions(source.id, source.version)
        wrong = _find_wrong_files(
            [
                _ExpectedFile(folder / "image_ids.npy", ID_DTYPE, (_ANY_SIZE,), 1),
                _ExpectedFile(
                    folder / "scores.npy", None, (_count_rows(folder / "image_ids.npy"), len(source.class_ids))
                ),
            ]
        )
        boxes = folder / prediction_boxes.BOXES_FILE
        if boxes.exists() and (
            problem := _find_problem(_ExpectedFile(boxes, prediction_boxes.BOX_DTYPE, (_ANY_SIZE,)), thorough=True)
        ):
            yield _build_damage(
                [(boxes, problem)],
                f"The boxes of the predictions {source.name!r} cannot be drawn",
                "Their scores count as before",
                "Send the predictions again: annotator predictions",
                removable=False,
            )
        if wrong:
            yield _build_damage(
                wrong,
                f"The predictions {source.name!r} cannot be read",
                "They were deleted, cut off or overwritten, and count for nothing",
                "Restore the folder predictions from a backup, or send them again: annotator predictions",
                removable=False,
            )


def _find_file_damages(parts: Sequence[_ExpectedFile], what: str, lost: str, todo: str) -> Iterator[ArrayDamage]:
    if wrong := _find_wrong_files([part for part in parts if part.file.exists()]):
        yield _build_damage(wrong, what, lost, todo)


def _build_damage(
    wrong: Sequence[tuple[Path, str]],
    what: str,
    lost: str,
    todo: str,
    *,
    removable: bool = True,
    from_training: bool = False,
    files: Sequence[Path] = (),
) -> ArrayDamage:
    named = "; ".join(f"{file.parent.name}/{file.name} {problem}" for file, problem in wrong)
    files = files or [file for file, _ in wrong]
    return ArrayDamage(f"{what}: {named}", files, f"{lost}.", todo, removable, from_training)


def _find_wrong_files(parts: Sequence[_ExpectedFile], thorough: bool = True) -> list[tuple[Path, str]]:
    return [(part.file, problem) for part in parts if (problem := _find_problem(part, thorough))]


def _find_problem(part: _ExpectedFile, thorough: bool) -> str:
    file, kind, shape, low, high = part
    try:
        if not file.stat().st_size:
            return "is empty"
        array = open_array(file)
    except FileNotFoundError:
        return "is not there"
    except (OSError, ValueError) as error:
        return f"is cut off or overwritten ({str(error).splitlines()[0][:120]})"
    fits = array.ndim == len(shape) and all(want in (None, has) for want, has in zip(shape, array.shape, strict=False))
    if not fits or (kind is not None and array.dtype != kind):
        return f"holds {array.dtype} {array.shape}, which is not what belongs there"
    if not thorough:
        return ""
    names = [name for name in array.dtype.names or () if name != "image_id"] or [""]
    rows = max(CHUNK_VALUES // max(int(np.prod(array.shape[1:])), 1), 1)
    for start in range(0, len(array), rows):
        for name in names:
            values = np.asarray(array[start : start + rows][name] if name else array[start : start + rows])
            if (low is not None and (values < low).any()) or (high is not None and (values > high).any()):
                return f"holds numbers that are not between {low} and {'any' if high is None else high}"
            if values.dtype.kind == "f" and not np.isfinite(values[~np.isnan(values)] if not name else values).all():
                return "holds numbers that are not finite"
    return ""
