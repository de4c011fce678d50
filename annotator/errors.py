"""Errors for users: what happened, why and what to do."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


class AnnotatorError(Exception):
    """A problem that users can solve."""


class DiskFull(AnnotatorError):
    """The disk is full. No partial files were left."""


class ProjectMoved(AnnotatorError):
    """The project moved, so nothing may be written."""


class UnsupportedVersion(AnnotatorError):
    """The project was created by a program version that this one cannot open."""


class Forbidden(AnnotatorError):
    """An annotator lacks the right for an action."""


class NothingToLearn(AnnotatorError):
    """Training is impossible: no image with embeddings is labeled present."""


class TrainingNotInstalled(AnnotatorError):
    """Packages of the extra `train` are missing."""


class StorageTimeout(AnnotatorError):
    """A disk did not respond in time."""


class RequestSkipped(StorageTimeout):
    """A URL was not requested, because earlier requests to its server got no response."""


class AlreadyRunning(AnnotatorError):
    """Another process is already doing this and holds the lock."""


def combine_problems(headline: str, problems: Sequence[str], max_listed: int = 50) -> AnnotatorError:
    """Return one error that lists all problems.

    Args:
        headline: First line.
        problems: One sentence each.
        max_listed: Maximum to list. Further ones are only counted.

    Returns:
        The error, not raised.
    """
    rows = [f"  - {problem}" for problem in problems[:max_listed]]
    if len(problems) > max_listed:
        rows.append(f"  - and {len(problems) - max_listed:,} more")
    return AnnotatorError("\n".join([headline, *rows]))


def did_you_mean(word: str, known: Iterable[str], max_listed: int = 20) -> str:
    """Return a hint for an unknown name: similar names, then all existing ones.

    Args:
        word: The unknown name.
        known: Existing names.
        max_listed: Maximum to list. Further ones are only counted.

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
