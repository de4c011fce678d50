"""One-time keys that give a browser access, their URLs, and the access cookies."""

import secrets
import threading
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from annotator.errors import AnnotatorError
from annotator.settings import Paths
from annotator.store.database import read_only
from annotator.store.database.database import Database
from annotator.store.people import members
from annotator.ui.access.tokens import Tokens

SERVED_TO_TEAM_SETTING = "served_to_team"  # a setting: whether the running server knows people as members
STORAGE_NAME_SETTING = "storage_name"  # a setting; without it the name is derived from the secret
# Cookie of the name last used in any project of this host. Forms are filled in with it, and nobody is identified by it.
LAST_NAME_COOKIE_NAME = "annotator_name"


class AccessKeys:
    """The one-time keys of one server run, not valid after a restart."""

    def __init__(self, tokens: Tokens, run: str):
        self._tokens, self._run = tokens, run
        self._used: set[str] = set()
        self._lock = threading.Lock()

    def redeem(self, key: str) -> tuple[bool, int | None]:
        """Use up a key and return (whether it was valid and unused, member id or None without members)."""
        content = self._tokens.read_key(key, self._run)
        if content is None:
            return False, None
        name, member_id = content
        with self._lock:
            fresh = name not in self._used
            self._used.add(name)
        return fresh, member_id


def ensure_own_secret(db: Database, *, renew: bool = False) -> bool:
    """Give a copied project a new secret (any project with `renew`), and return whether it got one.

    A copy differs in path and files. A renamed or restored project keeps its secret.
    """
    secret, home = db.paths.secret, db.get_setting("secret_home")
    copied = secret.exists() and home is not None and _is_other_home(home, _read_secret_home(db))
    changed = copied or (renew and secret.exists())
    if changed:
        # Before the secret is removed, so that a kill in between loses nothing that a browser still has to send.
        db.set_setting(STORAGE_NAME_SETTING, secrets.token_hex(8) if copied else get_storage_name(db))
        secret.unlink()
    Tokens(secret)
    if home != _read_secret_home(db):
        db.set_setting("secret_home", _read_secret_home(db))
    return changed


def get_storage_name(db: Database) -> str:
    """Return the name under which browsers store unsent decisions, which survives a new secret."""
    return db.get_setting(STORAGE_NAME_SETTING) or Tokens(db.paths.secret).project


def _read_secret_home(db: Database) -> list[Any]:
    return [str(db.paths.project), db.paths.secret.stat().st_ino]


def _is_other_home(home: list[Any], other: list[Any]) -> bool:
    return home[0] != other[0] and home[1] != other[1]


def create_access_link(project: Path, name: str | None = None) -> str:
    """Return a URL that gives one more browser access, once, within ten minutes.

    Args:
        name: Member to sign in. None selects the first owner.

    Raises:
        AnnotatorError: The project or member does not exist, or the project is not being served.
    """
    db = Database(project)
    if db.read_only:
        raise AnnotatorError(
            f"{db.paths.project} may not be written from here, so that you cannot serve it or make links to it.\n    "
            f"{read_only.COPY_ADVICE} Or ask whoever serves it for a link."
        )
    try:
        with FileLock(db.paths.server_lock, timeout=0):
            pass
    except Timeout:
        member = members.find_member(db, name) if name else members.find_owner(db)
        id_ = member.id if member and db.get_setting(SERVED_TO_TEAM_SETTING, False) else None
        run = db.get_setting("served_run", "")
        if not run:  # its first server has the lock, and has not yet said where it is
            raise AnnotatorError(f"{db.paths.project} is just being started. Try again in a few seconds.") from None
        key = Tokens(db.paths.secret).create_key(run, member_id=id_)
        return build_key_url(db.get_setting("served_at", ""), key)
    raise AnnotatorError(
        f"{db.paths.project} is not being served, so there is nothing to open.\n    Start it with: "
        f"annotator serve {project}"
    )


def build_key_url(address: str, key: str, page: str = "/") -> str:
    return f"{address}{page}?key={key}"


def build_invitation_url(db: Database, secret: str) -> str:
    """Return the URL of a member's invitation link. Raises AnnotatorError if members never had a server."""
    if not db.get_setting(SERVED_TO_TEAM_SETTING, False):
        raise AnnotatorError(
            f"{db.paths.project} is not served to its members, so a link would lead nowhere.\n    Start it with: "
            f"annotator serve {db.paths.project} --auth invitation"
        )
    return f"{db.get_setting('served_at', '')}/?invitation={secret}"


def cookie_name(port: int) -> str:
    """Return the name of the access cookie, with the port because browsers share cookies between ports."""
    return f"annotator_{port}"


def build_name_cookie_name(db: Database) -> str:
    """Return the name of the cookie that holds the annotator's name, one per project.

    Browsers share cookies between ports, on which other projects are served.
    """
    return f"{LAST_NAME_COOKIE_NAME}_{get_storage_name(db)}"


def listing_cookie_name(port: int) -> str:
    return f"annotator_listed_{port}"


def build_access_cookie(project: Path, address: str) -> tuple[str, str]:
    """Return (name, value) of the access cookie, for tests and benchmarks."""
    port = int(address.split("/")[2].partition(":")[2])
    return cookie_name(port), Tokens(Paths(project).secret).create_cookie(port)


def build_request_headers(project: Path, address: str, annotator: str, is_member: bool = False) -> dict[str, str]:
    """Return request headers for the app's routes, for tests and benchmarks (`is_member`: of a member's session)."""
    cookie = "=".join(build_access_cookie(project, address))
    token = Tokens(Paths(project).secret, of_members=is_member).mint(annotator)
    return {"cookie": cookie, "x-annotator-token": token, "content-type": "application/json"}
