"""The open project: its database and all operations of the Python interface.

Methods import what they need when called, because pages must start quickly.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from annotator.errors import AnnotatorError
from annotator.settings import get_login_name
from annotator.store.database.database import Database
from annotator.store.networks import configuration

if TYPE_CHECKING:
    import pandas as pd

    from annotator.exchange.exports.choices import Choices
    from annotator.exchange.imports.import_plan import ImportOutcome
    from annotator.quality.certificate_records import Certificate
    from annotator.snapshot.project_progress import Progress
    from annotator.store.imports.staged_cells import ImportPreview
    from annotator.store.runs.prediction_sources import PredictionSource
    from annotator.torch_dataset import LabeledImages

OneOrMany = str | int | Iterable[str | int]
State = Literal["present", "absent", "unsure", "clear"]


@dataclass(frozen=True)
class Configuration:
    """The settings of the next training.

    Attributes:
        method: Method name.
        backbone: Backbone name.
        parameters: Non-default parameters.
    """

    method: str
    backbone: str
    parameters: dict[str, Any]


class Project:
    """The project in a folder, safe to share between threads until closed.

    Attributes:
        db: The database, not public.
    """

    db: Database

    def __init__(self, path: str | PathLike[str]):
        """Open the project in a folder.

        Args:
            path: Project folder, upgraded if older.

        Raises:
            AnnotatorError: Not a project, or too new.
        """
        self.db = Database(Path(path))

    @property
    def path(self) -> Path:
        """Return the project folder's absolute path."""
        return self.db.paths.project

    @property
    def configuration(self) -> Configuration:
        """Return the settings of the next training."""
        return Configuration(
            configuration.get_method(self.db),
            configuration.get_backbone(self.db),
            configuration.get_parameters(self.db),
        )

    @property
    def classes(self) -> list[str]:
        """Return the class names, in column order."""
        from annotator.store.classes.classes import load_active_classes

        return [class_.name for class_ in load_active_classes(self.db)]

    def labels(self, *, wide: bool = False, unknown: bool = False, choices: "Choices | None" = None) -> "pd.DataFrame":
        """Return a consistent table of the labels.

        Args:
            wide: One row per image and Int8 column per class (1 present, 0 absent, else <NA>).
            unknown: Include unanswered labels, unless `wide`.
            choices: As for exports.

        Returns:
            Columns image, class, state (<NA> unanswered), source, annotator, decided_at (UTC), probability, split,
            image_id, and for imports origin_source, origin_annotator.

        Raises:
            AnnotatorError: The choices are not valid.
        """
        from annotator.exchange import dataframes

        return (
            dataframes.load_wide_labels(self.db, choices)
            if wide
            else dataframes.load_labels(self.db, choices, unknown=unknown)
        )

    def images(self) -> "pd.DataFrame":
        """Return a table with one row per image.

        Returns:
            Columns id, name, path (or <NA>), sha256, width, height (pixels), complete, problem ("" if readable),
            split, and attribute.NAME per field.
        """
        from annotator.exchange import dataframes

        return dataframes.load_images(self.db)

    def suggestions(self, class_: str | None = None, n: int = 100) -> "pd.DataFrame":
        """Return unanswered labels that are probably present, most probable first.

        Args:
            class_: None selects all.
            n: Maximum rows.

        Returns:
            Columns image, class, probability, run, image_id.

        Raises:
            AnnotatorError: Unknown class.
        """
        from annotator.exchange import dataframes

        return dataframes.load_suggestions(self.db, class_, n)

    def decide(
        self,
        image: "OneOrMany | pd.DataFrame",
        class_: OneOrMany | None = None,
        state: State | Iterable[State] | None = None,
        *,
        annotator: str | None = None,
    ) -> int:
        """Store labels of an annotator in one step, all or nothing, which `undo` reverts.

        Their source is `script`. For a whole data set, use `import_`, which blocks others less.

        Args:
            image: Names or ids, or a table (image, class, state).
            class_: One, or one per image. None with a table.
            state: present, absent, unsure or clear, like `class_`.
            annotator: None selects yourself.

        Returns:
            The label count.

        Raises:
            AnnotatorError: Lists all problems.
        """
        from annotator.exchange import scripted_decisions

        return scripted_decisions.store_decisions(self.db, image, class_, state, annotator or get_login_name())

    def undo(self, *, annotator: str | None = None) -> int:
        """Undo the newest step of an annotator, except imports.

        Args:
            annotator: None selects yourself.

        Returns:
            The decision count.

        Raises:
            AnnotatorError: No step is left.
        """
        from annotator.store.labels import decisions

        return len(decisions.undo(self.db, annotator or get_login_name()))

    def predictions(
        self,
        scores: "str | PathLike[str] | pd.DataFrame",
        name: str,
        *,
        scale: Literal["probability", "score"] = "probability",
        only_known: bool = False,
        replace: bool = False,
        annotator: str | None = None,
    ) -> "PredictionSource":
        """Store predictions of another model, weighted by the next training.

        Args:
            scores: A file, or a table: image (name or sha256), class and score, or one column per class.
            name: Source name.
            scale: probability in [0, 1], or score (only ordered within classes).
            only_known: Ignore unknown classes.
            replace: Replace this source's predictions.
            annotator: None selects yourself.

        Returns:
            The stored source.

        Raises:
            AnnotatorError: Scores are not valid.
        """
        from annotator.exchange.predictions import prediction_import
        from annotator.exchange.predictions.score_dataframes import read_score_frame

        choices, by = (
            prediction_import.PredictionOptions(scale=scale, only_known=only_known, replace=replace),
            annotator or get_login_name(),
        )
        if isinstance(scores, str | PathLike):
            with prediction_import.prepare_predictions(self.db, Path(scores), name, choices, by) as plan:
                return plan.apply()
        return prediction_import.store_scores(self.db, name, read_score_frame(scores), choices, by, "The table")[0]

    def progress(self) -> "Progress":
        """Return the progress: labels answered, images complete, seconds left."""
        from annotator.snapshot.project_progress import load_progress

        return load_progress(self.db)

    def certificate(self, target: float = 0.98) -> "Certificate":
        """Return the quality report, with 95% intervals.

        Args:
            target: Recall in [0, 1] that the advice refers to.

        Returns:
            Figures, and advice on reaching the target (`lacks`).
        """
        from annotator.quality.certification import compute_certificate

        return compute_certificate(self.db, target)

    def export(
        self,
        target: str | PathLike[str],
        format: str = "csv",
        choices: "Choices | None" = None,
        *,
        overwrite: bool = False,
        lossy: bool = False,
        tag: str = "",
    ) -> list[Path]:
        """Write the data set and its data card, all or nothing.

        Args:
            target: File or folder.
            format: Format of docs/formats.md.
            choices: Filters, splits, columns. None selects everything.
            overwrite: Replace files not written by exports.
            lossy: Allow data loss.
            tag: Version for `annotator diff`, or "".

        Returns:
            Written files or folder.

        Raises:
            AnnotatorError: Lists all problems.
        """
        from annotator.exchange.exports import export_writer

        by = get_login_name() if tag else ""
        _, written = export_writer.export_data_set(
            self.db, Path(target), format, choices, overwrite=overwrite, lossy=lossy, tag=tag, by=by
        )
        return written

    def preview(
        self,
        source: str | PathLike[str],
        *,
        format: str | None = None,
        images: str | PathLike[str] | None = None,
        class_map: str | PathLike[str] | None = None,
        conflicts: Literal["keep", "replace"] = "keep",
        exhaustive: bool = False,
    ) -> "ImportPreview":
        """Return the changes that `import_` would make.

        Args:
            source: File, folder, archive or URL.
            format: None detects it.
            images: Image folder. None uses the source's or project's.
            class_map: CSV (source name, project class), empty excludes. None matches equal names.
            conflicts: keep or replace existing labels.
            exhaustive: Unnamed classes are absent.

        Returns:
            Counts, conflicts and unmatched names.

        Raises:
            AnnotatorError: Lists all problems.
        """
        from annotator.exchange.imports import import_plan
        from annotator.store.locations.addresses import parse_location

        chosen = import_plan.ImportOptions(format, _to_path(images), _to_path(class_map), conflicts, exhaustive)
        with import_plan.prepare_import(self.db, parse_location(str(source)), chosen, get_login_name()) as plan:
            return plan.preview

    def import_(
        self,
        source: str | PathLike[str],
        *,
        format: str | None = None,
        images: str | PathLike[str] | None = None,
        class_map: str | PathLike[str] | None = None,
        conflicts: Literal["keep", "replace"] = "keep",
        exhaustive: bool = False,
        annotator: str | None = None,
    ) -> "ImportOutcome":
        """Import images and labels, all or nothing.

        Args:
            source: File, folder, archive or URL.
            format: None detects it.
            images: Image folder. None uses the source's or project's.
            class_map: CSV (source name, project class), empty excludes. None matches equal names.
            conflicts: keep or replace existing labels.
            exhaustive: Unnamed classes are absent.
            annotator: None selects your login name.

        Returns:
            Counts of labels and images.

        Raises:
            AnnotatorError: Lists all problems.
        """
        from annotator.exchange.imports import import_plan
        from annotator.store.locations.addresses import parse_location

        chosen = import_plan.ImportOptions(format, _to_path(images), _to_path(class_map), conflicts, exhaustive)
        with import_plan.prepare_import(
            self.db, parse_location(str(source)), chosen, annotator or get_login_name()
        ) as plan:
            return plan.apply()

    def dataset(
        self,
        split: str | None = None,
        transform: Callable[[Any], Any] | None = None,
        *,
        unknown: Literal["mask", "absent", "model"] = "mask",
        choices: "Choices | None" = None,
        size: int | None = 224,
    ) -> "LabeledImages":
        """Return a snapshot of the labels as a torch Dataset of (image, labels, mask).

        Args:
            split: None selects all.
            transform: Applied to PIL images. None gives float32 (3, size, size) in [0, 1].
            unknown: mask zeroes unanswered labels, absent and model fill them.
            choices: As for exports.
            size: Pixels without a transform. None gives PIL images.

        Returns:
            Labels: (C,) float32, 1 present, -1 absent, 0 unknown. Mask: 1 where known.

        Raises:
            AnnotatorError: Not valid arguments, or empty split.
            TrainingNotInstalled: The extra `train` is missing.
        """
        from annotator.exchange.exports.choices import Choices
        from annotator.training_extra import require_training

        require_training()
        from annotator.torch_dataset import build_labeled_images

        choices = choices or Choices()
        if unknown not in ("mask", "absent", "model"):
            raise AnnotatorError(f"unknown cannot be {unknown!r}. There is: mask, absent, model.")
        if unknown != "mask":
            choices = replace(choices, unknown=unknown)
        return build_labeled_images(self.db, split, transform, choices, size)

    def close(self) -> None:
        """Close the database. Later use raises AnnotatorError, except closing again."""
        self.db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"annotator.open({str(self.path)!r})"


def _to_path(path: str | PathLike[str] | None) -> Path | None:
    return None if path is None else Path(path)
