"""Step 11: the people of a project that several people label, and what changed about who may do what."""

from sqlite_utils import Database


def m011(db: Database) -> None:
    """Add members, sign-in and the access log. A project that one person labels on their own computer has no members.

    `member.name` is what decisions carry as their annotator; it never changes. `subject` is the identity from a login
    provider ("issuer subject"), `secret_sha256` belongs to an invitation link, and sessions begun before
    `sessions_since` (unix seconds) have ended. `access_log` is appended only: the triggers refuse anything else.
    """
    for statement in STATEMENTS:
        db.execute(statement)


STATEMENTS = (
    """CREATE TABLE member (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        role TEXT NOT NULL CHECK (role IN ('none', 'guest', 'annotator', 'reviewer', 'owner')),
        subject TEXT UNIQUE,
        email TEXT NOT NULL DEFAULT '',
        secret_sha256 TEXT UNIQUE,
        sessions_since REAL NOT NULL DEFAULT 0,
        made_at REAL NOT NULL,
        signed_in_at REAL
    )""",
    """CREATE TABLE access_log (
        id INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        by TEXT NOT NULL,
        what TEXT NOT NULL,
        member TEXT NOT NULL,
        detail TEXT NOT NULL DEFAULT ''
    )""",
    """CREATE TRIGGER access_log_keeps_rows BEFORE DELETE ON access_log
    BEGIN SELECT RAISE(ABORT, 'the access log is only appended to'); END""",
    """CREATE TRIGGER access_log_keeps_words BEFORE UPDATE ON access_log
    BEGIN SELECT RAISE(ABORT, 'the access log is only appended to'); END""",
)
