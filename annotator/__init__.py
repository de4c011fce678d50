"""Annotation of multi-label images, with a model that finds missing labels.

`__all__` is the public interface, imported on first use, so that pages load no torch.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from os import PathLike

    from annotator.errors import AnnotatorError
    from annotator.exchange.classifier.onnx_classifier import Classifier, load_classifier
    from annotator.exchange.exports.choices import Choices
    from annotator.exchange.exports.export_options import Limits
    from annotator.project import Project

__all__ = ["AnnotatorError", "Choices", "Classifier", "Limits", "Project", "__version__", "load_classifier", "open"]
__version__ = "0.1.0"

_LAZY_IMPORTS = {
    "AnnotatorError": "annotator.errors",
    "Choices": "annotator.exchange.exports.choices",
    "Classifier": "annotator.exchange.classifier.onnx_classifier",
    "Limits": "annotator.exchange.exports.export_options",
    "Project": "annotator.project",
    "load_classifier": "annotator.exchange.classifier.onnx_classifier",
}


def open(path: "str | PathLike[str]") -> "Project":
    """Open the project in a folder, for `close()` or a `with` block.

    Args:
        path: Project folder, upgraded if older.

    Returns:
        The project.

    Raises:
        AnnotatorError: Not a project, or too new.
    """
    from annotator.project import Project

    return Project(path)


def __getattr__(name: str) -> Any:
    if name not in _LAZY_IMPORTS:
        raise AttributeError(f"module 'annotator' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY_IMPORTS[name]), name)
