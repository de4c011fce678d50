"""Warnings for people."""


class Notice(UserWarning):
    """A warning for people, which the command line shows without the place in the code."""
