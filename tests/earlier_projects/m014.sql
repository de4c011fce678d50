BEGIN TRANSACTION;
CREATE TABLE "_sqlite_migrations" (
   "id" INTEGER PRIMARY KEY,
   "migration_set" TEXT,
   "name" TEXT,
   "applied_at" TEXT
);
INSERT INTO "_sqlite_migrations" VALUES(1,'annotator','m001','2026-11-28 16:55:19.419723+00:00');
INSERT INTO "_sqlite_migrations" VALUES(2,'annotator','m002','2026-11-28 16:55:19.424404+00:00');
INSERT INTO "_sqlite_migrations" VALUES(3,'annotator','m003','2026-11-28 16:55:19.426838+00:00');
INSERT INTO "_sqlite_migrations" VALUES(4,'annotator','m004','2026-11-28 16:55:19.427278+00:00');
INSERT INTO "_sqlite_migrations" VALUES(5,'annotator','m005','2026-11-28 16:55:19.428034+00:00');
INSERT INTO "_sqlite_migrations" VALUES(6,'annotator','m006','2026-11-28 16:55:19.428420+00:00');
INSERT INTO "_sqlite_migrations" VALUES(7,'annotator','m007','2026-11-28 16:55:19.437908+00:00');
INSERT INTO "_sqlite_migrations" VALUES(8,'annotator','m008','2026-11-28 16:55:19.439204+00:00');
INSERT INTO "_sqlite_migrations" VALUES(9,'annotator','m009','2026-11-28 16:55:19.439541+00:00');
INSERT INTO "_sqlite_migrations" VALUES(10,'annotator','m010','2026-11-28 16:55:19.439757+00:00');
INSERT INTO "_sqlite_migrations" VALUES(11,'annotator','m011','2026-11-28 16:55:19.440234+00:00');
INSERT INTO "_sqlite_migrations" VALUES(12,'annotator','m012','2026-11-28 16:55:19.441177+00:00');
INSERT INTO "_sqlite_migrations" VALUES(13,'annotator','m013','2026-11-28 16:55:19.442247+00:00');
INSERT INTO "_sqlite_migrations" VALUES(14,'annotator','m014','2026-11-28 16:55:19.442513+00:00');
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
CREATE TABLE accepted (
    image_id INTEGER NOT NULL REFERENCES image (id),
    class_id INTEGER NOT NULL REFERENCES class (id),
    acceptance_id INTEGER NOT NULL REFERENCES acceptance (id),
    state INTEGER NOT NULL,
    score REAL NOT NULL,
    PRIMARY KEY (image_id, class_id)
) WITHOUT ROWID;
CREATE TABLE access_log (
        id INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        by TEXT NOT NULL,
        what TEXT NOT NULL,
        member TEXT NOT NULL,
        detail TEXT NOT NULL DEFAULT ''
    );
INSERT INTO "access_log" VALUES(1,1.79588491955446600918e+09,'Olga','added','Olga','as owner');
INSERT INTO "access_log" VALUES(2,1.79588491955530929564e+09,'Olga','added','Ann','as annotator');
INSERT INTO "access_log" VALUES(3,1.79588491955576968193e+09,'Olga','added','Bob','as annotator');
INSERT INTO "access_log" VALUES(4,1.79588491955620813372e+09,'Olga','added','Rita','as reviewer');
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
INSERT INTO "assignment" VALUES(1,'Ann','folder','day',1.79588491958099842073e+09);
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
, people INTEGER NOT NULL DEFAULT 1);
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
INSERT INTO "class" VALUES(4,'wolf','',16,'',4,'','',1,18,NULL,0);
INSERT INTO "class" VALUES(5,'roe deer','',16,'',5,'','',1,17,3,0);
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
INSERT INTO "class_change" VALUES(1,'95e5b77e-5c58-4e34-818d-4793e6b922b8','add','',1.79588491954013037676e+09,'{"1": {"archived": 1}, "2": {"archived": 1}, "3": {"archived": 1}}','{"1": {"archived": 0}, "2": {"archived": 0}, "3": {"archived": 0}}','',NULL);
INSERT INTO "class_change" VALUES(2,'86bcd794-1d7c-436b-a042-88c5b7faf178','add','',1.79588491956926822666e+09,'{"4": {"archived": 1}, "5": {"archived": 1}}','{"4": {"archived": 0}, "5": {"archived": 0}}','',NULL);
INSERT INTO "class_change" VALUES(3,'7995c997-595f-4a88-9632-dccb1fb610d4','merge','Olga',1.79588491957243967054e+09,'{"3": {"synonyms": []}, "5": {"key": "5", "archived": 0, "archived_since": 0, "merged_into": null}}','{"3": {"synonyms": ["roe deer"]}, "5": {"key": "", "archived": 1, "archived_since": 17, "merged_into": 3}}','7995c997-595f-4a88-9632-dccb1fb610d4',NULL);
INSERT INTO "class_change" VALUES(4,'afd362b2-cc77-441c-ae03-4433545efe56','archive','Olga',1.79588491957386493682e+09,'{"4": {"key": "4", "archived": 0, "archived_since": 0}}','{"4": {"key": "", "archived": 1, "archived_since": 18}}','',NULL);
INSERT INTO "class_change" VALUES(5,'8008cb2b-aaf6-428c-922f-762146ce343a','edit','Olga',1.79588491957495546337e+09,'{"1": {"heading": "", "colour": "", "synonyms": []}}','{"1": {"heading": "mammals", "colour": "#aa3300", "synonyms": ["red fox"]}}','',NULL);
CREATE TABLE class_version (changes INTEGER NOT NULL);
INSERT INTO "class_version" VALUES(18);
CREATE TABLE contradiction (
    image_id INTEGER NOT NULL REFERENCES image (id),
    class_id INTEGER NOT NULL REFERENCES class (id),
    -- the answer that brought it
    decision_id INTEGER NOT NULL REFERENCES decision (id),
    PRIMARY KEY (image_id, class_id)
) WITHOUT ROWID;
INSERT INTO "contradiction" VALUES(2,3,9);
INSERT INTO "contradiction" VALUES(8,1,24);
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
INSERT INTO "decision" VALUES(1,'import-1-cd6ffe:10000000001','label',1,1,1,'',NULL,'import','import',NULL,NULL,NULL,NULL,1.79588491954628109927e+09);
INSERT INTO "decision" VALUES(2,'import-1-cd6ffe:10000000002','label',5,3,-1,'',NULL,'import','import',NULL,NULL,NULL,NULL,1.79588491954628109927e+09);
INSERT INTO "decision" VALUES(3,'a1','label',1,2,1,'',NULL,'click','Ann',NULL,NULL,NULL,812,1.79588491955674886698e+09);
INSERT INTO "decision" VALUES(4,'a2','done',1,NULL,NULL,'',NULL,'done','Ann',NULL,NULL,NULL,NULL,1.79588491955832815173e+09);
INSERT INTO "decision" VALUES(5,'a3','label',2,1,-1,'',NULL,'click','Ann',NULL,NULL,NULL,NULL,1.79588491955907249451e+09);
INSERT INTO "decision" VALUES(6,'a4','undo',2,NULL,NULL,'',5,'click','Ann',NULL,NULL,NULL,NULL,1.79588491955986571304e+09);
INSERT INTO "decision" VALUES(7,'a5','skip',3,NULL,NULL,'',NULL,'click','Ann',NULL,NULL,NULL,NULL,1.79588491956137585644e+09);
INSERT INTO "decision" VALUES(8,'a6','label',2,3,1,'',NULL,'click','Bob',NULL,NULL,NULL,NULL,1.79588491956205844875e+09);
INSERT INTO "decision" VALUES(9,'a7','label',2,3,-1,'',NULL,'click','Ann',NULL,NULL,NULL,NULL,1.79588491956277441973e+09);
INSERT INTO "decision" VALUES(10,'a8','flag',4,NULL,NULL,'blurred',NULL,'click','Ann',NULL,NULL,NULL,NULL,1.79588491956370663641e+09);
INSERT INTO "decision" VALUES(11,'a9','comment',4,NULL,NULL,'a fox, I think',NULL,'click','Bob',NULL,NULL,NULL,NULL,1.79588491956428217884e+09);
INSERT INTO "decision" VALUES(12,'b1','label',4,1,0,'',NULL,'click','Ann',NULL,NULL,NULL,NULL,1.79588491956487679478e+09);
INSERT INTO "decision" VALUES(13,'b2','clear',1,2,NULL,'',NULL,'click','Bob',NULL,NULL,NULL,NULL,1.79588491956570959094e+09);
INSERT INTO "decision" VALUES(14,'g1:0','label',5,1,1,'',NULL,'grid','Bob','g1',1,0.9,NULL,1.79588491956762599938e+09);
INSERT INTO "decision" VALUES(15,'g1:1','label',6,1,-1,'',NULL,'grid','Bob','g1',1,0.2,NULL,1.79588491956781458854e+09);
INSERT INTO "decision" VALUES(16,'g1:2','label',7,1,1,'',NULL,'grid','Bob','g1',1,0.8,NULL,1.79588491956793975829e+09);
INSERT INTO "decision" VALUES(17,'b3','label',6,5,1,'',NULL,'click','Ann',NULL,NULL,NULL,NULL,1.79588491956998372073e+09);
INSERT INTO "decision" VALUES(18,'7995c997-595f-4a88-9632-dccb1fb610d4:0','label',6,3,1,'',NULL,'merge','Olga','7995c997-595f-4a88-9632-dccb1fb610d4',NULL,NULL,NULL,1.79588491957127976417e+09);
INSERT INTO "decision" VALUES(19,'r1','done',8,NULL,NULL,'',NULL,'done','Bob',NULL,NULL,NULL,NULL,1.79588491957617473601e+09);
INSERT INTO "decision" VALUES(20,'r2','undo',8,NULL,NULL,'',19,'reading','Bob',NULL,NULL,NULL,NULL,1.79588491957693743711e+09);
INSERT INTO "decision" VALUES(21,'r3:0','label',8,1,1,'',NULL,'reading','Ann','r3',NULL,NULL,NULL,1.79588491957803535461e+09);
INSERT INTO "decision" VALUES(22,'r3:1','label',8,2,-1,'',NULL,'reading','Ann','r3',NULL,NULL,NULL,1.79588491957823324202e+09);
INSERT INTO "decision" VALUES(23,'r3:2','label',8,3,-1,'',NULL,'reading','Ann','r3',NULL,NULL,NULL,1.79588491957838702201e+09);
INSERT INTO "decision" VALUES(24,'r4:0','label',8,1,-1,'',NULL,'reading','Bob','r4',NULL,NULL,NULL,1.79588491957926082607e+09);
INSERT INTO "decision" VALUES(25,'r4:1','label',8,2,-1,'',NULL,'reading','Bob','r4',NULL,NULL,NULL,1.79588491957960343361e+09);
INSERT INTO "decision" VALUES(26,'r4:2','label',8,3,-1,'',NULL,'reading','Bob','r4',NULL,NULL,NULL,1.79588491957983970642e+09);
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
INSERT INTO "file" VALUES(5,1,'day/broken.jpg',12,1795884867063918350,NULL,'not an image, or a format that is not read (read are jpeg, png, webp, bmp, gif, tiff)','2204701:1795884867063918350');
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
, captured_at REAL, capture_read INTEGER NOT NULL DEFAULT 0, name_key TEXT NOT NULL DEFAULT '', folder_key TEXT AS (substr(name_key, 1, instr(name_key, char(1)))), time_key REAL AS (coalesce(captured_at, 9e999)));
INSERT INTO "image" VALUES(1,'day/0.jpg','71896c195abbdfc034af525bff018fb8f91c05aa8c52c101395eea002439b3d2',24,16,2,13,'',1777629600.0,1,'000001day0010.jpg');
INSERT INTO "image" VALUES(2,'day/2.jpg','2c4f3eb8089c8f031be1f1bcd889027ae44b16c290e95ba2bebb3ecc7596931a',24,16,2,9,'',1777802402.0,1,'000001day0012.jpg');
INSERT INTO "image" VALUES(3,'day/4.jpg','49dff618bd8c83ce84767a084e9c4d070c26e4daf465c39f23d75f670d67984f',24,16,1,7,'',1777975204.0,1,'000001day0014.jpg');
INSERT INTO "image" VALUES(4,'day/6.jpg','56d18b5638c9115e3a3ea183e2f5b1374e6beb783a27e75a5a69752967539541',24,16,2,12,'',1778148006.0,1,'000001day0016.jpg');
INSERT INTO "image" VALUES(5,'night/1.jpg','e58f634417bd31cbf1d8d916e96a8562358bee332da93c2fc27531fab00413c4',24,16,2,14,'',1777716001.0,1,'000001night0011.jpg');
INSERT INTO "image" VALUES(6,'night/3.jpg','9214be806509068379db4e6e4f74f810056244776ee9b5b29965ab9c72b70d56',24,16,2,17,'',1777888803.0,1,'000001night0013.jpg');
INSERT INTO "image" VALUES(7,'night/5.jpg','d2ee2b01705fed6f5af8617ef955db6bb601fe8fb8815a18ff8da499f961db70',24,16,2,16,'',1778061605.0,1,'000001night0015.jpg');
INSERT INTO "image" VALUES(8,'night/7.jpg','3e11fd89cadabe731cd76cdb9c8503056079e057a2322be95f16e0c0b11e4282',24,16,3,26,'',1778234407.0,1,'000001night0017.jpg');
CREATE TABLE image_change (id INTEGER PRIMARY KEY AUTOINCREMENT, image_id INTEGER NOT NULL);
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
INSERT INTO "import" VALUES(1,'3256eeb75009b24f8bc76519ac2fc5ec','/data/labels.csv','c9cacdd9d3bffa02dfe509135f91557df6e4c089ac7f0f92216391bd1ac378c5','csv','import',1.79588491954586768149e+09,'{"images": 0, "answers": 2, "replaced": 0, "completed": 0, "attributes": 0, "remarks": 0, "classes": 0, "class_ids": []}',1,2,NULL,NULL,'');
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
INSERT INTO "label" VALUES(8,1,1,21);
INSERT INTO "label" VALUES(8,2,-1,22);
INSERT INTO "label" VALUES(5,3,-1,2);
INSERT INTO "label" VALUES(1,3,-1,4);
INSERT INTO "label" VALUES(2,3,-1,9);
INSERT INTO "label" VALUES(8,3,-1,23);
INSERT INTO "label" VALUES(6,3,1,18);
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
INSERT INTO "member" VALUES(1,'Olga','owner',NULL,'',NULL,0.0,1.79588491955440616608e+09,NULL);
INSERT INTO "member" VALUES(2,'Ann','annotator',NULL,'',NULL,0.0,1.7958849195552823543e+09,NULL);
INSERT INTO "member" VALUES(3,'Bob','annotator',NULL,'',NULL,0.0,1.79588491955574584011e+09,NULL);
INSERT INTO "member" VALUES(4,'Rita','reviewer',NULL,'',NULL,0.0,1.79588491955618643767e+09,NULL);
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
INSERT INTO "run" VALUES(1,'auto','{}','efficientnet_lite0','[1, 2, 3]',8,13,3,1.5,'[0.5]',0.5,1.79588491956713724138e+09,1,0,13,'');
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
INSERT INTO "tally" VALUES('annotator','Ann','',8);
INSERT INTO "tally" VALUES('annotator','Bob','',7);
INSERT INTO "tally" VALUES('annotator','Olga','',1);
INSERT INTO "tally" VALUES('annotator','import','',2);
INSERT INTO "tally" VALUES('hour',498856,'clear',1);
INSERT INTO "tally" VALUES('hour',498856,'click',5);
INSERT INTO "tally" VALUES('hour',498856,'comment',1);
INSERT INTO "tally" VALUES('hour',498856,'done',1);
INSERT INTO "tally" VALUES('hour',498856,'flag',1);
INSERT INTO "tally" VALUES('hour',498856,'grid',3);
INSERT INTO "tally" VALUES('hour',498856,'merge',1);
INSERT INTO "tally" VALUES('hour',498856,'reading',6);
INSERT INTO "tally" VALUES('hour',498856,'skip',1);
INSERT INTO "tally" VALUES('label',1,-1,1);
INSERT INTO "tally" VALUES('label',1,0,1);
INSERT INTO "tally" VALUES('label',1,1,4);
INSERT INTO "tally" VALUES('label',2,-1,1);
INSERT INTO "tally" VALUES('label',2,1,0);
INSERT INTO "tally" VALUES('label',3,-1,4);
INSERT INTO "tally" VALUES('label',3,1,1);
INSERT INTO "tally" VALUES('label',5,1,0);
INSERT INTO "tally" VALUES('run',1,-1,1);
INSERT INTO "tally" VALUES('run',1,1,2);
INSERT INTO "tally" VALUES('score',4,-1,1);
INSERT INTO "tally" VALUES('score',16,1,1);
INSERT INTO "tally" VALUES('score',18,1,1);
INSERT INTO "tally" VALUES('source','clear','',1);
INSERT INTO "tally" VALUES('source','click','',5);
INSERT INTO "tally" VALUES('source','comment','',1);
INSERT INTO "tally" VALUES('source','done','',1);
INSERT INTO "tally" VALUES('source','flag','',1);
INSERT INTO "tally" VALUES('source','grid','',3);
INSERT INTO "tally" VALUES('source','import','',2);
INSERT INTO "tally" VALUES('source','merge','',1);
INSERT INTO "tally" VALUES('source','reading','',6);
INSERT INTO "tally" VALUES('source','skip','',1);
INSERT INTO "tally" VALUES('stage',0,'',0);
INSERT INTO "tally" VALUES('stage',1,'',1);
INSERT INTO "tally" VALUES('stage',2,'',6);
INSERT INTO "tally" VALUES('stage',3,'',1);
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
CREATE TRIGGER image_changed AFTER UPDATE OF name, name_key, captured_at ON image
WHEN old.name IS NOT new.name OR old.name_key IS NOT new.name_key OR old.captured_at IS NOT new.captured_at BEGIN
    INSERT INTO image_change (image_id) VALUES (new.id);
END;
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
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('decision',26);
INSERT INTO "sqlite_sequence" VALUES('image',8);
INSERT INTO "sqlite_sequence" VALUES('class',5);
INSERT INTO "sqlite_sequence" VALUES('class_change',5);
INSERT INTO "sqlite_sequence" VALUES('import',1);
INSERT INTO "sqlite_sequence" VALUES('run',1);
INSERT INTO "sqlite_sequence" VALUES('assignment',1);
COMMIT;
