"""Import of another model's predictions: read, check, preview, and store as one version.

    with prepare_predictions(db, file, "yolo-world", PredictionOptions(), by="Ann") as plan:
        print(plan.found)
        source = plan.apply()

Unknown images are omitted. Unknown classes are errors unless `only_known`. The highest score per image and class
counts.
"""

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from annotator.errors import AnnotatorError, did_you_mean
from annotator.exchange.files.problems import Problems
from annotator.exchange.predictions.score_files import ScoreBlock, read_scores
from annotator.humanize import format_count
from annotator.progress_callbacks import ProgressCallback, ignore_progress
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.imports.staged_scores import ResolvedScores, StagedScores
from annotator.store.runs.prediction_sources import CLASS_NAMES_SOURCE, PROBABILITY, PredictionSource

MAX_UNKNOWN_SHOWN = 200  # unknown classes that are named in one sentence


@dataclass(frozen=True)
class PredictionOptions:
    """The options of a predictions import."""

    # None recognizes it
    format: str | None = None
    scale: str = PROBABILITY
    # project class by name in the file, "" to omit it
    class_map: Mapping[str, str] = field(default_factory=dict)
    # images_file, classes_file: row and column names of a .npy array
    images_file: Path | None = None
    classes_file: Path | None = None
    only_known: bool = False
    # delete earlier predictions of the source
    replace: bool = False
    # loosest way to match image names, as in ReadingOptions. None allows all
    match: str | None = None


class PredictionPlan:
    """Predictions that were read from a file, ready to be stored by `apply`."""

    def __init__(
        self, db: Database, staged: StagedScores, name: str, choices: PredictionOptions, by: str, problems: Problems
    ):
        self._db, self._staged, self._name, self._choices, self._by = db, staged, name, choices, by
        self._problems = problems  # StagedScores adds its problems here too
        self.format, self.why = "", ""
        self.sentences: Sequence[str] = ()
        self.dispensable: Collection[str] = ()
        self.found: ResolvedScores

    def change_options(self, choices: PredictionOptions) -> None:
        """Match the names again with other options, without reading the file again. Raises AnnotatorError."""
        self._choices = choices
        self._problems.clear()
        self.found = _check_names(self._db, self._staged, "The file", choices, self._problems, self.dispensable)

    def apply(self, progress: ProgressCallback = ignore_progress) -> PredictionSource:
        return self._staged.store(self._name, self._by, replace=self._choices.replace, progress=progress)


@contextmanager
def prepare_predictions(
    db: Database,
    path: Path,
    name: str,
    choices: PredictionOptions,
    by: str,
    progress: ProgressCallback = ignore_progress,
) -> Generator[PredictionPlan]:
    """Read a file of predictions and yield a plan, ready to be applied.

    Args:
        progress: Receives (images read, 0). An exception cancels.

    Raises:
        AnnotatorError: Lists all problems of the file.
    """
    db.check_writable()
    _check_source_name(name)
    problems = Problems()
    file = read_scores(path, problems, choices.format, choices.images_file, choices.classes_file)
    with StagedScores(db, choices.scale, problems.add, file.place) as staged:
        plan = PredictionPlan(db, staged, name, choices, by, problems)
        plan.format, plan.why, plan.sentences, plan.dispensable = (
            file.format,
            file.why,
            file.sentences,
            file.dispensable,
        )
        read = 0
        for block in file.blocks:
            staged.add(block)
            read += len(block.images)
            progress(read, 0)
        plan.found = _check_names(db, staged, str(path), choices, problems, file.dispensable)
        yield plan


def store_scores(
    db: Database,
    name: str,
    blocks: Iterator[ScoreBlock],
    choices: PredictionOptions,
    by: str,
    subject: str = "The request",
) -> tuple[PredictionSource, ResolvedScores]:
    """Check and store scores that do not come from a file, and return the source and the matches.

    `subject` names their origin in errors.
    """
    _check_source_name(name)
    problems = Problems()
    with StagedScores(db, choices.scale, problems.add, "image") as staged:
        for block in blocks:
            staged.add(block)
        found = _check_names(db, staged, subject, choices, problems)
        return staged.store(name, by, replace=choices.replace), found


def _check_source_name(name: str) -> None:
    if name.strip().casefold() == CLASS_NAMES_SOURCE:
        raise AnnotatorError(
            f"{CLASS_NAMES_SOURCE!r} is what this project guesses from names itself. Give these another name."
        )


def _check_names(
    db: Database,
    staged: StagedScores,
    subject: str,
    choices: PredictionOptions,
    problems: Problems,
    dispensable: Collection[str] = (),
) -> ResolvedScores:
    found = staged.resolve(choices.class_map, choices.match)
    unknown = [name for name in found.unknown_classes if name not in dispensable or name in found.unclear]
    if unknown and not choices.only_known:
        known = classes.load_classes_by_name(db)
        for name in unknown:
            problems.add(found.unclear.get(name) or f"no class is called {name!r}. {did_you_mean(name, known)}")
        problems.add(_describe_unknown_classes(unknown))
    if not found.images and found.unknown_images.count:
        examples = "; ".join(found.unknown_images.examples)
        problems.add(f"none of its {found.unknown_images.count:,} images is in the project ({examples})")
    elif not found.images and not problems.count:
        problems.add("it says nothing of any image")
    if problems.count:
        raise problems.error(f"{subject} cannot be used, and nothing was stored:")
    return found


def _describe_unknown_classes(unknown: Sequence[str]) -> str:
    names = ", ".join(map(repr, unknown[:MAX_UNKNOWN_SHOWN])) + (
        " and more" if len(unknown) > MAX_UNKNOWN_SHOWN else ""
    )
    return (
        f"the project lacks {format_count(len(unknown), 'class', 'classes')} of it: {names}. Leave them out with "
        "--only-known, say which classes they are with --class-map FILE, or add them to the project"
    )
