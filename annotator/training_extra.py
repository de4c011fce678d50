"""The packages of the extra `train`, and the message where they are missing.

All pages, imports and exports work without them. Whether they are installed is found without importing them, because
importing torch takes seconds.
"""

from importlib.util import find_spec

from annotator.errors import TrainingNotInstalled

TRAINING_MODULES = ("torch", "torchvision", "timm", "pytorch_grad_cam", "sklearn", "threadpoolctl", "matplotlib")
TRAINING_INSTALL_COMMAND = "pip install 'multilabel-annotator[train]'"
MAX_NAMES_SHOWN = 3  # missing modules in the first line of the error, which is the status line of pages


def find_missing_training_modules() -> list[str]:
    """Return the modules of the extra `train` that are not installed."""
    return [name for name in TRAINING_MODULES if not _is_installed(name)]


def has_training() -> bool:
    """Return whether all modules of the extra `train` are installed."""
    return not find_missing_training_modules()


def require_training() -> None:
    """Raise TrainingNotInstalled if modules of the extra `train` are missing."""
    if missing := find_missing_training_modules():
        raise build_training_error(missing)


def build_training_error(missing: list[str]) -> TrainingNotInstalled:
    """Return the error for missing modules of the extra `train`, not raised."""
    more = f" and {len(missing) - MAX_NAMES_SHOWN} more" if len(missing) > MAX_NAMES_SHOWN else ""
    return TrainingNotInstalled(
        f"Training is not installed (missing: {', '.join(missing[:MAX_NAMES_SHOWN])}{more}).\n"
        "    Labeling, imports and exports work without it. Suggestions, heat maps and image search need it.\n"
        f"    Install it with: {TRAINING_INSTALL_COMMAND}\n"
        "    README.md has the commands for machines without a GPU."
    )


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # an import hook refuses the name
        return False
