"""The check that a machine of a cluster has the same program as this one, before it gets work."""

import platform
from importlib import metadata

# packages whose versions must be the same everywhere
COMPARED_PACKAGES = ("multilabel-annotator", "torch", "torchvision", "timm")
OPEN_CLIP_PACKAGE = "open_clip_torch"  # where a network of it is used


def get_package_versions(*extra_packages: str) -> dict[str, str]:
    """Return the versions that must be equal on all machines: of Python the minor one, of packages without the build.

    Args:
        extra_packages: Further packages that the work needs; a machine without them is refused.
    """
    return {"Python": ".".join(platform.python_version_tuple()[:2])} | {
        name: _get_version(name) for name in COMPARED_PACKAGES + extra_packages
    }


def list_extra_packages(backbone: str) -> tuple[str, ...]:
    """Return the packages that a machine needs to unpack the network of that name, besides those of all networks."""
    return (OPEN_CLIP_PACKAGE,) if "open_clip:" in backbone else ()


def find_version_mismatch(wanted: dict[str, str]) -> str:
    """Return the reason why this machine cannot work for a machine with these versions; "" if it can."""
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
