"""Step 14: answers that settle nothing, because whoever gave them may not settle what people differ on."""

from sqlite_utils import Database


def m014(db: Database) -> None:
    """Decisions about a cell on which people differed, by members without the right to review. Roles change, so it is
    noted beside the decision what its giver could not do then. Earlier decisions stay what they were: any of them could
    end a disagreement.
    """
    db.execute("CREATE TABLE opinion (decision_id INTEGER PRIMARY KEY REFERENCES decision (id))")
