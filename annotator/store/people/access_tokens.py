"""Access tokens: secrets that grant programs one right each.

Only the sha256 is stored, which suffices for 256 random bits.
"""

import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass

from annotator.errors import AnnotatorError, did_you_mean
from annotator.store.database.database import Database
from annotator.store.people import members

PREDICTIONS_RIGHT, METRICS_RIGHT = "predictions", "metrics"
TOKEN_RIGHTS = (PREDICTIONS_RIGHT, METRICS_RIGHT)
MAX_NAME_CHARACTERS = 60
MIN_USE_INTERVAL_SECONDS = 60.0  # shortest time between two records of a token's use


@dataclass(frozen=True)
class Token:
    """A token without its secret (times in Unix seconds)."""

    name: str
    right_to: str
    annotator: str
    made_at: float
    used_at: float | None
    revoked_at: float | None


def load_tokens(db: Database) -> list[Token]:
    """Return all tokens, even revoked, oldest first."""
    rows = db.tuples("SELECT name, right_to, annotator, made_at, used_at, revoked_at FROM access_token ORDER BY id")
    return [Token(*row) for row in rows]


def make(db: Database, name: str, right_to: str, by: str) -> str:
    """Create a token and return its secret, which is not stored. Raises AnnotatorError for a bad name or right."""
    if right_to not in TOKEN_RIGHTS:
        raise AnnotatorError(f"A token cannot be for {right_to!r}. {did_you_mean(right_to, TOKEN_RIGHTS)}")
    if not (name.isprintable() and name == name.strip() and 0 < len(name) <= MAX_NAME_CHARACTERS):
        raise AnnotatorError(
            f"A token's name has 1 to {MAX_NAME_CHARACTERS} letters and no blank at its ends, not {name[:80]!r}."
        )
    secret = f"annotator_{secrets.token_urlsafe(32)}"
    with db.writing() as sql:
        if sql.execute("SELECT 1 FROM access_token WHERE name = ?", [name]).fetchone():
            raise AnnotatorError(f"There is a token called {name!r} already; names are not used twice.")
        sql.execute(
            "INSERT INTO access_token (name, secret_sha256, right_to, annotator, made_at) VALUES (?, ?, ?, ?, ?)",
            [name, _digest(secret), right_to, by, time.time()],
        )
        members.add_log_entry(sql, by, "token made", "", f"{name}, for {right_to}")
    return secret


def revoke(db: Database, name: str, by: str) -> None:
    """Revoke a token. Raises AnnotatorError without such a valid token."""
    with db.writing() as sql:
        names = [row[0] for row in sql.execute("SELECT name FROM access_token WHERE revoked_at IS NULL").fetchall()]
        if name not in names:
            raise AnnotatorError(f"No valid token is called {name!r}. {did_you_mean(name, names)}")
        sql.execute("UPDATE access_token SET revoked_at = ? WHERE name = ?", [time.time(), name])
        members.add_log_entry(sql, by, "token revoked", "", name)


def find_token_name(db: Database, secret: str, right_to: str) -> str | None:
    """Return the name of the valid token with this secret and right, or None. Records its use."""
    digest, name = _digest(secret), None
    rows = db.tuples(
        "SELECT name, secret_sha256, coalesce(used_at, 0) FROM access_token WHERE right_to = ? AND revoked_at IS NULL",
        [right_to],
    )
    used = 0.0
    for one, stored, at in rows:  # always all tokens, so that the time taken reveals nothing about a secret
        if hmac.compare_digest(stored, digest):
            name, used = one, at
    if name is not None and time.time() - used > MIN_USE_INTERVAL_SECONDS:
        with db.writing(durable=False) as sql:
            sql.execute("UPDATE access_token SET used_at = ? WHERE name = ?", [time.time(), name])
    return name


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
