"""The members of a project that several people label: roles, ways to sign in, and a log of changes.

A member's name is the annotator name on their decisions, which follow when it changes (renaming.py), and it is never
given to another person. A person whose name at the login provider changes is recognised by the provider's subject. The
row of a removed member stays, with the role `none`: their decisions remain under their name.
"""

import hashlib
import re
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlite_utils

from annotator.errors import AnnotatorError, did_you_mean
from annotator.roles import HIDEABLE_PARTS, Right, Role, parse_role
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
    """A member of the project; times are in unix seconds.

    Attributes:
        subject: The login provider's identifier of the person, "issuer subject"; None before their first sign-in there.
        has_link: The member has a valid invitation link.
        sessions_since: Sessions begun before this time have ended.
    """

    id: int
    name: str
    role: Role
    subject: str | None
    email: str
    has_link: bool
    sessions_since: float
    made_at: float
    signed_in_at: float | None

    @property
    def highest_right(self) -> Right:
        """Return the highest right of the member's role."""
        return self.role.highest_right


@dataclass(frozen=True)
class LogEntry:
    """An entry of the log of sign-ins and changes of access.

    Attributes:
        at: Unix seconds.
        by: The person who made the change.
        what: The kind of the change.
        member: The member concerned, "" for changes that concern no single member.
    """

    id: int
    at: float
    by: str
    what: str
    member: str
    detail: str


def load_members(db: Database) -> list[Member]:
    """Return all members in the order in which they were added, including those without access."""
    return [_to_member(row) for row in db.tuples(f"SELECT {_MEMBER_COLUMNS_SQL} FROM member ORDER BY id")]


def find_member(db: Database, name: str) -> Member:
    """Return the member with this name.

    Raises:
        AnnotatorError: No member has this name.
    """
    with db.reading() as sql:
        return load_member(sql, name)


def get_current_name(db: Database, name: str) -> str:
    """Return the name of the member who had this one before; the same where nobody had."""
    return load_earlier_names(db.sql).get(name, name)


def find_owner(db: Database) -> Member | None:
    """Return the first owner; None while the project has no owner."""
    return next((member for member in load_members(db) if member.role == Role.OWNER), None)


def add(db: Database, name: str, role: str, by: str, email: str = "") -> Member:
    """Add a member and return them.

    Args:
        db: The project's database.
        name: The member's name; blanks around it are removed.
        role: The name of a role.
        by: The person who adds them.
        email: An address by which a login provider that has verified it recognises the member, who then needs no link.

    Raises:
        AnnotatorError: The name is invalid or taken, the role is unknown, or the address is invalid or taken.
    """
    name, known = name.strip(), parse_role(role)
    email = email.strip().lower()
    if email and not _EMAIL_PATTERN.fullmatch(email):
        raise AnnotatorError(f"{email!r} is no e-mail address.")
    with db.writing() as sql:
        check_name(sql, name)
        if email and sql.execute("SELECT 1 FROM member WHERE email = ?", [email]).fetchone():
            raise AnnotatorError(f"Another member has the e-mail address {email}.")
        sql.execute(
            "INSERT INTO member (name, role, email, made_at) VALUES (?, ?, ?, ?)", [name, known, email, time.time()]
        )
        add_log_entry(sql, by, "added", name, f"as {known}")
        return load_member(sql, name)


def set_role(db: Database, name: str, role: str, by: str, expected: str | None = None) -> Member:
    """Give a member another role; `none` also ends their sessions and revokes their link.

    Args:
        db: The project's database.
        name: The member's name.
        role: The name of the new role.
        by: The person who gives it.
        expected: The role that the caller has seen. If the member's role differs by now, an error is raised, so that
            two owners who change the same member do not overwrite each other unknowingly.

    Raises:
        AnnotatorError: The member or role is unknown, the role is not as expected, or no owner would remain.
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
    """Return a new secret for a member's invitation link; the secret cannot be read again.

    An earlier link is no longer accepted; sessions begun with it go on.

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
    """End all sessions of a member and revoke their invitation link.

    Raises:
        AnnotatorError: The member is unknown.
    """
    with db.writing() as sql:
        _end_sessions(sql, load_member(sql, name).id, unlink=True)
        add_log_entry(sql, by, "signed out everywhere", name, "")


def end_session(db: Database, name: str, session: str) -> None:
    """End one session for everybody who has its cookies, by an entry in the log, which nobody can change."""
    with db.writing(right=Right.NOTHING) as sql:
        add_log_entry(sql, name, SIGNED_OUT_ENTRY, name, f"session {session}")


def load_ended_sessions(db: Database, after: int = 0) -> tuple[set[str], int]:
    """Return the sessions ended by log entries after the id `after`, and the id of the last log entry."""
    rows = db.tuples("SELECT id, what, detail FROM access_log WHERE id > ? ORDER BY id", [after])
    ended = {detail.removeprefix("session ") for _, what, detail in rows if what == SIGNED_OUT_ENTRY}
    return ended, rows[-1][0] if rows else after


def has_session_ended(db: Database, session: str) -> bool:
    """Return whether this session was signed out."""
    statement = "SELECT EXISTS (SELECT 1 FROM access_log WHERE what = ? AND detail = ?)"
    return bool(db.value(statement, [SIGNED_OUT_ENTRY, f"session {session}"]))


def sign_in_by_link(db: Database, secret: str) -> Member | None:
    """Return the member whose invitation link has this secret, and log the sign-in.

    None for a wrong or revoked secret, and for a member without access.
    """
    # The time of an index lookup of a sha256 reveals nothing about a secret of 256 random bits.
    with db.writing(right=Right.NOTHING) as sql:
        row = sql.execute(
            f"SELECT {_MEMBER_COLUMNS_SQL} FROM member WHERE secret_sha256 = ? AND role != 'none'", [_digest(secret)]
        ).fetchone()
        if row is None:
            return None
        return _record_sign_in(sql, _to_member(row), "by invitation link")


def sign_in_by_key(db: Database, id_: int) -> Member | None:
    """Return the member for whom the machine's owner made a one-time key, and log the sign-in.

    None for an unknown member or one without access.
    """
    with db.writing(right=Right.NOTHING) as sql:
        row = sql.execute(f"SELECT {_MEMBER_COLUMNS_SQL} FROM member WHERE id = ? AND role != 'none'", [id_]).fetchone()
        return _record_sign_in(sql, _to_member(row), "by one-time key") if row is not None else None


def sign_in_by_provider(db: Database, claims: Mapping[str, Any]) -> Member:
    """Return the member whom a login provider vouches for, a new one at their first sign-in; log the sign-in.

    A newcomer gets the role of the setting NEWCOMER_ROLE_SETTING (`none` unless an owner chose another). A member who
    was added
    with the same e-mail address keeps their role and is recognised, if the provider says that it has verified the
    address. The name is the one that the provider gave at the first sign-in.

    Args:
        db: The project's database.
        claims: The checked claims of the ID token, with iss and sub at least.

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
    """Return "issuer subject" of the claims: the only part that identifies a person and never changes.

    Raises:
        AnnotatorError: The issuer or the subject is missing, or they are too long.
    """
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
    """Return the role given to a first-time sign-in; never owner."""
    stored = db.get_setting(NEWCOMER_ROLE_SETTING, Role.NONE)
    return Role(stored) if stored in list(Role) and stored != Role.OWNER else Role.NONE


def set_newcomer_role(db: Database, role: str, by: str, expected: str | None = None) -> None:
    """Set the role given to a first-time sign-in.

    Args:
        db: The project's database.
        role: The name of the role.
        by: The person who sets it.
        expected: The role that the caller has seen, as in set_role.

    Raises:
        AnnotatorError: The role is unknown or not as expected, or is owner: everybody at the provider would be an
            owner.
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
    """Return the views that guests and annotators do not see, a subset of HIDEABLE_PARTS."""
    stored = db.get_setting(HIDDEN_VIEWS_SETTING, [])
    return tuple(part for part in HIDEABLE_PARTS if isinstance(stored, list) and part in stored)


def set_hidden_views(db: Database, parts: Sequence[str], by: str, expected: Sequence[str] | None = None) -> None:
    """Set the views that guests and annotators do not see.

    Args:
        db: The project's database.
        parts: The views; all others are shown.
        by: The person who hides them.
        expected: The hidden views that the caller has seen, as in set_role.

    Raises:
        AnnotatorError: A view cannot be hidden, or the hidden views are not as expected.
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
    """Return the log of sign-ins and changes of access, newest first, at most `limit` entries."""
    statement = "SELECT id, at, by, what, member, detail FROM access_log ORDER BY id DESC LIMIT ?"
    return [LogEntry(*row) for row in db.tuples(statement, [-1 if limit is None else limit])]


def _to_member(row: tuple[Any, ...]) -> Member:
    id_, name, role, subject, email, has_link, since, made_at, signed_in_at = row
    return Member(id_, name, Role(role), subject, email, bool(has_link), since, made_at, signed_in_at)


def load_member(sql: sqlite_utils.Database, name: str) -> Member:
    """Return the member with this name, in the transaction. Raises AnnotatorError where nobody has it."""
    row = sql.execute(f"SELECT {_MEMBER_COLUMNS_SQL} FROM member WHERE name = ?", [name]).fetchone()
    if row is None:
        names = [known for (known,) in sql.execute("SELECT name FROM member ORDER BY name").fetchall()]
        raise AnnotatorError(f"No member is called {name!r}. {did_you_mean(name, names)}")
    return _to_member(row)


def check_name(sql: sqlite_utils.Database, name: str, own_id: int = 0) -> None:
    """Raise AnnotatorError where a name is invalid, or another member than `but` (an id) has it, or had it before."""
    if not (name.isprintable() and 0 < len(name) <= MAX_NAME_CHARACTERS):
        raise AnnotatorError(f"A member's name has 1 to {MAX_NAME_CHARACTERS} printable characters, not {name[:80]!r}.")
    names: dict[int, str] = dict(sql.execute("SELECT id, name FROM member").fetchall())
    earlier = [old for old, now in load_earlier_names(sql).items() if now != names.get(own_id)]
    taken = [
        known for known in (*(names[id_] for id_ in names if id_ != own_id), *earlier) if _is_same_name(known, name)
    ]
    if taken and taken[0] in earlier:
        raise AnnotatorError(f"Another member was called {taken[0]!r} before. Names are not used twice.")
    if taken:
        raise AnnotatorError(
            f"There is a member {taken[0]!r} already. Names are not used twice, because decisions carry them; names "
            "that differ in capitals or blanks only count as the same."
        )


def _is_same_name(name: str, other: str) -> bool:
    return "".join(name.casefold().split()) == "".join(other.casefold().split())


def _suggest_names(claims: Mapping[str, Any], email: str) -> Iterable[str]:
    """Yield names for a newcomer, the best first; never an e-mail address, because others see names."""
    for claim in ("name", "preferred_username", "nickname"):
        yield str(claims.get(claim) or "").partition("@")[0]
    yield email.partition("@")[0]
    yield "newcomer"


def _choose_free_name(sql: sqlite_utils.Database, wanted: Iterable[str]) -> str:
    """Return the first non-blank name of `wanted`, with a number where another person has it.

    Names without a member count as taken when decisions carry them: a newcomer must not become the owner of decisions
    made before the project had members.
    """
    kept = "".join(character if character.isprintable() else " " for character in next(filter(str.strip, wanted)))
    name = " ".join(kept.split())[: MAX_NAME_CHARACTERS - 6] or "newcomer"
    rows = sql.execute("SELECT name FROM member UNION SELECT one FROM tally WHERE kind = 'annotator'").fetchall()
    taken = [*(known for (known,) in rows), *load_earlier_names(sql)]
    numbered = (name if number == 1 else f"{name} {number}" for number in range(1, len(taken) + 2))
    return next(free for free in numbered if not any(_is_same_name(free, known) for known in taken))


def _end_sessions(sql: sqlite_utils.Database, id_: int, unlink: bool) -> None:
    # Not earlier than the last session's begin: if the clock was set back, that session would go on.
    statement = "UPDATE member SET sessions_since = max(?, sessions_since, coalesce(signed_in_at, 0)) WHERE id = ?"
    sql.execute(statement, [time.time(), id_])
    if unlink:
        sql.execute("UPDATE member SET secret_sha256 = NULL WHERE id = ?", [id_])


def _record_sign_in(sql: sqlite_utils.Database, member: Member, how: str) -> Member:
    """Record and log the sign-in of a member; return the member with `signed_in_at` of this session.

    The time never goes back, even where the clock was set back.
    """
    at = max(time.time(), member.sessions_since + SESSION_GAP_SECONDS, member.signed_in_at or 0)
    sql.execute("UPDATE member SET signed_in_at = ? WHERE id = ?", [at, member.id])
    add_log_entry(sql, member.name, "signed in", member.name, how)
    return replace(member, signed_in_at=at)


def add_log_entry(sql: sqlite_utils.Database, by: str, what: str, member: str, detail: str) -> None:
    """Add an entry to the log, in the transaction that makes the change."""
    sql.execute(
        "INSERT INTO access_log (at, by, what, member, detail) VALUES (?, ?, ?, ?, ?)",
        [time.time(), by, what, member, detail],
    )


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
