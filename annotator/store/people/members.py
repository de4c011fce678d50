"""Project members: roles, sign-in and the access log.

Names are never reused. A removed member keeps the role `none`, so that decisions keep their name.
"""

import hashlib
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import sqlite_utils

from annotator.errors import AnnotatorError, did_you_mean
from annotator.roles import HIDEABLE_PARTS, Right, Role, parse_role
from annotator.settings import IMPORT_ANNOTATOR
from annotator.store.database.database import Database
from annotator.store.people.earlier_names import load_earlier_names

MAX_NAME_CHARACTERS = 60
# seconds between the end of all sessions and the next session, if the clock was set back meanwhile
SESSION_GAP_SECONDS = 0.001
NEWCOMER_ROLE_SETTING = "role_of_newcomers"  # a setting: the role given to a first-time sign-in at the login provider
HIDDEN_VIEWS_SETTING = "hidden_from_annotators"  # a setting
MAX_SUBJECT_CHARACTERS = 1000
SIGNED_OUT_ENTRY = "signed out"  # in the log
_EMAIL_PATTERN = re.compile(r"[^@\s]+@[^@\s]+")
_MEMBER_COLUMNS_SQL = "id, name, role, subject, email, secret_sha256 IS NOT NULL, sessions_since, made_at, signed_in_at"


@dataclass(frozen=True)
class Member:
    """A project member (times in Unix seconds)."""

    id: int
    name: str
    role: Role
    # "issuer subject" of the login provider, or None
    subject: str | None
    email: str
    # whether an invitation link is valid
    has_link: bool
    # sessions that began before this time have ended
    sessions_since: float
    made_at: float
    signed_in_at: float | None

    @property
    def highest_right(self) -> Right:
        return self.role.highest_right


@dataclass(frozen=True)
class LogEntry:
    """An entry of the access log."""

    id: int
    # unix seconds
    at: float
    by: str
    what: str
    # affected member, or ""
    member: str
    detail: str


def load_members(db: Database) -> list[Member]:
    """Return all members in creation order, even without access."""
    return [_to_member(row) for row in db.tuples(f"SELECT {_MEMBER_COLUMNS_SQL} FROM member ORDER BY id")]


def find_member(db: Database, name: str) -> Member:
    """Return the member with this name. Raises AnnotatorError if unknown."""
    with db.reading() as sql:
        return load_member(sql, name)


def get_current_name(db: Database, name: str) -> str:
    """Return the current name of a renamed member, else the name."""
    return load_earlier_names(db.sql).get(name, name)


def find_owner(db: Database) -> Member | None:
    return next((member for member in load_members(db) if member.role == Role.OWNER), None)


def add(db: Database, name: str, role: str, by: str, email: str = "", subject: str | None = None) -> Member:
    """Add a member.

    Args:
        email: Address that a login provider verifies, used instead of an invitation link.
        subject: "issuer subject" of a login provider that has identified the person already.

    Raises:
        AnnotatorError: The name, role, email or subject is invalid or taken.
    """
    name, known = name.strip(), parse_role(role)
    email = email.strip().lower()
    if email and not _EMAIL_PATTERN.fullmatch(email):
        raise AnnotatorError(f"{email!r} is no e-mail address.")
    with db.writing() as sql:
        check_name(sql, name)
        if email and sql.execute("SELECT 1 FROM member WHERE email = ?", [email]).fetchone():
            raise AnnotatorError(f"Another member has the e-mail address {email}.")
        if subject and sql.execute("SELECT 1 FROM member WHERE subject = ?", [subject]).fetchone():
            raise AnnotatorError(f"Another member is {subject!r} at the login provider.")
        sql.execute(
            "INSERT INTO member (name, role, subject, email, made_at) VALUES (?, ?, ?, ?, ?)",
            [name, known, subject, email, time.time()],
        )
        add_log_entry(sql, by, "added", name, f"as {known}")
        return load_member(sql, name)


def ensure_owner(db: Database, login_name: str) -> Member:
    """Return the first owner, or add one for the person who starts the server.

    A member of the same name may be another person, so the owner's name gets a number.
    """
    if owner := find_owner(db):
        return owner
    with db.writing() as sql:
        free = next(name for name in _number_name(login_name) if not _find_same_name(sql, name)[0])
        return add(db, free, Role.OWNER, by=f"annotator serve, started by {login_name}")


def set_role(db: Database, name: str, role: str, by: str, expected: str | None = None) -> Member:
    """Change a member's role. `none` also ends sessions and revokes the link.

    Args:
        expected: Role seen by the caller, so that owners do not overwrite each other.

    Raises:
        AnnotatorError: Unknown member or role, unexpected role, or no owner would remain.
    """
    known = parse_role(role)
    with db.writing() as sql:
        member = load_member(sql, name)
        if expected is not None and member.role != expected:
            raise AnnotatorError(
                f"Meanwhile somebody gave {name} the role {member.role}; you saw {expected}. Look again, then decide."
            )
        if member.role == known:
            return member
        owners = sql.execute("SELECT count(*) FROM member WHERE role = 'owner'").fetchone()[0]
        if member.role == Role.OWNER and owners == 1:
            raise AnnotatorError(f"{name} is the only owner. Make somebody else an owner first.")
        sql.execute("UPDATE member SET role = ? WHERE id = ?", [known, member.id])
        add_log_entry(sql, by, "role", name, f"{member.role} to {known}")
        if known == Role.NONE:
            _end_sessions(sql, member.id, unlink=True)
        return load_member(sql, name)


def create_link(db: Database, name: str, by: str) -> str:
    """Return a new invitation link secret, which is not stored.

    Earlier links become invalid, but their sessions continue.

    Raises:
        AnnotatorError: The member is unknown or has no access.
    """
    secret = secrets.token_urlsafe(32)
    with db.writing() as sql:
        member = load_member(sql, name)
        if member.role == Role.NONE:
            raise AnnotatorError(f"{name} has no access. Give them a role first.")
        sql.execute("UPDATE member SET secret_sha256 = ? WHERE id = ?", [_digest(secret), member.id])
        add_log_entry(
            sql, by, "link", name, "a new one; earlier ones are not accepted" if member.has_link else "the first one"
        )
    return secret


def sign_out_everywhere(db: Database, name: str, by: str) -> None:
    """End a member's sessions and revoke the link. Raises AnnotatorError if unknown."""
    with db.writing() as sql:
        _end_sessions(sql, load_member(sql, name).id, unlink=True)
        add_log_entry(sql, by, "signed out everywhere", name, "")


def end_session(db: Database, name: str, session: str) -> None:
    """End one session for all holders of its cookies."""
    with db.writing(right=Right.NOTHING) as sql:
        add_log_entry(sql, name, SIGNED_OUT_ENTRY, name, f"session {session}")


def load_ended_sessions(db: Database, after: int = 0) -> tuple[set[str], int]:
    """Return sessions ended after log entry `after`, and the last entry id."""
    rows = db.tuples("SELECT id, what, detail FROM access_log WHERE id > ? ORDER BY id", [after])
    ended = {detail.removeprefix("session ") for _, what, detail in rows if what == SIGNED_OUT_ENTRY}
    return ended, rows[-1][0] if rows else after


def has_session_ended(db: Database, session: str) -> bool:
    statement = "SELECT EXISTS (SELECT 1 FROM access_log WHERE what = ? AND detail = ?)"
    return bool(db.value(statement, [SIGNED_OUT_ENTRY, f"session {session}"]))


def sign_in_by_link(db: Database, secret: str) -> Member | None:
    # The time of an index lookup of a sha256 reveals nothing about a secret of 256 random bits.
    with db.writing(right=Right.NOTHING) as sql:
        row = sql.execute(
            f"SELECT {_MEMBER_COLUMNS_SQL} FROM member WHERE secret_sha256 = ? AND role != 'none'", [_digest(secret)]
        ).fetchone()
        if row is None:
            return None
        return _record_sign_in(sql, _to_member(row), "by invitation link")


def sign_in_by_key(db: Database, id_: int) -> Member | None:
    with db.writing(right=Right.NOTHING) as sql:
        row = sql.execute(f"SELECT {_MEMBER_COLUMNS_SQL} FROM member WHERE id = ? AND role != 'none'", [id_]).fetchone()
        return _record_sign_in(sql, _to_member(row), "by one-time key") if row is not None else None


def sign_in_by_provider(db: Database, claims: Mapping[str, Any]) -> Member:
    """Sign in the member identified by a login provider, creating newcomers.

    A member added with the same verified email keeps their role.

    Args:
        claims: Checked ID token claims with iss and sub.

    Raises:
        AnnotatorError: The claims do not identify a person.
    """
    subject = build_subject(claims)
    email = str(claims.get("email") or "").strip().lower()
    if claims.get("email_verified") is not True:
        email = ""
    with db.writing(right=Right.NOTHING) as sql:
        row = sql.execute(f"SELECT {_MEMBER_COLUMNS_SQL} FROM member WHERE subject = ?", [subject]).fetchone()
        if row is None and email:
            statement = f"SELECT {_MEMBER_COLUMNS_SQL} FROM member WHERE email = ? AND subject IS NULL"
            row = sql.execute(statement, [email]).fetchone()
            if row is not None:
                sql.execute("UPDATE member SET subject = ? WHERE id = ?", [subject, row[0]])
                add_log_entry(
                    sql,
                    _to_member(row).name,
                    "recognised",
                    _to_member(row).name,
                    f"by the address {email}, as {subject}",
                )
        if row is None:
            name, role = _choose_free_name(sql, _suggest_names(claims, email)), get_newcomer_role(db)
            sql.execute(
                "INSERT INTO member (name, role, subject, email, made_at) VALUES (?, ?, ?, ?, ?)",
                [name, role, subject, email, time.time()],
            )
            add_log_entry(sql, name, "came", name, f"as {subject}, with the role {role}")
            row = sql.execute(f"SELECT {_MEMBER_COLUMNS_SQL} FROM member WHERE subject = ?", [subject]).fetchone()
        return _record_sign_in(sql, _to_member(row), "at the login provider")


def build_subject(claims: Mapping[str, Any]) -> str:
    """Return "issuer subject", the only permanent identification in the claims, or raise AnnotatorError."""
    issuer, subject = claims.get("iss"), claims.get("sub")
    if not (isinstance(issuer, str) and isinstance(subject, str) and issuer and subject):
        raise AnnotatorError("The login provider did not say who this is: its token has no issuer or no subject.")
    who = f"{issuer} {subject}"
    if len(who) > MAX_SUBJECT_CHARACTERS:
        raise AnnotatorError(
            f"What the login provider calls this person is longer than {MAX_SUBJECT_CHARACTERS:,} letters."
        )
    return who


def get_newcomer_role(db: Database) -> Role:
    """Return the role for first sign-ins, never owner."""
    stored = db.get_setting(NEWCOMER_ROLE_SETTING, Role.NONE)
    return Role(stored) if stored in list(Role) and stored != Role.OWNER else Role.NONE


def set_newcomer_role(db: Database, role: str, by: str, expected: str | None = None) -> None:
    """Set the role that new members get at their first sign-in.

    Args:
        expected: Previous role as the caller saw it.

    Raises:
        AnnotatorError: The role is unknown, unexpected, or owner.
    """
    known = parse_role(role)
    if known == Role.OWNER:
        raise AnnotatorError("Newcomers cannot be owners: everybody whom the login provider knows would be one.")
    with db.writing() as sql:
        if expected is not None and (now := get_newcomer_role(db)) != expected:
            raise AnnotatorError(
                f"Meanwhile somebody gave newcomers the role {now}; you saw {expected}. Look again, then decide."
            )
        db.set_setting(NEWCOMER_ROLE_SETTING, known)
        add_log_entry(sql, by, "newcomers", "", f"have the role {known}")


def get_hidden_views(db: Database) -> tuple[str, ...]:
    stored = db.get_setting(HIDDEN_VIEWS_SETTING, [])
    return tuple(part for part in HIDEABLE_PARTS if isinstance(stored, list) and part in stored)


def set_hidden_views(db: Database, parts: Sequence[str], by: str, expected: Sequence[str] | None = None) -> None:
    """Set the views hidden from guests and annotators.

    Args:
        expected: Hidden views as the caller saw them.

    Raises:
        AnnotatorError: A view cannot be hidden, or the current ones are unexpected.
    """
    if unknown := [part for part in parts if part not in HIDEABLE_PARTS]:
        raise AnnotatorError(f"{unknown[0]!r} cannot be hidden. {did_you_mean(unknown[0], HIDEABLE_PARTS)}")
    with db.writing() as sql:
        if expected is not None and (now := get_hidden_views(db)) != tuple(expected):
            raise AnnotatorError(
                f"Meanwhile somebody chose to hide {', '.join(now) or 'nothing'}; you saw "
                f"{', '.join(expected) or 'nothing'}. Look again, then decide."
            )
        db.set_setting(HIDDEN_VIEWS_SETTING, [part for part in HIDEABLE_PARTS if part in parts])
        add_log_entry(sql, by, "hidden", "", ", ".join(get_hidden_views(db)) or "nothing")


def load_log(db: Database, limit: int | None = None) -> list[LogEntry]:
    """Return the access log, newest first."""
    statement = "SELECT id, at, by, what, member, detail FROM access_log ORDER BY id DESC LIMIT ?"
    return [LogEntry(*row) for row in db.tuples(statement, [-1 if limit is None else limit])]


def _to_member(row: tuple[Any, ...]) -> Member:
    id_, name, role, subject, email, has_link, since, made_at, signed_in_at = row
    return Member(id_, name, Role(role), subject, email, bool(has_link), since, made_at, signed_in_at)


def load_member(sql: sqlite_utils.Database, name: str) -> Member:
    """Return the member with this name. Raises AnnotatorError if unknown."""
    row = sql.execute(f"SELECT {_MEMBER_COLUMNS_SQL} FROM member WHERE name = ?", [name]).fetchone()
    if row is None:
        names = [known for (known,) in sql.execute("SELECT name FROM member ORDER BY name").fetchall()]
        raise AnnotatorError(f"No member is called {name!r}. {did_you_mean(name, names)}")
    return _to_member(row)


def check_name(sql: sqlite_utils.Database, name: str, own_id: int = 0) -> None:
    """Raise AnnotatorError if a name is invalid or was ever another member's."""
    if not (name.isprintable() and 0 < len(name) <= MAX_NAME_CHARACTERS):
        raise AnnotatorError(f"A member's name has 1 to {MAX_NAME_CHARACTERS} printable characters, not {name[:80]!r}.")
    if _is_same_name(name, IMPORT_ANNOTATOR):
        raise AnnotatorError(f"{name!r} is the annotator of imported labels. Choose another name.")
    taken, is_earlier = _find_same_name(sql, name, own_id)
    if is_earlier:
        raise AnnotatorError(f"Another member was called {taken!r} before. Names are not used twice.")
    if taken:
        raise AnnotatorError(
            f"There is a member {taken!r} already. Names are not used twice, because decisions carry them; names "
            "that differ in capitals or blanks only count as the same."
        )


def _find_same_name(sql: sqlite_utils.Database, name: str, own_id: int = 0) -> tuple[str, bool]:
    """Return (another member's equal name or "", whether it is an earlier one)."""
    names: dict[int, str] = dict(sql.execute("SELECT id, name FROM member").fetchall())
    current = [names[id_] for id_ in names if id_ != own_id]
    earlier = [old for old, now in load_earlier_names(sql).items() if now != names.get(own_id)]
    taken = next((known for known in (*current, *earlier) if _is_same_name(known, name)), "")
    return taken, taken in earlier


def _is_same_name(name: str, other: str) -> bool:
    return "".join(name.casefold().split()) == "".join(other.casefold().split())


def _suggest_names(claims: Mapping[str, Any], email: str) -> Iterable[str]:
    """Yield newcomer names, best first, never an email address."""
    for claim in ("name", "preferred_username", "nickname"):
        yield str(claims.get(claim) or "").partition("@")[0]
    yield email.partition("@")[0]
    yield "newcomer"


def _choose_free_name(sql: sqlite_utils.Database, wanted: Iterable[str]) -> str:
    """Return the first wanted name, numbered if taken (also by decisions, which newcomers must not inherit)."""
    kept = "".join(character if character.isprintable() else " " for character in next(filter(str.strip, wanted)))
    name = " ".join(kept.split())[: MAX_NAME_CHARACTERS - 6] or "newcomer"
    rows = sql.execute("SELECT name FROM member UNION SELECT one FROM tally WHERE kind = 'annotator'").fetchall()
    taken = [IMPORT_ANNOTATOR, *(known for (known,) in rows), *load_earlier_names(sql)]
    return next(free for free in _number_name(name) if not any(_is_same_name(free, known) for known in taken))


def _number_name(name: str) -> Iterator[str]:
    """Yield a name, then the name with 2, 3, ..."""
    yield name
    for number in count(2):
        yield f"{name} {number}"


def _end_sessions(sql: sqlite_utils.Database, id_: int, unlink: bool) -> None:
    # Not earlier than the last session's begin: if the clock was set back, that session would go on.
    statement = "UPDATE member SET sessions_since = max(?, sessions_since, coalesce(signed_in_at, 0)) WHERE id = ?"
    sql.execute(statement, [time.time(), id_])
    if unlink:
        sql.execute("UPDATE member SET secret_sha256 = NULL WHERE id = ?", [id_])


def _record_sign_in(sql: sqlite_utils.Database, member: Member, how: str) -> Member:
    """Log a sign-in, whose time never decreases."""
    at = max(time.time(), member.sessions_since + SESSION_GAP_SECONDS, member.signed_in_at or 0)
    sql.execute("UPDATE member SET signed_in_at = ? WHERE id = ?", [at, member.id])
    add_log_entry(sql, member.name, "signed in", member.name, how)
    return replace(member, signed_in_at=at)


def add_log_entry(sql: sqlite_utils.Database, by: str, what: str, member: str, detail: str) -> None:
    sql.execute(
        "INSERT INTO access_log (at, by, what, member, detail) VALUES (?, ?, ?, ?, ?)",
        [time.time(), by, what, member, detail],
    )


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
