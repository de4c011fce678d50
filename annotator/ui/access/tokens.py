"""Tokens, cookies and URL keys, signed with the project's secret, which survive a restart."""

import hashlib
import hmac
import os
import re
import secrets
import time
from pathlib import Path
from typing import Any

from itsdangerous import BadSignature, URLSafeSerializer, URLSafeTimedSerializer

from annotator.store.disk.durable import sync_folder

DAY_SECONDS = 24 * 3600
VALID_DAYS = 30
KEY_SECONDS = 600.0
SECRET_PATTERN = re.compile(rb"[0-9a-f]{64}")  # a complete secret: after a power cut the file may hold zeros


class Tokens:
    """The signer and checker of a project's tokens.

    Args:
        of_members: Whether tokens are for members with sessions. They are never interchangeable with tokens of
            unverified names.
    """

    def __init__(self, secret_path: Path, of_members: bool = False):
        secret = _load_or_create_secret(secret_path)
        self._signer = URLSafeSerializer(secret, salt="annotator member" if of_members else "annotator")
        self._cookies = URLSafeSerializer(secret, salt="annotator cookie")
        self._sessions = URLSafeSerializer(secret, salt="annotator session")
        self._listings = URLSafeSerializer(secret, salt="annotator start page")
        self._keys = URLSafeSerializer(secret, salt="annotator key")
        # What Streamlit signs the cookies with that follow a login at a provider.
        self.provider_secret = hmac.new(secret.encode(), b"annotator login provider", hashlib.sha256).hexdigest()
        # Part of the name of what browsers store (access_keys.storage_name), as one address may serve several projects.
        self.project = hashlib.sha256(secret.encode()).hexdigest()[:16]

    def mint(self, annotator: str) -> str:
        """Return a token that names the annotator in requests, constant per day for browser image caches."""
        return self._signer.dumps([annotator, _get_day_number() + VALID_DAYS])

    def read_author(self, token: str) -> str | None:
        """Return the annotator of a token, even if it expired (for decisions sent late), or None if it is not valid."""
        try:
            annotator, _ = self._signer.loads(token)
        except (BadSignature, ValueError, TypeError):
            return None
        return annotator

    def read_annotator(self, token: str) -> str | None:
        """Return the annotator of a valid token, or None."""
        content = _load_signed(self._signer, token)
        if content is None:
            return None
        annotator, last_day = content
        return annotator if _get_day_number() <= last_day else None

    def create_cookie(self, port: int) -> str:
        return self._cookies.dumps([port, _get_day_number() + VALID_DAYS])

    def is_valid_cookie(self, cookie: str, port: int) -> bool:
        content = _load_signed(self._cookies, cookie)
        return content is not None and content[0] == port and _get_day_number() <= content[1]

    def create_session_cookie(self, port: int, member_id: int, began_at: float | None = None) -> str:
        """Return a member's session cookie, from now unless `began_at` (unix seconds) is given."""
        return self._sessions.dumps([port, member_id, time.time() if began_at is None else began_at])

    def read_session(self, cookie: str, port: int) -> tuple[int, float] | None:
        """Return (member id, start in unix seconds) of a session cookie, or None."""
        content = _load_signed(self._sessions, cookie)
        if content is None or content[0] != port or time.time() - content[2] > VALID_DAYS * DAY_SECONDS:
            return None
        return content[1], content[2]

    def create_listing_cookie(self, port: int, member_id: int, session: str) -> str:
        """Return the cookie by which the start page lists this project for a member."""
        return self._listings.dumps([port, member_id, time.time(), session])

    def read_listing(self, cookie: str, port: int) -> tuple[int, float, str] | None:
        """Return (member id, creation in unix seconds, session) of a start page cookie, or None."""
        content = _load_signed(self._listings, cookie)
        if (
            content is None
            or content[0] != port
            or time.time() - content[2] > VALID_DAYS * DAY_SECONDS
            or len(content) < 4
        ):
            return None
        return content[1], content[2], content[3]

    def get_provider_signer(self, name: str) -> URLSafeTimedSerializer:
        """Return the signer of Streamlit's login cookie with this name."""
        return URLSafeTimedSerializer(self.provider_secret, salt=name)

    def create_key(self, run: str, seconds: float | None = KEY_SECONDS, member_id: int | None = None) -> str:
        """Return a one-time key, valid for the whole server run if `seconds` is None."""
        until = None if seconds is None else time.time() + seconds
        return self._keys.dumps([run, secrets.token_urlsafe(12), until, member_id])

    def read_key(self, key: str, run: str) -> tuple[str, int | None] | None:
        """Return (key id, member) of a login key, or None if expired or of another run."""
        content = _load_signed(self._keys, key)
        if content is None or content[0] != run or (content[2] is not None and time.time() > content[2]):
            return None
        return content[1], content[3]


def _get_day_number() -> int:
    return int(time.time()) // DAY_SECONDS


def _load_signed(signer: URLSafeSerializer, text: str) -> list[Any] | None:
    try:
        return signer.loads(text)
    except (BadSignature, ValueError, TypeError):
        return None


def _load_or_create_secret(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        text = path.read_bytes()
        if SECRET_PATTERN.fullmatch(text):
            return text.decode()
        path.unlink()  # cut off between creating and writing it: no token can have been given out yet
        return _load_or_create_secret(path)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_hex(32))
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)
    return path.read_text()
