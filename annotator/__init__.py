"""An annotation tool for multi-label images: one click an image, a model that finds the missing labels.

Imports nothing until it is asked to, so that the page stays free of torch and the worker free of Streamlit.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from os import PathLike

    from annotator.project import Project

__version__ = "0.1.0"


def open(path: "str | PathLike[str]") -> "Project":
    """Open the project in a folder, to be closed by `close()` or at the end of a `with` block.

    Raises AnnotatorError when there is no project there, or one that this version cannot read.
    """
    from annotator.project import Project

    return Project(path)
