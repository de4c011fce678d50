"""What the project's secret signs: tokens, cookies, and the keys in addresses.

The page script mints a token for the person who gave their name and hands it to its component; every route checks
it. A cookie says that a browser may come in (door.py), a key gives it the cookie. The secret lies in the project
folder, so that tokens and cookies still hold after the server was restarted.
"""

import hashlib
import os
import re
import secrets
import time
from pathlib import Path

from itsdangerous import BadSignature, URLSafeSerializer

from annotator.store.folders import sync_folder

DAY = 24 * 3600
VALID_DAYS = 30
KEY_SECONDS = 600.0
WHOLE = re.compile(rb"[0-9a-f]{64}")  # a secret: after a power cut a file may be of the right size and hold zeros


class Tokens:
    """Mints and checks tokens with the project's secret."""

    def __init__(self, secret_path: Path):
        secret = _secret(secret_path)
        self._signer = URLSafeSerializer(secret, salt="annotator")
        self._cookies = URLSafeSerializer(secret, salt="annotator cookie")
        self._keys = URLSafeSerializer(secret, salt="annotator key")
        # Names what browsers keep (keys.storage_name): one may have been served several projects at the same address.
        self.project = hashlib.sha256(secret.encode()).hexdigest()[:16]

    def mint(self, annotator: str) -> str:
        """A token for this person. The same all day, so that a browser's cache of images stays good."""
        return self._signer.dumps([annotator, _today() + VALID_DAYS])

    def author(self, token: str) -> str | None:
        """Whose token this is or was, None when it is not one of ours. Who gave a decision is known also when it comes
        late, from a browser that could not send it for a month."""
        try:
            annotator, _ = self._signer.loads(token)
        except (BadSignature, ValueError, TypeError):
            return None
        return annotator

    def annotator(self, token: str) -> str | None:
        """Whose token this is, None when it is not one of ours or has run out."""
        found = _loaded(self._signer, token)
        if found is None:
            return None
        annotator, last_day = found
        return annotator if _today() <= last_day else None

    def cookie(self, port: int) -> str:
        """What a browser shows from now on at this port."""
        return self._cookies.dumps([port, _today() + VALID_DAYS])

    def admits(self, cookie: str, port: int) -> bool:
        """Whether this is a cookie of ours for this port that has not run out."""
        found = _loaded(self._cookies, cookie)
        return found is not None and found[0] == port and _today() <= found[1]

    def key(self, run: str, seconds: float | None = KEY_SECONDS) -> str:
        """A key for one run of the server, good for this long; None: as long as that run lasts."""
        return self._keys.dumps([run, secrets.token_urlsafe(12), None if seconds is None else time.time() + seconds])

    def key_name(self, key: str, run: str) -> str | None:
        """What tells a key from all others; None when it is not one of this run, or has run out."""
        found = _loaded(self._keys, key)
        if found is None or found[0] != run or (found[2] is not None and time.time() > found[2]):
            return None
        return found[1]


def _today() -> int:
    return int(time.time()) // DAY


def _loaded(signer: URLSafeSerializer, text: str) -> list | None:
    try:
        return signer.loads(text)
    except (BadSignature, ValueError, TypeError):
        return None


def _secret(path: Path) -> str:
    """The project's secret, made when first needed; readable by its owner only."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        text = path.read_bytes()
        if WHOLE.fullmatch(text):
            return text.decode()
        path.unlink()  # a kill or power cut between making and writing it: nobody can have been given a token yet
        return _secret(path)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_hex(32))
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)
    return path.read_text()
