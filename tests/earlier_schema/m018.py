"""Step 18: classes that a person rules out after a random sample, held like auto-accepted cells."""

from sqlite_utils import Database


def m018(db: Database) -> None:
    """Add to each acceptance the person who ruled the class out after a random sample of it.

    It is "" for what a model answers under its guarantee. Every page reads which classes are ruled out, and old
    acceptances are many: the index has only those of people.
    """
    db.execute("ALTER TABLE acceptance ADD COLUMN annotator TEXT NOT NULL DEFAULT ''")
    db.execute("CREATE INDEX acceptance_of_a_person ON acceptance (class_id) WHERE annotator != ''")
