"""Errors for people: the command line prints them without a traceback (exit status 1), pages show them.

The message says what happened, with the values, the likely cause, and what to do. Several problems are reported
together.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


class AnnotatorError(Exception):
    """A problem that a person can solve; the message says how."""


class DiskFull(AnnotatorError):
    """The disk is full; no partly written file was kept."""


class ProjectMoved(AnnotatorError):
    """The project is no longer where it was opened, so nothing may be written there."""


class UnsupportedVersion(AnnotatorError):
    """The project was made by a version of the program whose projects this one cannot open."""


class Forbidden(AnnotatorError):
    """A person lacks the right to do what was tried on their behalf (roles.py)."""


class NothingToLearn(AnnotatorError):
    """No image with features has a label 'present', so a training has nothing to learn."""


class StorageTimeout(AnnotatorError):
    """A disk did not answer in time. The file itself may be fine."""


class RequestSkipped(StorageTimeout):
    """A file was not requested because its address left earlier requests unanswered."""


class AlreadyRunning(AnnotatorError):
    """Another process holds the lock of the worker or the server."""


def combine_problems(headline: str, problems: Sequence[str], max_listed: int = 50) -> AnnotatorError:
    """Return one error for all problems of an input, so that a person can fix them at once.

    Args:
        headline: The first line of the message.
        problems: One sentence a problem.
        max_listed: The largest number of problems that are listed; the others are counted.

    Returns:
        The error, to be raised by the caller.
    """
    rows = [f"  - {problem}" for problem in problems[:max_listed]]
    if len(problems) > max_listed:
        rows.append(f"  - and {len(problems) - max_listed:,} more")
    return AnnotatorError("\n".join([headline, *rows]))


def did_you_mean(word: str, known: Iterable[str], max_listed: int = 20) -> str:
    """Return the sentence that follows "there is no ...": similar names first, then all known ones.

    Args:
        word: The unknown name.
        known: The names that there are.
        max_listed: The largest number of known names that are listed; the others are counted.

    Returns:
        Such as "Did you mean 'fox'? There is: fox, heron, deer."
    """
    known = list(known)
    near = get_close_matches(word, known, n=3, cutoff=0.6)
    hint = f"Did you mean {' or '.join(repr(name) for name in near)}? " if near else ""
    names = ", ".join(known[:max_listed]) + (
        f" and {len(known) - max_listed:,} more" if len(known) > max_listed else ""
    )
    return f"{hint}There is: {names or 'none yet'}."
