"""Whether a backbone can be loaded, asked before a project starts to use it."""

from annotator.errors import AnnotatorError
from annotator.settings import DEFAULT_BACKBONE


def check_backbone(name: str) -> None:
    """Raises AnnotatorError when there is no such network, or its weights are not available."""
    if name == DEFAULT_BACKBONE:
        return
    from models.backbones.networks import load_backbone  # loads torch, so only when it is needed

    try:
        load_backbone(name)
    except ValueError as error:
        raise AnnotatorError(str(error)) from error
