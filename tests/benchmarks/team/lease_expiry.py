"""People who close their laptop, and the time until the images that they held are free for others."""

import threading
import time
from collections.abc import Sequence

from annotator.settings import LEASE_SECONDS
from annotator.store.database.database import Database
from benchmarks.faults.hands import Hands
from benchmarks.team.teammates import Teammate

LOOK_PAUSE_SECONDS = 0.5  # between two looks
# Seconds before the end of a lease from which on its image may be somebody else's: the look that notices comes late.
EARLY_SECONDS = 2.0
MAX_WAIT_SECONDS = LEASE_SECONDS + 30.0


class LeaseExpiry:
    """A thread that lets teammates vanish, and waits until none of them leases anything.

    An image whose lease has ended may be given to another person. It must not count as held twice then, so the hands of
    those who vanished are emptied when their leases end, and not before.
    """

    def __init__(self, db: Database, hands: Hands, vanishing: Sequence[Teammate]):
        self._db, self._hands, self._began = db, hands, time.monotonic()
        for teammate in vanishing:
            teammate.vanish()
        self._ends = {teammate.holder: teammate.asked_at + LEASE_SECONDS - EARLY_SECONDS for teammate in vanishing}
        self._seconds: float | None = None
        self._thread = threading.Thread(target=self._watch_leases, args=[list(self._ends)], daemon=True)
        self._thread.start()

    def wait_for_seconds(self) -> float | None:
        """Return the seconds until the last lease was over; None if nobody vanished, or it took 30 s too long."""
        self._thread.join()
        return self._seconds

    def _watch_leases(self, holders: Sequence[str]) -> None:
        while holders and time.monotonic() < self._began + MAX_WAIT_SECONDS:
            for holder in [holder for holder, end in self._ends.items() if time.monotonic() >= end]:
                del self._ends[holder]
                self._hands.keep_cells(holder, [])
            if not self._count_leases(holders):
                self._seconds = time.monotonic() - self._began
                return
            time.sleep(LOOK_PAUSE_SECONDS)

    def _count_leases(self, holders: Sequence[str]) -> int:
        marks = ",".join("?" * len(holders))
        return self._db.value(
            f"SELECT count(*) FROM lease WHERE holder IN ({marks}) AND until > ?", [*holders, time.monotonic()]
        )
