"""How this project is trained: the network whose features are used, and the method on top of them."""

from annotator.errors import AnnotatorError, did_you_mean
from annotator.settings import DEFAULT_BACKBONE, DEFAULT_METHOD, METHODS
from annotator.store.database import Database


def method(db: Database) -> str:
    """The method of the next run."""
    return db.setting("method", DEFAULT_METHOD)


def parameters(db: Database) -> dict:
    """The method's parameters that differ from its own defaults."""
    return db.setting("parameters", {})


def backbone(db: Database) -> str:
    """The network whose features are cached and learned from."""
    return db.setting("backbone", DEFAULT_BACKBONE)


def choose_method(db: Database, name: str) -> None:
    """Use this method from the next run on. Raises AnnotatorError listing the methods there are."""
    if name not in METHODS:
        raise AnnotatorError(f"No method is called {name!r}. {did_you_mean(name, METHODS)}")
    db.set_setting("method", name)


def choose_backbone(db: Database, name: str) -> None:
    """Use this network from now on; its features are computed where they are missing."""
    db.set_setting("backbone", name)
