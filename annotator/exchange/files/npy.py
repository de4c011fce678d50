"""Arrays in .npy files of other people: mapped, never unpickled.

Format: NEP 1, "A Simple File Format for NumPy Arrays", https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html.
"""

from pathlib import Path

import numpy as np

from annotator.errors import AnnotatorError

MAGIC = b"\x93NUMPY"


def load_array(path: Path, root: Path) -> np.ndarray:
    """An array of numbers or strings, without running anything that may be in the file.

    Raises AnnotatorError when it cannot be read, leads out of the folder, or holds Python objects (with a way out).
    """
    if not path.resolve().is_relative_to(root.resolve()):
        raise AnnotatorError(f"{path} is a link that leads out of {root}: it is not read. Copy the file instead.")
    try:
        with path.open("rb") as file:
            start = file.read(len(MAGIC))
        if start != MAGIC:
            raise AnnotatorError(
                f"{path} is no .npy array (it begins with {start!r}). Pickles and archives are not read; write it with "
                "numpy.save."
            )
        # Mapped, not read: a header that promises more than the file holds is an error, not a full memory.
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise AnnotatorError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, EOFError, OverflowError, TypeError) as error:
        if "object" in str(error).lower():
            raise AnnotatorError(
                f"{path} holds Python objects, which are not loaded: they can run any code. If you trust where it is "
                f"from, convert it once:\n    python -c \"import numpy as np; a = np.load('{path.name}', "
                f"allow_pickle=True); np.save('{path.name}', np.array(a.tolist()))\""
            ) from error
        raise AnnotatorError(f"{path} is a damaged array: {error}.") from error
