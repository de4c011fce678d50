"""Checks of the array files in use: which are empty, cut off or overwritten, what is lost, and what makes them again.

Samples of audits (store/labels/audits.py), predictions of other models (prediction_sources.py) and tags hold people's
work; a backup keeps them. A training or the worker makes all other arrays again. Each file is read once, in blocks;
files that nothing reads any more (older versions of a run) are not checked.
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
from annotator.store.features.basis import BASIS_FILE, read_basis
from annotator.store.features.image_codes import FOLDER, INDEX, read_codes
from annotator.store.labels import audits
from annotator.store.networks import configuration
from annotator.store.runs import prediction_boxes, prediction_sources, probabilities, runs

AT_ONCE = 1 << 20  # values
PLACES = np.dtype([("image_id", "<i8"), ("x", "<f4"), ("y", "<f4")])
_ANY = None
TRAIN = "the next training makes it anew: annotator train PROJECT"
IDS = np.dtype(np.int64)


@dataclass(frozen=True)
class Damage:
    """Files that cannot be used.

    Attributes:
        what: A sentence that names the files and their problems.
        lost: The consequence of the loss, as a sentence.
        todo: The action for a person; for removable files, what makes them again.
        removable: A repair may delete the files: they hold nobody's work and are made again.
        from_training: A training makes the files.
    """

    what: str
    files: Sequence[Path]
    lost: str
    todo: str
    removable: bool = True
    from_training: bool = False


class _Part(NamedTuple):
    """A file and its expected content: dtype, shape and bounds of values; None where they are not known."""

    file: Path
    kind: np.dtype[Any] | None
    shape: tuple[int | None, ...]
    low: float | None = None
    high: float | None = None


def damages(db: Database) -> Iterator[Damage]:
    """Yield the damages of all arrays in use."""
    yield from of_suggestions(db)
    yield from _beside_run(db)
    backbone = configuration.backbone(db)
    yield from _files(
        [_Part(db.paths.map(backbone) / "points.npy", PLACES, (_ANY,), 0.0, 1.0)],
        "The map of the images cannot be used",
        "The Map page shows nothing",
        "the worker lays the map out anew when the app runs",
    )
    if runs.current_run(db) is None:
        yield from _files(
            [_Part(file, IDS, (_ANY,), 0) for file in _orders(db.paths.first_orders)],
            "The first order of the images cannot be used",
            "Images come in random order",
            "the worker makes it anew when it starts",
        )
    yield from _files(
        [_Part(file, IDS, (_ANY,), 0) for file in sorted(db.paths.selections.glob("*.npy"))],
        "Selections on the map cannot be used",
        "Links to these selections say that they are gone",
        "select the images again on the Map page",
    )
    yield from _of_features(db, db.paths.features(backbone))
    yield from _guesses(db)
    yield from _predictions(db)
    if told := audits.damaged(db):
        yield Damage(
            f"Samples of audits cannot be used: {'; '.join(told)}",
            (),
            "The answers in them count as labels, and no longer for the certificate.",
            "Restore the folder audits from a backup, or draw a new audit on the Certificate page",
            removable=False,
        )


def remove(db: Database, found: Sequence[Damage]) -> list[Damage]:
    """Delete the files of removable damages, and ask for a training if one makes them; return these damages."""
    removed = [damage for damage in found if damage.removable]
    for file in (file for damage in removed for file in damage.files):
        file.unlink(missing_ok=True)
    if any(damage.from_training for damage in removed):
        jobs.ask_training(db)
    return removed


def _orders(folder: Path) -> list[Path]:
    return sorted((folder / "orders").glob("*.npy"))


def of_suggestions(db: Database, thorough: bool = True) -> Iterator[Damage]:
    """Yield the damages of the current run's arrays that suggestions are read from.

    Args:
        db: The project's database.
        thorough: Check every number, not only sizes.
    """
    run = runs.current_run(db)
    if run is None:
        return
    folder, newest = db.paths.run(run.id), db.paths.run(run.id, run.version)
    classes = len(run.class_ids)
    half, count = np.dtype(np.float16), _rows(folder / "image_ids.npy")
    wrong: list[tuple[Path, str]] = []
    parts: list[_Part] = [_Part(folder / "image_ids.npy", IDS, (_ANY,), 1)]
    for version in sorted({0, *probabilities.needed(db.paths, run.id, run.version)}):
        place = db.paths.run(run.id, version)
        names = (probabilities.WHOLE, probabilities.COLUMNS, probabilities.COLUMNS_OF)
        shapes = ((count, classes), (_ANY, count), (classes + 1, 2))
        for name, shape in zip(names, shapes, strict=True):
            if (place / name).exists() or (version == 0 and name == probabilities.WHOLE):
                kind = IDS if name == probabilities.COLUMNS_OF else half
                bounds = (-1, _ANY) if name == probabilities.COLUMNS_OF else (0.0, 1.0)
                parts.append(_Part(place / name, kind, shape, *bounds))
    wrong += _wrong(parts, thorough)
    if not wrong:
        try:
            probabilities.read(db, run.id, run.version)
        except (OSError, ValueError) as error:
            wrong.append((newest / probabilities.COLUMNS_OF, str(error)))
    if wrong:
        yield _damage(
            wrong,
            f"Arrays of run {run.id} cannot be used",
            "There are no suggestions until the next training",
            "a training makes them anew: the app's worker by itself, or annotator train PROJECT",
            from_training=True,
        )
    yield from _rankings(folder, newest, classes, count, thorough)


def _rankings(folder: Path, newest: Path, classes: int, count: int | None, thorough: bool) -> Iterator[Damage]:
    """Yield the damage of a run's rankings, which pages read; a run of an older version has no rankings."""
    half, whole, last = np.dtype(np.float16), np.dtype(np.int32), None if count is None else count - 1
    ranked = [
        _Part(newest / "by_class.npy", whole, (classes, _ANY), -1, last),
        _Part(newest / "scores.npy", half, (classes, _ANY), 0, 1),
        _Part(newest / "by_image.npy", whole, (_ANY,), -1, last),
        _Part(newest / "likeliest.npy", half, (_ANY,), 0, 1),
        _Part(newest / "expected.npy", np.dtype(np.float64), (classes,), 0),
        _Part(newest / "disagreements.npy", whole, (_ANY, 2), 0),
        _Part(newest / "cooccurrence.npy", whole, (classes, classes), 0),
    ]
    if any(part.file.exists() for part in ranked) and (wrong := _wrong(ranked, thorough)):
        yield _damage(
            wrong,
            f"Rankings of run {folder.name} cannot be used",
            "Pages work them out again in a small project; in a large one Review and Grid have nothing to show",
            TRAIN,
            from_training=True,
            files=[part.file for part in ranked],  # a ranking without the others is of no use
        )


def _beside_run(db: Database) -> Iterator[Damage]:
    """Yield the damages of the current run's head and orders, which suggestions do not need."""
    run = runs.current_run(db)
    if run is None:
        return
    folder = db.paths.run(run.id)
    if problem := _problem_of_head(folder / "head.safetensors"):
        what, lost = f"The head of run {run.id} cannot be used", "There are no heat maps until the next training"
        yield _damage([(folder / "head.safetensors", problem)], what, lost, TRAIN, from_training=True)
    if wrong := _wrong([_Part(file, IDS, (_ANY,), 1) for file in _orders(folder)]):
        lost = "Images come in random order where one of these is chosen"
        yield _damage(wrong, f"Orders of run {run.id} cannot be used", lost, TRAIN, from_training=True)


def _rows(image_ids: Path) -> int | None:
    try:
        return len(open_array(image_ids))
    except (OSError, ValueError, TypeError):
        return None


def _problem_of_head(file: Path) -> str:
    try:
        opened_file: Any = safe_open(file, framework="numpy")  # not typed
        with opened_file as opened:
            for name in opened.keys():  # noqa: SIM118  not a dict
                if not np.isfinite(opened.get_tensor(name)).all():
                    return f"{name} holds numbers that are not finite"
    except FileNotFoundError:
        return "is not there"
    except (OSError, SafetensorError, ValueError, TypeError) as error:
        return "is empty" if not file.stat().st_size else f"is cut off or overwritten ({error})"
    return ""


def _of_features(db: Database, folder: Path) -> Iterator[Damage]:
    wrong: list[tuple[Path, str]] = []
    if (folder / BASIS_FILE).exists() and read_basis(folder) is None:
        wrong.append((folder / BASIS_FILE, "is damaged"))
    if (folder / FOLDER / INDEX).exists() and read_codes(folder) is None:
        wrong += [(file, "is damaged, or one that belongs to it") for file in sorted((folder / FOLDER).glob("*"))]
    if wrong:
        yield _damage(
            wrong,
            "What is worked out from features cannot be used",
            "Nothing is lost",
            "the worker makes it anew when it starts",
        )


def _guesses(db: Database) -> Iterator[Damage]:
    wrong: list[tuple[Path, str]] = []
    for file in sorted(db.paths.patch_scores("x").parent.glob("*/*.npz")):
        try:
            with np.load(file, allow_pickle=False) as opened:
                for name in opened.files:
                    opened[name]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            wrong.append((file, f"is empty, cut off or overwritten ({error})"))
    if wrong:
        yield _damage(
            wrong,
            "What patches of images say of the names of classes cannot be used",
            "Nothing is lost",
            "the worker computes it anew",
        )


def _predictions(db: Database) -> Iterator[Damage]:
    for source in prediction_sources.sources(db):
        folder = db.paths.predictions(source.id, source.version)
        wrong = _wrong(
            [
                _Part(folder / "image_ids.npy", IDS, (_ANY,), 1),
                _Part(folder / "scores.npy", None, (_rows(folder / "image_ids.npy"), len(source.class_ids))),
            ]
        )
        boxes = folder / prediction_boxes.FILE
        if boxes.exists() and (problem := _problem(_Part(boxes, prediction_boxes.BOX, (_ANY,)), thorough=True)):
            yield _damage(
                [(boxes, problem)],
                f"The boxes of the predictions {source.name!r} cannot be drawn",
                "Their scores count as before",
                "Send the predictions again: annotator predictions",
                removable=False,
            )
        if wrong:
            yield _damage(
                wrong,
                f"The predictions {source.name!r} cannot be read",
                "They were deleted, cut off or overwritten, and count for nothing",
                "Restore the folder predictions from a backup, or send them again: annotator predictions",
                removable=False,
            )


def _files(parts: Sequence[_Part], what: str, lost: str, todo: str) -> Iterator[Damage]:
    if wrong := _wrong([part for part in parts if part.file.exists()]):
        yield _damage(wrong, what, lost, todo)


def _damage(
    wrong: Sequence[tuple[Path, str]],
    what: str,
    lost: str,
    todo: str,
    *,
    removable: bool = True,
    from_training: bool = False,
    files: Sequence[Path] = (),
) -> Damage:
    named = "; ".join(f"{file.parent.name}/{file.name} {problem}" for file, problem in wrong)
    files = files or [file for file, _ in wrong]
    return Damage(f"{what}: {named}", files, f"{lost}.", todo, removable, from_training)


def _wrong(parts: Sequence[_Part], thorough: bool = True) -> list[tuple[Path, str]]:
    return [(part.file, problem) for part in parts if (problem := _problem(part, thorough))]


def _problem(part: _Part, thorough: bool) -> str:
    """Return the problem of an array, "" if it is sound. Probabilities may be nan where no model exists."""
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
    rows = max(AT_ONCE // max(int(np.prod(array.shape[1:])), 1), 1)
    for start in range(0, len(array), rows):
        for name in names:
            values = np.asarray(array[start : start + rows][name] if name else array[start : start + rows])
            if (low is not None and (values < low).any()) or (high is not None and (values > high).any()):
                return f"holds numbers that are not between {low} and {'any' if high is None else high}"
            if values.dtype.kind == "f" and not np.isfinite(values[~np.isnan(values)] if not name else values).all():
                return "holds numbers that are not finite"
    return ""
