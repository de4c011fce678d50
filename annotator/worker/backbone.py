"""The network of a project by its name: one that any project can name, or one that was adapted in this project."""

from typing import TYPE_CHECKING

from annotator.errors import AnnotatorError
from annotator.settings import DEFAULT_BACKBONE
from annotator.store import adapted
from annotator.store.database import Database

if TYPE_CHECKING:
    from models.backbones.networks import Backbone
    from models.backbones.pretrained import Pretrained


def check_backbone(name: str) -> None:
    """Raises AnnotatorError when there is no such network, or its weights are not available."""
    if name == DEFAULT_BACKBONE:
        return
    from models.backbones.networks import load_backbone  # loads torch, so only when it is needed

    try:
        load_backbone(name)
    except ValueError as error:
        raise AnnotatorError(str(error)) from error


def network_of(db: Database, name: str) -> "Pretrained":
    """The network that a project calls by this name, with how its images are prepared. Raises AnnotatorError when its
    weights cannot be had."""
    from models.backbones.pretrained import pretrained
    from models.backbones.sources.timm_models import LOCAL_DIR

    folder = adapted.folder(db, name)
    try:
        return pretrained(name if folder is None else f"{LOCAL_DIR}{folder}")
    except ValueError as error:
        raise AnnotatorError(str(error)) from error


def backbone_of(db: Database, name: str) -> "Backbone":
    """The same, frozen and in its fastest form. Raises AnnotatorError."""
    from models.backbones.networks import Backbone

    try:
        return Backbone(name, network_of(db, name))
    except ValueError as error:
        raise AnnotatorError(str(error)) from error
