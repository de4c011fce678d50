"""The JSON description stored in a classifier file. It is untrusted and checked before use."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from annotator.errors import AnnotatorError, combine_problems

METADATA_KEY = "annotator.classifier"  # of the ONNX metadata
VERSION = 1
MAX_TEXT_CHARS, MAX_CLASSES, MAX_SIDE_PIXELS = 20_000_000, 100_000, 4096  # characters, classes, pixels
INTERPOLATIONS = ("bilinear", "bicubic")


@dataclass(frozen=True)
class KnownClass:
    """One class of a classifier.

    Attributes:
        present_from: Lowest probability of "present", or None without a safe threshold.
        absent_to: Highest probability of "absent", or None likewise.
    """

    name: str
    description: str = ""
    present_from: float | None = None
    absent_to: float | None = None


@dataclass(frozen=True)
class Description:
    """The description of a classifier, stored in its file.

    Attributes:
        classes: In output order.
        size: Side of the square input in pixels.
        licence: License of the weights, or "".
        expected_error: Share of wrong answers that the thresholds allow.
    """

    classes: tuple[KnownClass, ...]
    size: int
    interpolation: str
    network: str
    licence: str = ""
    expected_error: float = 0.01
    facts: Mapping[str, Any] = field(default_factory=dict)
    version: int = VERSION

    def as_text(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)


def parse_description(text: str, place: str) -> Description:
    """Parse the JSON that `Description.as_text` wrote. Raises AnnotatorError that names every fault."""
    if len(text) > MAX_TEXT_CHARS:
        raise AnnotatorError(
            f"{place} describes itself with {len(text):,} characters; at most {MAX_TEXT_CHARS:,} are read."
        )
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise AnnotatorError(f"{place} is no classifier of this program: {error} (JSON).") from None
    if not isinstance(found, dict):
        raise AnnotatorError(f"{place} is no classifier of this program: its description is no JSON object.")
    version = found.get("version")
    if isinstance(version, int) and version > VERSION:
        raise AnnotatorError(
            f"{place} is of version {version}, and this program reads up to {VERSION}. Install a newer annotator, or "
            "make the file again with this one."
        )
    if faults := _find_faults(found):
        raise combine_problems(f"{place} is no classifier that can be used:", faults)
    known: dict[str, Any] = {one.name: found[one.name] for one in fields(Description) if one.name in found}
    known["classes"] = tuple(KnownClass(**{name: one.get(name) for name in _CLASS_FIELDS}) for one in found["classes"])
    return Description(**known)


_CLASS_FIELDS = tuple(one.name for one in fields(KnownClass))


def _find_faults(found: dict[str, Any]) -> list[str]:
    faults = []
    if found.get("version") != VERSION:
        faults.append(f"its version is {found.get('version')!r}, not {VERSION}")
    size = found.get("size")
    if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= MAX_SIDE_PIXELS:
        faults.append(f"its images are {size!r} pixels wide; 1 to {MAX_SIDE_PIXELS} are possible")
    if found.get("interpolation") not in INTERPOLATIONS:
        faults.append(f"it resizes images by {found.get('interpolation')!r}, not by {' or '.join(INTERPOLATIONS)}")
    faults += [f"its {name} is no text" for name in ("network", "licence") if not isinstance(found.get(name), str)]
    if not isinstance(found.get("facts"), dict):
        faults.append("its facts are no JSON object")
    if not _is_probability(found.get("expected_error")):
        faults.append(f"its expected error is {found.get('expected_error')!r}")
    classes = found.get("classes")
    if not isinstance(classes, list) or not 1 <= len(classes) <= MAX_CLASSES:
        return [*faults, f"it has no list of 1 to {MAX_CLASSES:,} classes"]
    wrong = [number for number, one in enumerate(classes) if not _is_class(one)]
    if wrong:
        faults.append(f"{len(wrong):,} of its classes have no name, or a threshold that is no probability")
    elif len({one["name"] for one in classes}) < len(classes):
        faults.append("two of its classes have the same name")
    return faults


def _is_class(one: Any) -> bool:
    return (
        isinstance(one, dict)
        and isinstance(one.get("name"), str)
        and bool(one["name"])
        and isinstance(one.get("description"), str)
        and all(one.get(name) is None or _is_probability(one[name]) for name in ("present_from", "absent_to"))
    )


def _is_probability(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and 0 <= value <= 1
