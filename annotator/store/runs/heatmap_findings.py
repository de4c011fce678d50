"""Heat maps that may show another class than the one they explain.

One file per class and run maps image id to the other class id, 0 for none. The worker writes it before the heat map.
"""

import json
from dataclasses import dataclass
from typing import Any, cast

from annotator.store.database.arrays import replace_file_atomically
from annotator.store.database.database import Database


@dataclass(frozen=True)
class HeatmapFinding:
    """The result of checking whether a heat map shows another class."""

    # class possibly shown instead, or None
    shown_class_id: int | None
    # number of the class's `maps` checked heat maps that may show another class
    explained: int
    maps: int


def save_finding(db: Database, run_id: int, class_id: int, image_id: int, shown_class_id: int | None) -> None:
    """Store the class that a heat map may show instead of its own, or None. Raises DiskFull."""
    found = _read_findings(db, run_id, class_id) | {str(image_id): shown_class_id or 0}
    with replace_file_atomically(db.paths.heatmap_findings(run_id, class_id), sync=False) as part:
        part.write_text(json.dumps(found))


def load_finding(db: Database, run_id: int, class_id: int, image_id: int) -> HeatmapFinding:
    """Return whether a heat map may show another class."""
    found = _read_findings(db, run_id, class_id)
    return HeatmapFinding(found.get(str(image_id), 0) or None, sum(map(bool, found.values())), len(found))


def _read_findings(db: Database, run_id: int, class_id: int) -> dict[str, int]:
    """Return image id -> class that its heat map may show instead (0 for none), or {} if the file is unreadable."""
    try:
        found = json.loads(db.paths.heatmap_findings(run_id, class_id).read_text())
    except (OSError, ValueError):
        return {}
    values = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    return values if all(isinstance(other, int) for other in values.values()) else {}
