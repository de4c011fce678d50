"""Moments in the time zone of the browser."""

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import streamlit as st


def get_time_zone() -> tzinfo | None:
    """Return the browser's time zone, or None if unknown."""
    try:
        return ZoneInfo(st.context.timezone or "")
    except (TypeError, ValueError, KeyError, OSError):
        return None


def format_moment(at: float, zone: tzinfo | None) -> str:
    """Format unix seconds like "today 14:02"."""
    time, now = (moment.astimezone(zone) for moment in (datetime.fromtimestamp(at, UTC), datetime.now(UTC)))
    if time.date() == now.date():
        return f"today {time:%H:%M}"
    return f"{time.day} {time:%b %Y, %H:%M}"
