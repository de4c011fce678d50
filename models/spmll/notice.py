"""The base class of warnings for users."""


class Notice(UserWarning):
    """A warning that is shown without the line of code that raised it."""
