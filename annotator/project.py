"""The open project: the owner of its database, its settings and everything that is kept in memory of it.

`annotator.open` returns a Project to Python programs, and the app serves one; two projects in one process share
nothing. This module lies below the two processes, which open projects, and above all other rooms, so that it can offer
their functions as methods. What a method needs is imported when it is called, because pages open projects and must
start quickly. docs/python.md has examples.
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
        method: Name of the training method.
        backbone: Name of the backbone.
        parameters: The parameters of the method that differ from its defaults, by name.
    """

    method: str
    backbone: str
    parameters: dict[str, Any]


class Project:
    """The project in a folder; safe to share between threads until it is closed.

    Attributes:
        db: The database, for the functions of annotator's rooms; not part of the public interface.
    """

    db: Database

    def __init__(self, path: str | PathLike[str]):
        """Open the project in a folder, bringing one of an older version up to date.

        Args:
            path: The project folder.

        Raises:
            AnnotatorError: The folder holds no project, the project is from a newer version, or its file is not a
                database.
        """
        self.db = Database(Path(path))

    @property
    def path(self) -> Path:
        """Return the absolute path of the project folder."""
        return self.db.paths.project

    @property
    def configuration(self) -> Configuration:
        """Return the method, backbone and parameters of the next training, as they are set now."""
        return Configuration(
            configuration.get_method(self.db),
            configuration.get_backbone(self.db),
            configuration.get_parameters(self.db),
        )

    @property
    def classes(self) -> list[str]:
        """Return the names of the classes, in the order of the columns of tables and exports."""
        from annotator.store.classes.classes import load_active_classes

        return [class_.name for class_ in load_active_classes(self.db)]

    def labels(self, *, wide: bool = False, unknown: bool = False, choices: "Choices | None" = None) -> "pd.DataFrame":
        """Return the labels as a table, all as of one moment.

        Args:
            wide: True: one row an image (the index holds their names) and one Int8 column a class: 1 present, 0 absent,
                <NA> unknown or unsure. False: one row a cell, with the columns listed below.
            unknown: Also return the cells without an answer: images x classes rows. Ignored where `wide` is True.
            choices: The cells and images to return, as for an export; None: all.

        Returns:
            The long table has the columns image, class, state (present, absent, unsure; <NA> unknown), source,
            annotator, decided_at (UTC), probability (of the current run, nan without one), split, image_id, and, for
            imported answers, origin_source and origin_annotator.

        Raises:
            AnnotatorError: The choices are not possible for this project.
        """
        from annotator.exchange import dataframes

        return (
            dataframes.load_wide_labels(self.db, choices)
            if wide
            else dataframes.load_labels(self.db, choices, unknown=unknown)
        )

    def images(self) -> "pd.DataFrame":
        """Return the images as a table with one row an image.

        Returns:
            Columns id, name, path (of the file, <NA> without one), sha256, width and height (pixels), complete (every
            class is answered), problem (why the file cannot be read, "" when it can), split, and one column
            attribute.NAME for each other attribute.
        """
        from annotator.exchange import dataframes

        return dataframes.load_images(self.db)

    def suggestions(self, class_: str | None = None, n: int = 100) -> "pd.DataFrame":
        """Return the unanswered labels that are probably present, the likeliest first.

        Args:
            class_: Name of the only class to return; None: all classes.
            n: The largest number of rows.

        Returns:
            Columns image, class, probability, run and image_id; no rows before the first run.

        Raises:
            AnnotatorError: No class has this name.
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
        """Answer cells in the name of a person; all of them are stored, as one step for `undo`, or none.

        The answers get the source `script`: a person stands for them, and a program chose the cells. Decisions of other
        people wait while the answers are stored, so labels of a whole data set are better brought in with `import_`.

        Args:
            image: A name or id, or several; or a table with the columns image, class and state, given alone.
            class_: A name or id for all images, or one for each; None with a table.
            state: Present, absent, unsure or clear (no answer any more) for all images, or one for each; None with a
                table.
            annotator: The person whose answers these are; None: your login name.

        Returns:
            The number of cells answered.

        Raises:
            AnnotatorError: Images, classes or states are unknown or do not fit together; the message lists all
                problems.
        """
        from annotator.exchange import scripted_decisions

        return scripted_decisions.store_decisions(self.db, image, class_, state, annotator or get_login_name())

    def undo(self, *, annotator: str | None = None) -> int:
        """Take back the newest step of a person; imports are taken back with `annotator imports undo`.

        Args:
            annotator: The person whose step is taken back; None: your login name.

        Returns:
            The number of decisions taken back.

        Raises:
            AnnotatorError: The person has no decision left to undo.
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
        """Store the predictions of another model; the next training learns how much they are worth.

        Args:
            scores: A file that `annotator predictions` reads; or a table: image, class and score, one row a cell, or
                images as index and one column a class (<NA>: no score). Images are given by name or sha256.
            name: The name of the source of these predictions.
            scale: Probability: the scores lie in [0, 1]; score: any numbers, of which only the order within a class
                counts.
            only_known: Leave out classes that the project does not have, instead of refusing them.
            replace: Forget the earlier predictions of this source.
            annotator: The person who brings them in, for the history; None: your login name.

        Returns:
            The source as it is stored: its name, scale, and the numbers of images and cells it has a score for.

        Raises:
            AnnotatorError: The scores cannot be read or do not fit the project; then nothing is stored.
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
        """Return how far the project is: pairs answered, images complete, and the seconds left at everybody's pace."""
        from annotator.snapshot.project_progress import load_progress

        return load_progress(self.db)

    def certificate(self, target: float = 0.98) -> "Certificate":
        """Return how complete and how correct the labels are, with 95 % intervals.

        Args:
            target: The recall, in [0, 1], that the sentences of `lacks` refer to.

        Returns:
            The certificate: `overall` and `classes` hold the figures, `lacks` says what would make them surer.
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
        """Write the data set and its data card; nothing is written where anything is wrong.

        Args:
            target: The file or folder to write, as the format asks for.
            format: Name of a format of docs/formats.md.
            choices: Cells and images to write, splits, columns, and so on; None: everything.
            overwrite: Replace files that no export has written, too.
            lossy: Write even where the format has no room for all facts.
            tag: The name of this export, for `annotator diff`; "": none.

        Returns:
            The paths written: the files, or the folder.

        Raises:
            AnnotatorError: The format, the target or the choices are not possible, or the format would lose facts; the
                message lists all problems.
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
        """Return what `import_` would change with the same arguments; nothing is changed.

        Args:
            source: A file, folder, archive or address.
            format: Name of the format; None: it is recognised.
            images: A folder with the images; None: those that the source names, or those of the project.
            class_map: A CSV of two columns: name in the source, class of the project (empty: left out); None: equal
                names.
            conflicts: Keep: answers of the project stay where the source says something else; replace: the source's
                count.
            exhaustive: The source names every present class: its other classes are absent.

        Returns:
            The numbers of images, answers and conflicts, and the names that match no class.

        Raises:
            AnnotatorError: The source cannot be read; the message lists all problems.
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
        """Import images and labels of a file, folder, archive or address, all or nothing.

        Args:
            source: A file, folder, archive or address.
            format: Name of the format; None: it is recognised.
            images: A folder with the images; None: those that the source names, or those of the project.
            class_map: A CSV of two columns: name in the source, class of the project (empty: left out); None: equal
                names.
            conflicts: Keep: answers of the project stay where the source says something else; replace: the source's
                count.
            exhaustive: The source names every present class: its other classes are absent.
            annotator: The person who imports, for the history; None: your login name. The answers are those of
                "import".

        Returns:
            The numbers of answers and images that were stored.

        Raises:
            AnnotatorError: The source cannot be imported; the message lists all problems, and nothing is stored.
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
        """Return the data set as it is now, as a torch Dataset of (image, labels, mask).

        Images are read where they lie, when they are asked for.

        Args:
            split: Only images of this split: of `choices.splits`, or else of the attribute `split`; None: all images.
            transform: Called with each picture (PIL, RGB, upright); None: a float32 tensor (3, size, size) in [0, 1].
            unknown: Mask: labels and mask are 0 where nothing is known; absent, model: unknown cells are filled in as
                for exports.
            choices: The cells and images to use, as for an export; None: all.
            size: Width and height in pixels without a transform; None: the PIL image itself.

        Returns:
            The data set; labels are (C,) float32: 1 present, -1 absent, 0 unknown, and the mask is 1 where the label is
            known.

        Raises:
            AnnotatorError: The choices are not possible, `unknown` is another word, or no image is in the split.
        """
        from annotator.exchange.exports.choices import Choices
        from annotator.torch_dataset import build_labeled_images

        choices = choices or Choices()
        if unknown not in ("mask", "absent", "model"):
            raise AnnotatorError(f"unknown cannot be {unknown!r}. There is: mask, absent, model.")
        if unknown != "mask":
            choices = replace(choices, unknown=unknown)
        return build_labeled_images(self.db, split, transform, choices, size)

    def close(self) -> None:
        """Close the database and free the caches; closing again does nothing, any other use raises AnnotatorError."""
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
