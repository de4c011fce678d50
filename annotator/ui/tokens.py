"""Who may use the routes: a signed name. Streamlit's own checks do not cover routes of ours.

The page script mints a token for the person who gave their name and hands it to its component; every route checks
it. The secret lies in the project folder, so that a token still holds after the server was restarted.
"""

import hashlib
import os
import secrets
import time
from pathlib import Path

from itsdangerous import BadSignature, URLSafeSerializer

DAY = 24 * 3600
VALID_DAYS = 30


class Tokens:
    """Mints and checks tokens with the project's secret."""

    def __init__(self, secret_path: Path):
        secret = _secret(secret_path)
        self._signer = URLSafeSerializer(secret, salt="annotator")
        # For browsers' storage: one browser may have been served several projects at the same address.
        self.project = hashlib.sha256(secret.encode()).hexdigest()[:16]

    def mint(self, annotator: str) -> str:
        """A token for this person. The same all day, so that a browser's cache of images stays good."""
        today = int(time.time()) // DAY
        return self._signer.dumps([annotator, today + VALID_DAYS])

    def annotator(self, token: str) -> str | None:
        """Whose token this is, None when it is not one of ours or has run out."""
        try:
            annotator, last_day = self._signer.loads(token)
        except (BadSignature, ValueError, TypeError):
            return None
        return annotator if int(time.time()) // DAY <= last_day else None


def _secret(path: Path) -> str:
    """The project's secret, made when first needed; readable by its owner only."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        text = path.read_text().strip()
        if len(text) >= 32:
            return text
        path.unlink()  # a kill between making and writing it: nobody can have been given a token yet
        return _secret(path)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_hex(32))
    return path.read_text()
