"""What a class does that is pressed: with ONE it labels the image and goes on, with ALL it is marked and Enter goes on.

The project's way is chosen when it is made. Each person can take the other one, on Annotate and Autopilot alike; it is
kept for the person and this project, and holds on both pages and in every browser.
"""

from annotator.errors import AnnotatorError, did_you_mean
from annotator.roles import Right
from annotator.store.database.database import Database

ONE, ALL = "one", "all"
MODES = (ONE, ALL)
_KEY = "labels_an_image"


def chosen(db: Database) -> str:
    """Return the project's way, ONE or ALL; ONE in a project that never chose."""
    return _known(db.setting(_KEY, ONE), ONE)


def choose(db: Database, mode: str) -> None:
    """Store the project's way. Raises AnnotatorError for another word."""
    _refuse_other(mode)
    db.set_setting(_KEY, mode)


def chosen_by(db: Database, annotator: str) -> str:
    """Return this person's way, ONE or ALL; the project's where they never chose."""
    return _known(db.setting(_key_of(annotator)), chosen(db))


def choose_for(db: Database, annotator: str, mode: str) -> None:
    """Store this person's way. Raises AnnotatorError for another word."""
    _refuse_other(mode)
    db.set_setting(_key_of(annotator), mode, Right.ANSWER)


def _key_of(annotator: str) -> str:
    return f"{_KEY}/{annotator}"


def _known(mode: object, usual: str) -> str:
    return mode if isinstance(mode, str) and mode in MODES else usual


def _refuse_other(mode: str) -> None:
    if mode not in MODES:
        raise AnnotatorError(f"There is no way to answer called {mode!r}. {did_you_mean(mode, MODES)}")
