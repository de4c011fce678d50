BEGIN TRANSACTION;
CREATE TABLE "_sqlite_migrations" (
   "id" INTEGER PRIMARY KEY,
   "migration_set" TEXT,
   "name" TEXT,
   "applied_at" TEXT
);
INSERT INTO "_sqlite_migrations" VALUES(1,'annotator','m001','2026-11-28 16:55:20.602811+00:00');
INSERT INTO "_sqlite_migrations" VALUES(2,'annotator','m002','2026-11-28 16:55:20.610142+00:00');
INSERT INTO "_sqlite_migrations" VALUES(3,'annotator','m003','2026-11-28 16:55:20.613987+00:00');
INSERT INTO "_sqlite_migrations" VALUES(4,'annotator','m004','2026-11-28 16:55:20.614690+00:00');
INSERT INTO "_sqlite_migrations" VALUES(5,'annotator','m005','2026-11-28 16:55:20.615967+00:00');
INSERT INTO "_sqlite_migrations" VALUES(6,'annotator','m006','2026-11-28 16:55:20.616724+00:00');
INSERT INTO "_sqlite_migrations" VALUES(7,'annotator','m007','2026-11-28 16:55:20.634025+00:00');
INSERT INTO "_sqlite_migrations" VALUES(8,'annotator','m008','2026-11-28 16:55:20.636254+00:00');
INSERT INTO "_sqlite_migrations" VALUES(9,'annotator','m009','2026-11-28 16:55:20.636851+00:00');
INSERT INTO "_sqlite_migrations" VALUES(10,'annotator','m010','2026-11-28 16:55:20.637236+00:00');
INSERT INTO "_sqlite_migrations" VALUES(11,'annotator','m011','2026-11-28 16:55:20.638132+00:00');
INSERT INTO "_sqlite_migrations" VALUES(12,'annotator','m012','2026-11-28 16:55:20.639821+00:00');
INSERT INTO "_sqlite_migrations" VALUES(13,'annotator','m013','2026-11-28 16:55:20.641674+00:00');
INSERT INTO "_sqlite_migrations" VALUES(14,'annotator','m014','2026-11-28 16:55:20.642143+00:00');
INSERT INTO "_sqlite_migrations" VALUES(15,'annotator','m015','2026-11-28 16:55:20.644932+00:00');
INSERT INTO "_sqlite_migrations" VALUES(16,'annotator','m016','2026-11-28 16:55:20.645872+00:00');
INSERT INTO "_sqlite_migrations" VALUES(17,'annotator','m017','2026-11-28 16:55:20.648182+00:00');
INSERT INTO "_sqlite_migrations" VALUES(18,'annotator','m018','2026-11-28 16:55:20.650590+00:00');
INSERT INTO "_sqlite_migrations" VALUES(19,'annotator','m019','2026-11-28 16:55:20.651660+00:00');
INSERT INTO "_sqlite_migrations" VALUES(20,'annotator','m020','2026-11-28 16:55:20.652515+00:00');
INSERT INTO "_sqlite_migrations" VALUES(21,'annotator','m021','2026-11-28 16:55:20.659801+00:00');
INSERT INTO "_sqlite_migrations" VALUES(22,'annotator','m022','2026-11-28 16:55:20.660426+00:00');
INSERT INTO "_sqlite_migrations" VALUES(23,'annotator','m023','2026-11-28 16:55:20.663389+00:00');
INSERT INTO "_sqlite_migrations" VALUES(24,'annotator','m024','2026-11-28 16:55:20.666747+00:00');
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
, annotator TEXT NOT NULL DEFAULT '', relation_id INTEGER REFERENCES relation_edit (id));
INSERT INTO "acceptance" VALUES(1,'relation 1',1,1,0,0.0,0.0,0.0,0,0,1.79588492082335352897e+09,'',NULL,'',1);
INSERT INTO "acceptance" VALUES(2,'relation 2',1,1,0,0.0,0.0,0.0,0,0,1.7958849208234345913e+09,'',NULL,'',2);
CREATE TABLE accepted (
    image_id INTEGER NOT NULL REFERENCES image (id),
    class_id INTEGER NOT NULL REFERENCES class (id),
    acceptance_id INTEGER NOT NULL REFERENCES acceptance (id),
    state INTEGER NOT NULL,
    score REAL NOT NULL, decision_id INTEGER REFERENCES decision (id),
    PRIMARY KEY (image_id, class_id)
) WITHOUT ROWID;
INSERT INTO "accepted" VALUES(1,2,2,-1,0.0,1);
INSERT INTO "accepted" VALUES(1,6,1,1,1.0,1);
INSERT INTO "accepted" VALUES(2,1,2,-1,0.0,28);
INSERT INTO "accepted" VALUES(5,2,2,-1,0.0,14);
INSERT INTO "accepted" VALUES(5,6,1,1,1.0,14);
INSERT INTO "accepted" VALUES(7,2,2,-1,0.0,16);
INSERT INTO "accepted" VALUES(7,6,1,1,1.0,16);
CREATE TABLE access_log (
        id INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        by TEXT NOT NULL,
        what TEXT NOT NULL,
        member TEXT NOT NULL,
        detail TEXT NOT NULL DEFAULT ''
    );
INSERT INTO "access_log" VALUES(1,1.79588492080342817308e+09,'Olga','added','Olga','as owner');
INSERT INTO "access_log" VALUES(2,1.7958849208046150207e+09,'Olga','added','Ann','as annotator');
INSERT INTO "access_log" VALUES(3,1.79588492080517625809e+09,'Olga','added','Bob','as annotator');
CREATE TABLE access_token (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    secret_sha256 TEXT NOT NULL UNIQUE,
    -- predictions
    right_to TEXT NOT NULL,
    annotator TEXT NOT NULL,
    made_at REAL NOT NULL,
    used_at REAL,
    revoked_at REAL
);
CREATE TABLE alias (
    name TEXT PRIMARY KEY,
    image_id INTEGER NOT NULL REFERENCES image (id)
) WITHOUT ROWID;
CREATE TABLE appearance (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            image_id INTEGER NOT NULL UNIQUE REFERENCES image (id),
            brightness REAL NOT NULL,
            sharpness REAL NOT NULL,
            overexposed REAL NOT NULL,
            underexposed REAL NOT NULL,
            hash INTEGER NOT NULL
        );
CREATE TABLE assigned_image (
    assignment_id INTEGER NOT NULL REFERENCES assignment (id),
    image_id INTEGER NOT NULL REFERENCES image (id),
    PRIMARY KEY (assignment_id, image_id)
) WITHOUT ROWID;
CREATE TABLE assignment (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    annotator TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('folder', 'images', 'class')),
    what TEXT NOT NULL,
    given_at REAL NOT NULL
);
INSERT INTO "assignment" VALUES(1,'Ann','folder','day',1.79588492086237931253e+09);
CREATE TABLE attribute (
    image_id INTEGER NOT NULL REFERENCES image (id),
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    import_id INTEGER REFERENCES import (id),
    PRIMARY KEY (image_id, name)
) WITHOUT ROWID;
CREATE TABLE attribute_before (
    import_id INTEGER NOT NULL REFERENCES import (id),
    image_id INTEGER NOT NULL REFERENCES image (id),
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    before_id INTEGER REFERENCES import (id),
    PRIMARY KEY (image_id, name, import_id)
) WITHOUT ROWID;
CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id INTEGER,
    last_decision_id INTEGER NOT NULL,
    drawn_at REAL NOT NULL,
    -- set when its arrays are on the disk (audits/<id>/): before that nobody sees it
    published INTEGER NOT NULL DEFAULT 0
, people INTEGER NOT NULL DEFAULT 1, by_event INTEGER NOT NULL DEFAULT 0);
CREATE TABLE audit_cell (
    audit_id INTEGER NOT NULL REFERENCES audit (id),
    class_id INTEGER NOT NULL REFERENCES class (id),
    image_id INTEGER NOT NULL REFERENCES image (id),
    stratum INTEGER NOT NULL,
    -- in the random order in which a class's cells are asked
    place INTEGER NOT NULL,
    PRIMARY KEY (audit_id, class_id, image_id)
) WITHOUT ROWID;
CREATE TABLE blind_since (decision_id INTEGER NOT NULL);
INSERT INTO "blind_since" VALUES(0);
CREATE TABLE class (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    description TEXT NOT NULL DEFAULT '',
    -- the newest decision when it was added: "nothing else here" said before then does not cover it
    since_decision INTEGER NOT NULL
, key TEXT NOT NULL DEFAULT '', position INTEGER NOT NULL DEFAULT 0, heading TEXT NOT NULL DEFAULT '', colour TEXT NOT NULL DEFAULT '', archived INTEGER NOT NULL DEFAULT 0, archived_since INTEGER NOT NULL DEFAULT 0, merged_into INTEGER REFERENCES class (id), merged_same INTEGER NOT NULL DEFAULT 0);
INSERT INTO "class" VALUES(1,'fox','red and quick',0,'1',1,'mammals','#aa3300',0,0,NULL,0);
INSERT INTO "class" VALUES(2,'heron','',0,'2',2,'','',0,0,NULL,0);
INSERT INTO "class" VALUES(3,'deer','',0,'3',3,'','',0,0,NULL,0);
INSERT INTO "class" VALUES(4,'wolf','',2,'',4,'','',1,18,NULL,0);
INSERT INTO "class" VALUES(5,'roe deer','',2,'',5,'','',1,17,3,0);
INSERT INTO "class" VALUES(6,'animal','',2,'6',6,'','',0,0,NULL,0);
CREATE TABLE class_away (
    class_id INTEGER NOT NULL REFERENCES class (id),
    since_decision INTEGER NOT NULL,
    until_decision INTEGER NOT NULL,
    PRIMARY KEY (class_id, since_decision, until_decision)
) WITHOUT ROWID;
CREATE TABLE class_change (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    -- add, edit, merge, split, archive, restore, undo
    kind TEXT NOT NULL,
    annotator TEXT NOT NULL,
    changed_at REAL NOT NULL,
    -- JSON: class id -> what is kept of the class (class_changes.py), before and after
    before TEXT NOT NULL,
    after TEXT NOT NULL,
    -- the decisions that were stored with it; empty: none
    batch TEXT NOT NULL DEFAULT '',
    undoes INTEGER REFERENCES class_change (id)
);
INSERT INTO "class_change" VALUES(1,'b86d7ff0-3b7f-4982-a18a-51b2d2f51581','add','',1.79588492078343296047e+09,'{"1": {"archived": 1}, "2": {"archived": 1}, "3": {"archived": 1}}','{"1": {"archived": 0}, "2": {"archived": 0}, "3": {"archived": 0}}','',NULL);
INSERT INTO "class_change" VALUES(2,'f14e555a-b091-4812-b6dd-e9d1dd74a489','add','',1.79588492080654335016e+09,'{"4": {"archived": 1}, "5": {"archived": 1}, "6": {"archived": 1}}','{"4": {"archived": 0}, "5": {"archived": 0}, "6": {"archived": 0}}','',NULL);
INSERT INTO "class_change" VALUES(3,'67ebf9f7-7709-4c5d-9d2d-472266ad8799','merge','Olga',1.79588492084416079521e+09,'{"3": {"synonyms": []}, "5": {"key": "5", "archived": 0, "archived_since": 0, "merged_into": null}}','{"3": {"synonyms": ["roe deer"]}, "5": {"key": "", "archived": 1, "archived_since": 17, "merged_into": 3}}','67ebf9f7-7709-4c5d-9d2d-472266ad8799',NULL);
INSERT INTO "class_change" VALUES(4,'0accc3ce-d112-4e9b-a280-328138472298','archive','Olga',1.79588492085023689265e+09,'{"4": {"key": "4", "archived": 0, "archived_since": 0}}','{"4": {"key": "", "archived": 1, "archived_since": 18}}','',NULL);
INSERT INTO "class_change" VALUES(5,'284e074c-92b2-48e4-bb8e-d0b1e9e0e304','edit','Olga',1.79588492085234737393e+09,'{"1": {"heading": "", "colour": "", "synonyms": []}}','{"1": {"heading": "mammals", "colour": "#aa3300", "synonyms": ["red fox"]}}','',NULL);
CREATE TABLE class_version (changes INTEGER NOT NULL);
INSERT INTO "class_version" VALUES(22);
CREATE TABLE contradiction (
    image_id INTEGER NOT NULL REFERENCES image (id),
    class_id INTEGER NOT NULL REFERENCES class (id),
    -- the answer that brought it
    decision_id INTEGER NOT NULL REFERENCES decision (id),
    PRIMARY KEY (image_id, class_id)
) WITHOUT ROWID;
INSERT INTO "contradiction" VALUES(2,3,9);
INSERT INTO "contradiction" VALUES(8,1,23);
CREATE TABLE "decision" (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    -- clear: the cell has no answer any more, whoever gave it; comment: a note that stands beside others
    action TEXT NOT NULL CHECK (action IN ('label', 'done', 'skip', 'undo', 'flag', 'clear', 'comment')),
    image_id INTEGER REFERENCES image (id),
    class_id INTEGER REFERENCES class (id),
    state INTEGER CHECK (state IN (1, -1, 0)),
    -- what a flag or a comment says; an empty flag takes the image's flag away
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
INSERT INTO "decision" VALUES(1,'import-1-e4c06e:10000000001','label',1,1,1,'',NULL,'import','import',NULL,NULL,NULL,NULL,1.79588492079114532473e+09);
INSERT INTO "decision" VALUES(2,'import-1-e4c06e:10000000002','label',5,3,-1,'',NULL,'import','import',NULL,NULL,NULL,NULL,1.79588492079114532473e+09);
INSERT INTO "decision" VALUES(3,'a1','label',1,2,1,'',NULL,'click','Ann',NULL,NULL,NULL,812,1.79588492080752491946e+09);
INSERT INTO "decision" VALUES(4,'a2','done',1,NULL,NULL,'',NULL,'done','Ann',NULL,NULL,NULL,NULL,1.79588492081137871738e+09);
INSERT INTO "decision" VALUES(5,'a3','label',2,1,-1,'',NULL,'click','Ann',NULL,NULL,NULL,NULL,1.79588492081302309039e+09);
INSERT INTO "decision" VALUES(6,'a4','undo',2,NULL,NULL,'',5,'click','Ann',NULL,NULL,NULL,NULL,1.79588492081425595285e+09);
INSERT INTO "decision" VALUES(7,'a5','skip',3,NULL,NULL,'',NULL,'click','Ann',NULL,NULL,NULL,NULL,1.7958849208163685799e+09);
INSERT INTO "decision" VALUES(8,'a6','label',2,3,1,'',NULL,'click','Bob',NULL,NULL,NULL,NULL,1.79588492081712412839e+09);
INSERT INTO "decision" VALUES(9,'a7','label',2,3,-1,'',NULL,'click','Ann',NULL,NULL,NULL,NULL,1.79588492081807684893e+09);
INSERT INTO "decision" VALUES(10,'a8','flag',4,NULL,NULL,'blurred',NULL,'click','Ann',NULL,NULL,NULL,NULL,1.79588492081921434397e+09);
INSERT INTO "decision" VALUES(11,'a9','comment',4,NULL,NULL,'a fox, I think',NULL,'click','Bob',NULL,NULL,NULL,NULL,1.79588492082038044929e+09);
INSERT INTO "decision" VALUES(12,'b1','label',4,1,0,'',NULL,'click','Ann',NULL,NULL,NULL,NULL,1.79588492082108092313e+09);
INSERT INTO "decision" VALUES(13,'b2','clear',1,2,NULL,'',NULL,'click','Bob',NULL,NULL,NULL,NULL,1.79588492082207751279e+09);
INSERT INTO "decision" VALUES(14,'g1:0','label',5,1,1,'',NULL,'grid','Bob','g1',1,0.9,NULL,1795884920.82922);
INSERT INTO "decision" VALUES(15,'g1:1','label',6,1,-1,'',NULL,'grid','Bob','g1',1,0.2,NULL,1.79588492083156609532e+09);
INSERT INTO "decision" VALUES(16,'g1:2','label',7,1,1,'',NULL,'grid','Bob','g1',1,0.8,NULL,1.79588492083255577089e+09);
INSERT INTO "decision" VALUES(17,'b3','label',6,5,1,'',NULL,'click','Ann',NULL,NULL,NULL,NULL,1.79588492083502078051e+09);
INSERT INTO "decision" VALUES(18,'67ebf9f7-7709-4c5d-9d2d-472266ad8799:0','label',6,3,1,'',NULL,'merge','Olga','67ebf9f7-7709-4c5d-9d2d-472266ad8799',NULL,NULL,NULL,1.79588492083775496483e+09);
INSERT INTO "decision" VALUES(19,'r3:0','label',8,1,1,'',NULL,'reading','Ann','r3',NULL,NULL,NULL,1.79588492085461497302e+09);
INSERT INTO "decision" VALUES(20,'r3:1','label',8,2,-1,'',NULL,'reading','Ann','r3',NULL,NULL,NULL,1.79588492085615253441e+09);
INSERT INTO "decision" VALUES(21,'r3:2','label',8,3,-1,'',NULL,'reading','Ann','r3',NULL,NULL,NULL,1.79588492085640048985e+09);
INSERT INTO "decision" VALUES(22,'r3:3','label',8,6,-1,'',NULL,'reading','Ann','r3',NULL,NULL,NULL,1795884920.8566);
INSERT INTO "decision" VALUES(23,'r4:0','label',8,1,-1,'',NULL,'reading','Bob','r4',NULL,NULL,NULL,1.79588492085859942433e+09);
INSERT INTO "decision" VALUES(24,'r4:1','label',8,2,-1,'',NULL,'reading','Bob','r4',NULL,NULL,NULL,1.7958849208590765e+09);
INSERT INTO "decision" VALUES(25,'r4:2','label',8,3,-1,'',NULL,'reading','Bob','r4',NULL,NULL,NULL,1.79588492085934543609e+09);
INSERT INTO "decision" VALUES(26,'r4:3','label',8,6,-1,'',NULL,'reading','Bob','r4',NULL,NULL,NULL,1795884920.8596);
INSERT INTO "decision" VALUES(27,'x1','flag',6,NULL,NULL,'a hand',NULL,'aside','Ann',NULL,NULL,NULL,NULL,1.79588492086102414135e+09);
INSERT INTO "decision" VALUES(28,'import-2-97f950:10000000001','label',2,2,1,'',NULL,'import','import',NULL,NULL,NULL,NULL,1795884920.887);
INSERT INTO "decision" VALUES(29,'import-2-97f950:10000000002','label',6,2,-1,'',NULL,'import','import',NULL,NULL,NULL,NULL,1795884920.887);
CREATE TABLE event_answer (
            decision_id INTEGER PRIMARY KEY REFERENCES decision (id),
            from_id INTEGER NOT NULL REFERENCES decision (id)
        );
CREATE TABLE event_edit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    action TEXT NOT NULL CHECK (action IN ('gap', 'split', 'merge', 'shift', 'undo')),
    -- of a split or merge: the image before the boundary, and the one after it
    before_id INTEGER REFERENCES image (id),
    image_id INTEGER REFERENCES image (id),
    -- of a shift
    folder TEXT,
    -- the gap, how far clocks are shifted, or how far apart two merged images were taken
    seconds REAL,
    undoes INTEGER REFERENCES event_edit (id),
    annotator TEXT NOT NULL,
    edited_at REAL NOT NULL
);
INSERT INTO "event_edit" VALUES(1,'c33ac88c-e380-415a-8116-6bd6fd8037ee','gap',NULL,NULL,NULL,7200.0,NULL,'Olga',1.79588492086561489101e+09);
CREATE TABLE event_image (
    image_id INTEGER NOT NULL REFERENCES image (id),
    import_id INTEGER NOT NULL REFERENCES import (id),
    event TEXT NOT NULL,
    PRIMARY KEY (image_id, import_id, event)
) WITHOUT ROWID;
CREATE TABLE event_label (
    import_id INTEGER NOT NULL REFERENCES import (id),
    event TEXT NOT NULL,
    -- 0: the event shows nothing
    class_id INTEGER NOT NULL,
    -- as in label: 1 at least one image shows it, -1 none does, 0 unsure
    state INTEGER NOT NULL,
    -- how and by whom it was given, '' where the source does not say
    source TEXT NOT NULL,
    annotator TEXT NOT NULL,
    decided_at REAL,
    PRIMARY KEY (import_id, event, class_id)
) WITHOUT ROWID;
CREATE TABLE example (
    class_id INTEGER NOT NULL REFERENCES class (id),
    image_id INTEGER NOT NULL REFERENCES image (id),
    place INTEGER NOT NULL,
    PRIMARY KEY (class_id, image_id)
) WITHOUT ROWID;
CREATE TABLE export_tag (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    annotator TEXT NOT NULL,
    tagged_at REAL NOT NULL,
    last_decision INTEGER NOT NULL,
    format TEXT NOT NULL,
    target TEXT NOT NULL,
    -- JSON: the choices, and the data card
    choices TEXT NOT NULL,
    card TEXT NOT NULL
);
CREATE TABLE file (
    id INTEGER PRIMARY KEY,
    folder_id INTEGER NOT NULL REFERENCES folder (id),
    path TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    image_id INTEGER REFERENCES image (id),
    reason TEXT NOT NULL DEFAULT '', stamp TEXT NOT NULL DEFAULT '',
    UNIQUE (folder_id, path)
);
INSERT INTO "file" VALUES(1,1,'day/0.jpg',731,1795884867054763048,1,'','2204693:1795884867054763048');
INSERT INTO "file" VALUES(2,1,'day/2.jpg',730,1795884867062033911,2,'','2204695:1795884867062033911');
INSERT INTO "file" VALUES(3,1,'day/4.jpg',729,1795884867062677012,3,'','2204697:1795884867062677012');
INSERT INTO "file" VALUES(4,1,'day/6.jpg',730,1795884867063321916,4,'','2204699:1795884867063321916');
INSERT INTO "file" VALUES(5,1,'day/broken.jpg',12,1795884867063918350,NULL,'not an image, or a format that is not read (read are jpeg, png, webp, bmp, gif, tiff, avif, jpeg2000)','2204701:1795884867063918350');
INSERT INTO "file" VALUES(6,1,'night/1.jpg',731,1795884867061687253,5,'','2204694:1795884867061687253');
INSERT INTO "file" VALUES(7,1,'night/3.jpg',730,1795884867062362615,6,'','2204696:1795884867062362615');
INSERT INTO "file" VALUES(8,1,'night/5.jpg',730,1795884867062996298,7,'','2204698:1795884867062996298');
INSERT INTO "file" VALUES(9,1,'night/7.jpg',730,1795884867063673653,8,'','2204700:1795884867063673653');
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
, captured_at REAL, capture_read INTEGER NOT NULL DEFAULT 0, name_key TEXT NOT NULL DEFAULT '', folder_key TEXT AS (substr(name_key, 1, instr(name_key, char(1)))), time_key REAL AS (coalesce(captured_at, 9e999)), bands TEXT NOT NULL DEFAULT '', camera TEXT);
INSERT INTO "image" VALUES(1,'day/0.jpg','71896c195abbdfc034af525bff018fb8f91c05aa8c52c101395eea002439b3d2',24,16,3,4,'',1777629600.0,1,'000001day0010.jpg','','Trap 3');
INSERT INTO "image" VALUES(2,'day/2.jpg','2c4f3eb8089c8f031be1f1bcd889027ae44b16c290e95ba2bebb3ecc7596931a',24,16,2,28,'',1777802402.0,1,'000001day0012.jpg','','Trap 3');
INSERT INTO "image" VALUES(3,'day/4.jpg','49dff618bd8c83ce84767a084e9c4d070c26e4daf465c39f23d75f670d67984f',24,16,1,7,'',1777975204.0,1,'000001day0014.jpg','','Trap 3');
INSERT INTO "image" VALUES(4,'day/6.jpg','56d18b5638c9115e3a3ea183e2f5b1374e6beb783a27e75a5a69752967539541',24,16,2,12,'',1778148006.0,1,'000001day0016.jpg','','Trap 3');
INSERT INTO "image" VALUES(5,'night/1.jpg','e58f634417bd31cbf1d8d916e96a8562358bee332da93c2fc27531fab00413c4',24,16,3,14,'',1777716001.0,1,'000001night0011.jpg','','Trap 3');
INSERT INTO "image" VALUES(6,'night/3.jpg','9214be806509068379db4e6e4f74f810056244776ee9b5b29965ab9c72b70d56',24,16,4,29,'',1777888803.0,1,'000001night0013.jpg','','Trap 3');
INSERT INTO "image" VALUES(7,'night/5.jpg','d2ee2b01705fed6f5af8617ef955db6bb601fe8fb8815a18ff8da499f961db70',24,16,2,16,'',1778061605.0,1,'000001night0015.jpg','','Trap 3');
INSERT INTO "image" VALUES(8,'night/7.jpg','3e11fd89cadabe731cd76cdb9c8503056079e057a2322be95f16e0c0b11e4282',24,16,3,26,'',1778234407.0,1,'000001night0017.jpg','','Trap 3');
CREATE TABLE image_change (id INTEGER PRIMARY KEY AUTOINCREMENT, image_id INTEGER NOT NULL);
CREATE TABLE image_event (
    image_id INTEGER PRIMARY KEY REFERENCES image (id),
    -- the smallest id of its images, so that an event keeps its id while others change
    event_id INTEGER NOT NULL,
    -- from 0, in the order of the event
    frame INTEGER NOT NULL
);
INSERT INTO "image_event" VALUES(1,1,0);
INSERT INTO "image_event" VALUES(2,2,0);
INSERT INTO "image_event" VALUES(3,3,0);
INSERT INTO "image_event" VALUES(4,4,0);
INSERT INTO "image_event" VALUES(5,5,0);
INSERT INTO "image_event" VALUES(6,6,0);
INSERT INTO "image_event" VALUES(7,7,0);
INSERT INTO "image_event" VALUES(8,8,0);
CREATE TABLE implication (
    class_id INTEGER NOT NULL REFERENCES class (id),
    state INTEGER NOT NULL CHECK (state IN (1, -1)),
    other_id INTEGER NOT NULL REFERENCES class (id),
    other_state INTEGER NOT NULL CHECK (other_state IN (1, -1)),
    relation_id INTEGER NOT NULL REFERENCES relation_edit (id),
    needed INTEGER NOT NULL,
    PRIMARY KEY (class_id, state, other_id, other_state, relation_id)
) WITHOUT ROWID;
INSERT INTO "implication" VALUES(1,1,2,-1,2,1);
INSERT INTO "implication" VALUES(1,1,6,1,1,1);
INSERT INTO "implication" VALUES(2,1,1,-1,2,1);
INSERT INTO "implication" VALUES(6,-1,1,-1,1,1);
CREATE TABLE import (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    -- the path or address that a person gave
    source TEXT NOT NULL,
    -- sha256 of the file that was read, empty for a folder
    sha256 TEXT NOT NULL DEFAULT '',
    format TEXT NOT NULL,
    annotator TEXT NOT NULL,
    imported_at REAL NOT NULL,
    -- JSON: how many images, classes, answers, conflicts it brought
    counts TEXT NOT NULL,
    -- its decisions: one transaction stored them, so that their ids follow each other; NULL: none
    first_decision INTEGER REFERENCES decision (id),
    last_decision INTEGER REFERENCES decision (id),
    -- the classes that it added
    class_change INTEGER REFERENCES class_change (id),
    undone_at REAL,
    undone_by TEXT NOT NULL DEFAULT ''
);
INSERT INTO "import" VALUES(1,'3f1a2b66a07c30eaf30f27cf12b45170','/data/labels.csv','c9cacdd9d3bffa02dfe509135f91557df6e4c089ac7f0f92216391bd1ac378c5','csv','import',1.79588492079038739208e+09,'{"images": 0, "answers": 2, "replaced": 0, "completed": 0, "attributes": 0, "remarks": 0, "event_labels": 0, "classes": 0, "class_ids": []}',1,2,NULL,NULL,'');
INSERT INTO "import" VALUES(2,'da62f4cd2e39adc6e4fbbcc4b9b0d147','/data/more.csv','314ad979172ce04e3964a6c7d75533430a0f2a1d002aec281d8fb6542987b968','csv','Olga',1.79588492088631510737e+09,'{"images": 0, "answers": 2, "replaced": 0, "completed": 0, "attributes": 0, "remarks": 0, "event_labels": 0, "classes": 0, "class_ids": []}',28,29,NULL,NULL,'');
CREATE TABLE import_image (
    import_id INTEGER NOT NULL REFERENCES import (id),
    image_id INTEGER NOT NULL REFERENCES image (id),
    PRIMARY KEY (import_id, image_id)
) WITHOUT ROWID;
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
CREATE TABLE known_answer (image_id INTEGER PRIMARY KEY REFERENCES image (id));
CREATE TABLE label (
    image_id INTEGER NOT NULL REFERENCES image (id),
    class_id INTEGER NOT NULL REFERENCES class (id),
    state INTEGER NOT NULL,
    decision_id INTEGER NOT NULL REFERENCES decision (id),
    PRIMARY KEY (image_id, class_id)
) WITHOUT ROWID;
INSERT INTO "label" VALUES(6,1,-1,15);
INSERT INTO "label" VALUES(4,1,0,12);
INSERT INTO "label" VALUES(1,1,1,1);
INSERT INTO "label" VALUES(5,1,1,14);
INSERT INTO "label" VALUES(7,1,1,16);
INSERT INTO "label" VALUES(8,1,1,19);
INSERT INTO "label" VALUES(8,2,-1,20);
INSERT INTO "label" VALUES(6,2,-1,29);
INSERT INTO "label" VALUES(2,2,1,28);
INSERT INTO "label" VALUES(5,3,-1,2);
INSERT INTO "label" VALUES(1,3,-1,4);
INSERT INTO "label" VALUES(2,3,-1,9);
INSERT INTO "label" VALUES(8,3,-1,21);
INSERT INTO "label" VALUES(6,3,1,18);
INSERT INTO "label" VALUES(8,6,-1,22);
CREATE TABLE "lease" (
    image_id INTEGER NOT NULL REFERENCES image (id),
    -- 0: the whole image
    class_id INTEGER NOT NULL DEFAULT 0,
    holder TEXT NOT NULL,
    annotator TEXT NOT NULL,
    until REAL NOT NULL,
    PRIMARY KEY (image_id, class_id)
);
CREATE TABLE member (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        role TEXT NOT NULL CHECK (role IN ('none', 'guest', 'annotator', 'reviewer', 'owner')),
        subject TEXT UNIQUE,
        email TEXT NOT NULL DEFAULT '',
        secret_sha256 TEXT UNIQUE,
        sessions_since REAL NOT NULL DEFAULT 0,
        made_at REAL NOT NULL,
        signed_in_at REAL
    );
INSERT INTO "member" VALUES(1,'Olga','owner',NULL,'',NULL,0.0,1.7958849208033537864e+09,NULL);
INSERT INTO "member" VALUES(2,'Ann','annotator',NULL,'',NULL,0.0,1.79588492080458760266e+09,NULL);
INSERT INTO "member" VALUES(3,'Bob','annotator',NULL,'',NULL,0.0,1.79588492080515313149e+09,NULL);
CREATE TABLE opinion (decision_id INTEGER PRIMARY KEY REFERENCES decision (id));
CREATE TABLE origin (
    decision_id INTEGER PRIMARY KEY REFERENCES decision (id),
    source TEXT NOT NULL DEFAULT '',
    annotator TEXT NOT NULL DEFAULT '',
    decided_at REAL
);
CREATE TABLE overlap (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    people INTEGER NOT NULL,
    -- eight hexadecimal digits: images whose content begins below them (after its first eight digits) are chosen
    below TEXT NOT NULL
);
INSERT INTO "overlap" VALUES(1,2,'g');
CREATE TABLE prediction_score (
    decision_id INTEGER NOT NULL REFERENCES decision (id),
    prediction_source_id INTEGER NOT NULL REFERENCES prediction_source (id),
    version INTEGER NOT NULL,
    score REAL NOT NULL,
    PRIMARY KEY (decision_id, prediction_source_id)
) WITHOUT ROWID;
CREATE TABLE prediction_source (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    -- probability: in [0, 1]; score: any finite number, of which only the order within a class counts
    scale TEXT NOT NULL CHECK (scale IN ('probability', 'score')),
    annotator TEXT NOT NULL,
    added_at REAL NOT NULL,
    version INTEGER NOT NULL DEFAULT 0,
    -- JSON: class ids, in the order of the columns
    class_ids TEXT NOT NULL DEFAULT '[]',
    images INTEGER NOT NULL DEFAULT 0,
    cells INTEGER NOT NULL DEFAULT 0,
    removed_at REAL
);
CREATE TABLE reached (
    annotator TEXT NOT NULL,
    sequence TEXT NOT NULL,
    image_id INTEGER NOT NULL REFERENCES image (id),
    PRIMARY KEY (annotator, sequence)
) WITHOUT ROWID;
CREATE TABLE reading (
    image_id INTEGER PRIMARY KEY REFERENCES image (id),
    -- people who have answered it, and how many more are to do so
    had INTEGER NOT NULL DEFAULT 0,
    due INTEGER NOT NULL
);
INSERT INTO "reading" VALUES(3,0,2);
INSERT INTO "reading" VALUES(8,2,0);
CREATE TABLE reading_version (n INTEGER NOT NULL);
INSERT INTO "reading_version" VALUES(2);
CREATE TABLE relation_edit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    action TEXT NOT NULL CHECK (action IN ('is_a', 'at_most_one', 'exactly_one', 'remove', 'undo')),
    -- of a group
    name TEXT NOT NULL DEFAULT '',
    -- JSON: of is_a [child, parent], of a group its classes
    class_ids TEXT NOT NULL DEFAULT '[]',
    removes INTEGER REFERENCES relation_edit (id),
    undoes INTEGER REFERENCES relation_edit (id),
    -- those made at one time share it, and are undone as one
    batch TEXT NOT NULL,
    annotator TEXT NOT NULL,
    edited_at REAL NOT NULL
);
INSERT INTO "relation_edit" VALUES(1,'4e7ef1c8-f29d-4b4a-bcc4-6c2b16156179','is_a','','[1, 6]',NULL,NULL,'4e7ef1c8-f29d-4b4a-bcc4-6c2b16156179','Olga',1.79588492082335352897e+09);
INSERT INTO "relation_edit" VALUES(2,'4e7ef1c8-f29d-4b4a-bcc4-6c2b16156179:1','at_most_one','one of them','[1, 2]',NULL,NULL,'4e7ef1c8-f29d-4b4a-bcc4-6c2b16156179','Olga',1.7958849208234345913e+09);
CREATE TABLE revealed (
    image_id INTEGER NOT NULL REFERENCES image (id),
    -- '': everybody
    annotator TEXT NOT NULL,
    -- the last one that was given before; what they say of the image later is not said blind
    decision_id INTEGER NOT NULL,
    PRIMARY KEY (image_id, annotator)
) WITHOUT ROWID;
INSERT INTO "revealed" VALUES(8,'Ann',22);
INSERT INTO "revealed" VALUES(8,'Bob',26);
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
INSERT INTO "run" VALUES(1,'auto','{}','efficientnet_lite0','[1, 2, 3]',8,13,3,1.5,'[0.5]',0.5,1.79588492082846021649e+09,1,0,13,'');
CREATE TABLE run_source (
    run_id INTEGER NOT NULL REFERENCES run (id),
    prediction_source_id INTEGER NOT NULL REFERENCES prediction_source (id),
    version INTEGER NOT NULL,
    -- JSON: class id -> what one unit of the source's input adds to the logit; {} when it only fills in
    weights TEXT NOT NULL,
    PRIMARY KEY (run_id, prediction_source_id)
) WITHOUT ROWID;
CREATE TABLE setting (key TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO "setting" VALUES('registrations','1');
INSERT INTO "setting" VALUES('events_found','[1, 8, 0, 0, 1, 0]');
INSERT INTO "setting" VALUES('method','"gr"');
CREATE TABLE speed_test (
    annotator TEXT NOT NULL,
    -- how often this person has taken the test, from 1 on, and the place of the task in it, from 0 on
    round INTEGER NOT NULL,
    task INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('grid', 'image', 'click')),
    cells INTEGER NOT NULL,
    changes INTEGER NOT NULL,
    milliseconds INTEGER NOT NULL,
    tested_at REAL NOT NULL,
    PRIMARY KEY (annotator, round, task)
) WITHOUT ROWID;
CREATE TABLE synonym (
    name TEXT PRIMARY KEY,
    class_id INTEGER NOT NULL REFERENCES class (id)
) WITHOUT ROWID;
INSERT INTO "synonym" VALUES('red fox',1);
INSERT INTO "synonym" VALUES('roe deer',3);
CREATE TABLE tally (
    kind TEXT NOT NULL,
    one NOT NULL,
    two NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (kind, one, two)
) WITHOUT ROWID;
INSERT INTO "tally" VALUES('accepted',1,-1,1);
INSERT INTO "tally" VALUES('accepted',2,-1,3);
INSERT INTO "tally" VALUES('accepted',6,1,3);
INSERT INTO "tally" VALUES('annotator','Ann','',9);
INSERT INTO "tally" VALUES('annotator','Bob','',8);
INSERT INTO "tally" VALUES('annotator','Olga','',1);
INSERT INTO "tally" VALUES('annotator','import','',4);
INSERT INTO "tally" VALUES('apart stage',1,'',1);
INSERT INTO "tally" VALUES('hour',498856,'clear',1);
INSERT INTO "tally" VALUES('hour',498856,'click',5);
INSERT INTO "tally" VALUES('hour',498856,'comment',1);
INSERT INTO "tally" VALUES('hour',498856,'done',1);
INSERT INTO "tally" VALUES('hour',498856,'flag',2);
INSERT INTO "tally" VALUES('hour',498856,'grid',3);
INSERT INTO "tally" VALUES('hour',498856,'merge',1);
INSERT INTO "tally" VALUES('hour',498856,'reading',8);
INSERT INTO "tally" VALUES('hour',498856,'skip',1);
INSERT INTO "tally" VALUES('label',1,-1,1);
INSERT INTO "tally" VALUES('label',1,0,1);
INSERT INTO "tally" VALUES('label',1,1,4);
INSERT INTO "tally" VALUES('label',2,-1,2);
INSERT INTO "tally" VALUES('label',2,1,1);
INSERT INTO "tally" VALUES('label',3,-1,4);
INSERT INTO "tally" VALUES('label',3,1,1);
INSERT INTO "tally" VALUES('label',4,-1,0);
INSERT INTO "tally" VALUES('label',5,-1,0);
INSERT INTO "tally" VALUES('label',5,1,0);
INSERT INTO "tally" VALUES('label',6,-1,1);
INSERT INTO "tally" VALUES('run',1,-1,1);
INSERT INTO "tally" VALUES('run',1,1,2);
INSERT INTO "tally" VALUES('score',4,-1,1);
INSERT INTO "tally" VALUES('score',16,1,1);
INSERT INTO "tally" VALUES('score',18,1,1);
INSERT INTO "tally" VALUES('source','clear','',1);
INSERT INTO "tally" VALUES('source','click','',5);
INSERT INTO "tally" VALUES('source','comment','',1);
INSERT INTO "tally" VALUES('source','done','',1);
INSERT INTO "tally" VALUES('source','flag','',2);
INSERT INTO "tally" VALUES('source','grid','',3);
INSERT INTO "tally" VALUES('source','import','',4);
INSERT INTO "tally" VALUES('source','merge','',1);
INSERT INTO "tally" VALUES('source','reading','',8);
INSERT INTO "tally" VALUES('source','skip','',1);
INSERT INTO "tally" VALUES('stage',0,'',0);
INSERT INTO "tally" VALUES('stage',1,'',1);
INSERT INTO "tally" VALUES('stage',2,'',3);
INSERT INTO "tally" VALUES('stage',3,'',3);
INSERT INTO "tally" VALUES('stage',4,'',1);
CREATE TABLE twin (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            image_id INTEGER NOT NULL UNIQUE REFERENCES image (id),
            first_id INTEGER NOT NULL REFERENCES image (id)
        );
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
CREATE INDEX label_class ON label (class_id, state, decision_id);
CREATE INDEX lease_holder ON lease (holder);
CREATE INDEX image_problem ON image (name) WHERE problem != '';
CREATE INDEX file_reason ON file (path) WHERE reason != '';
CREATE TRIGGER image_added AFTER INSERT ON image BEGIN
    INSERT INTO tally VALUES ('stage', new.stage, '', 1) ON CONFLICT (kind, one, two) DO UPDATE SET n = n + 1;
END;
CREATE INDEX audit_cell_image ON audit_cell (image_id, class_id);
CREATE INDEX accepted_acceptance ON accepted (acceptance_id);
CREATE INDEX accepted_class ON accepted (class_id, state);
CREATE TRIGGER accepted_added AFTER INSERT ON accepted BEGIN
    INSERT INTO tally VALUES ('accepted', new.class_id, new.state, 1)
    ON CONFLICT (kind, one, two) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER accepted_removed AFTER DELETE ON accepted BEGIN
    UPDATE tally SET n = n - 1 WHERE kind = 'accepted' AND one = old.class_id AND two = old.state;
END;
CREATE INDEX contradiction_newest ON contradiction (decision_id);
CREATE TRIGGER class_added AFTER INSERT ON class BEGIN UPDATE class_version SET changes = changes + 1; END;
CREATE TRIGGER class_changed AFTER UPDATE ON class BEGIN UPDATE class_version SET changes = changes + 1; END;
CREATE TRIGGER class_removed AFTER DELETE ON class BEGIN UPDATE class_version SET changes = changes + 1; END;
CREATE INDEX decision_image ON decision (image_id, id);
CREATE UNIQUE INDEX decision_undoes ON decision (undoes) WHERE undoes IS NOT NULL;
CREATE INDEX decision_annotator ON decision (annotator, id);
CREATE INDEX decision_batch ON decision (batch) WHERE batch IS NOT NULL;
CREATE INDEX decision_flag ON decision (image_id, id) WHERE action = 'flag';
CREATE INDEX decision_comment ON decision (image_id, id) WHERE action = 'comment';
CREATE INDEX class_archived ON class (id, archived_since, merged_into, merged_same) WHERE archived = 1;
CREATE INDEX synonym_class ON synonym (class_id);
CREATE UNIQUE INDEX class_change_undoes ON class_change (undoes) WHERE undoes IS NOT NULL;
CREATE TRIGGER class_change_added AFTER INSERT ON class_change BEGIN
    UPDATE class_version SET changes = changes + 1;
END;
CREATE INDEX image_capture_unread ON image (id) WHERE capture_read = 0 AND problem = '';
CREATE INDEX image_by_name ON image (name_key, id) WHERE problem = '';
CREATE INDEX image_by_time ON image (folder_key, time_key, name_key, id) WHERE problem = '';
CREATE INDEX image_open_by_name ON image (name_key, id) WHERE stage IN (0, 2) AND problem = '';
CREATE INDEX image_open_by_time ON image (time_key, name_key, id) WHERE stage IN (0, 2) AND problem = '';
CREATE VIEW counted (decision_id, kind, one, two) AS
SELECT id, 'annotator', annotator, '' FROM decision WHERE action IN ('label', 'done')
UNION ALL
SELECT id, 'source', CASE WHEN action IN ('skip', 'flag', 'clear', 'comment') THEN action ELSE source END, ''
FROM decision WHERE action != 'undo'
UNION ALL
SELECT id, 'hour', CAST(decided_at / 3600 AS INTEGER),
    CASE WHEN action IN ('skip', 'flag', 'clear', 'comment') THEN action ELSE source END
FROM decision WHERE action != 'undo' AND source NOT IN ('import')
UNION ALL
SELECT id, 'score', max(0, min(19, CAST(score * 20 AS INTEGER))), state FROM decision
WHERE action = 'label' AND score IS NOT NULL AND source IN ('suggestion', 'grid', 'audit', 'random', 'exploration')
UNION ALL
SELECT id, 'run', run_id, state FROM decision
WHERE action = 'label' AND score IS NOT NULL AND run_id IS NOT NULL
    AND source IN ('suggestion', 'grid', 'audit', 'random', 'exploration');
CREATE INDEX attribute_name ON attribute (name, value);
CREATE TRIGGER access_log_keeps_rows BEFORE DELETE ON access_log
    BEGIN SELECT RAISE(ABORT, 'the access log is only appended to'); END;
CREATE TRIGGER access_log_keeps_words BEFORE UPDATE ON access_log
    BEGIN SELECT RAISE(ABORT, 'the access log is only appended to'); END;
CREATE INDEX reading_due ON reading (had) WHERE due > 0;
CREATE TRIGGER image_waits_or_not AFTER UPDATE OF due ON reading WHEN (old.due > 0) != (new.due > 0) BEGIN
    UPDATE reading_version SET n = n + 1;
END;
CREATE TRIGGER image_is_to_be_read AFTER INSERT ON image BEGIN
    INSERT INTO reading (image_id, due) SELECT new.id, people FROM overlap WHERE substr(new.sha256, 9, 8) < below;
END;
CREATE VIEW kept_apart AS SELECT image_id FROM reading WHERE due > 0
    UNION ALL SELECT image_id FROM known_answer k
    WHERE NOT EXISTS (SELECT 1 FROM reading r WHERE r.image_id = k.image_id AND r.due > 0);
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
CREATE INDEX event_image_event ON event_image (import_id, event);
CREATE INDEX image_of_many_bands ON image (id) WHERE bands != '';
CREATE INDEX acceptance_of_a_person ON acceptance (class_id) WHERE annotator != '';
CREATE UNIQUE INDEX event_edit_undoes ON event_edit (undoes) WHERE undoes NOT NULL;
CREATE INDEX image_event_event ON image_event (event_id, frame);
CREATE INDEX twin_of ON twin (first_id);
CREATE UNIQUE INDEX relation_edit_undoes ON relation_edit (undoes) WHERE undoes NOT NULL;
CREATE INDEX relation_edit_removes ON relation_edit (removes) WHERE removes NOT NULL;
CREATE INDEX implication_of ON implication (other_id);
CREATE UNIQUE INDEX acceptance_of_a_relation ON acceptance (relation_id) WHERE relation_id NOT NULL;
CREATE INDEX accepted_implied ON accepted (class_id, state) WHERE decision_id NOT NULL;
CREATE TRIGGER image_changed AFTER UPDATE OF name, name_key, captured_at, camera ON image
        WHEN old.name IS NOT new.name OR old.name_key IS NOT new.name_key OR old.captured_at IS NOT new.captured_at
            OR old.camera IS NOT new.camera BEGIN
            INSERT INTO image_change (image_id) VALUES (new.id);
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
CREATE TRIGGER accepted_answered AFTER INSERT ON label BEGIN
    DELETE FROM accepted WHERE image_id = new.image_id AND class_id = new.class_id;
END;
CREATE TRIGGER decision_added AFTER INSERT ON decision WHEN new.action != 'undo' BEGIN
    INSERT INTO tally SELECT kind, one, two, 1 FROM counted WHERE decision_id = new.id
    ON CONFLICT (kind, one, two) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER decision_undone AFTER INSERT ON decision WHEN new.undoes IS NOT NULL BEGIN
    INSERT INTO tally SELECT kind, one, two, -1 FROM counted WHERE decision_id = new.undoes
    ON CONFLICT (kind, one, two) DO UPDATE SET n = n - 1;
END;
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
CREATE TRIGGER label_implies AFTER INSERT ON label WHEN EXISTS (SELECT 1 FROM implication) BEGIN
    DELETE FROM accepted WHERE image_id = new.image_id AND decision_id NOT NULL AND class_id IN (SELECT other_id FROM implication WHERE class_id = new.class_id AND state IN (new.state)
        UNION ALL SELECT 0);
    DELETE FROM accepted WHERE image_id = new.image_id AND class_id IN (SELECT other_id FROM (SELECT other_id, other_state, relation_id, min(decision_id) AS decision_id FROM (
        SELECT m.other_id, m.other_state, m.relation_id, min(l.decision_id) AS decision_id
        FROM implication m CROSS JOIN label l
            ON l.image_id = new.image_id AND l.class_id = m.class_id AND l.state = m.state
        WHERE m.other_id IN (SELECT other_id FROM implication WHERE class_id = new.class_id AND state IN (new.state)
        UNION ALL SELECT 0)
            AND NOT EXISTS (SELECT 1 FROM label o WHERE o.image_id = new.image_id AND o.class_id = m.other_id)
        GROUP BY m.other_id, m.other_state, m.relation_id HAVING count(*) >= m.needed
    ) GROUP BY other_id HAVING count(DISTINCT other_state) = 1));
    INSERT INTO accepted (image_id, class_id, acceptance_id, state, score, decision_id)
    SELECT new.image_id, c.other_id, a.id, c.other_state, c.other_state > 0, c.decision_id
    FROM (SELECT other_id, other_state, relation_id, min(decision_id) AS decision_id FROM (
        SELECT m.other_id, m.other_state, m.relation_id, min(l.decision_id) AS decision_id
        FROM implication m CROSS JOIN label l
            ON l.image_id = new.image_id AND l.class_id = m.class_id AND l.state = m.state
        WHERE m.other_id IN (SELECT other_id FROM implication WHERE class_id = new.class_id AND state IN (new.state)
        UNION ALL SELECT 0)
            AND NOT EXISTS (SELECT 1 FROM label o WHERE o.image_id = new.image_id AND o.class_id = m.other_id)
        GROUP BY m.other_id, m.other_state, m.relation_id HAVING count(*) >= m.needed
    ) GROUP BY other_id HAVING count(DISTINCT other_state) = 1) c JOIN acceptance a ON a.relation_id = c.relation_id;
END;
CREATE TRIGGER label_implies_otherwise AFTER UPDATE OF state, decision_id ON label WHEN EXISTS (SELECT 1 FROM implication) BEGIN
    DELETE FROM accepted WHERE image_id = new.image_id AND decision_id NOT NULL AND class_id IN (SELECT other_id FROM implication WHERE class_id = new.class_id AND state IN (old.state, new.state)
        UNION ALL SELECT 0);
    DELETE FROM accepted WHERE image_id = new.image_id AND class_id IN (SELECT other_id FROM (SELECT other_id, other_state, relation_id, min(decision_id) AS decision_id FROM (
        SELECT m.other_id, m.other_state, m.relation_id, min(l.decision_id) AS decision_id
        FROM implication m CROSS JOIN label l
            ON l.image_id = new.image_id AND l.class_id = m.class_id AND l.state = m.state
        WHERE m.other_id IN (SELECT other_id FROM implication WHERE class_id = new.class_id AND state IN (old.state, new.state)
        UNION ALL SELECT 0)
            AND NOT EXISTS (SELECT 1 FROM label o WHERE o.image_id = new.image_id AND o.class_id = m.other_id)
        GROUP BY m.other_id, m.other_state, m.relation_id HAVING count(*) >= m.needed
    ) GROUP BY other_id HAVING count(DISTINCT other_state) = 1));
    INSERT INTO accepted (image_id, class_id, acceptance_id, state, score, decision_id)
    SELECT new.image_id, c.other_id, a.id, c.other_state, c.other_state > 0, c.decision_id
    FROM (SELECT other_id, other_state, relation_id, min(decision_id) AS decision_id FROM (
        SELECT m.other_id, m.other_state, m.relation_id, min(l.decision_id) AS decision_id
        FROM implication m CROSS JOIN label l
            ON l.image_id = new.image_id AND l.class_id = m.class_id AND l.state = m.state
        WHERE m.other_id IN (SELECT other_id FROM implication WHERE class_id = new.class_id AND state IN (old.state, new.state)
        UNION ALL SELECT 0)
            AND NOT EXISTS (SELECT 1 FROM label o WHERE o.image_id = new.image_id AND o.class_id = m.other_id)
        GROUP BY m.other_id, m.other_state, m.relation_id HAVING count(*) >= m.needed
    ) GROUP BY other_id HAVING count(DISTINCT other_state) = 1) c JOIN acceptance a ON a.relation_id = c.relation_id;
END;
CREATE TRIGGER label_implied_no_more AFTER DELETE ON label WHEN EXISTS (SELECT 1 FROM implication) BEGIN
    DELETE FROM accepted WHERE image_id = old.image_id AND decision_id NOT NULL AND class_id IN (SELECT other_id FROM implication WHERE class_id = old.class_id AND state IN (old.state)
        UNION ALL SELECT old.class_id);
    DELETE FROM accepted WHERE image_id = old.image_id AND class_id IN (SELECT other_id FROM (SELECT other_id, other_state, relation_id, min(decision_id) AS decision_id FROM (
        SELECT m.other_id, m.other_state, m.relation_id, min(l.decision_id) AS decision_id
        FROM implication m CROSS JOIN label l
            ON l.image_id = old.image_id AND l.class_id = m.class_id AND l.state = m.state
        WHERE m.other_id IN (SELECT other_id FROM implication WHERE class_id = old.class_id AND state IN (old.state)
        UNION ALL SELECT old.class_id)
            AND NOT EXISTS (SELECT 1 FROM label o WHERE o.image_id = old.image_id AND o.class_id = m.other_id)
        GROUP BY m.other_id, m.other_state, m.relation_id HAVING count(*) >= m.needed
    ) GROUP BY other_id HAVING count(DISTINCT other_state) = 1));
    INSERT INTO accepted (image_id, class_id, acceptance_id, state, score, decision_id)
    SELECT old.image_id, c.other_id, a.id, c.other_state, c.other_state > 0, c.decision_id
    FROM (SELECT other_id, other_state, relation_id, min(decision_id) AS decision_id FROM (
        SELECT m.other_id, m.other_state, m.relation_id, min(l.decision_id) AS decision_id
        FROM implication m CROSS JOIN label l
            ON l.image_id = old.image_id AND l.class_id = m.class_id AND l.state = m.state
        WHERE m.other_id IN (SELECT other_id FROM implication WHERE class_id = old.class_id AND state IN (old.state)
        UNION ALL SELECT old.class_id)
            AND NOT EXISTS (SELECT 1 FROM label o WHERE o.image_id = old.image_id AND o.class_id = m.other_id)
        GROUP BY m.other_id, m.other_state, m.relation_id HAVING count(*) >= m.needed
    ) GROUP BY other_id HAVING count(DISTINCT other_state) = 1) c JOIN acceptance a ON a.relation_id = c.relation_id;
END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('decision',29);
INSERT INTO "sqlite_sequence" VALUES('image',8);
INSERT INTO "sqlite_sequence" VALUES('class',6);
INSERT INTO "sqlite_sequence" VALUES('class_change',5);
INSERT INTO "sqlite_sequence" VALUES('import',2);
INSERT INTO "sqlite_sequence" VALUES('relation_edit',2);
INSERT INTO "sqlite_sequence" VALUES('acceptance',2);
INSERT INTO "sqlite_sequence" VALUES('run',1);
INSERT INTO "sqlite_sequence" VALUES('assignment',1);
INSERT INTO "sqlite_sequence" VALUES('event_edit',1);
COMMIT;
