"""The choices of a person for an export: the same names on the command line, on the page and in Python.

All problems of the choices are reported together, before anything is read or written.
"""

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from annotator.errors import AnnotatorError, did_you_mean
from annotator.exchange.exports.thresholds import Limits
from annotator.exchange.formats.export_view import TableColumns
from annotator.exchange.formats.format import Format
from annotator.quality.disagreement_resolution import KEEP_LABEL, RESOLUTIONS
from annotator.records import SOURCES, STATES

UNKNOWN_CHOICES = ("keep", "absent", "model")
IMAGE_CHOICES = ("none", "link", "copy", "resize")
EXISTING_SPLITS = "existing"
SPLIT_BY_SIMILARITY = "similar"
_COLUMN = re.compile(r"((?:\\[\\=]|[^=])*)(=?)(.*)", re.DOTALL)  # of --columns: column=name
MIN_PIXELS, MAX_PIXELS = 16, 16384  # pixels of the longer side of a resized image


@dataclass(frozen=True)
class Choices:
    """The cells and images that an export holds, and the form in which it holds them.

    Attributes:
        unknown: Keep: unknown cells stay unknown; absent: they become absent (marked "assumed"); model: the current run
            fills in those it is sure enough of (marked "model").
        limits: For model: thresholds, or the expected error they are derived from.
        only_complete: Only images without an unknown cell, before `unknown` fills any in.
        only_labeled: Only images with a present class, before `unknown` fills any in.
        classes: Only these classes, in this order; () for all.
        states: Only answers with these states, the others become unknown; () for all.
        annotators: Only answers of these people, the others become unknown; () for all.
        sources: Only answers of these sources, the others become unknown; () for all.
        differing: The value of cells on which people differ and which nobody has settled: one of
            quality.differing.WAYS.
        auto_accepted: Auto-accepted cells count; never where annotators or sources are chosen, as nobody gave them.
        accepted_precision: Only auto-accepted cells whose guaranteed precision is at least this share.
        accepted_confidence: Only auto-accepted cells whose guarantee has at least this confidence, a share.
        splits: "train=0.8,val=0.1,test=0.1"; "existing" or "existing:NAME" for the attribute `split` or NAME; "" for
            none.
        split_by: What keeps images together in one split: "" nothing, "folder", "similar" (near_duplicates.py), or the
            name of an attribute.
        seed: The seed of the splits.
        images: What becomes of image files: none, link, copy or resize; "" as the format needs it.
        pixels: The longest side of a resized image at most; smaller images are not enlarged.
        raw: Text in a CSV is written unescaped, even where a spreadsheet takes it for a formula.
        columns: The columns of tables.
        pseudonyms: People are "annotator 1", "annotator 2", ... everywhere in the export.
        license: The licence that the data card names; "" for none.
        cite: The citation that the data card gives; "" for none.
        event_labels: Each image of an event (burst) gets the classes that the event was labeled with, where nobody has
            answered; at least one image of the event shows them, not every one.
        deployments: Of camera traps: a table with the columns deploymentID, latitude, longitude; "" for none.
        set_aside: Images that people set aside are in the export, too.
    """

    unknown: str = "keep"
    limits: Limits = field(default_factory=Limits)
    only_complete: bool = False
    only_labeled: bool = False
    classes: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    annotators: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    differing: str = KEEP_LABEL
    auto_accepted: bool = True
    accepted_precision: float = 0.0
    accepted_confidence: float = 0.0
    splits: str = ""
    split_by: str = ""
    seed: int = 0
    images: str = ""
    pixels: int = 1024
    raw: bool = False
    columns: TableColumns = field(default_factory=TableColumns)
    pseudonyms: bool = False
    license: str = ""
    cite: str = ""
    event_labels: bool = False
    deployments: str = ""
    set_aside: bool = False

    @property
    def takes_accepted(self) -> bool:
        """Return whether auto-accepted cells count."""
        return self.auto_accepted and not (self.annotators or self.sources)

    def problems(self) -> list[str]:
        """Return what is wrong with the choices whatever the project and the format are, in sentences."""
        sentences = self.limits.problems()
        if self.unknown not in UNKNOWN_CHOICES:
            sentences.append(f"--unknown cannot be {self.unknown!r}. {did_you_mean(self.unknown, UNKNOWN_CHOICES)}")
        sentences += _find_unknown_words("--state", self.states, STATES)
        sentences += _find_unknown_words("--source", self.sources, SOURCES)
        if self.differing not in RESOLUTIONS:
            sentences.append(f"--differing cannot be {self.differing!r}. {did_you_mean(self.differing, RESOLUTIONS)}")
        for name in ("accepted_precision", "accepted_confidence"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                sentences.append(f"--{name.replace('_', '-')} {value:g} is no share: it must lie between 0 and 1.")
        if self.images and self.images not in IMAGE_CHOICES:
            sentences.append(f"--images cannot be {self.images!r}. {did_you_mean(self.images, IMAGE_CHOICES)}")
        if not MIN_PIXELS <= self.pixels <= MAX_PIXELS:
            sentences.append(f"--pixels {self.pixels} must lie between {MIN_PIXELS} and {MAX_PIXELS}.")
        try:
            parse_split_shares(self.splits)
        except AnnotatorError as error:
            sentences.append(str(error))
        if self.split_by and not self.splits:
            sentences.append("--split-by needs --splits.")
        if self.split_by and uses_existing_splits(self.splits):
            sentences.append("--split-by cannot be used with splits that exist already.")
        return sentences

    def problems_of_format(self, format_: Format) -> list[str]:
        """Return what is wrong with the choices for this format, in sentences."""
        if self.event_labels and format_.name == "camtrap-dp":
            return ["--event-labels is for other formats: camtrap-dp writes labels of events as such. Leave it out."]
        if self.deployments and format_.name != "camtrap-dp":
            return [f"--deployments belongs to --format camtrap-dp; {format_.name} has no place for it."]
        if not format_.ending or self.images in ("", "none"):
            return []
        return [f"The format {format_.name} is one file and has no room for images: leave out --images {self.images}."]

    def problems_of_project(self, classes: Iterable[str], annotators: Iterable[str], names: Sequence[str]) -> list[str]:
        """Return what is wrong with the choices for one project, in sentences.

        Args:
            classes: Names of the project's classes.
            annotators: Names of the people who have decided.
            names: Names of the attributes that images have.

        Returns:
            A sentence for each problem; [] when there is none.
        """
        sentences = _find_unknown_words("--class", self.classes, classes) + _find_unknown_words(
            "--annotator", self.annotators, annotators
        )
        if len(set(self.classes)) < len(self.classes):
            sentences.append("--class names a class twice.")
        attribute = find_split_attribute(self.splits)
        if attribute and attribute not in names:
            sentences.append(f"No image has the attribute {attribute!r} to take splits from. {_list_attributes(names)}")
        if self.split_by not in ("", "folder", SPLIT_BY_SIMILARITY, *names):
            sentences.append(f"--split-by {self.split_by!r}: no image has such an attribute. {_list_attributes(names)}")
        return sentences

    def as_json(self) -> dict[str, Any]:
        """Return the choices that differ from the defaults, for the data card."""
        chosen, usual = asdict(self), asdict(Choices())
        return {name: value for name, value in chosen.items() if value not in (usual[name], "none")}

    @classmethod
    def from_json(cls, chosen: dict[str, Any]) -> "Choices":
        """Return the choices that `as_json` described.

        Args:
            chosen: The dict that `as_json` returned, or what JSON made of it (lists instead of tuples).

        Returns:
            Equal choices.
        """
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in chosen.items()
        }
        if "limits" in values:
            values["limits"] = Limits(**values["limits"])
        if "columns" in values:
            columns = values["columns"]
            pairs = tuple((name, written) for name, written in columns["chosen"])
            values["columns"] = TableColumns(columns["long"], pairs, columns["seconds"])
        return cls(**values)


def uses_existing_splits(splits: str) -> bool:
    """Return whether `splits` names splits that the images already have."""
    return splits.partition(":")[0] == EXISTING_SPLITS


def find_split_attribute(splits: str) -> str:
    """Return the attribute that holds the split of each image; "" for splits that the export makes."""
    word, _, name = splits.partition(":")
    return (name or "split") if word == EXISTING_SPLITS else ""


def parse_split_shares(splits: str) -> dict[str, float]:
    """Return the share of each split that the export makes.

    Args:
        splits: `Choices.splits`.

    Returns:
        Name -> share, summing to 1; {} for no splits and for existing ones.

    Raises:
        AnnotatorError: The text cannot be read, or its shares do not sum to 1.
    """
    if not splits or uses_existing_splits(splits):
        return {}
    result: dict[str, float] = {}
    for part in splits.split(","):
        name, _, number = (word.strip() for word in part.partition("="))
        try:
            share = float(number)
        except ValueError:
            share = 0.0
        if not name or not 0 < share <= 1 or name in result or not _is_folder_name(name):
            raise AnnotatorError(
                f"--splits {splits!r} cannot be read at {part.strip()!r}: write each name once with its share, such as "
                "train=0.8,val=0.1,test=0.1, or existing for splits that the images have."
            )
        result[name] = share
    if abs(sum(result.values()) - 1) > 1e-6:
        raise AnnotatorError(f"The shares of --splits {splits!r} sum to {sum(result.values()):g}; they must sum to 1.")
    return result


def parse_columns(text: str) -> tuple[tuple[str, str], ...]:
    r"""Return the columns that a text such as "image=file,fox" names.

    Args:
        text: One line of CSV, so that a name with a comma can be quoted; \= and \\ in a column stand for = and \.

    Returns:
        (column, its name in the file) for each; () for "".

    Raises:
        AnnotatorError: A part of the text has no column, or nothing after its equals sign.
    """
    if not text:
        return ()
    pairs: list[tuple[str, str]] = []
    for part in next(csv.reader([text])):
        name, equals, written = _COLUMN.findall(part)[0]
        name = re.sub(r"\\([\\=])", r"\1", name)
        if not name.strip() or (equals and not written.strip()):
            raise AnnotatorError(
                f"--columns cannot be read at {part!r}: write column or column=name, with commas between."
            )
        pairs.append((name.strip(), (written or name).strip()))
    return tuple(pairs)


def _is_folder_name(name: str) -> bool:
    return name.replace("-", "").replace("_", "").isalnum() and len(name) <= 50


def _find_unknown_words(option: str, words: Sequence[str], known: Iterable[str]) -> list[str]:
    known = list(known)
    return [f"{option} {word!r} is not there. {did_you_mean(word, known)}" for word in words if word not in known]


def _list_attributes(names: Sequence[str]) -> str:
    return f"There is: {', '.join(names)}." if names else "Images have no attributes yet."
