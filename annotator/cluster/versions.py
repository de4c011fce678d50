"""Whether a machine of a cluster has the same program as this one: checked before it gets work."""

import platform
from importlib import metadata

SAME = ("multilabel-annotator", "torch", "torchvision", "timm")  # packages whose versions must be the same everywhere


def versions() -> dict[str, str]:
    """Versions of what must be the same on all machines: of Python the minor one, of packages without the build."""
    found = {"Python": ".".join(platform.python_version_tuple()[:2])}
    for package in SAME:
        try:
            found[package] = metadata.version(package).partition("+")[0]
        except metadata.PackageNotFoundError:  # it runs from its source
            found[package] = ""
    return found


def refusal(wanted: dict[str, str]) -> str:
    """Why this machine cannot do work of a machine with these versions; "" when it can."""
    here = versions()
    differing = [
        f"{name} {here[name]} instead of {version}"
        for name, version in wanted.items()
        if version and here.get(name) and here[name] != version
    ]
    return f"has {', '.join(differing)}" if differing else ""
