"""Whether people begin with one label of each image or with all of them: a choice for the whole project.

It is where the Annotate page begins: with one label the next image comes after it, with all labels the image stays.
Each person can change it on the page for as long as it is open.
"""

from annotator.errors import AnnotatorError, did_you_mean
from annotator.store.database.database import Database

ONE, ALL = "one", "all"
MODES = (ONE, ALL)
_KEY = "labels_an_image"


def chosen(db: Database) -> str:
    """Return ONE or ALL; ONE in a project that never chose."""
    mode = db.setting(_KEY, ONE)
    return mode if mode in MODES else ONE


def choose(db: Database, mode: str) -> None:
    """Store the choice. Raises AnnotatorError for another word."""
    if mode not in MODES:
        raise AnnotatorError(f"There is no way to answer called {mode!r}. {did_you_mean(mode, MODES)}")
    db.set_setting(_KEY, mode)
