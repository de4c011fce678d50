"""Accuracy of external models on answers given after their predictions."""

from dataclasses import dataclass

from annotator.records import list_sources
from annotator.store.database.database import Database

PRESENT_THRESHOLD = 0.5  # a probability from here on says "present"


@dataclass(frozen=True)
class SourceRecord:
    """Counts of one prediction source's right and wrong predictions."""

    name: str
    # said_present, present_right: cells predicted present, and those answered so
    said_present: int
    present_right: int
    # said_absent, absent_right: the same for absent
    said_absent: int
    absent_right: int


def load_source_records(db: Database) -> list[SourceRecord]:
    """Return per source of probabilities how many of its predictions unbiased answers confirmed."""
    unbiased = list_sources(unbiased=True)
    marks = ",".join("?" * len(unbiased))
    rows = db.tuples(
        f"""SELECT s.name, sum(p.score >= {PRESENT_THRESHOLD}), sum(p.score >= {PRESENT_THRESHOLD} AND l.state = 1),
            sum(p.score < {PRESENT_THRESHOLD}),
        sum(p.score < {PRESENT_THRESHOLD} AND l.state = -1)
        FROM prediction_source s JOIN prediction_score p ON p.prediction_source_id = s.id
        JOIN decision d ON d.id = p.decision_id JOIN label l ON l.decision_id = d.id
        WHERE s.removed_at IS NULL AND s.scale = 'probability' AND l.state IN (1, -1) AND d.source IN ({marks})
        GROUP BY s.id ORDER BY s.id""",
        list(unbiased),
    )
    return [SourceRecord(*row) for row in rows]
