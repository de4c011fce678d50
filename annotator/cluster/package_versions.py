"""The check that cluster machines have the same program versions."""

import platform
from importlib import metadata

# packages whose versions must be the same everywhere
COMPARED_PACKAGES = ("multilabel-annotator", "torch", "torchvision", "timm")
OPEN_CLIP_PACKAGE = "open_clip_torch"  # where a network of it is used


def get_package_versions(*extra_packages: str) -> dict[str, str]:
    """Return the versions that must match: Python major.minor, and packages without build suffix."""
    return {"Python": ".".join(platform.python_version_tuple()[:2])} | {
        name: _get_version(name) for name in COMPARED_PACKAGES + extra_packages
    }


def list_extra_packages(backbone: str) -> tuple[str, ...]:
    """Return the additional packages that this backbone needs."""
    return (OPEN_CLIP_PACKAGE,) if "open_clip:" in backbone else ()


def find_version_mismatch(wanted: dict[str, str]) -> str:
    """Return why this machine's versions differ from the `wanted` ones, or ""."""
    here = {"Python": get_package_versions()["Python"]}
    differing: list[str] = []
    for name, version in wanted.items():
        ours = here.get(name) or _get_version(name)
        if version and not ours and name not in COMPARED_PACKAGES:
            differing.append(f"no {name} {version}")
        elif version and ours and ours != version:
            differing.append(f"{name} {ours} instead of {version}")
    return f"has {', '.join(differing)}" if differing else ""


def _get_version(package: str) -> str:
    try:
        return metadata.version(package).partition("+")[0]
    except metadata.PackageNotFoundError:  # it runs from its source, or is not there
        return ""
