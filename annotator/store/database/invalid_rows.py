"""SQL conditions and reports for invalid rows, which all readers omit."""

from annotator.store.database.database import Database

# valid states of a label; of an auto-accepted cell
VALID_LABEL_STATES_SQL, VALID_ACCEPTED_STATES_SQL = ("IN (1, -1, 0)", "IN (1, -1)")

_INVALID_LABELS_SQL = f"""FROM label l WHERE l.state NOT {VALID_LABEL_STATES_SQL}
    OR l.class_id NOT IN (SELECT id FROM class) OR NOT EXISTS (SELECT 1 FROM image WHERE id = l.image_id)
    OR NOT EXISTS (SELECT 1 FROM decision WHERE id = l.decision_id)"""


def describe_labels(db: Database) -> str:
    """Return a sentence about invalid labels, or ""."""
    count = db.value(f"SELECT count(*) {_INVALID_LABELS_SQL}")
    if not count:
        return ""
    image, class_, state = db.tuples(f"SELECT l.image_id, l.class_id, l.state {_INVALID_LABELS_SQL} LIMIT 1")[0]
    return (
        f"{count:,} {'label' if count == 1 else 'labels'} with a state, class, image or decision that does not exist "
        f"(the first: image {image!r}, class {class_!r}, state {state!r})"
    )


def describe_accepted_cells(db: Database) -> str:
    """Return a sentence about auto-accepted cells with invalid states, or ""."""
    count = db.value(f"SELECT count(*) FROM accepted WHERE state NOT {VALID_ACCEPTED_STATES_SQL}")
    if not count:
        return ""
    return f"{count:,} {'cell' if count == 1 else 'cells'} accepted automatically with a state that does not exist"


def describe_settings(db: Database) -> list[str]:
    """Return a sentence per setting that is not JSON."""
    rows = db.tuples("SELECT key FROM setting WHERE NOT json_valid(value) ORDER BY key")
    return [f"setting {key!r}: it is no JSON, so its default holds" for (key,) in rows]
