"""The end of Autopilot when the quality report reaches the target recall before every label is answered.

A thread recomputes the report, for at most WATCH_SHARE of the time, so that pages hardly wait for it.
"""

import threading
import time
from collections.abc import Hashable

from annotator.quality.certificate_records import DEFAULT_TARGET_RECALL, Certificate
from annotator.quality.certification import compute_certificate, get_change_key
from annotator.store.database.database import Database
from annotator.store.labels import audits

WATCH_SHARE = 0.05  # share of the time that is spent on the quality report while people answer
FIRST_WAIT_SECONDS = 1.0  # seconds that a request waits for a report: the page has two tasks ahead


class _CertificateWatch:
    """The newest quality report of a project, and the thread that computes the next one."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.key: Hashable = None
        self.certificate: Certificate | None = None
        self.thread: threading.Thread | None = None
        self.next_at = 0.0  # monotonic seconds

    def look(self, db: Database) -> Certificate | None:
        """Return the report of the current labels, or None if it is on its way and the last one missed the target."""
        key = get_change_key(db)
        with self.lock:
            is_due = self.certificate is None or is_reached(self.certificate) or time.monotonic() >= self.next_at
            if self.key != key and is_due and (self.thread is None or not self.thread.is_alive()):
                self.thread = threading.Thread(target=self._compute, args=[db, key], name="certificate", daemon=True)
                self.thread.start()
            thread, last = self.thread, self.certificate
        if thread:
            # Only a report of the current labels ends the work: where it is near, the page waits for it.
            thread.join(None if last and is_reached(last) else FIRST_WAIT_SECONDS)
        with self.lock:
            return self.certificate if self.key == key else None

    def _compute(self, db: Database, key: Hashable) -> None:
        began = time.monotonic()
        certificate = db.caches.get("certificate", key, lambda: compute_certificate(db), 4)
        ended = time.monotonic()
        with self.lock:
            self.key, self.certificate = key, certificate
            self.next_at = ended + (ended - began) / WATCH_SHARE


def is_reached(certificate: Certificate) -> bool:
    """Return whether recall of all classes, allowing for wrong answers, reaches the target with 95% confidence."""
    recall = certificate.overall.recall_allowing
    return not recall.reason and recall.low >= DEFAULT_TARGET_RECALL


def load_reached_certificate(db: Database) -> Certificate | None:
    """Return the quality report if audits show that the target recall is reached, else None."""
    if not audits.load_audits(db, 1):
        return None
    certificate = db.caches.get("certificate_watch", "", _CertificateWatch, 1).look(db)
    return certificate if certificate and is_reached(certificate) else None
