"""Answers to an event, copied from its front image (the one shown) to its other images."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import sqlite_utils

from annotator.records import Batch, Decision
from annotator.store.images.stages import EXCLUDED

EVENT_SOURCE = "event"


@dataclass(frozen=True)
class EventAnswer(Decision):
    """An answer that repeats the answer to the image `front_id` for another image of its event."""

    front_id: int = 0


@dataclass(frozen=True)
class EventBatch(Batch):
    """A batch of answers that also answers other images of the same events."""

    # (image id, class id, state, front image id), skipped where already answered
    copies: Sequence[tuple[int, int, int, int]] = ()
    # images omitted because they are assigned to other annotators
    away: Collection[int] = ()


def build_copy_decisions(batch: Batch) -> list[EventAnswer]:
    """Return a batch's decisions for other images of an event."""
    copies = batch.copies if isinstance(batch, EventBatch) else ()
    return [
        EventAnswer(
            uuid=f"{batch.uuid}:{number}",
            action="label",
            annotator=batch.annotator,
            source=EVENT_SOURCE,
            image_id=image_id,
            class_id=class_id,
            state=state,
            batch=batch.uuid,
            front_id=front_id,
        )
        for number, (image_id, class_id, state, front_id) in enumerate(copies, start=len(batch.cells))
    ]


def extract_copies(decisions: Sequence[Decision]) -> list[tuple[int, int, int, int]]:
    """Return the copied answers among decisions, as in `EventBatch.copies`."""
    return [
        (decision.image_id or 0, decision.class_id or 0, decision.state or 0, decision.front_id)
        for decision in decisions
        if isinstance(decision, EventAnswer)
    ]


def find_problem(decision: Decision) -> str | None:
    """Return why a decision is invalid, or None. Exactly those with source "event" must name a front image."""
    if decision.action != "label" or (decision.source == EVENT_SOURCE) == isinstance(decision, EventAnswer):
        return None
    return f"only an answer of the source {EVENT_SOURCE!r} names an image in front, and each of them does"


def find_original(sql: sqlite_utils.Database, answer: EventAnswer) -> int | None:
    """Return the decision that this answer repeats, or None if it must be skipped.

    It is skipped if the images share no event, or if the cell is labeled, awaits blind answers or is excluded.
    """
    row = sql.execute(
        f"""SELECT d.id FROM image_event f JOIN image_event o ON o.event_id = f.event_id
        JOIN label l ON l.image_id = f.image_id JOIN decision d ON d.id = l.decision_id
        WHERE f.image_id = :front AND o.image_id = :image AND l.class_id = :class AND d.annotator = :annotator
        AND NOT EXISTS (SELECT 1 FROM label WHERE image_id = :image AND class_id = :class)
        AND NOT EXISTS (SELECT 1 FROM reading WHERE image_id = :image AND due > 0)
        AND NOT EXISTS (SELECT 1 FROM image WHERE id = :image AND stage = {EXCLUDED})""",
        {
            "front": answer.front_id,
            "image": answer.image_id,
            "class": answer.class_id,
            "annotator": answer.annotator,
        },
    ).fetchone()
    return row[0] if row else None


def record_original(sql: sqlite_utils.Database, decision_id: int, from_id: int) -> None:
    sql.execute("INSERT INTO event_answer (decision_id, from_id) VALUES (?, ?)", [decision_id, from_id])
