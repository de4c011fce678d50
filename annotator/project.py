"""One open project: what owns its database, its settings and everything that is kept in memory of it.

`annotator.open` gives one to Python programs, the app serves one, and two in one process share nothing. It lies below
the two processes, which open projects, and above all other rooms, so that it can offer what they do as methods. What a
method needs is imported when it is called: pages open projects, and start quickly. docs/python.md shows all of it at
work.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from annotator.errors import AnnotatorError
from annotator.settings import login
from annotator.store.database.database import Database
from annotator.store.networks import configuration

if TYPE_CHECKING:
    import pandas as pd

    from annotator.exchange.exports.choices import Choices
    from annotator.exchange.imports.importing import Done
    from annotator.quality.certificate_records import Certificate
    from annotator.snapshot.progress import Progress
    from annotator.store.imports.staged_cells import Preview
    from annotator.store.runs.prediction_sources import Source
    from annotator.torch_dataset import LabeledImages

OneOrMany = str | int | Iterable[str | int]
State = Literal["present", "absent", "unsure", "clear"]


@dataclass(frozen=True)
class Configuration:
    """How the next run is trained. parameters: those that differ from the method's defaults."""

    method: str
    backbone: str
    parameters: dict[str, Any]


class Project:
    """The project in a folder; safe to share between threads until it is closed.

    Attributes:
        db: The database, for the functions of annotator's rooms; not part of the public interface.
    """

    def __init__(self, path: str | PathLike[str]):
        """Open it, bringing an older one up to date. Raises AnnotatorError when there is none, when it is from a newer
        version, or when its file is not a database."""
        self.db = Database(Path(path))

    @property
    def path(self) -> Path:
        """The project's folder."""
        return self.db.paths.project

    @property
    def configuration(self) -> Configuration:
        """The method, backbone and parameters of the next run, as they are set now."""
        return Configuration(
            configuration.method(self.db), configuration.backbone(self.db), configuration.parameters(self.db)
        )

    @property
    def classes(self) -> list[str]:
        """The names of the classes, in the order of columns."""
        from annotator.store.classes.classes import all_classes

        return [class_.name for class_ in all_classes(self.db)]

    def labels(self, *, wide: bool = False, unknown: bool = False, choices: "Choices | None" = None) -> "pd.DataFrame":
        """The labels as a table, of one moment.

        Args:
            wide: One row an image (the index), one Int8 column a class: 1 present, 0 absent, <NA> unknown or unsure.
                Otherwise one row a cell: image, class, state (present, absent, unsure; <NA> unknown), source,
                annotator, decided_at (UTC), probability (of the current run), split, image_id, origin_source,
                origin_annotator (of an imported answer).
            unknown: Of the long table: also the cells that nobody has answered.
            choices: Which cells count, as for an export.

        Raises:
            AnnotatorError: For impossible choices.
        """
        from annotator.exchange import frames

        return frames.wide_labels(self.db, choices) if wide else frames.labels(self.db, choices, unknown=unknown)

    def images(self) -> "pd.DataFrame":
        """The images as a table: id, name, path, sha256, width, height, complete, problem, split, and of each further
        attribute a column attribute.NAME."""
        from annotator.exchange import frames

        return frames.image_table(self.db)

    def suggestions(self, class_: str | None = None, n: int = 100) -> "pd.DataFrame":
        """The labels that are probably missing, the likeliest first: image, class, probability, run, image_id.

        Args:
            class_: Only of this class.
            n: How many at most.

        Raises:
            AnnotatorError: For an unknown class.
        """
        from annotator.exchange import frames

        return frames.suggestions(self.db, class_, n)

    def decide(
        self,
        image: "OneOrMany | pd.DataFrame",
        class_: OneOrMany | None = None,
        state: State | Iterable[State] | None = None,
        *,
        annotator: str | None = None,
    ) -> int:
        """Answer cells, in the name of a person; returns how many. All of them are one step for `undo`.

        Args:
            image: Its name or id, or several; or a table with the columns image, class and state, given alone.
            class_: Name or id; one for all images, or one for each.
            state: Present, absent, unsure, or clear (no answer any more); one for all, or one for each.
            annotator: Whose answers these are; None: your login name.

        The answers get the source `script`: a person stands for them, and a program chose the cells. Other people at
        work wait while they are stored, so labels of a whole data set are better brought in with `import_`.

        Raises:
            AnnotatorError: With all that is wrong with them; then none is stored.
        """
        from annotator.exchange import answers

        return answers.decide(self.db, image, class_, state, annotator or login())

    def undo(self, *, annotator: str | None = None) -> int:
        """Take back a person's newest step (None: your own); returns how many decisions it had. Imports are taken back
        with `annotator imports undo`. Raises AnnotatorError when there is nothing to undo."""
        from annotator.store.labels import decisions

        return len(decisions.undo(self.db, annotator or login()))

    def predictions(
        self,
        scores: "str | PathLike[str] | pd.DataFrame",
        name: str,
        *,
        scale: Literal["probability", "score"] = "probability",
        only_known: bool = False,
        replace: bool = False,
        annotator: str | None = None,
    ) -> "Source":
        """Store what another model says of images; the next training learns how much it is worth.

        Args:
            scores: A file that `annotator predictions` reads; or a table: image, class and score, one row a cell, or
                images as index and one column a class (<NA>: nothing is said). Images by name or sha256.
            name: What the source is called.
            scale: Probability, in [0, 1]; or score, of which only the order within a class counts.
            only_known: Classes that the project does not have are left out, instead of being a mistake.
            replace: What the source said before is forgotten.

        Raises:
            AnnotatorError: For all that is wrong with them; then nothing is stored.
        """
        from annotator.exchange.predictions import outside_predictions as outside
        from annotator.exchange.predictions.score_frames import score_blocks

        choices, by = outside.Choices(scale=scale, only_known=only_known, replace=replace), annotator or login()
        if isinstance(scores, str | PathLike):
            with outside.prepare(self.db, Path(scores), name, choices, by) as plan:
                return plan.apply()
        return outside.store_blocks(self.db, name, score_blocks(scores), choices, by, "The table")[0]

    def progress(self) -> "Progress":
        """How far the project is: pairs answered, images complete, and the time left at everybody's pace."""
        from annotator.snapshot.progress import progress_of

        return progress_of(self.db)

    def certificate(self, target: float = 0.98) -> "Certificate":
        """How complete and how correct the labels are, with 95 % intervals.

        Args:
            target: The recall that its `lacks` refers to.
        """
        from annotator.quality.certificate import certificate

        return certificate(self.db, target)

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
        """Write the data set with its data card; returns the files, or the folder.

        Args:
            format: docs/formats.md lists them.
            choices: Which cells and images, splits, columns, ...
            overwrite: Also replace files that no export has written.
            lossy: Write also what the format has no room for.
            tag: The name of this export, for `annotator diff`.

        Raises:
            AnnotatorError: For all that is wrong at once; then nothing is written.
        """
        from annotator.exchange.exports import export

        by = login() if tag else ""
        options: dict[str, Any] = {"overwrite": overwrite, "lossy": lossy, "tag": tag, "by": by}
        return export.export(self.db, Path(target), format, choices, **options)[1]

    def preview(
        self,
        source: str | PathLike[str],
        *,
        format: str | None = None,
        images: str | PathLike[str] | None = None,
        class_map: str | PathLike[str] | None = None,
        conflicts: Literal["keep", "replace"] = "keep",
        exhaustive: bool = False,
    ) -> "Preview":
        """What `import_` would change, with the same arguments; nothing is. Raises AnnotatorError as it does."""
        from annotator.exchange.imports import importing

        chosen = importing.Choices(format, _path(images), _path(class_map), conflicts, exhaustive)
        with importing.prepare(self.path, str(source), chosen, login()) as plan:
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
    ) -> "Done":
        """Bring in images and labels of a file, folder, archive or address, all or nothing.

        Args:
            format: Its name; None: recognised.
            images: A folder with the images; None: where the source says, or those that the project has.
            class_map: A CSV of two columns: name in the source, class of the project (empty: left out).
            conflicts: Keep: answers of the project stay where the source says something else; replace: they do not.
            exhaustive: The source names all that is present: its other classes are absent.
            annotator: Who imports, for the history; None: your login name. The answers are those of "import".

        Raises:
            AnnotatorError: For all that is wrong with the source; then nothing is stored.
        """
        from annotator.exchange.imports import importing

        chosen = importing.Choices(format, _path(images), _path(class_map), conflicts, exhaustive)
        with importing.prepare(self.path, str(source), chosen, annotator or login()) as plan:
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
        """The data set as it is now, as a torch Dataset of (image, labels, mask); it reads the images where they lie.

        Args:
            split: Only images of this split: of `choices.splits`, or else of the attribute `split`.
            transform: Called with each picture (PIL, RGB, upright); None: a float32 tensor (3, size, size) in [0, 1].
            unknown: Mask: where nothing is known, labels and mask are 0; absent, model: filled in as for exports.
            choices: Which cells and images count, as for an export.
            size: Pixels, without a transform; None: the PIL image itself.

        Raises:
            AnnotatorError: For impossible choices, and for a split that is not there.
        """
        from annotator.exchange.exports.choices import Choices
        from annotator.torch_dataset import labeled_images

        choices = choices or Choices()
        if unknown not in ("mask", "absent", "model"):
            raise AnnotatorError(f"unknown cannot be {unknown!r}. There is: mask, absent, model.")
        if unknown != "mask":
            choices = replace(choices, unknown=unknown)
        return labeled_images(self.db, split, transform, choices, size)

    def close(self) -> None:
        """Close the database and free the caches. Closing twice is allowed; any other use raises AnnotatorError."""
        self.db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"annotator.open({str(self.path)!r})"


def _path(path: str | PathLike[str] | None) -> Path | None:
    return None if path is None else Path(path)
