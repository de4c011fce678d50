"""Upgrades of project.db in steps, with logged progress for large files."""

import logging
import time
from pathlib import Path

import sqlite_utils

from annotator.store.schema import MIGRATIONS

MIN_LOGGED_BYTES = 50_000_000  # bytes of project.db; a smaller one takes a second or two
LOG_INTERVAL_SECONDS = 10.0  # between two signs of life within a step
_INSTRUCTIONS_PER_CALL = 5_000_000  # of SQLite's virtual machine between two looks at the clock

log = logging.getLogger("annotator.upgrade")


def apply(sql: sqlite_utils.Database, database: Path) -> None:
    """Apply all pending upgrade steps in the caller's transaction, all or nothing."""
    pending = [step.name for step in MIGRATIONS.pending(sql)]
    if not pending or database.stat().st_size < MIN_LOGGED_BYTES:
        MIGRATIONS.apply(sql)
        return
    began = time.monotonic()
    log.warning(
        "Bringing %s (%.1f GB) up to date: %d to do, in a minute or two for a million decisions. "
        "Ending it meanwhile changes nothing.",
        database, database.stat().st_size / 1e9, len(pending),
    )  # fmt: skip
    for number, name in enumerate(pending, start=1):
        log.warning("Step %d of %d (%s)", number, len(pending), name)
        alive = _StatementLogger(f"Step {number} of {len(pending)} ({name})")
        sql.conn.set_progress_handler(alive, _INSTRUCTIONS_PER_CALL)
        try:
            MIGRATIONS.apply(sql, stop_before=pending[number] if number < len(pending) else None)
        finally:
            sql.conn.set_progress_handler(None, 0)
    log.warning("%s is up to date, after %.0f s.", database, time.monotonic() - began)


class _StatementLogger:
    """A SQLite progress handler that logs the duration of a statement."""

    def __init__(self, what: str):
        self._what, self._began = what, time.monotonic()
        self._told = self._began

    def __call__(self) -> int:
        now = time.monotonic()
        if now - self._told >= LOG_INTERVAL_SECONDS:
            self._told = now
            log.warning("%s: %.0f s so far", self._what, now - self._began)
        return 0  # go on
