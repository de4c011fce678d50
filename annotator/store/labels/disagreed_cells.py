"""Cells with conflicting answers of annotators, and the first independent answers to any cell."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from annotator.records import SOURCES, UNSURE, AnnotatorAnswer
from annotator.store.database.database import Database
from annotator.store.database.decision_sql import build_not_undone_sql
from annotator.store.labels import blind_visibility, derivation
from annotator.store.labels.derivation import compute_disagreements, iterate_answers
from annotator.store.labels.sources import format_source_list


class FirstAnswer(NamedTuple):
    """An annotator's first independent answer to a cell (`at` in Unix seconds)."""

    state: int
    at: float


_UNDONE_BLIND_SQL = f"""SELECT d.class_id, d.annotator, min(u.id) FROM decision d JOIN decision u ON u.undoes = d.id
    WHERE d.image_id = ? AND d.source IN {format_source_list(blind=True)} GROUP BY d.class_id, d.annotator"""


def count(db: Database) -> int:
    """Count the cells with conflicting answers that the current member may see."""
    return db.value(f"SELECT count(*) FROM contradiction d WHERE {blind_visibility.build_visible_condition(db)}")


def load_newest_cells(db: Database, limit: int) -> np.ndarray:
    """Return the newest `limit` cells with conflicting answers: (n, 2) int64, image and class id."""
    rows = db.tuples("SELECT image_id, class_id FROM contradiction ORDER BY decision_id DESC LIMIT ?", [limit])
    return np.array(rows, np.int64).reshape(-1, 2)


def load_unsettled_cells(db: Database, people: int) -> np.ndarray:
    """Return conflicting cells that no reviewer resolved, of images with `people` annotators or more: (n, 2) int64."""
    return db.integer_rows(
        f"""SELECT image_id, class_id FROM contradiction c WHERE image_id IN (
            SELECT image_id FROM decision WHERE image_id IN (SELECT image_id FROM contradiction)
            AND action IN ('label', 'done') AND source != 'import'
            GROUP BY image_id HAVING count(DISTINCT annotator) >= ?)
        AND NOT EXISTS (SELECT 1 FROM decision s WHERE s.image_id = c.image_id AND s.class_id = c.class_id
            AND s.source = 'settlement' AND {build_not_undone_sql("s.id")})""",
        [people],
    )


def find_disagreed_cells(db: Database, image_ids: Sequence[int]) -> set[tuple[int, int]]:
    """Return the cells (image id, class id) with conflicting answers."""
    marks = ",".join("?" * len(image_ids))
    return set(db.tuples(f"SELECT image_id, class_id FROM contradiction WHERE image_id IN ({marks})", list(image_ids)))


def load_answers_by_cell(db: Database, image_ids: Sequence[int]) -> dict[int, dict[int, list[AnnotatorAnswer]]]:
    """Return the conflicting answers on these images: image id -> class id -> answers."""
    with db.reading() as sql:
        by_image = {image_id: compute_disagreements(sql, image_id) for image_id in image_ids}
        ids = [id_ for of in by_image.values() for _, states in of.values() for _, id_ in states.values()]
        # No time for cells decided together (in a batch, or by "nothing else here"): they share one time.
        statement = f"""SELECT id, decided_at, CASE WHEN batch IS NULL AND action = 'label' THEN milliseconds END
            FROM decision WHERE id IN ({",".join("?" * len(ids))})"""
        when = {id_: (at, milliseconds) for id_, at, milliseconds in sql.execute(statement, ids).fetchall()}
    return {
        image_id: {
            class_id: [AnnotatorAnswer(person, state, *when[id_]) for person, (state, id_) in states.items()]
            for class_id, (_, states) in by_class.items()
        }
        for image_id, by_class in by_image.items()
    }


def find_multi_annotator_images(db: Database, since: int = 0) -> list[int]:
    """Return images decided by several annotators, if changed after decision `since`."""
    newer = "AND image_id IN (SELECT image_id FROM decision WHERE id > :since)" if since else ""
    rows = db.tuples(
        f"""SELECT image_id FROM decision WHERE action IN ('label', 'done') AND source != 'import' {newer}
        GROUP BY image_id HAVING min(annotator) != max(annotator)""",
        {"since": since},
    )
    return [image_id for (image_id,) in rows]


def iterate_first_answers(db: Database, image_ids: Sequence[int]) -> Iterator[dict[int, dict[str, FirstAnswer]]]:
    """Yield per image: class id -> annotator -> first independent answer.

    An answer is independent if it was given before any other, or blind. Unsure and undone answers and resolutions do
    not count. After a cell is cleared, the next answer counts as the first.
    """
    for image_id in image_ids:
        # None: the person saw another answer before giving their first.
        said: dict[int, dict[str, FirstAnswer | None]] = {}
        imported: set[int] = set()
        with db.reading() as sql:
            when = dict(sql.execute("SELECT id, decided_at FROM decision WHERE image_id = ?", [image_id]).fetchall())
            statement = "SELECT annotator, decision_id FROM revealed WHERE image_id = ?"
            shown = dict(sql.execute(statement, [image_id]).fetchall())
            taken_back = {
                (class_id, person): id_ for class_id, person, id_ in sql.execute(_UNDONE_BLIND_SQL, [image_id])
            }
            for id_, class_id, state, person, source, is_vote in iterate_answers(sql, image_id, imports=True):
                if state is None and is_vote:
                    said.get(class_id, {}).pop(person, None)
                elif state is None:
                    said.pop(class_id, None)
                    imported.discard(class_id)
                elif source == "import":
                    imported.add(class_id)
                else:
                    answers = said.setdefault(class_id, {})
                    stands = class_id in imported or any(other != person for other in answers)
                    is_blind = source in SOURCES and SOURCES[source].blind
                    knew = derivation.is_vote(source) and id_ > shown.get(person, id_)
                    is_later = id_ > taken_back.get((class_id, person), id_)
                    if source == "settlement" or knew or is_later or (stands and not is_blind):
                        answers.setdefault(person, None)
                    elif state != UNSURE:
                        answers.setdefault(person, FirstAnswer(state, when[id_]))
        yield {
            class_id: {person: answer for person, answer in answers.items() if answer is not None}
            for class_id, answers in said.items()
        }


def load_current_labels(db: Database, image_id: int) -> dict[int, tuple[int, str, float]]:
    """Return an image's labels: class id -> (state, annotator, Unix seconds or 0 if blind)."""
    rows = db.tuples(
        f"""SELECT label.class_id, label.state, annotator,
            CASE WHEN source IN {format_source_list(blind=True)} THEN 0 ELSE decided_at END
        FROM label JOIN decision ON decision.id = label.decision_id WHERE label.image_id = ?""",
        [image_id],
    )
    return {class_id: (state, person, at) for class_id, state, person, at in rows}


def count_answers_by_annotator(db: Database) -> dict[str, int]:
    """Count each annotator's answering decisions, including undone ones."""
    rows = db.tuples(
        """SELECT annotator, count(*) FROM decision WHERE action IN ('label', 'done') AND source != 'import'
        GROUP BY annotator ORDER BY annotator"""
    )
    return dict(rows)
