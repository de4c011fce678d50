"""Step 15: what a person has been shown of images that are answered blind, and tallies of these images."""

from sqlite_utils import Database

from annotator.store.schema.script import split_statements


def m015(db: Database) -> None:
    """Keep an image from becoming blind again for a person who takes an answer back.

    Until now an image was blind for everybody without a valid answer to it: taking one back hid it again, although that
    person had seen the answers of others. People who have answered an image by now count as having been shown it; their
    answers after taking a blind answer back do not count as blind.
    """
    for statement in split_statements(_M015):
        db.execute(statement)


_M015 = """
-- who has been shown what is known of an image that is answered blind, now or before
CREATE TABLE revealed (
    image_id INTEGER NOT NULL REFERENCES image (id),
    -- '': everybody
    annotator TEXT NOT NULL,
    -- the last one that was given before; what they say of the image later is not said blind
    decision_id INTEGER NOT NULL,
    PRIMARY KEY (image_id, annotator)
) WITHOUT ROWID;
INSERT INTO revealed SELECT d.image_id, d.annotator, coalesce(min(u.id), (SELECT max(id) FROM decision))
FROM decision d LEFT JOIN decision u ON u.undoes = d.id AND d.source IN ('reading', 'known')
WHERE d.action IN ('label', 'clear', 'done') AND d.source != 'import' AND d.image_id IN (
    SELECT image_id FROM reading UNION SELECT image_id FROM known_answer
    UNION SELECT image_id FROM decision WHERE source IN ('reading', 'known'))
GROUP BY d.image_id, d.annotator;

-- What is taken out of the tallies that people see who may be asked blind: the labels of these images, and the stages
-- of those that wait.
CREATE VIEW kept_apart AS SELECT image_id FROM reading WHERE due > 0
    UNION ALL SELECT image_id FROM known_answer k
    WHERE NOT EXISTS (SELECT 1 FROM reading r WHERE r.image_id = k.image_id AND r.due > 0);
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
INSERT INTO tally SELECT 'apart', class_id, state, count(*) FROM label
WHERE image_id IN (SELECT image_id FROM kept_apart) GROUP BY class_id, state;
INSERT INTO tally SELECT 'apart stage', stage, '', count(*) FROM image
WHERE id IN (SELECT image_id FROM reading WHERE due > 0) GROUP BY stage;
"""
