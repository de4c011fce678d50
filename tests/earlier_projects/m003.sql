BEGIN TRANSACTION;
CREATE TABLE "_sqlite_migrations" (
   "id" INTEGER PRIMARY KEY,
   "migration_set" TEXT,
   "name" TEXT,
   "applied_at" TEXT
);
INSERT INTO "_sqlite_migrations" VALUES(1,'annotator','m001','2026-11-28 16:54:46.131192+00:00');
INSERT INTO "_sqlite_migrations" VALUES(2,'annotator','m002','2026-11-28 16:54:46.136222+00:00');
INSERT INTO "_sqlite_migrations" VALUES(3,'annotator','m003','2026-11-28 16:54:46.138556+00:00');
CREATE TABLE acceptance (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    -- those made at one time share it, and are undone as one
    batch TEXT NOT NULL,
    class_id INTEGER NOT NULL REFERENCES class (id),
    state INTEGER NOT NULL CHECK (state IN (1, -1)),
    run_id INTEGER NOT NULL,
    threshold REAL NOT NULL,
    -- what was promised, and the audited decisions it rests on
    precision REAL NOT NULL,
    confidence REAL NOT NULL,
    audited INTEGER NOT NULL,
    wrong INTEGER NOT NULL,
    made_at REAL NOT NULL,
    -- why its cells were given back; empty while it holds
    withdrawn TEXT NOT NULL DEFAULT '',
    withdrawn_at REAL
);
INSERT INTO "acceptance" VALUES(1,'acc1',2,-1,1,0.01,0.95,0.9,60,1,1795884886.21168,'',NULL);
CREATE TABLE accepted (
    image_id INTEGER NOT NULL REFERENCES image (id),
    class_id INTEGER NOT NULL REFERENCES class (id),
    acceptance_id INTEGER NOT NULL REFERENCES acceptance (id),
    state INTEGER NOT NULL,
    score REAL NOT NULL,
    PRIMARY KEY (image_id, class_id)
) WITHOUT ROWID;
INSERT INTO "accepted" VALUES(5,2,1,-1,0.01);
INSERT INTO "accepted" VALUES(6,2,1,-1,0.02);
INSERT INTO "accepted" VALUES(7,2,1,-1,0.005);
CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id INTEGER,
    last_decision_id INTEGER NOT NULL,
    drawn_at REAL NOT NULL,
    -- set when its arrays are on the disk (audits/<id>/): before that nobody sees it
    published INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE audit_cell (
    audit_id INTEGER NOT NULL REFERENCES audit (id),
    class_id INTEGER NOT NULL REFERENCES class (id),
    image_id INTEGER NOT NULL REFERENCES image (id),
    stratum INTEGER NOT NULL,
    -- in the random order in which a class's cells are asked
    place INTEGER NOT NULL,
    PRIMARY KEY (audit_id, class_id, image_id)
) WITHOUT ROWID;
CREATE TABLE class (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    description TEXT NOT NULL DEFAULT '',
    -- the newest decision when it was added: "nothing else here" said before then does not cover it
    since_decision INTEGER NOT NULL
, key TEXT NOT NULL DEFAULT '');
INSERT INTO "class" VALUES(1,'fox','red and quick',0,'1');
INSERT INTO "class" VALUES(2,'heron','',0,'2');
INSERT INTO "class" VALUES(3,'deer','',0,'3');
INSERT INTO "class" VALUES(4,'wolf','',14,'4');
CREATE TABLE contradiction (
    image_id INTEGER NOT NULL REFERENCES image (id),
    class_id INTEGER NOT NULL REFERENCES class (id),
    -- the answer that brought it
    decision_id INTEGER NOT NULL REFERENCES decision (id),
    PRIMARY KEY (image_id, class_id)
) WITHOUT ROWID;
INSERT INTO "contradiction" VALUES(2,3,9);
CREATE TABLE "decision" (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    action TEXT NOT NULL CHECK (action IN ('label', 'done', 'skip', 'undo', 'flag')),
    image_id INTEGER REFERENCES image (id),
    class_id INTEGER REFERENCES class (id),
    state INTEGER CHECK (state IN (1, -1, 0)),
    -- what a flag says; empty takes the image's flag away
    note TEXT NOT NULL DEFAULT '',
    undoes INTEGER REFERENCES decision (id),
    source TEXT NOT NULL,
    annotator TEXT NOT NULL,
    batch TEXT,
    run_id INTEGER,
    score REAL,
    milliseconds INTEGER,
    decided_at REAL NOT NULL
);
INSERT INTO "decision" VALUES(1,'124152fc-ba5f-4391-b02d-bc0b1c20ec32','label',1,1,1,'',NULL,'import','import','a3b1c0cf-8edb-48a2-9c1a-db3d85a79c8a',NULL,NULL,NULL,1.7958848862000262737e+09);
INSERT INTO "decision" VALUES(2,'76d74474-234b-4f02-b6e2-5d97a4f77316','label',5,3,-1,'',NULL,'import','import','a3b1c0cf-8edb-48a2-9c1a-db3d85a79c8a',NULL,NULL,NULL,1.79588488620062232013e+09);
INSERT INTO "decision" VALUES(3,'a1','label',1,2,1,'',NULL,'click','Ann',NULL,NULL,NULL,812,1.7958848862024364471e+09);
INSERT INTO "decision" VALUES(4,'a2','done',1,NULL,NULL,'',NULL,'done','Ann',NULL,NULL,NULL,NULL,1.79588488620366024976e+09);
INSERT INTO "decision" VALUES(5,'a3','label',2,1,-1,'',NULL,'click','Ann',NULL,NULL,NULL,NULL,1.7958848862044706345e+09);
INSERT INTO "decision" VALUES(6,'a4','undo',2,NULL,NULL,'',5,'click','Ann',NULL,NULL,NULL,NULL,1.79588488620519256587e+09);
INSERT INTO "decision" VALUES(7,'a5','skip',3,NULL,NULL,'',NULL,'click','Ann',NULL,NULL,NULL,NULL,1.79588488620640206335e+09);
INSERT INTO "decision" VALUES(8,'a6','label',2,3,1,'',NULL,'click','Bob',NULL,NULL,NULL,NULL,1.79588488620715856555e+09);
INSERT INTO "decision" VALUES(9,'a7','label',2,3,-1,'',NULL,'click','Ann',NULL,NULL,NULL,NULL,1.79588488620776343344e+09);
INSERT INTO "decision" VALUES(10,'a8','flag',4,NULL,NULL,'blurred',NULL,'click','Ann',NULL,NULL,NULL,NULL,1.7958848862084619999e+09);
INSERT INTO "decision" VALUES(11,'a9','label',4,1,0,'',NULL,'click','Ann',NULL,NULL,NULL,NULL,1.79588488620901322364e+09);
INSERT INTO "decision" VALUES(12,'g1:0','label',5,1,1,'',NULL,'grid','Bob','g1',1,0.9,NULL,1.7958848862106409073e+09);
INSERT INTO "decision" VALUES(13,'g1:1','label',6,1,-1,'',NULL,'grid','Bob','g1',1,0.2,NULL,1.79588488621084332464e+09);
INSERT INTO "decision" VALUES(14,'g1:2','label',7,1,1,'',NULL,'grid','Bob','g1',1,0.8,NULL,1.79588488621093678469e+09);
CREATE TABLE file (
    id INTEGER PRIMARY KEY,
    folder_id INTEGER NOT NULL REFERENCES folder (id),
    path TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    image_id INTEGER REFERENCES image (id),
    reason TEXT NOT NULL DEFAULT '',
    UNIQUE (folder_id, path)
);
INSERT INTO "file" VALUES(1,1,'day/0.jpg',731,1795884867054763048,1,'');
INSERT INTO "file" VALUES(2,1,'day/2.jpg',730,1795884867062033911,2,'');
INSERT INTO "file" VALUES(3,1,'day/4.jpg',729,1795884867062677012,3,'');
INSERT INTO "file" VALUES(4,1,'day/6.jpg',730,1795884867063321916,4,'');
INSERT INTO "file" VALUES(5,1,'day/broken.jpg',12,1795884867063918350,NULL,'not an image, or a format that is not read (read are jpeg, png, webp, bmp, gif, tiff)');
INSERT INTO "file" VALUES(6,1,'night/1.jpg',731,1795884867061687253,5,'');
INSERT INTO "file" VALUES(7,1,'night/3.jpg',730,1795884867062362615,6,'');
INSERT INTO "file" VALUES(8,1,'night/5.jpg',730,1795884867062996298,7,'');
INSERT INTO "file" VALUES(9,1,'night/7.jpg',730,1795884867063673653,8,'');
CREATE TABLE folder (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE);
INSERT INTO "folder" VALUES(1,'/photos');
CREATE TABLE image (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    sha256 TEXT NOT NULL UNIQUE,
    width INTEGER NOT NULL,
    height INTEGER NOT NULL,
    -- how far people are with it: 0 untouched, 1 skipped, 2 has labels, 3 complete
    stage INTEGER NOT NULL DEFAULT 0,
    -- the decision that brought it there: skipped images come back in the order in which they were skipped
    stage_decision INTEGER NOT NULL DEFAULT 0,
    -- why its file cannot be read any more; empty when all is well
    problem TEXT NOT NULL DEFAULT ''
);
INSERT INTO "image" VALUES(1,'day/0.jpg','71896c195abbdfc034af525bff018fb8f91c05aa8c52c101395eea002439b3d2',24,16,2,4,'');
INSERT INTO "image" VALUES(2,'day/2.jpg','2c4f3eb8089c8f031be1f1bcd889027ae44b16c290e95ba2bebb3ecc7596931a',24,16,2,9,'');
INSERT INTO "image" VALUES(3,'day/4.jpg','49dff618bd8c83ce84767a084e9c4d070c26e4daf465c39f23d75f670d67984f',24,16,1,7,'');
INSERT INTO "image" VALUES(4,'day/6.jpg','56d18b5638c9115e3a3ea183e2f5b1374e6beb783a27e75a5a69752967539541',24,16,2,11,'');
INSERT INTO "image" VALUES(5,'night/1.jpg','e58f634417bd31cbf1d8d916e96a8562358bee332da93c2fc27531fab00413c4',24,16,2,12,'');
INSERT INTO "image" VALUES(6,'night/3.jpg','9214be806509068379db4e6e4f74f810056244776ee9b5b29965ab9c72b70d56',24,16,2,13,'');
INSERT INTO "image" VALUES(7,'night/5.jpg','d2ee2b01705fed6f5af8617ef955db6bb601fe8fb8815a18ff8da499f961db70',24,16,2,14,'');
INSERT INTO "image" VALUES(8,'night/7.jpg','3e11fd89cadabe731cd76cdb9c8503056079e057a2322be95f16e0c0b11e4282',24,16,0,0,'');
CREATE TABLE job (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('train', 'heatmap')),
    state TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'running', 'failed')),
    run_id INTEGER,
    image_id INTEGER,
    class_id INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    error TEXT NOT NULL DEFAULT '',
    asked_at REAL NOT NULL
);
CREATE TABLE label (
    image_id INTEGER NOT NULL REFERENCES image (id),
    class_id INTEGER NOT NULL REFERENCES class (id),
    state INTEGER NOT NULL,
    decision_id INTEGER NOT NULL REFERENCES decision (id),
    PRIMARY KEY (image_id, class_id)
) WITHOUT ROWID;
INSERT INTO "label" VALUES(6,1,-1,13);
INSERT INTO "label" VALUES(4,1,0,11);
INSERT INTO "label" VALUES(1,1,1,1);
INSERT INTO "label" VALUES(5,1,1,12);
INSERT INTO "label" VALUES(7,1,1,14);
INSERT INTO "label" VALUES(1,2,1,3);
INSERT INTO "label" VALUES(5,3,-1,2);
INSERT INTO "label" VALUES(1,3,-1,4);
INSERT INTO "label" VALUES(2,3,-1,9);
CREATE TABLE "lease" (
    image_id INTEGER NOT NULL REFERENCES image (id),
    -- 0: the whole image
    class_id INTEGER NOT NULL DEFAULT 0,
    holder TEXT NOT NULL,
    annotator TEXT NOT NULL,
    until REAL NOT NULL,
    PRIMARY KEY (image_id, class_id)
);
CREATE TABLE run (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    method TEXT NOT NULL,
    parameters TEXT NOT NULL,
    backbone TEXT NOT NULL,
    class_ids TEXT NOT NULL,
    images INTEGER NOT NULL,
    last_decision_id INTEGER NOT NULL,
    epochs INTEGER NOT NULL,
    seconds REAL NOT NULL,
    loss TEXT NOT NULL,
    -- from which probability on this method's suggestions are worth a look
    threshold REAL NOT NULL,
    finished_at REAL NOT NULL,
    -- set in the same transaction that makes its arrays the current ones
    published INTEGER NOT NULL DEFAULT 0
, version INTEGER NOT NULL DEFAULT 0, trained_decision_id INTEGER NOT NULL DEFAULT 0, calibration TEXT NOT NULL DEFAULT '');
INSERT INTO "run" VALUES(1,'gr','{}','efficientnet_lite2','[1, 2, 3]',8,11,3,1.5,'[0.5]',0.5,1.79588488621017980579e+09,1,0,11,'');
CREATE TABLE setting (key TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO "setting" VALUES('registrations','1');
INSERT INTO "setting" VALUES('method','"gr"');
CREATE TABLE tally (
    kind TEXT NOT NULL,
    one NOT NULL,
    two NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (kind, one, two)
) WITHOUT ROWID;
INSERT INTO "tally" VALUES('accepted',2,-1,3);
INSERT INTO "tally" VALUES('annotator','Ann','',4);
INSERT INTO "tally" VALUES('annotator','Bob','',4);
INSERT INTO "tally" VALUES('annotator','import','',2);
INSERT INTO "tally" VALUES('hour',498856,'click',4);
INSERT INTO "tally" VALUES('hour',498856,'done',1);
INSERT INTO "tally" VALUES('hour',498856,'flag',1);
INSERT INTO "tally" VALUES('hour',498856,'grid',3);
INSERT INTO "tally" VALUES('hour',498856,'skip',1);
INSERT INTO "tally" VALUES('label',1,-1,1);
INSERT INTO "tally" VALUES('label',1,0,1);
INSERT INTO "tally" VALUES('label',1,1,3);
INSERT INTO "tally" VALUES('label',2,1,1);
INSERT INTO "tally" VALUES('label',3,-1,3);
INSERT INTO "tally" VALUES('label',3,1,0);
INSERT INTO "tally" VALUES('run',1,-1,1);
INSERT INTO "tally" VALUES('run',1,1,2);
INSERT INTO "tally" VALUES('score',4,-1,1);
INSERT INTO "tally" VALUES('score',16,1,1);
INSERT INTO "tally" VALUES('score',18,1,1);
INSERT INTO "tally" VALUES('source','click','',4);
INSERT INTO "tally" VALUES('source','done','',1);
INSERT INTO "tally" VALUES('source','flag','',1);
INSERT INTO "tally" VALUES('source','grid','',3);
INSERT INTO "tally" VALUES('source','import','',2);
INSERT INTO "tally" VALUES('source','skip','',1);
INSERT INTO "tally" VALUES('stage',0,'',1);
INSERT INTO "tally" VALUES('stage',1,'',1);
INSERT INTO "tally" VALUES('stage',2,'',6);
INSERT INTO "tally" VALUES('stage',3,'',0);
CREATE TABLE worker (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    pid INTEGER,
    state TEXT NOT NULL,
    done INTEGER NOT NULL DEFAULT 0,
    "of" INTEGER NOT NULL DEFAULT 0,
    heartbeat_at REAL,
    last_error TEXT NOT NULL DEFAULT '',
    last_error_at REAL
);
INSERT INTO "worker" VALUES(1,NULL,'not started',0,0,NULL,'',NULL);
CREATE UNIQUE INDEX "idx__sqlite_migrations_migration_set_name"
    ON "_sqlite_migrations" ("migration_set", "name");
CREATE INDEX image_worklist ON image (stage, stage_decision, sha256);
CREATE INDEX file_image ON file (image_id);
CREATE UNIQUE INDEX job_heatmap ON job (run_id, image_id, class_id) WHERE kind = 'heatmap';
CREATE UNIQUE INDEX class_key ON class (key) WHERE key != '';
CREATE INDEX decision_image ON decision (image_id, id);
CREATE UNIQUE INDEX decision_undoes ON decision (undoes) WHERE undoes IS NOT NULL;
CREATE INDEX decision_annotator ON decision (annotator, id);
CREATE INDEX decision_batch ON decision (batch) WHERE batch IS NOT NULL;
CREATE INDEX decision_flag ON decision (image_id, id) WHERE action = 'flag';
CREATE INDEX label_class ON label (class_id, state, decision_id);
CREATE INDEX lease_holder ON lease (holder);
CREATE INDEX image_problem ON image (name) WHERE problem != '';
CREATE INDEX file_reason ON file (path) WHERE reason != '';
CREATE VIEW counted (decision_id, kind, one, two) AS
SELECT id, 'annotator', annotator, '' FROM decision WHERE action IN ('label', 'done')
UNION ALL
SELECT id, 'source', CASE WHEN action IN ('skip', 'flag') THEN action ELSE source END, ''
FROM decision WHERE action != 'undo'
UNION ALL
SELECT id, 'hour', CAST(decided_at / 3600 AS INTEGER), CASE WHEN action IN ('skip', 'flag') THEN action ELSE source END
FROM decision WHERE action != 'undo' AND source != 'import'
UNION ALL
SELECT id, 'score', max(0, min(19, CAST(score * 20 AS INTEGER))), state
FROM decision WHERE action = 'label' AND score IS NOT NULL AND source IN ('suggestion', 'grid', 'audit')
UNION ALL
SELECT id, 'run', run_id, state
FROM decision WHERE action = 'label' AND score IS NOT NULL AND run_id IS NOT NULL
    AND source IN ('suggestion', 'grid', 'audit');
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
CREATE INDEX audit_cell_image ON audit_cell (image_id, class_id);
CREATE INDEX accepted_acceptance ON accepted (acceptance_id);
CREATE INDEX accepted_class ON accepted (class_id, state);
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
CREATE INDEX contradiction_newest ON contradiction (decision_id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('decision',14);
INSERT INTO "sqlite_sequence" VALUES('image',8);
INSERT INTO "sqlite_sequence" VALUES('class',4);
INSERT INTO "sqlite_sequence" VALUES('run',1);
INSERT INTO "sqlite_sequence" VALUES('acceptance',1);
COMMIT;
