"""Statistics on numpy arrays, without torch. Start with metrics.py."""
