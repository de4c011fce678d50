"""Reading the cells of a block of images as arrays: answers, auto-accepted cells, and cells filled in by the export."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from annotator.exchange.exports.choices import Choices
from annotator.exchange.formats.view import (
    ABSENT,
    DIGITS,
    NOBODY,
    PRESENT,
    UNKNOWN,
    UNSURE,
    Accepted,
    Block,
    ImageEvent,
    Note,
    Origin,
)
from annotator.indexing import positions
from annotator.quality import differing
from annotator.records import (
    ACCEPTED,
    ASSUMED,
    ESTIMATED,
    FILLED,
    IMPLIED,
    MAJORITY,
    MODEL,
    OF_EVENT,
    RULED_OUT,
    SOURCES,
    STATES,
    Class,
    Image,
)
from annotator.snapshot.predictions import read_predictions
from annotator.store.database.database import Database
from annotator.store.events import stored as stored_events
from annotator.store.events.stored import event_name
from annotator.store.labels import auto_accepted, blocks, event_labels
from annotator.store.labels.auto_accepted import Acceptance

VALUE_OF = np.array([UNKNOWN, 1, 0, UNKNOWN], np.int8)  # state of a block -> value
LONGEST = 600_000  # milliseconds; a longer time is ignored, as the person was away


@dataclass(frozen=True)
class Filled:
    """The rule by which unknown cells are filled in.

    Attributes:
        how: "absent": all become absent; MODEL: by the thresholds below.
        present_from: (C,) probability from which on a cell of the class becomes present.
        absent_to: (C,) probability up to which a cell of the class becomes absent.
    """

    how: str
    present_from: np.ndarray | None = None
    absent_to: np.ndarray | None = None


@dataclass(eq=False)
class Cells:
    """The cells of n images as arrays (n, C), with the meaning that they have in Block."""

    states: np.ndarray
    values: np.ndarray
    sources: np.ndarray
    annotators: np.ndarray
    decided_at: np.ndarray
    seconds: np.ndarray
    accepted: dict[tuple[int, int], Accepted] = field(default_factory=dict)
    origins: dict[tuple[int, int], Origin] = field(default_factory=dict)

    @classmethod
    def empty(cls, images: int, classes: int) -> "Cells":
        """Return cells of these images and classes that nobody has answered."""
        shape = images, classes
        return cls(
            np.zeros(shape, np.int8),
            np.full(shape, UNKNOWN, np.int8),
            np.zeros(shape, np.uint8),
            np.zeros(shape, np.uint16),
            np.full(shape, np.nan),
            np.full(shape, np.nan),
        )


class Reader:
    """A reader of the blocks of one export, used within its transaction.

    Attributes:
        sources, shown_annotators: As in View.
        filled: The rule by which unknown cells are filled in, None: they stay unknown.
        set_aside: Number of answers that the choices left out of the blocks read so far.
    """

    def __init__(self, db: Database, choices: Choices, classes: list[Class], people: list[str]):
        self.db, self.classes, self.choices = db, classes, choices
        self.predictions = read_predictions(db)
        self.filled: Filled | None = None
        self.set_aside = 0
        ids = np.array([class_.id for class_ in classes], np.int64)
        self._class_ids, self._class_order = ids, np.argsort(ids)
        self.sources = ("", *SOURCES, *blocks.other_sources(db), *FILLED)
        self._source = {name: place for place, name in enumerate(self.sources)}
        self._person = {name: place + 1 for place, name in enumerate(people)}
        shown = [f"annotator {place}" for place in range(1, len(people) + 1)] if choices.pseudonyms else people
        self.shown_annotators = ("", *shown)
        self._chosen_sources = self._mask(choices.sources, self._source, len(self.sources))
        self._chosen_people = self._mask(choices.annotators, self._person, len(people) + 1)
        self._chosen_states = np.isin([-1, 0, 1], [STATES[name] for name in choices.states or STATES])
        self._acceptances = self._chosen_acceptances(auto_accepted.acceptances(db) if choices.takes_accepted else [])
        self._differing: dict[int, dict[int, int | None]] = {}
        for (image_id, class_id), state in differing.states(db, choices.differing).items():
            self._differing.setdefault(image_id, {})[class_id] = state
        self._has = {name for name in ("origin", "attribute", "accepted", "note") if blocks.has_any(db, name)}

    def block(self, ids: np.ndarray) -> Block:
        """Return the block of these images: cells, probabilities, notes and attributes."""
        cells, chances = self.answers(ids), self.probabilities(ids)
        chances = np.round(chances.astype(np.float64), DIGITS)
        if self.choices.event_labels:
            self._take_events(cells, ids)
        self._fill(cells, chances)
        for cell, accepted in cells.accepted.items():
            chances[cell] = accepted.probability
        rows = blocks.image_rows(self.db, ids)
        notes, attributes = self._notes(ids), self._attributes(ids)
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
            events=self._events(ids),
        )

    def _events(self, ids: np.ndarray) -> list[ImageEvent | None]:
        if not stored_events.are_some(self.db):
            return []
        events = stored_events.of_images(self.db, ids).tolist()
        return [ImageEvent(event_name(event), frame + 1, images) if event else None for event, frame, images in events]

    def answers(self, ids: np.ndarray) -> Cells:
        """Return the answers of people and the auto-accepted cells, without the cells that the choices leave out."""
        cells = Cells.empty(len(ids), len(self.classes))
        self._answered(cells, ids)
        if self._differing:
            self._decide(cells, ids)
        if "accepted" in self._has:
            self._implied(cells, ids)
        if "accepted" in self._has and self._acceptances:
            self._accepted(cells, ids)
        return cells

    def _take_events(self, cells: Cells, ids: np.ndarray) -> None:
        """Fill open cells with the labels of the events of their images, as the choices ask."""
        column_of = {class_.name: column for column, class_ in enumerate(self.classes)}
        labels = event_labels.by_image(self.db, ids.tolist())
        for row, image_id in enumerate(ids.tolist()):
            for label in labels.get(image_id, ()):
                column = column_of.get(label.class_name)
                if column is not None and label.state == 1 and cells.states[row, column] == NOBODY:
                    cells.states[row, column], cells.values[row, column] = PRESENT, 1
                    cells.sources[row, column] = self._source[OF_EVENT]

    def probabilities(self, ids: np.ndarray) -> np.ndarray:
        """Return the probabilities of the current run, (n, C) float32, nan where it has none."""
        if self.predictions is None:
            return np.full((len(ids), len(self.classes)), np.nan, np.float32)
        values = self.predictions.aligned(self.predictions.probabilities, ids, self._class_ids)
        return values.astype(np.float32)

    def _answered(self, cells: Cells, ids: np.ndarray) -> None:
        found = blocks.cells(self.db, ids)
        deciding, which, many = np.unique(found.decision_ids, return_inverse=True, return_counts=True)
        columns, known = positions(found.class_ids, self._class_ids, self._class_order)
        rows, _ = positions(found.image_ids, ids)
        deciders = blocks.deciders(self.db, deciding)
        if len(deciders) < len(deciding):  # labels whose decision is gone: a file edited by hand
            by_id = {row[0]: row for row in deciders}
            known &= np.isin(deciding, list(by_id))[which]
            deciders = [by_id.get(decision_id, (0, "", "", 0.0, None)) for decision_id in deciding.tolist()]
        source = np.array([self._source.get(row[1], 0) for row in deciders], np.uint8)
        person = np.array([self._person.get(row[2], 0) for row in deciders], np.uint16)
        at = np.array([row[3] for row in deciders], np.float64)
        taken = np.array([np.nan if row[4] is None else row[4] for row in deciders], np.float64)
        taken[(taken <= 0) | (taken > LONGEST)] = np.nan
        kept = known.copy()
        kept[known] = (
            self._chosen_sources[source][which[known]]
            & self._chosen_people[person][which[known]]
            & self._chosen_states[found.states[known] + 1]
        )
        self.set_aside += int(known.sum() - kept.sum())
        place, which = (rows[kept], columns[kept]), which[kept]
        cells.states[place] = np.array([ABSENT, UNSURE, PRESENT], np.int8)[found.states[kept] + 1]
        cells.values[place] = VALUE_OF[cells.states[place]]
        cells.sources[place], cells.annotators[place] = source[which], person[which]
        cells.decided_at[place] = at[which]
        cells.seconds[place] = (taken / 1000 / many)[which]
        if "origin" in self._has:
            origins = blocks.origins(self.db, deciding)
            of_cell = [origins.get(decision_id) for decision_id in found.decision_ids[kept].tolist()]
            cells.origins |= {
                cell: Origin(origin[0], self.shown(origin[1]), origin[2])
                for *cell_, origin in zip(*(axis.tolist() for axis in place), of_cell, strict=True)
                if origin and (cell := (cell_[0], cell_[1]))
            }

    def _decide(self, cells: Cells, ids: np.ndarray) -> None:
        """Replace answers on which people differ by the state that the choices give them.

        A cell whose answer was left out before stays out.
        """
        source = self._source[MAJORITY if self.choices.differing == differing.BY_MAJORITY else ESTIMATED]
        column_of = {int(class_id): column for column, class_id in enumerate(self._class_ids)}
        for row, image_id in enumerate(ids.tolist()):
            for class_id, state in self._differing.get(image_id, {}).items():
                cell = row, column_of.get(class_id, -1)
                if cell[1] < 0 or cells.states[cell] == NOBODY:
                    continue
                cells.annotators[cell], cells.decided_at[cell], cells.seconds[cell] = 0, np.nan, np.nan
                cells.origins.pop(cell, None)
                if state is None or not self._chosen_states[state + 1]:
                    cells.states[cell], cells.values[cell], cells.sources[cell] = NOBODY, UNKNOWN, 0
                    self.set_aside += 1
                else:
                    cells.states[cell] = PRESENT if state == 1 else ABSENT
                    cells.values[cell] = VALUE_OF[cells.states[cell]]
                    cells.sources[cell] = source

    def _implied(self, cells: Cells, ids: np.ndarray) -> None:
        """Fill in what answers imply, with who gave the answer and when; left out with the answer that implies it."""
        found = blocks.implied_cells(self.db, ids)
        columns, known = positions(found.class_ids, self._class_ids, self._class_order)
        rows, _ = positions(found.image_ids, ids)
        of = {row[0]: row for row in blocks.deciders(self.db, np.unique(found.decision_ids))}
        for place in np.flatnonzero(known & self._chosen_states[found.states + 1]).tolist():
            cell, decision = (int(rows[place]), int(columns[place])), of.get(int(found.decision_ids[place]))
            if decision is None or cells.states[cell] != NOBODY:
                continue
            person = self._person.get(decision[2], 0)
            if not (self._chosen_sources[self._source.get(decision[1], 0)] and self._chosen_people[person]):
                self.set_aside += 1
                continue
            cells.states[cell] = PRESENT if found.states[place] == 1 else ABSENT
            cells.values[cell] = VALUE_OF[cells.states[cell]]
            cells.sources[cell] = self._source[IMPLIED]
            cells.annotators[cell], cells.decided_at[cell] = person, decision[3]

    def _accepted(self, cells: Cells, ids: np.ndarray) -> None:
        found = blocks.accepted_cells(self.db, ids)
        columns, known = positions(found.class_ids, self._class_ids, self._class_order)
        rows, _ = positions(found.image_ids, ids)
        known &= np.isin(found.acceptance_ids, list(self._acceptances)) & self._chosen_states[found.states + 1]
        for place in np.flatnonzero(known).tolist():
            cell = int(rows[place]), int(columns[place])
            if cells.states[cell] != NOBODY:
                continue
            made, state = self._acceptances[int(found.acceptance_ids[place])], int(found.states[place])
            score = round(float(found.scores[place]), DIGITS)
            cells.accepted[cell] = Accepted(state, score, made.run_id, made.threshold, made.precision, made.confidence)
            cells.states[cell] = PRESENT if state == 1 else ABSENT
            cells.values[cell] = int(state == 1)
            cells.sources[cell] = self._source[RULED_OUT if made.annotator else ACCEPTED]

    def _fill(self, cells: Cells, chances: np.ndarray) -> None:
        if self.filled is None:
            return
        open_ = cells.states == NOBODY
        if self.filled.how == "absent":
            self._set(cells, open_, ABSENT, ASSUMED)
            return
        present = open_ & (chances >= self.filled.present_from)
        self._set(cells, open_ & (chances <= self.filled.absent_to) & ~present, ABSENT, MODEL)
        self._set(cells, present, PRESENT, MODEL)

    def _set(self, cells: Cells, mask: np.ndarray, state: int, source: str) -> None:
        cells.states[mask], cells.values[mask] = state, VALUE_OF[state]
        cells.sources[mask] = self._source[source]

    def _notes(self, ids: np.ndarray) -> dict[int, list[Note]]:
        notes: dict[int, list[Note]] = {}
        for image_id, kind, text, annotator, at in blocks.notes(self.db, ids) if "note" in self._has else ():
            notes.setdefault(image_id, []).append(Note(kind, text, self.shown(annotator), at))
        return notes

    def _attributes(self, ids: np.ndarray) -> dict[int, dict[str, str]]:
        attributes: dict[int, dict[str, str]] = {}
        for image_id, name, value in blocks.attributes(self.db, ids) if "attribute" in self._has else ():
            attributes.setdefault(image_id, {})[name] = value
        return attributes

    def shown(self, annotator: str) -> str:
        """Return the name or the pseudonym of an annotator; all people of other projects share one pseudonym."""
        if not self.choices.pseudonyms or not annotator:
            return annotator
        place = self._person.get(annotator)
        return self.shown_annotators[place] if place else "annotator elsewhere"

    def _chosen_acceptances(self, made: Sequence[Acceptance]) -> dict[int, Acceptance]:
        wanted = self.choices
        return {
            acceptance.id: acceptance
            for acceptance in made
            if acceptance.precision >= wanted.accepted_precision - 1e-9
            and acceptance.confidence >= wanted.accepted_confidence - 1e-9
        }

    @staticmethod
    def _mask(chosen: Sequence[str], places: dict[str, int], size: int) -> np.ndarray:
        if not chosen:
            return np.ones(size, bool)
        mask = np.zeros(size, bool)
        mask[[places[name] for name in chosen]] = True
        return mask
