"""The members of a project that several people label: their roles, how they sign in, and a log of what changed.

A member's name is what decisions carry as their annotator, so it never changes and is never given to somebody else; a
person whom a login provider calls otherwise one day is recognised by the provider's subject. A member who is removed
keeps the row, with the role `none`: their decisions remain, and so does the name on them.
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
from annotator.roles import KEPT_FROM_SIGHT, Right, Role, role_named
from annotator.store.database.database import Database

LONGEST_NAME = 60
LATER = 0.001  # seconds from the end of all sessions to the next one, where the clock was set back meanwhile
NEWCOMERS = "role_of_newcomers"  # a setting: what somebody is whom the login provider knows and nobody has let in
HIDDEN = "hidden_from_annotators"  # a setting
LONGEST_SUBJECT = 1000
SIGNED_OUT = "signed out"  # in the log
_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+")
_COLUMNS = "id, name, role, subject, email, secret_sha256 IS NOT NULL, sessions_since, made_at, signed_in_at"


@dataclass(frozen=True)
class Member:
    """One person. Times in unix seconds.

    Attributes:
        subject: Who the login provider says they are, "issuer subject"; None before they have signed in there.
        has_link: Whether an invitation link of theirs is valid.
        sessions_since: Sessions begun before this have ended.
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
    def right(self) -> Right:
        return self.role.right


@dataclass(frozen=True)
class LogEntry:
    """What changed about who may do what: `by` whom, about which member. at: unix seconds."""

    id: int
    at: float
    by: str
    what: str
    member: str
    detail: str


def members(db: Database) -> list[Member]:
    """Everybody, those without access too, in the order in which they came."""
    return [_member(row) for row in db.tuples(f"SELECT {_COLUMNS} FROM member ORDER BY id")]


def member_named(db: Database, name: str) -> Member:
    """The member of this name. Raises AnnotatorError."""
    with db.reading() as sql:
        return _named(sql, name)


def owner(db: Database) -> Member | None:
    """The first owner; None before there is one."""
    return next((member for member in members(db) if member.role == Role.OWNER), None)


def add(db: Database, name: str, role: str, by: str, email: str = "") -> Member:
    """Add a person. With an e-mail address they need no link where people sign in at a provider that vouches for it.

    Raises:
        AnnotatorError: For a name that cannot be used or is taken, an unknown role, or an address that is none.
    """
    name, known = name.strip(), role_named(role)
    email = email.strip().lower()
    if email and not _ADDRESS.fullmatch(email):
        raise AnnotatorError(f"{email!r} is no e-mail address.")
    with db.writing() as sql:
        _refuse_name(sql, name)
        if email and sql.execute("SELECT 1 FROM member WHERE email = ?", [email]).fetchone():
            raise AnnotatorError(f"Another member has the e-mail address {email}.")
        sql.execute(
            "INSERT INTO member (name, role, email, made_at) VALUES (?, ?, ?, ?)", [name, known, email, time.time()]
        )
        note(sql, by, "added", name, f"as {known}")
        return _named(sql, name)


def set_role(db: Database, name: str, role: str, by: str, expected: str | None = None) -> Member:
    """Give a member another role; `none` ends their sessions and their link too.

    Args:
        expected: The role that whoever asks has seen; a different one by now is an error, so that two owners who change
            the same member do not overwrite each other unseen.

    Raises:
        AnnotatorError: For an unknown member or role, and when no owner would remain.
    """
    known = role_named(role)
    with db.writing() as sql:
        member = _named(sql, name)
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
        note(sql, by, "role", name, f"{member.role} to {known}")
        if known == Role.NONE:
            _end_sessions(sql, member.id, unlink=True)
        return _named(sql, name)


def new_link(db: Database, name: str, by: str) -> str:
    """A new secret for a member's invitation link, which nobody can read again. An earlier link is not accepted any
    more; sessions that it began go on. Raises AnnotatorError for an unknown member or one without access."""
    secret = secrets.token_urlsafe(32)
    with db.writing() as sql:
        member = _named(sql, name)
        if member.role == Role.NONE:
            raise AnnotatorError(f"{name} has no access. Give them a role first.")
        sql.execute("UPDATE member SET secret_sha256 = ? WHERE id = ?", [_digest(secret), member.id])
        note(sql, by, "link", name, "a new one; earlier ones are not accepted" if member.has_link else "the first one")
    return secret


def sign_out_everywhere(db: Database, name: str, by: str) -> None:
    """End all sessions of a member, and make their link useless. Raises AnnotatorError for an unknown member."""
    with db.writing() as sql:
        _end_sessions(sql, _named(sql, name).id, unlink=True)
        note(sql, by, "signed out everywhere", name, "")


def signed_out(db: Database, name: str, session: str) -> None:
    """End one session for good, whoever has its cookies: it is in the log, which nobody can change."""
    with db.writing(right=Right.NOTHING) as sql:
        note(sql, name, SIGNED_OUT, name, f"session {session}")


def ended_sessions(db: Database, after: int = 0) -> tuple[set[str], int]:
    """The sessions that were ended by a log entry later than that of this id, and the last entry's id."""
    rows = db.tuples("SELECT id, what, detail FROM access_log WHERE id > ? ORDER BY id", [after])
    ended = {detail.removeprefix("session ") for _, what, detail in rows if what == SIGNED_OUT}
    return ended, rows[-1][0] if rows else after


def has_ended(db: Database, session: str) -> bool:
    """Whether this session was signed out of."""
    statement = "SELECT EXISTS (SELECT 1 FROM access_log WHERE what = ? AND detail = ?)"
    return bool(db.value(statement, [SIGNED_OUT, f"session {session}"]))


def by_link(db: Database, secret: str) -> Member | None:
    """The member whose invitation link has this secret; None for a wrong or revoked one. Signing in is logged."""
    # An index lookup of a sha256 tells nothing about a secret of 256 random bits by how long it takes.
    with db.writing(right=Right.NOTHING) as sql:
        row = sql.execute(
            f"SELECT {_COLUMNS} FROM member WHERE secret_sha256 = ? AND role != 'none'", [_digest(secret)]
        ).fetchone()
        if row is None:
            return None
        return _signed_in(sql, _member(row), "by invitation link")


def by_key(db: Database, id_: int) -> Member | None:
    """The member for whom the machine's owner made a one-time key. Signing in is logged."""
    with db.writing(right=Right.NOTHING) as sql:
        row = sql.execute(f"SELECT {_COLUMNS} FROM member WHERE id = ? AND role != 'none'", [id_]).fetchone()
        return _signed_in(sql, _member(row), "by one-time key") if row is not None else None


def by_provider(db: Database, claims: Mapping[str, Any]) -> Member:
    """The member whom a login provider vouches for; a new one for somebody it never vouched for before.

    A newcomer gets the role of the setting NEWCOMERS (`none` unless an owner chose another), or that of the member who
    was added with the same e-mail address, if the provider says that it has verified it. The name is the one that the
    provider gave at first.

    Args:
        claims: Of the ID token, checked: at least iss and sub.

    Raises:
        AnnotatorError: They do not say who it is.
    """
    subject = subject_of(claims)
    email = str(claims.get("email") or "").strip().lower()
    if claims.get("email_verified") is not True:
        email = ""
    with db.writing(right=Right.NOTHING) as sql:
        row = sql.execute(f"SELECT {_COLUMNS} FROM member WHERE subject = ?", [subject]).fetchone()
        if row is None and email:
            statement = f"SELECT {_COLUMNS} FROM member WHERE email = ? AND subject IS NULL"
            row = sql.execute(statement, [email]).fetchone()
            if row is not None:
                sql.execute("UPDATE member SET subject = ? WHERE id = ?", [subject, row[0]])
                note(sql, _member(row).name, "recognised", _member(row).name, f"by the address {email}, as {subject}")
        if row is None:
            name, role = _free_name(sql, _names(claims, email)), newcomer_role(db)
            sql.execute(
                "INSERT INTO member (name, role, subject, email, made_at) VALUES (?, ?, ?, ?, ?)",
                [name, role, subject, email, time.time()],
            )
            note(sql, name, "came", name, f"as {subject}, with the role {role}")
            row = sql.execute(f"SELECT {_COLUMNS} FROM member WHERE subject = ?", [subject]).fetchone()
        return _signed_in(sql, _member(row), "at the login provider")


def subject_of(claims: Mapping[str, Any]) -> str:
    """Who these claims are about: issuer and subject, which alone never change. Raises AnnotatorError."""
    issuer, subject = claims.get("iss"), claims.get("sub")
    if not (isinstance(issuer, str) and isinstance(subject, str) and issuer and subject):
        raise AnnotatorError("The login provider did not say who this is: its token has no issuer or no subject.")
    who = f"{issuer} {subject}"
    if len(who) > LONGEST_SUBJECT:
        raise AnnotatorError(f"What the login provider calls this person is longer than {LONGEST_SUBJECT:,} letters.")
    return who


def newcomer_role(db: Database) -> Role:
    """What somebody is whom the login provider knows and nobody has let in; never an owner."""
    stored = db.setting(NEWCOMERS, Role.NONE)
    return Role(stored) if stored in list(Role) and stored != Role.OWNER else Role.NONE


def set_newcomer_role(db: Database, role: str, by: str, expected: str | None = None) -> None:
    """Choose it; expected as in set_role. Raises AnnotatorError for an unknown role, or for owner: everybody at the
    provider would be one."""
    known = role_named(role)
    if known == Role.OWNER:
        raise AnnotatorError("Newcomers cannot be owners: everybody whom the login provider knows would be one.")
    with db.writing() as sql:
        if expected is not None and (now := newcomer_role(db)) != expected:
            raise AnnotatorError(
                f"Meanwhile somebody gave newcomers the role {now}; you saw {expected}. Look again, then decide."
            )
        db.set_setting(NEWCOMERS, known)
        note(sql, by, "newcomers", "", f"have the role {known}")


def hidden(db: Database) -> tuple[str, ...]:
    """What guests and annotators do not see: some of KEPT_FROM_SIGHT."""
    stored = db.setting(HIDDEN, [])
    return tuple(part for part in KEPT_FROM_SIGHT if isinstance(stored, list) and part in stored)


def hide(db: Database, parts: Sequence[str], by: str, expected: Sequence[str] | None = None) -> None:
    """Choose it; expected as in set_role. Raises AnnotatorError for a part that cannot be hidden."""
    if unknown := [part for part in parts if part not in KEPT_FROM_SIGHT]:
        raise AnnotatorError(f"{unknown[0]!r} cannot be hidden. {did_you_mean(unknown[0], KEPT_FROM_SIGHT)}")
    with db.writing() as sql:
        if expected is not None and (now := hidden(db)) != tuple(expected):
            raise AnnotatorError(
                f"Meanwhile somebody chose to hide {', '.join(now) or 'nothing'}; you saw "
                f"{', '.join(expected) or 'nothing'}. Look again, then decide."
            )
        db.set_setting(HIDDEN, [part for part in KEPT_FROM_SIGHT if part in parts])
        note(sql, by, "hidden", "", ", ".join(hidden(db)) or "nothing")


def log(db: Database, limit: int | None = None) -> list[LogEntry]:
    """What changed about who may do what, and who signed in when, newest first."""
    statement = "SELECT id, at, by, what, member, detail FROM access_log ORDER BY id DESC LIMIT ?"
    return [LogEntry(*row) for row in db.tuples(statement, [-1 if limit is None else limit])]


def _member(row: tuple[Any, ...]) -> Member:
    id_, name, role, subject, email, has_link, since, made_at, signed_in_at = row
    return Member(id_, name, Role(role), subject, email, bool(has_link), since, made_at, signed_in_at)


def _named(sql: sqlite_utils.Database, name: str) -> Member:
    row = sql.execute(f"SELECT {_COLUMNS} FROM member WHERE name = ?", [name]).fetchone()
    if row is None:
        names = [known for (known,) in sql.execute("SELECT name FROM member ORDER BY name").fetchall()]
        raise AnnotatorError(f"No member is called {name!r}. {did_you_mean(name, names)}")
    return _member(row)


def _refuse_name(sql: sqlite_utils.Database, name: str) -> None:
    if not (name.isprintable() and 0 < len(name) <= LONGEST_NAME):
        raise AnnotatorError(f"A member's name has 1 to {LONGEST_NAME} printable characters, not {name[:80]!r}.")
    taken = [known for (known,) in sql.execute("SELECT name FROM member").fetchall() if _alike(known, name)]
    if taken:
        raise AnnotatorError(
            f"There is a member {taken[0]!r} already. Names are not used twice, because decisions carry them; names "
            "that differ in capitals or blanks only count as the same."
        )


def _alike(name: str, other: str) -> bool:
    return "".join(name.casefold().split()) == "".join(other.casefold().split())


def _names(claims: Mapping[str, Any], email: str) -> Iterable[str]:
    """What to call a newcomer, the best first. Never an address: others see names."""
    for claim in ("name", "preferred_username", "nickname"):
        yield str(claims.get(claim) or "").partition("@")[0]
    yield email.partition("@")[0]
    yield "newcomer"


def _free_name(sql: sqlite_utils.Database, wanted: Iterable[str]) -> str:
    """The first of these names that can be used, with a number where somebody else has it.

    Also names without a member count as taken, when decisions carry them: a newcomer does not come into the possession
    of what somebody did before there were members.
    """
    kept = "".join(character if character.isprintable() else " " for character in next(filter(str.strip, wanted)))
    name = " ".join(kept.split())[: LONGEST_NAME - 6] or "newcomer"
    rows = sql.execute("SELECT name FROM member UNION SELECT one FROM tally WHERE kind = 'annotator'").fetchall()
    taken = [known for (known,) in rows]
    numbered = (name if number == 1 else f"{name} {number}" for number in range(1, len(taken) + 2))
    return next(free for free in numbered if not any(_alike(free, known) for known in taken))


def _end_sessions(sql: sqlite_utils.Database, id_: int, unlink: bool) -> None:
    # Not before the last session began: else a clock that was set back would let it go on.
    statement = "UPDATE member SET sessions_since = max(?, sessions_since, coalesce(signed_in_at, 0)) WHERE id = ?"
    sql.execute(statement, [time.time(), id_])
    if unlink:
        sql.execute("UPDATE member SET secret_sha256 = NULL WHERE id = ?", [id_])


def _signed_in(sql: sqlite_utils.Database, member: Member, how: str) -> Member:
    """The member as they are now; `signed_in_at` is when this session begins, by a clock that is never set back."""
    at = max(time.time(), member.sessions_since + LATER, member.signed_in_at or 0)
    sql.execute("UPDATE member SET signed_in_at = ? WHERE id = ?", [at, member.id])
    note(sql, member.name, "signed in", member.name, how)
    return replace(member, signed_in_at=at)


def note(sql: sqlite_utils.Database, by: str, what: str, member: str, detail: str) -> None:
    """Write into the log, in the transaction that changes something."""
    sql.execute(
        "INSERT INTO access_log (at, by, what, member, detail) VALUES (?, ?, ?, ?, ?)",
        [time.time(), by, what, member, detail],
    )


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
