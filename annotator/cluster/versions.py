"""Whether a machine of a cluster has the same program as this one: checked before it gets work."""

import platform
from importlib import metadata

SAME = ("multilabel-annotator", "torch", "torchvision", "timm")  # packages whose versions must be the same everywhere
OPEN_CLIP = "open_clip_torch"  # where a network of it is used


def versions(*more: str) -> dict[str, str]:
    """Versions of what must be the same on all machines: of Python the minor one, of packages without the build.

    Args:
        more: Further packages that the work needs; those are refused where they are missing.
    """
    return {"Python": ".".join(platform.python_version_tuple()[:2])} | {name: _version(name) for name in SAME + more}


def needed_for(backbone: str) -> tuple[str, ...]:
    """Packages that a machine needs to unpack the network of that name, beside those of all networks."""
    return (OPEN_CLIP,) if "open_clip:" in backbone else ()


def refusal(wanted: dict[str, str]) -> str:
    """Why this machine cannot do work of a machine with these versions; "" when it can."""
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
