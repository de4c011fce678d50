"""Step 13: who is asked what: images that several people answer, blind to each other, and fixed shares."""

from sqlite_utils import Database

from annotator.store.schema.script import split_statements


def m013(db: Database) -> None:
    """Add how many people answer an image, known answers, and assignments.

    Also add the decision after which blind answers settle no disagreement. Until now any later answer ended a
    disagreement, also a blind answer of a third person, which is only one more opinion. Disagreements that such an
    answer has ended stay ended.
    """
    for statement in split_statements(_M013):
        db.execute(statement)


_M013 = """
-- what the owner has chosen; no row: every cell is answered once
CREATE TABLE overlap (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    people INTEGER NOT NULL,
    -- eight hexadecimal digits: images whose content begins below them (after its first eight digits) are chosen
    below TEXT NOT NULL
);
-- the images it has chosen
CREATE TABLE reading (
    image_id INTEGER PRIMARY KEY REFERENCES image (id),
    -- people who have answered it, and how many more are to do so
    had INTEGER NOT NULL DEFAULT 0,
    due INTEGER NOT NULL
);
CREATE TABLE blind_since (decision_id INTEGER NOT NULL);
INSERT INTO blind_since SELECT coalesce(max(id), 0) FROM decision;
CREATE INDEX reading_due ON reading (had) WHERE due > 0;
-- grows when an image begins or ceases to wait, so that pages know when to read again which ones do
CREATE TABLE reading_version (n INTEGER NOT NULL);
INSERT INTO reading_version VALUES (0);
CREATE TRIGGER image_waits_or_not AFTER UPDATE OF due ON reading WHEN (old.due > 0) != (new.due > 0) BEGIN
    UPDATE reading_version SET n = n + 1;
END;
-- complete images that everybody is to answer once, to see how well they do
CREATE TABLE known_answer (image_id INTEGER PRIMARY KEY REFERENCES image (id));
-- what belongs to somebody; what: a folder, the name of a list, or the id of a class
CREATE TABLE assignment (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    annotator TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('folder', 'images', 'class')),
    what TEXT NOT NULL,
    given_at REAL NOT NULL
);
-- the images of a list
CREATE TABLE assigned_image (
    assignment_id INTEGER NOT NULL REFERENCES assignment (id),
    image_id INTEGER NOT NULL REFERENCES image (id),
    PRIMARY KEY (assignment_id, image_id)
) WITHOUT ROWID;
CREATE TRIGGER image_is_to_be_read AFTER INSERT ON image BEGIN
    INSERT INTO reading (image_id, due) SELECT new.id, people FROM overlap WHERE substr(new.sha256, 9, 8) < below;
END;
"""
