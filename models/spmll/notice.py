"""Warnings for users."""


class Notice(UserWarning):
    """A warning shown without its place in code."""
