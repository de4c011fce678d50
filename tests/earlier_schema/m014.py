"""Step 14: answers that settle nothing, because whoever gave them may not settle what people differ on."""

from sqlite_utils import Database


def m014(db: Database) -> None:
    """Add a note of decisions on disputed cells that were made by members without the right to review.

    Roles change, so the note is stored with the decision. Earlier decisions are not noted: any of them could end a
    disagreement.
    """
    db.execute("CREATE TABLE opinion (decision_id INTEGER PRIMARY KEY REFERENCES decision (id))")
