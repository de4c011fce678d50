"""The ways in: keys that are taken once, the addresses they stand in, and the cookie they become."""

import secrets
import threading
from pathlib import Path

from filelock import FileLock, Timeout

from annotator.errors import AnnotatorError
from annotator.settings import Paths
from annotator.store.database import Database
from annotator.ui.tokens import Tokens

STORAGE_NAME = "storage_name"  # the setting; without it the name follows from the secret, as it always did


class Keys:
    """The one-time keys of one run of the server: each is taken once.

    What was used is remembered in memory only. A key names the run it was made for, so a restart revives none.
    """

    def __init__(self, tokens: Tokens, run: str):
        self._tokens, self._run = tokens, run
        self._used: set[str] = set()
        self._lock = threading.Lock()

    def take(self, key: str) -> bool:
        """Whether this key opens; from then on it does not."""
        name = self._tokens.key_name(key, self._run)
        if name is None:
            return False
        with self._lock:
            fresh = name not in self._used
            self._used.add(name)
        return fresh


def own_secret(db: Database, *, renew: bool = False) -> bool:
    """Whether the project was given a new secret: because it is a copy of another one, or because that is wanted.

    A copy lies at another path and in other files. A project that was renamed keeps its files, one that was restored
    from a backup its path; both keep their secret.
    """
    secret, home = db.paths.secret, db.setting("secret_home")
    copied = secret.exists() and home is not None and _differs(home, _home(db))
    changed = copied or (renew and secret.exists())
    if changed:
        # Before the secret goes, so that a kill in between loses nothing that a browser still has to send.
        db.set_setting(STORAGE_NAME, secrets.token_hex(8) if copied else storage_name(db))
        secret.unlink()
    Tokens(secret)
    if home != _home(db):
        db.set_setting("secret_home", _home(db))
    return changed


def storage_name(db: Database) -> str:
    """Under which name browsers keep what they have not sent to this project: a new secret does not change it, since
    nobody would look for their decisions under the old one; a copy has a name of its own."""
    return db.setting(STORAGE_NAME) or Tokens(db.paths.secret).project


def _home(db: Database) -> list:
    return [str(db.paths.project), db.paths.secret.stat().st_ino]


def _differs(home: list, here: list) -> bool:
    return home[0] != here[0] and home[1] != here[1]


def fresh_link(project: Path) -> str:
    """An address that lets one more browser in, once, within ten minutes.

    Raises AnnotatorError when there is no such project, or nobody serves it.
    """
    db = Database(project)
    try:
        with FileLock(db.paths.server_lock, timeout=0):
            pass
    except Timeout:
        key = Tokens(db.paths.secret).key(db.setting("served_run", ""))
        return address_with(db.setting("served_at", ""), key)
    raise AnnotatorError(
        f"{db.paths.project} is not being served, so there is nothing to open.\n    Start it with: "
        f"annotator serve {project}"
    )


def address_with(address: str, key: str) -> str:
    """The address to open, with the key in it."""
    return f"{address}/?key={key}"


def cookie_name(port: int) -> str:
    """Browsers do not tell ports apart in cookies, so the name does: several projects can be open at once."""
    return f"annotator_{port}"


def pass_for(project: Path, address: str) -> tuple[str, str]:
    """Name and value of the cookie that opens this address of a project: for tests and measurements."""
    port = int(address.split("/")[2].partition(":")[2])
    return cookie_name(port), Tokens(Paths(project).secret).cookie(port)


def headers_for(project: Path, address: str, annotator: str) -> dict[str, str]:
    """What a request to our routes carries: for tests and measurements that do without a browser."""
    cookie = "=".join(pass_for(project, address))
    token = Tokens(Paths(project).secret).mint(annotator)
    return {"cookie": cookie, "x-annotator-token": token, "content-type": "application/json"}
