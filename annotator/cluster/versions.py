"""The check that a machine of a cluster has the same program as this one, before it gets work."""

import platform
from importlib import metadata

SAME = ("multilabel-annotator", "torch", "torchvision", "timm")  # packages whose versions must be the same everywhere
OPEN_CLIP = "open_clip_torch"  # where a network of it is used


def versions(*more: str) -> dict[str, str]:
    """Return the versions that must be equal on all machines: of Python the minor one, of packages without the build.

    Args:
        more: Further packages that the work needs; a machine without them is refused.
    """
    return {"Python": ".".join(platform.python_version_tuple()[:2])} | {name: _version(name) for name in SAME + more}


def needed_for(backbone: str) -> tuple[str, ...]:
    """Return the packages that a machine needs to unpack the network of that name, besides those of all networks."""
    return (OPEN_CLIP,) if "open_clip:" in backbone else ()


def refusal(wanted: dict[str, str]) -> str:
    """Return the reason why this machine cannot work for a machine with these versions; "" if it can."""
    here = {"Python": versions()["Python"]}
    differing: list[str] = []
    for name, version in wanted.items():
        ours = here.get(name) or _version(name)
        if version and not ours and name not in SAME:
            differing.append(f"no {name} {version}")
        elif version and ours and ours != version:
            differing.append(f"{name} {ours} instead of {version}")
    return f"has {', '.join(differing)}" if differing else ""


def _version(package: str) -> str:
    try:
        return metadata.version(package).partition("+")[0]
    except metadata.PackageNotFoundError:  # it runs from its source, or is not there
        return ""
