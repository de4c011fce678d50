"""Staging of scores from an external model in temporary files."""

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from annotator.indexing import find_positions
from annotator.progress_callbacks import ProgressCallback, ignore_progress
from annotator.store.database.database import Database
from annotator.store.imports.staged_cells import MAX_EXAMPLES, Tally, count_names_by_kind
from annotator.store.imports.staged_names import NEW, UNCLEAR, NameRules, resolve_names
from annotator.store.imports.staging import Staging
from annotator.store.runs import prediction_sources
from annotator.store.runs.prediction_boxes import BOX_DTYPE, CellBoxes, to_stored_boxes
from annotator.store.runs.prediction_sources import PROBABILITY, PredictionSource, ScoreBlock

SHA256_PATTERN = re.compile(r"[0-9A-Fa-f]{64}")
MAX_REPORTED_CELLS = 50  # largest number of invalid cells of a block that are described


class IncomingScores(Protocol):
    """An interface of what score readers yield: a block of scores of some images."""

    @property
    def images(self) -> Sequence[str]: ...

    @property
    def places(self) -> Sequence[int | str]: ...

    @property
    def classes(self) -> Sequence[str]: ...

    @property
    def scores(self) -> np.ndarray:
        """Return (n, C) scores, nan if missing."""
        ...

    @property
    def boxes(self) -> CellBoxes | None: ...


@dataclass(slots=True)
class _NamedImage:
    """An image name with scores, in the form of an item of `Staging`."""

    image: str
    place: int | str
    sha256: str = ""
    labels: Sequence[tuple[str, int, str, float | None, str]] = ()
    exhaustive: bool = False
    answered: bool = False
    scores: Mapping[str, float] = field(default_factory=dict[str, float])
    file: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])
    remarks: Sequence[tuple[str, str, str, float | None]] = ()
    written: str = ""
    event: str = ""
    event_labels: Sequence[tuple[str, int, str, float | None, str]] = ()


@dataclass(frozen=True)
class _StoredBlock:
    """The position of a score block in the file."""

    first: int
    rows: int
    classes: Sequence[str]
    start: int


@dataclass(frozen=True)
class ResolvedScores:
    """The result of matching a score source's names to those of the project."""

    images: int
    unknown_images: Tally
    # source name -> project class, where different
    classes: Mapping[str, str]
    # unknown or ambiguous names
    unknown_classes: Sequence[str]
    unclear: Mapping[str, str] = field(default_factory=dict[str, str])
    # repeated cell scores, of which the highest counts
    scored_again: Tally = field(default_factory=Tally)
    # inexact match kind -> image names
    found_by: Mapping[str, Tally] = field(default_factory=dict[str, Tally])


class StagedScores:
    """The writer of an external model's scores: blocks are staged in files, matched by name, then stored."""

    def __init__(self, db: Database, scale: str, note: Callable[[str], None], place_word: str):
        self._db, self._scale, self._note = db, scale, note
        self._staging = Staging(db.paths.project, note, place_word)
        self._file = tempfile.TemporaryFile(dir=db.paths.project)  # noqa: SIM115  (closed by close)
        self._boxes = tempfile.TemporaryFile(dir=db.paths.project)  # noqa: SIM115  (of BOX: item and number of a name)
        self._boxed: dict[str, int] = {}
        self._stored: list[_StoredBlock] = []
        self._names: set[str] = set()
        self._image_ids = np.zeros(0, np.int64)
        self._class_ids: dict[str, int] = {}

    def __enter__(self) -> "StagedScores":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()
        self._boxes.close()
        self._staging.close()

    def add(self, block: IncomingScores) -> None:
        """Store a block temporarily, and report invalid scores."""
        scores = np.asarray(block.scores)
        self._check(block, scores)
        new = [name for name in block.classes if name not in self._names]
        self._names.update(new)
        self._staging.add_classes([(name, "") for name in new])
        first = self._staging.items + 1
        self._staging.add(
            _NamedImage(name, place, name if SHA256_PATTERN.fullmatch(name) else "")
            for name, place in zip(block.images, block.places, strict=True)
        )
        self._stored.append(_StoredBlock(first, len(scores), list(block.classes), self._file.tell()))
        self._file.write(np.ascontiguousarray(scores, np.float32).tobytes())
        if boxes := block.boxes:
            numbers = np.array([self._boxed.setdefault(name, len(self._boxed)) for name in block.classes], np.int64)
            self._boxes.write(to_stored_boxes(first + boxes.rows, numbers[boxes.columns], boxes).tobytes())

    def _check(self, block: IncomingScores, scores: np.ndarray) -> None:
        """Report infinite scores, or probabilities outside [0, 1]."""
        if self._scale == PROBABILITY:
            with np.errstate(invalid="ignore"):
                bad, why = (
                    (scores < 0) | (scores > 1),
                    "is no probability in [0, 1]; other numbers are scores (--scale score)",
                )
        else:
            bad, why = np.isinf(scores), "is not finite"
        cells: list[tuple[int, int]] = np.argwhere(bad)[:MAX_REPORTED_CELLS].tolist()
        for row, column in cells:
            place = self._staging.format_place(block.places[row])
            score = float(scores[row, column])
            self._note(f"{place}: {score:g} of {block.images[row]!r} and {block.classes[column]!r} {why}")
        for _ in range(int(bad.sum()) - MAX_REPORTED_CELLS):
            self._note("")

    def resolve(self, class_map: Mapping[str, str], match: str | None = None) -> ResolvedScores:
        """Match image and class names to the project's (`class_map`: source name -> project class, or "" to omit)."""
        resolve_names(self._staging, self._db, NameRules(class_map, match=match), self._note)
        with self._staging.attach(self._db) as sql:
            rows: list[tuple[int, int]] = sql.execute(
                "SELECT id, image_id FROM staged.item WHERE image_id NOT NULL"
            ).fetchall()
            count = sql.execute("SELECT count(DISTINCT name) FROM staged.item WHERE image_id IS NULL").fetchone()[0]
            unknown: list[tuple[int | str, str]] = sql.execute(
                f"""SELECT min(place), name FROM staged.item WHERE image_id IS NULL GROUP BY name
                ORDER BY min(id) LIMIT {MAX_EXAMPLES}"""
            ).fetchall()
            names: list[tuple[str, str, str, int | None]] = sql.execute(
                """SELECT c.name, coalesce(t.name, ''), c.how, t.class_id FROM staged.class c
                LEFT JOIN staged.target t ON t.id = c.target ORDER BY c.id"""
            ).fetchall()
            found_by = count_names_by_kind(self._staging, sql)
        self._image_ids = np.full(self._staging.items + 1, -1, np.int64)
        if rows:
            numbers, ids = np.array(rows, np.int64).T
            self._image_ids[numbers] = ids
        self._class_ids = {name: class_id for name, _, _, class_id in names if class_id is not None}
        return ResolvedScores(
            len(np.unique(self._image_ids[self._image_ids > 0])),
            Tally(count, [f"{self._staging.format_place(place)}: {name!r}" for place, name in unknown]),
            {name: target for name, target, _, class_id in names if class_id is not None and name != target},
            [name for name, target, how, class_id in names if class_id is None and (how in (NEW, UNCLEAR) or target)],
            dict(self._staging.unclear),
            self._count_repeats(),
            found_by,
        )

    def _count_repeats(self) -> Tally:
        image_ids, items = np.unique(self._image_ids[self._image_ids > 0], return_counts=True)
        several = image_ids[items > 1]
        if not len(several):
            return Tally()
        class_ids = np.array(sorted(set(self._class_ids.values())), np.int64)
        scored = np.zeros(len(several) * len(class_ids), bool)
        count, examples = 0, list[str]()
        for numbers, ids, columns, scores in self._iterate_known_scores():
            at, repeats = find_positions(ids, several)
            rows, places = np.nonzero(~np.isnan(scores) & repeats[:, None])
            cells = at[rows] * len(class_ids) + np.searchsorted(class_ids, columns[places])
            again = np.ones(len(cells), bool)
            again[np.unique(cells, return_index=True)[1]] = False
            again |= scored[cells]
            scored[cells] = True
            count += int(again.sum())
            for k in np.flatnonzero(again)[: MAX_EXAMPLES - len(examples)].tolist():
                examples.append(self._describe_cell(int(numbers[rows[k]]), int(columns[places[k]])))
        return Tally(count, examples)

    def _describe_cell(self, item: int, class_id: int) -> str:
        name = next(name for name, known in self._class_ids.items() if known == class_id)
        with self._staging.attach(self._db) as sql:
            place, image = sql.execute("SELECT place, name FROM staged.item WHERE id = ?", [item]).fetchone()
        return f"{self._staging.format_place(place)}: {name!r} on {image!r}"

    def store(
        self, name: str, by: str, *, replace: bool = False, progress: ProgressCallback = ignore_progress
    ) -> PredictionSource:
        """Add the scores of known images and classes to the external model `name`."""
        ids = np.unique(self._image_ids[self._image_ids > 0])
        class_ids = sorted(set(self._class_ids.values()))
        return prediction_sources.add(
            self._db,
            name,
            self._scale,
            by,
            ids,
            class_ids,
            self._iterate_blocks,
            boxes=self._load_known_boxes(),
            replace=replace,
            progress=progress,
        )

    def _load_known_boxes(self) -> np.ndarray:
        self._boxes.seek(0)
        boxes = np.frombuffer(bytearray(self._boxes.read()), BOX_DTYPE)
        class_ids = np.array([self._class_ids.get(name, -1) for name in self._boxed] or [-1], np.int64)
        boxes["image_id"], boxes["class_id"] = self._image_ids[boxes["image_id"]], class_ids[boxes["class_id"]]
        return boxes[(boxes["image_id"] > 0) & (boxes["class_id"] > 0)]

    def _iterate_blocks(self) -> Iterator[ScoreBlock]:
        for _, image_ids, class_ids, scores in self._iterate_known_scores():
            yield image_ids, class_ids, scores

    def _iterate_known_scores(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        for stored in self._stored:
            self._file.seek(stored.start)
            size = 4 * stored.rows * len(stored.classes)
            scores = np.frombuffer(self._file.read(size), np.float32).reshape(stored.rows, len(stored.classes))
            items = np.arange(stored.first, stored.first + stored.rows)
            image_ids = self._image_ids[items]
            known = image_ids > 0
            columns: dict[int, list[int]] = {}
            for column, class_name in enumerate(stored.classes):
                if class_name in self._class_ids:
                    columns.setdefault(self._class_ids[class_name], []).append(column)
            if not columns or not known.any():
                continue
            kept = scores[known]
            # Where several names mean the same class, the highest score counts.
            joined = [np.fmax.reduce(kept[:, several], axis=1) for several in columns.values()]
            yield items[known], image_ids[known], np.array(list(columns), np.int64), np.stack(joined, 1)
