"""The one kind of error that is meant for a person.

The command line prints it without a traceback (exit status 1), a page shows it with st.error. Its text says what
happened with the values, why it may have, and what to do; when several things are wrong, all of them.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


class AnnotatorError(Exception):
    """Something a person can put right: the message says how."""


class DiskFull(AnnotatorError):
    """The disk took no more: nothing half written was kept."""


class ProjectMoved(AnnotatorError):
    """The project is not where it was opened: nothing may be written there."""


class NoAnswer(AnnotatorError):
    """A disk did not answer in time. Nothing is wrong with the file, as far as anybody knows."""


class AlreadyRunning(AnnotatorError):
    """Another process holds what only one may hold at a time (the worker's or the server's lock)."""


def several(headline: str, problems: Sequence[str], shown: int = 50) -> AnnotatorError:
    """One error for all problems of one input, so that a person mends them in one go."""
    rows = [f"  - {problem}" for problem in problems[:shown]]
    if len(problems) > shown:
        rows.append(f"  - and {len(problems) - shown:,} more")
    return AnnotatorError("\n".join([headline, *rows]))


def did_you_mean(word: str, known: Iterable[str], shown: int = 20) -> str:
    """The sentence that follows "there is no ...": near names first, then what exists."""
    known = list(known)
    near = get_close_matches(word, known, n=3, cutoff=0.6)
    hint = f"Did you mean {' or '.join(repr(name) for name in near)}? " if near else ""
    names = ", ".join(known[:shown]) + (f" and {len(known) - shown:,} more" if len(known) > shown else "")
    return f"{hint}There is: {names or 'none yet'}."
