"""Times in files: unix seconds, and ISO 8601, which is UTC if it names no time zone."""

from datetime import UTC, datetime
from functools import lru_cache


def format_iso_time(at: float) -> str:
    """Return Unix seconds as ISO 8601 in UTC, to the millisecond."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def parse_seconds(text: str) -> float | None:
    """Return the Unix seconds of a time in ISO 8601 or in seconds; None for "". Raises ValueError, OverflowError."""
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        return _parse_iso(text)


@lru_cache(maxsize=1 << 14)
def parse_iso_time(text: str) -> float | None:
    """Return the Unix seconds of a time in ISO 8601; None for any other text."""
    try:
        return _parse_iso(text)
    except (ValueError, OverflowError):
        return None


def _parse_iso(text: str) -> float:
    at = datetime.fromisoformat(text)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
