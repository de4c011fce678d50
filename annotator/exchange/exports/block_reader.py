"""Reading of an export in blocks of images: answered, auto-accepted and filled-in cells (image and class) as arrays."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from annotator.exchange.exports.choices import Choices
from annotator.exchange.formats.export_view import (
    PROBABILITY_DIGITS,
    STATE_ABSENT,
    STATE_PRESENT,
    STATE_UNANSWERED,
    STATE_UNSURE,
    UNKNOWN_VALUE,
    Block,
    CellAcceptance,
    ImageEvent,
    LabelOrigin,
    Note,
)
from annotator.indexing import find_positions
from annotator.quality import disagreement_resolution
from annotator.records import (
    FILL_SOURCES,
    FILLED_BY_ASSUMPTION,
    FILLED_BY_AUTO_ACCEPT,
    FILLED_BY_ESTIMATE,
    FILLED_BY_EVENT,
    FILLED_BY_IMPLICATION,
    FILLED_BY_MAJORITY,
    FILLED_BY_MODEL,
    FILLED_BY_RULE_OUT,
    SOURCES,
    STATES,
    Class,
    Image,
)
from annotator.snapshot.run_predictions import read_predictions
from annotator.store.database.database import Database
from annotator.store.events import stored_events
from annotator.store.events.stored_events import format_event_name
from annotator.store.labels import auto_accepted, event_labels, export_reads
from annotator.store.labels.auto_accepted import Acceptance

VALUE_BY_STATE = np.array([UNKNOWN_VALUE, 1, 0, UNKNOWN_VALUE], np.int8)  # state of a block -> value
MAX_ANSWER_MILLISECONDS = 600_000  # milliseconds; a longer time is ignored, as the person was away


@dataclass(frozen=True)
class FillRule:
    """The rule that fills in unanswered cells of an export."""

    # "absent" fills all, MODEL applies the thresholds
    how: str
    # (C,) lowest probability of present
    present_from: np.ndarray | None = None
    # (C,) highest probability of absent
    absent_to: np.ndarray | None = None


@dataclass(eq=False)
class CellArrays:
    """The labels of n images as (n, C) arrays, with the fields of Block."""

    states: np.ndarray
    values: np.ndarray
    sources: np.ndarray
    annotators: np.ndarray
    decided_at: np.ndarray
    seconds: np.ndarray
    accepted: dict[tuple[int, int], CellAcceptance] = field(default_factory=dict)
    origins: dict[tuple[int, int], LabelOrigin] = field(default_factory=dict)

    @classmethod
    def empty(cls, images: int, classes: int) -> "CellArrays":
        """Return arrays in which all cells are unanswered."""
        shape = images, classes
        return cls(
            np.zeros(shape, np.int8),
            np.full(shape, UNKNOWN_VALUE, np.int8),
            np.zeros(shape, np.uint8),
            np.zeros(shape, np.uint16),
            np.full(shape, np.nan),
            np.full(shape, np.nan),
        )


class BlockReader:
    """A reader of the blocks of one export, used within its transaction.

    Attributes:
        filled: Rule that fills in unanswered cells. None leaves them unanswered.
        excluded_answers: Number of answers that the choices left out so far.
    """

    def __init__(self, db: Database, choices: Choices, classes: list[Class], people: list[str]):
        self.db, self.classes, self.choices = db, classes, choices
        self.predictions = read_predictions(db)
        self.filled: FillRule | None = None
        self.excluded_answers = 0
        ids = np.array([class_.id for class_ in classes], np.int64)
        self._class_ids, self._class_order = ids, np.argsort(ids)
        self.sources = ("", *SOURCES, *export_reads.find_unknown_sources(db), *FILL_SOURCES)
        self._source = {name: place for place, name in enumerate(self.sources)}
        self._person = {name: place + 1 for place, name in enumerate(people)}
        shown = [f"annotator {place}" for place in range(1, len(people) + 1)] if choices.pseudonyms else people
        self.shown_annotators = ("", *shown)
        self._chosen_sources = self._build_mask(choices.sources, self._source, len(self.sources))
        self._chosen_people = self._build_mask(choices.annotators, self._person, len(people) + 1)
        self._chosen_states = np.isin([-1, 0, 1], [STATES[name] for name in choices.states or STATES])
        self._acceptances = self._filter_acceptances(
            auto_accepted.load_acceptances(db) if choices.takes_accepted else []
        )
        self._differing: dict[int, dict[int, int | None]] = {}
        for (image_id, class_id), state in disagreement_resolution.resolve_cells(db, choices.differing).items():
            self._differing.setdefault(image_id, {})[class_id] = state
        self._has = {name for name in ("origin", "attribute", "accepted", "note") if export_reads.has_rows(db, name)}

    def read_block(self, ids: np.ndarray) -> Block:
        cells, chances = self.read_answers(ids), self.read_probabilities(ids)
        chances = np.round(chances.astype(np.float64), PROBABILITY_DIGITS)
        if self.choices.event_labels:
            self._fill_from_events(cells, ids)
        self._fill_unknown_cells(cells, chances)
        for cell, accepted in cells.accepted.items():
            chances[cell] = accepted.probability
        rows = export_reads.load_image_rows(self.db, ids)
        notes, attributes = self._read_notes(ids), self._read_attributes(ids)
        return Block(
            images=[Image(*row[:5]) for row in rows],
            values=cells.values,
            states=cells.states,
            sources=cells.sources,
            annotators=cells.annotators,
            decided_at=cells.decided_at,
            seconds=cells.seconds,
            probabilities=chances,
            accepted=cells.accepted,
            origins=cells.origins,
            notes=[notes.get(row[0], ()) for row in rows],
            missing=[row[5] for row in rows],
            attributes=[attributes.get(row[0], {}) for row in rows],
            splits=[""] * len(rows),
            files=[""] * len(rows),
            events=self._read_events(ids),
        )

    def _read_events(self, ids: np.ndarray) -> list[ImageEvent | None]:
        if not stored_events.has_multi_image_events(self.db):
            return []
        events = stored_events.load_event_rows(self.db, ids).tolist()
        return [
            ImageEvent(format_event_name(event), frame + 1, images) if event else None
            for event, frame, images in events
        ]

    def read_answers(self, ids: np.ndarray) -> CellArrays:
        """Return the answers that the choices select, and the auto-accepted labels."""
        cells = CellArrays.empty(len(ids), len(self.classes))
        self._read_people_answers(cells, ids)
        if self._differing:
            self._replace_disputed_cells(cells, ids)
        if "accepted" in self._has:
            self._fill_implied_cells(cells, ids)
        if "accepted" in self._has and self._acceptances:
            self._fill_accepted_cells(cells, ids)
        return cells

    def _fill_from_events(self, cells: CellArrays, ids: np.ndarray) -> None:
        """Mark unanswered cells present if their class is a label of the image's event."""
        column_of = {class_.name: column for column, class_ in enumerate(self.classes)}
        labels = event_labels.load_by_image(self.db, ids.tolist())
        for row, image_id in enumerate(ids.tolist()):
            for label in labels.get(image_id, ()):
                column = column_of.get(label.class_name)
                if column is not None and label.state == 1 and cells.states[row, column] == STATE_UNANSWERED:
                    cells.states[row, column], cells.values[row, column] = STATE_PRESENT, 1
                    cells.sources[row, column] = self._source[FILLED_BY_EVENT]

    def read_probabilities(self, ids: np.ndarray) -> np.ndarray:
        """Return the current run's probabilities, (n, C) float32, NaN where missing."""
        if self.predictions is None:
            return np.full((len(ids), len(self.classes)), np.nan, np.float32)
        values = self.predictions.align(self.predictions.probabilities, ids, self._class_ids)
        return values.astype(np.float32)

    def _read_people_answers(self, cells: CellArrays, ids: np.ndarray) -> None:
        found = export_reads.load_cells(self.db, ids)
        deciding, which, many = np.unique(found.decision_ids, return_inverse=True, return_counts=True)
        columns, known = find_positions(found.class_ids, self._class_ids, self._class_order)
        rows, _ = find_positions(found.image_ids, ids)
        deciders = export_reads.load_decisions(self.db, deciding)
        if len(deciders) < len(deciding):  # labels whose decision is gone: a file edited by hand
            by_id = {row[0]: row for row in deciders}
            known &= np.isin(deciding, list(by_id))[which]
            deciders = [by_id.get(decision_id, (0, "", "", 0.0, None)) for decision_id in deciding.tolist()]
        source = np.array([self._source.get(row[1], 0) for row in deciders], np.uint8)
        person = np.array([self._person.get(row[2], 0) for row in deciders], np.uint16)
        at = np.array([row[3] for row in deciders], np.float64)
        taken = np.array([np.nan if row[4] is None else row[4] for row in deciders], np.float64)
        taken[(taken <= 0) | (taken > MAX_ANSWER_MILLISECONDS)] = np.nan
        kept = known.copy()
        kept[known] = (
            self._chosen_sources[source][which[known]]
            & self._chosen_people[person][which[known]]
            & self._chosen_states[found.states[known] + 1]
        )
        self.excluded_answers += int(known.sum() - kept.sum())
        place, which = (rows[kept], columns[kept]), which[kept]
        cells.states[place] = np.array([STATE_ABSENT, STATE_UNSURE, STATE_PRESENT], np.int8)[found.states[kept] + 1]
        cells.values[place] = VALUE_BY_STATE[cells.states[place]]
        cells.sources[place], cells.annotators[place] = source[which], person[which]
        cells.decided_at[place] = at[which]
        cells.seconds[place] = (taken / 1000 / many)[which]
        if "origin" in self._has:
            origins = export_reads.load_origins(self.db, deciding)
            of_cell = [origins.get(decision_id) for decision_id in found.decision_ids[kept].tolist()]
            cells.origins |= {
                cell: LabelOrigin(origin[0], self.display_name(origin[1]), origin[2])
                for *cell_, origin in zip(*(axis.tolist() for axis in place), of_cell, strict=True)
                if origin and (cell := (cell_[0], cell_[1]))
            }

    def _replace_disputed_cells(self, cells: CellArrays, ids: np.ndarray) -> None:
        """Replace labels on which annotators disagree by the chosen resolution, except unanswered ones."""
        source = self._source[
            FILLED_BY_MAJORITY if self.choices.differing == disagreement_resolution.BY_MAJORITY else FILLED_BY_ESTIMATE
        ]
        column_of = {int(class_id): column for column, class_id in enumerate(self._class_ids)}
        for row, image_id in enumerate(ids.tolist()):
            for class_id, state in self._differing.get(image_id, {}).items():
                cell = row, column_of.get(class_id, -1)
                if cell[1] < 0 or cells.states[cell] == STATE_UNANSWERED:
                    continue
                cells.annotators[cell], cells.decided_at[cell], cells.seconds[cell] = 0, np.nan, np.nan
                cells.origins.pop(cell, None)
                if state is None or not self._chosen_states[state + 1]:
                    cells.states[cell], cells.values[cell], cells.sources[cell] = STATE_UNANSWERED, UNKNOWN_VALUE, 0
                    self.excluded_answers += 1
                else:
                    cells.states[cell] = STATE_PRESENT if state == 1 else STATE_ABSENT
                    cells.values[cell] = VALUE_BY_STATE[cells.states[cell]]
                    cells.sources[cell] = source

    def _fill_implied_cells(self, cells: CellArrays, ids: np.ndarray) -> None:
        """Fill in implied labels, with annotator and time of the answer that implies them, if that is exported."""
        found = export_reads.load_implied_cells(self.db, ids)
        columns, known = find_positions(found.class_ids, self._class_ids, self._class_order)
        rows, _ = find_positions(found.image_ids, ids)
        of = {row[0]: row for row in export_reads.load_decisions(self.db, np.unique(found.decision_ids))}
        for place in np.flatnonzero(known & self._chosen_states[found.states + 1]).tolist():
            cell, decision = (int(rows[place]), int(columns[place])), of.get(int(found.decision_ids[place]))
            if decision is None or cells.states[cell] != STATE_UNANSWERED:
                continue
            person = self._person.get(decision[2], 0)
            if not (self._chosen_sources[self._source.get(decision[1], 0)] and self._chosen_people[person]):
                self.excluded_answers += 1
                continue
            cells.states[cell] = STATE_PRESENT if found.states[place] == 1 else STATE_ABSENT
            cells.values[cell] = VALUE_BY_STATE[cells.states[cell]]
            cells.sources[cell] = self._source[FILLED_BY_IMPLICATION]
            cells.annotators[cell], cells.decided_at[cell] = person, decision[3]

    def _fill_accepted_cells(self, cells: CellArrays, ids: np.ndarray) -> None:
        found = export_reads.load_accepted_cells(self.db, ids)
        columns, known = find_positions(found.class_ids, self._class_ids, self._class_order)
        rows, _ = find_positions(found.image_ids, ids)
        known &= np.isin(found.acceptance_ids, list(self._acceptances)) & self._chosen_states[found.states + 1]
        for place in np.flatnonzero(known).tolist():
            cell = int(rows[place]), int(columns[place])
            if cells.states[cell] != STATE_UNANSWERED:
                continue
            made, state = self._acceptances[int(found.acceptance_ids[place])], int(found.states[place])
            score = round(float(found.scores[place]), PROBABILITY_DIGITS)
            cells.accepted[cell] = CellAcceptance(
                state, score, made.run_id, made.threshold, made.precision, made.confidence
            )
            cells.states[cell] = STATE_PRESENT if state == 1 else STATE_ABSENT
            cells.values[cell] = int(state == 1)
            cells.sources[cell] = self._source[FILLED_BY_RULE_OUT if made.annotator else FILLED_BY_AUTO_ACCEPT]

    def _fill_unknown_cells(self, cells: CellArrays, chances: np.ndarray) -> None:
        if self.filled is None:
            return
        open_ = cells.states == STATE_UNANSWERED
        if self.filled.how == "absent":
            self._set_cells(cells, open_, STATE_ABSENT, FILLED_BY_ASSUMPTION)
            return
        present = open_ & (chances >= self.filled.present_from)
        self._set_cells(cells, open_ & (chances <= self.filled.absent_to) & ~present, STATE_ABSENT, FILLED_BY_MODEL)
        self._set_cells(cells, present, STATE_PRESENT, FILLED_BY_MODEL)

    def _set_cells(self, cells: CellArrays, mask: np.ndarray, state: int, source: str) -> None:
        cells.states[mask], cells.values[mask] = state, VALUE_BY_STATE[state]
        cells.sources[mask] = self._source[source]

    def _read_notes(self, ids: np.ndarray) -> dict[int, list[Note]]:
        notes: dict[int, list[Note]] = {}
        for image_id, kind, text, annotator, at in export_reads.load_notes(self.db, ids) if "note" in self._has else ():
            notes.setdefault(image_id, []).append(Note(kind, text, self.display_name(annotator), at))
        return notes

    def _read_attributes(self, ids: np.ndarray) -> dict[int, dict[str, str]]:
        attributes: dict[int, dict[str, str]] = {}
        for image_id, name, value in export_reads.load_attributes(self.db, ids) if "attribute" in self._has else ():
            attributes.setdefault(image_id, {})[name] = value
        return attributes

    def display_name(self, annotator: str) -> str:
        """Return an annotator's name or pseudonym. Annotators named by imported files share one pseudonym."""
        if not self.choices.pseudonyms or not annotator:
            return annotator
        place = self._person.get(annotator)
        return self.shown_annotators[place] if place else "annotator elsewhere"

    def _filter_acceptances(self, made: Sequence[Acceptance]) -> dict[int, Acceptance]:
        wanted = self.choices
        return {
            acceptance.id: acceptance
            for acceptance in made
            if acceptance.precision >= wanted.accepted_precision - 1e-9
            and acceptance.confidence >= wanted.accepted_confidence - 1e-9
        }

    @staticmethod
    def _build_mask(chosen: Sequence[str], places: dict[str, int], size: int) -> np.ndarray:
        if not chosen:
            return np.ones(size, bool)
        mask = np.zeros(size, bool)
        mask[[places[name] for name in chosen]] = True
        return mask
