"""The triggers of project.db, which update counts, versions and derived rows in the same transaction."""

from collections.abc import Iterator

from sqlite_utils import Database

# Columns of `image` that say how far the work on it is. They change with every decision or failed read, and nothing
# that is kept of images in memory follows from them.
WORK_COLUMNS = ("stage", "stage_decision", "problem", "capture_read")


def create_image_change_trigger(db: Database) -> None:
    """Recreate the trigger that logs changed images in image_change.

    It fires when a column outside WORK_COLUMNS gets a new value, including columns added by later steps.
    """
    columns = [row[1] for row in db.execute("PRAGMA table_info(image)").fetchall() if row[1] not in WORK_COLUMNS]
    db.execute("DROP TRIGGER IF EXISTS image_changed")
    db.execute(
        f"""CREATE TRIGGER image_changed AFTER UPDATE OF {", ".join(columns)} ON image
WHEN {" OR ".join(f"old.{name} IS NOT new.{name}" for name in columns)} BEGIN
    INSERT INTO image_change (image_id) VALUES (new.id);
END"""
    )


def build_implication_triggers() -> Iterator[str]:
    """Yield the SQL of the triggers that keep implied cells in `accepted`, idle without class relations.

    They rederive what a changed label implies. A cell is not implied if it is answered, or if answers imply both
    of its states.
    """
    for name, event, changed, states, own_class in (
        ("label_implies", "INSERT", "new", "(new.state)", "0"),
        ("label_implies_otherwise", "UPDATE OF state, decision_id", "new", "(old.state, new.state)", "0"),
        ("label_implied_no_more", "DELETE", "old", "(old.state)", "old.class_id"),
    ):
        targets = f"""SELECT other_id FROM implication WHERE class_id = {changed}.class_id AND state IN {states}
        UNION ALL SELECT {own_class}"""
        cells = f"""SELECT other_id, other_state, relation_id, min(decision_id) AS decision_id FROM (
        SELECT m.other_id, m.other_state, m.relation_id, min(l.decision_id) AS decision_id
        FROM implication m CROSS JOIN label l
            ON l.image_id = {changed}.image_id AND l.class_id = m.class_id AND l.state = m.state
        WHERE m.other_id IN ({targets})
            AND NOT EXISTS (SELECT 1 FROM label o WHERE o.image_id = {changed}.image_id AND o.class_id = m.other_id)
        GROUP BY m.other_id, m.other_state, m.relation_id HAVING count(*) >= m.needed
    ) GROUP BY other_id HAVING count(DISTINCT other_state) = 1"""
        yield f"""CREATE TRIGGER {name} AFTER {event} ON label WHEN EXISTS (SELECT 1 FROM implication) BEGIN
    DELETE FROM accepted WHERE image_id = {changed}.image_id AND decision_id NOT NULL AND class_id IN ({targets});
    DELETE FROM accepted WHERE image_id = {changed}.image_id AND class_id IN (SELECT other_id FROM ({cells}));
    INSERT INTO accepted (image_id, class_id, acceptance_id, state, score, decision_id)
    SELECT {changed}.image_id, c.other_id, a.id, c.other_state, c.other_state > 0, c.decision_id
    FROM ({cells}) c JOIN acceptance a ON a.relation_id = c.relation_id;
END;
"""


TRIGGERS_SQL = """
-- Counts of images, labels and decisions: `tally`

CREATE TRIGGER image_added AFTER INSERT ON image BEGIN
    INSERT INTO tally VALUES ('stage', new.stage, '', 1) ON CONFLICT (kind, one, two) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER image_moved AFTER UPDATE OF stage ON image WHEN old.stage != new.stage BEGIN
    UPDATE tally SET n = n - 1 WHERE kind = 'stage' AND one = old.stage AND two = '';
    INSERT INTO tally VALUES ('stage', new.stage, '', 1) ON CONFLICT (kind, one, two) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER label_added AFTER INSERT ON label BEGIN
    INSERT INTO tally VALUES ('label', new.class_id, new.state, 1)
    ON CONFLICT (kind, one, two) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER label_changed AFTER UPDATE OF state ON label WHEN old.state != new.state BEGIN
    UPDATE tally SET n = n - 1 WHERE kind = 'label' AND one = old.class_id AND two = old.state;
    INSERT INTO tally VALUES ('label', new.class_id, new.state, 1)
    ON CONFLICT (kind, one, two) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER label_removed AFTER DELETE ON label BEGIN
    UPDATE tally SET n = n - 1 WHERE kind = 'label' AND one = old.class_id AND two = old.state;
END;
CREATE TRIGGER decision_added AFTER INSERT ON decision WHEN new.action != 'undo' BEGIN
    INSERT INTO tally SELECT kind, one, two, 1 FROM counted WHERE decision_id = new.id
    ON CONFLICT (kind, one, two) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER decision_undone AFTER INSERT ON decision WHEN new.undoes IS NOT NULL BEGIN
    INSERT INTO tally SELECT kind, one, two, -1 FROM counted WHERE decision_id = new.undoes
    ON CONFLICT (kind, one, two) DO UPDATE SET n = n - 1;
END;

-- Cells that a model answers: a label takes the cell from the model, and its undo returns it (step_002.py)

CREATE TRIGGER accepted_answered AFTER INSERT ON label BEGIN
    DELETE FROM accepted WHERE image_id = new.image_id AND class_id = new.class_id;
END;
CREATE TRIGGER accepted_added AFTER INSERT ON accepted BEGIN
    INSERT INTO tally VALUES ('accepted', new.class_id, new.state, 1)
    ON CONFLICT (kind, one, two) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER accepted_removed AFTER DELETE ON accepted BEGIN
    UPDATE tally SET n = n - 1 WHERE kind = 'accepted' AND one = old.class_id AND two = old.state;
END;

-- The version of the classes

CREATE TRIGGER class_added AFTER INSERT ON class BEGIN UPDATE class_version SET changes = changes + 1; END;
CREATE TRIGGER class_changed AFTER UPDATE ON class BEGIN UPDATE class_version SET changes = changes + 1; END;
CREATE TRIGGER class_removed AFTER DELETE ON class BEGIN UPDATE class_version SET changes = changes + 1; END;
CREATE TRIGGER class_change_added AFTER INSERT ON class_change BEGIN
    UPDATE class_version SET changes = changes + 1;
END;

-- The access log is only appended to

CREATE TRIGGER access_log_keeps_rows BEFORE DELETE ON access_log
    BEGIN SELECT RAISE(ABORT, 'the access log is only appended to'); END;
CREATE TRIGGER access_log_keeps_words BEFORE UPDATE ON access_log
    BEGIN SELECT RAISE(ABORT, 'the access log is only appended to'); END;

-- Images that several people answer: new images of the chosen share, and the version of those that wait

CREATE TRIGGER image_is_to_be_read AFTER INSERT ON image BEGIN
    INSERT INTO reading (image_id, due) SELECT new.id, people FROM overlap WHERE substr(new.sha256, 9, 8) < below;
END;
CREATE TRIGGER image_waits_or_not AFTER UPDATE OF due ON reading WHEN (old.due > 0) != (new.due > 0) BEGIN
    UPDATE reading_version SET n = n + 1;
END;

-- Counts that are hidden from people who may be asked blind: labels of `kept_apart` images (tally 'apart'), and stages
-- of images that wait for answers (tally 'apart stage')

CREATE TRIGGER apart_label_added AFTER INSERT ON label
WHEN EXISTS (SELECT 1 FROM reading WHERE image_id = new.image_id AND due > 0)
OR EXISTS (SELECT 1 FROM known_answer WHERE image_id = new.image_id) BEGIN
    INSERT INTO tally VALUES ('apart', new.class_id, new.state, 1)
    ON CONFLICT (kind, one, two) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER apart_label_changed AFTER UPDATE OF state ON label WHEN old.state != new.state
AND (EXISTS (SELECT 1 FROM reading WHERE image_id = new.image_id AND due > 0)
OR EXISTS (SELECT 1 FROM known_answer WHERE image_id = new.image_id)) BEGIN
    UPDATE tally SET n = n - 1 WHERE kind = 'apart' AND one = old.class_id AND two = old.state;
    INSERT INTO tally VALUES ('apart', new.class_id, new.state, 1)
    ON CONFLICT (kind, one, two) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER apart_label_removed AFTER DELETE ON label
WHEN EXISTS (SELECT 1 FROM reading WHERE image_id = old.image_id AND due > 0)
OR EXISTS (SELECT 1 FROM known_answer WHERE image_id = old.image_id) BEGIN
    UPDATE tally SET n = n - 1 WHERE kind = 'apart' AND one = old.class_id AND two = old.state;
END;
CREATE TRIGGER apart_image_moved AFTER UPDATE OF stage ON image WHEN old.stage != new.stage
AND EXISTS (SELECT 1 FROM reading WHERE image_id = new.id AND due > 0) BEGIN
    UPDATE tally SET n = n - 1 WHERE kind = 'apart stage' AND one = old.stage AND two = '';
    INSERT INTO tally VALUES ('apart stage', new.stage, '', 1) ON CONFLICT (kind, one, two) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER apart_reading_added AFTER INSERT ON reading WHEN new.due > 0 BEGIN
    INSERT INTO tally SELECT 'apart stage', stage, '', 1 FROM image WHERE id = new.image_id
    ON CONFLICT (kind, one, two) DO UPDATE SET n = n + 1;
    INSERT INTO tally SELECT 'apart', class_id, state, 1 FROM label WHERE image_id = new.image_id
    AND NOT EXISTS (SELECT 1 FROM known_answer WHERE image_id = new.image_id)
    ON CONFLICT (kind, one, two) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER apart_reading_removed AFTER DELETE ON reading WHEN old.due > 0 BEGIN
    INSERT INTO tally SELECT 'apart stage', stage, '', -1 FROM image WHERE id = old.image_id
    ON CONFLICT (kind, one, two) DO UPDATE SET n = n - 1;
    INSERT INTO tally SELECT 'apart', class_id, state, -1 FROM label WHERE image_id = old.image_id
    AND NOT EXISTS (SELECT 1 FROM known_answer WHERE image_id = old.image_id)
    ON CONFLICT (kind, one, two) DO UPDATE SET n = n - 1;
END;
CREATE TRIGGER apart_reading_began AFTER UPDATE OF due ON reading WHEN old.due <= 0 AND new.due > 0 BEGIN
    INSERT INTO tally SELECT 'apart stage', stage, '', 1 FROM image WHERE id = new.image_id
    ON CONFLICT (kind, one, two) DO UPDATE SET n = n + 1;
    INSERT INTO tally SELECT 'apart', class_id, state, 1 FROM label WHERE image_id = new.image_id
    AND NOT EXISTS (SELECT 1 FROM known_answer WHERE image_id = new.image_id)
    ON CONFLICT (kind, one, two) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER apart_reading_ended AFTER UPDATE OF due ON reading WHEN old.due > 0 AND new.due <= 0 BEGIN
    INSERT INTO tally SELECT 'apart stage', stage, '', -1 FROM image WHERE id = new.image_id
    ON CONFLICT (kind, one, two) DO UPDATE SET n = n - 1;
    INSERT INTO tally SELECT 'apart', class_id, state, -1 FROM label WHERE image_id = new.image_id
    AND NOT EXISTS (SELECT 1 FROM known_answer WHERE image_id = new.image_id)
    ON CONFLICT (kind, one, two) DO UPDATE SET n = n - 1;
END;
CREATE TRIGGER apart_known_added AFTER INSERT ON known_answer
WHEN NOT EXISTS (SELECT 1 FROM reading WHERE image_id = new.image_id AND due > 0) BEGIN
    INSERT INTO tally SELECT 'apart', class_id, state, 1 FROM label WHERE image_id = new.image_id
    ON CONFLICT (kind, one, two) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER apart_known_removed AFTER DELETE ON known_answer
WHEN NOT EXISTS (SELECT 1 FROM reading WHERE image_id = old.image_id AND due > 0) BEGIN
    INSERT INTO tally SELECT 'apart', class_id, state, -1 FROM label WHERE image_id = old.image_id
    ON CONFLICT (kind, one, two) DO UPDATE SET n = n - 1;
END;
"""
