"""Annotate images with several labels each: one click an image, a model that finds the missing labels.

What `__all__` lists is the public Python interface, described in docs/python.md and by the docstrings of Project; all
other names may change. A name is imported when it is first used, so that the page stays free of torch and the worker
free of Streamlit.
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
    """Open the project in a folder; close it with `close()` or use it in a `with` block.

    Args:
        path: The project folder. A project of an older version is brought up to date.

    Returns:
        The open project.

    Raises:
        AnnotatorError: The folder holds no project, the project is from a newer version, or its file is not a database.
    """
    from annotator.project import Project

    return Project(path)


def __getattr__(name: str) -> Any:
    if name not in _LAZY_IMPORTS:
        raise AttributeError(f"module 'annotator' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY_IMPORTS[name]), name)
