"""Data besides labels, embedded in exports under one JSON key and read by imports."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from annotator.exchange.formats.contents import ImportedLabel, Remark
from annotator.exchange.formats.export_view import PROBABILITY_DIGITS, STATE_WORDS, Block, CellAcceptance, View
from annotator.exchange.formats.shared.cell_columns import format_values
from annotator.exchange.formats.shared.times import format_iso_time, parse_iso_time
from annotator.records import STATES, UNSURE

EXTRAS_KEY = "multilabel-annotator"

Origins = dict[tuple[str, int], tuple[str, float | None, str]]
"""(Class, state) -> (annotator, unix seconds, source)."""


class ImageLabels(NamedTuple):
    """The labels of one image, as parallel lists in class order."""

    columns: list[int]
    states: list[int]
    sources: list[int]
    annotators: list[int]
    # ISO 8601 in UTC, "" without a decision
    times: list[str]

    def by_state(self, names: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
        named: tuple[list[str], ...] = ([], [], [], [])
        for column, state in zip(self.columns, self.states, strict=True):
            named[state].append(names[column])
        return named[1], named[2], named[3]


def iter_image_labels(block: Block) -> Iterator[ImageLabels]:
    rows, columns = np.nonzero(block.states)
    ends = np.searchsorted(rows, np.arange(1, len(block.images) + 1)).tolist()
    lists: list[list[Any]] = [columns.tolist()]
    lists += [values[rows, columns].tolist() for values in (block.states, block.sources, block.annotators)]
    lists.append(format_values(block.decided_at[rows, columns], format_iso_time))
    start = 0
    for end in ends:
        yield ImageLabels(*(values[start:end] for values in lists))
        start = end


class LabelGroup(msgspec.Struct, omit_defaults=True):
    """JSON record: classes of one image with the same state and provenance."""

    classes: list[str]
    # exported state. If another tool changed it since, the provenance does not apply
    state: str
    source: str = ""
    annotator: str = ""
    decided_at: str = ""
    # origin_source, origin_annotator, origin_decided_at: provenance before an import
    origin_source: str = ""
    origin_annotator: str = ""
    origin_decided_at: str = ""
    # run, threshold, precision, confidence: guarantee of auto-accepted cells
    run: int | None = None
    threshold: float | None = None
    precision: float | None = None
    confidence: float | None = None


class Note(msgspec.Struct, omit_defaults=True):
    """A flag or comment."""

    kind: str
    text: str
    annotator: str = ""
    written_at: str = ""


class Extras(msgspec.Struct, omit_defaults=True):
    """Data of one image besides its labels, with a reason in `missing` if it is unreadable."""

    image: str = ""
    sha256: str = ""
    split: str = ""
    missing: str = ""
    attributes: dict[str, str] = {}
    notes: list[Note] = []
    answers: list[LabelGroup] = []
    probabilities: dict[str, float] = {}

    def list_origins(self) -> Origins:
        """Return the origin of each answer, that before the import for imported ones."""
        found: Origins = {}
        for group in self.answers:
            if group.origin_source or group.origin_annotator or group.origin_decided_at:
                origin = (group.origin_annotator, parse_iso_time(group.origin_decided_at), group.origin_source)
            else:
                origin = (group.annotator, parse_iso_time(group.decided_at), group.source)
            state = STATES.get(group.state, UNSURE)
            found |= {(name, state): origin for name in group.classes}
        return found

    def list_attributes(self) -> dict[str, str]:
        return self.attributes | ({"split": self.split} if self.split else {})

    def list_remarks(self) -> list[Remark]:
        return [Remark(note.kind, note.text, note.annotator, parse_iso_time(note.written_at)) for note in self.notes]


def build_extras(view: View, names: Sequence[str], block: Block, row: int, given: ImageLabels) -> Extras:
    """Return the extras of one image. `given` are its labels, `names` all class names."""
    image = block.images[row]
    return Extras(
        image=image.name,
        sha256=image.sha256,
        split=block.splits[row],
        missing=block.missing[row],
        attributes=dict(block.attributes[row]),
        notes=[Note(note.kind, note.text, note.annotator, format_iso_time(note.at)) for note in block.notes[row]],
        answers=_group_labels(view, names, block, row, given),
        probabilities=read_probabilities(names, block, row),
    )


def read_probabilities(names: Sequence[str], block: Block, row: int) -> dict[str, float]:
    """Return an image's probabilities by the current model, by class name."""
    numbers = block.probabilities[row]
    known = np.flatnonzero(~np.isnan(numbers)).tolist()
    return {
        names[column]: round(number, PROBABILITY_DIGITS)
        for column, number in zip(known, numbers[known].tolist(), strict=True)
    }


def _group_labels(view: View, names: Sequence[str], block: Block, row: int, given: ImageLabels) -> list[LabelGroup]:
    groups: dict[Any, list[str]] = {}
    origins, accepted = block.origins, block.accepted
    for column, *key in zip(*given, strict=True):
        origin = origins.get((row, column)) if origins else None
        guarantee = _get_guarantee(accepted.get((row, column))) if accepted else ()
        groups.setdefault((*key, origin, guarantee), []).append(names[column])
    listed = []
    for (state, source, annotator, time, origin, guarantee), classes in groups.items():
        group = LabelGroup(classes, STATE_WORDS[state], view.sources[source], view.annotators[annotator], time)
        if origin:
            group.origin_source, group.origin_annotator = origin.source, origin.annotator
            group.origin_decided_at = "" if origin.decided_at is None else format_iso_time(origin.decided_at)
        if guarantee:
            group.run, group.threshold, group.precision, group.confidence = guarantee
        listed.append(group)
    return listed


def _get_guarantee(accepted: CellAcceptance | None) -> tuple[int, float, float, float] | tuple[()]:
    return (accepted.run, accepted.threshold, accepted.precision, accepted.confidence) if accepted else ()


def to_imported_labels(origins: Origins) -> list[ImportedLabel]:
    """Convert the result of `list_origins` to labels of an item."""
    return [ImportedLabel(name, state, *origin) for (name, state), origin in origins.items()]
