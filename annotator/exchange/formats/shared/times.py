"""Times in files: Unix seconds, or ISO 8601 in UTC by default."""

from datetime import UTC, datetime
from functools import lru_cache


def format_iso_time(at: float) -> str:
    """Format unix seconds as ISO 8601 in UTC, to the millisecond."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def parse_seconds(text: str) -> float | None:
    """Parse ISO 8601 or seconds, or return None for "". Raises ValueError, OverflowError."""
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        return _parse_iso(text)


@lru_cache(maxsize=1 << 14)
def parse_iso_time(text: str) -> float | None:
    """Parse ISO 8601 into Unix seconds, or return None if it is not."""
    try:
        return _parse_iso(text)
    except (ValueError, OverflowError):
        return None


def _parse_iso(text: str) -> float:
    at = datetime.fromisoformat(text)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
