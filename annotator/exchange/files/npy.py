"""Untrusted .npy arrays, memory-mapped and never unpickled.

Format: NEP 1, https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html.
"""

from pathlib import Path
from tokenize import TokenError

import numpy as np

from annotator.errors import AnnotatorError
from annotator.store.disk.open_files import open_file

NPY_MAGIC = b"\x93NUMPY"


def load_array(path: Path, root: Path) -> np.ndarray:
    """Map an array of numbers or strings from its file into memory, without running code in it.

    Raises AnnotatorError for links out of `root` and for Python objects.
    """
    try:
        is_inside = path.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError) as error:  # links in a circle
        raise AnnotatorError(f"{path} cannot be read: {error}.") from error
    if not is_inside:
        raise AnnotatorError(f"{path} is a link that leads out of {root}: it is not read. Copy the file instead.")
    try:
        with open_file(path) as file:
            start = file.read(len(NPY_MAGIC))
        if start != NPY_MAGIC:
            raise AnnotatorError(
                f"{path} is no .npy array (it begins with {start!r}). Pickles and archives are not read; write it with "
                "numpy.save."
            )
        # Mapped, not read: a header that states more than the file holds raises an error and fills no memory.
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise AnnotatorError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, EOFError, OverflowError, TypeError, SyntaxError, TokenError, RecursionError) as error:
        if "object" in str(error).lower():
            raise AnnotatorError(
                f"{path} holds Python objects, which are not loaded: they can run any code. If you trust where it is "
                f"from, convert it once:\n    python -c \"import numpy as np; a = np.load('{path.name}', "
                f"allow_pickle=True); np.save('{path.name}', np.array(a.tolist()))\""
            ) from error
        raise AnnotatorError(f"{path} is a damaged array: {error}.") from error
