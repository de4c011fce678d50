"""The effect of choosing a class: label and continue (MODE_ONE), or mark until Enter (MODE_ALL).

Annotators can override the project's mode.
"""

from annotator.errors import AnnotatorError, did_you_mean
from annotator.roles import Right
from annotator.store.database.database import Database

MODE_ONE, MODE_ALL = "one", "all"
MODES = (MODE_ONE, MODE_ALL)
_SETTING_KEY = "labels_an_image"


def get_project_mode(db: Database) -> str:
    """Return the project's mode, MODE_ONE by default."""
    return _mode_or_default(db.get_setting(_SETTING_KEY, MODE_ONE), MODE_ONE)


def set_project_mode(db: Database, mode: str) -> None:
    _check_mode(mode)
    db.set_setting(_SETTING_KEY, mode)


def get_annotator_mode(db: Database, annotator: str) -> str:
    """Return the annotator's mode, by default the project's."""
    return _mode_or_default(db.get_setting(_build_setting_key(annotator)), get_project_mode(db))


def set_annotator_mode(db: Database, annotator: str, mode: str) -> None:
    _check_mode(mode)
    db.set_setting(_build_setting_key(annotator), mode, Right.ANSWER)


def _build_setting_key(annotator: str) -> str:
    return f"{_SETTING_KEY}/{annotator}"


def _mode_or_default(mode: object, usual: str) -> str:
    return mode if isinstance(mode, str) and mode in MODES else usual


def _check_mode(mode: str) -> None:
    if mode not in MODES:
        raise AnnotatorError(f"There is no way to answer called {mode!r}. {did_you_mean(mode, MODES)}")
