"""The history of one image: its decisions and their undos."""

from dataclasses import dataclass

from annotator.store.database.database import Database
from annotator.store.labels.derivation import load_covered_classes
from annotator.store.runs.prediction_sources import load_logged_scores


@dataclass(frozen=True)
class DecisionRecord:
    """One decision about an image, as the image's history shows it."""

    id: int
    uuid: str
    # unix seconds
    at: float
    annotator: str
    action: str
    class_id: int | None
    class_name: str
    # class that the answer now counts for, or ""
    merged_into: str
    state: int | None
    note: str
    source: str
    # displayed probability, or None
    score: float | None
    # classes answered by "nothing else here"
    covered: tuple[str, ...]
    # undone_by, undone_at: annotator and time of the undo, or None
    undone_by: str | None
    undone_at: float | None
    # it could not resolve a disagreement
    is_opinion: bool
    # (name, score) of external models
    models: tuple[tuple[str, float], ...] = ()
    # for imports, the annotator, method and time named in the source, or None
    origin: tuple[str, str, float | None] | None = None
    # image whose answer was copied, or ""
    front: str = ""


def load_image_history(db: Database, image_id: int, notes_of: str = "") -> list[DecisionRecord]:
    """Return an image's decisions except undos, oldest first (flags and comments of `notes_of` only, if given)."""
    with db.reading() as sql:
        only = "AND d.annotator = ? AND d.action IN ('flag', 'comment')" if notes_of else ""
        rows = db.rows(
            f"""SELECT d.id, d.uuid, d.decided_at AS at, d.annotator, d.action, d.class_id, d.state, d.note, d.source,
            d.score, coalesce(c.name, '') AS class_name,
            coalesce((SELECT name FROM class WHERE id = c.merged_into AND c.archived), '') AS merged_into,
            u.annotator AS undone_by, u.decided_at AS undone_at, o.decision_id IS NOT NULL AS is_opinion,
            coalesce((SELECT i.name FROM event_answer e JOIN decision f ON f.id = e.from_id
                JOIN image i ON i.id = f.image_id WHERE e.decision_id = d.id), '') AS front
            FROM decision d LEFT JOIN decision u ON u.undoes = d.id LEFT JOIN class c ON c.id = d.class_id
            LEFT JOIN opinion o ON o.decision_id = d.id
            WHERE d.image_id = ? AND d.action != 'undo' {only} ORDER BY d.id""",
            [image_id, *([notes_of] if notes_of else [])],
        )
        if notes_of:
            return [DecisionRecord(**row, covered=()) for row in rows]
        names = {row["id"]: row["name"] for row in db.rows("SELECT id, name FROM class")}
        answered = {done: tuple(names[id_] for id_ in ids) for done, ids in load_covered_classes(sql, image_id).items()}
        models = load_logged_scores(db, image_id)
        origins = {
            row[0]: row[1:]
            for row in db.tuples(
                """SELECT o.decision_id, o.annotator, o.source, o.decided_at FROM origin o
                JOIN decision d ON d.id = o.decision_id WHERE d.image_id = ?""",
                [image_id],
            )
        }
    return [
        DecisionRecord(
            **row,
            covered=answered.get(row["id"], ()),
            models=tuple(models.get(row["id"], ())),
            origin=origins.get(row["id"]),
        )
        for row in rows
    ]
