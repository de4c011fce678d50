"""The class that a heat map may show instead of its own, for each heat map of a run.

One file for each class beside the heat maps, image id -> class id, 0 for none. The worker alone writes it, before the
heat map; both are deleted with the run. A heat map without an entry was drawn by an older version.
"""

import json
from dataclasses import dataclass
from typing import Any, cast

from annotator.store.database.arrays import replace_file_atomically
from annotator.store.database.database import Database


@dataclass(frozen=True)
class HeatmapFinding:
    """The result of examining one heat map, and how many heat maps of its class had such a result.

    Attributes:
        shown_class_id: The class that the heat map may show instead of its own (spmll/backbones/occlusion.py); None:
            no class.
        explained: The number of heat maps of this class and run that may show another class, of `maps` examined ones.
    """

    shown_class_id: int | None
    explained: int
    maps: int


def save_finding(db: Database, run_id: int, class_id: int, image_id: int, shown_class_id: int | None) -> None:
    """Store which class a heat map may show instead of its own; None for no class. Raises DiskFull."""
    found = _read_findings(db, run_id, class_id) | {str(image_id): shown_class_id or 0}
    with replace_file_atomically(db.paths.heatmap_findings(run_id, class_id), sync=False) as part:
        part.write_text(json.dumps(found))


def load_finding(db: Database, run_id: int, class_id: int, image_id: int) -> HeatmapFinding:
    """Return the result of examining a heat map."""
    found = _read_findings(db, run_id, class_id)
    return HeatmapFinding(found.get(str(image_id), 0) or None, sum(map(bool, found.values())), len(found))


def _read_findings(db: Database, run_id: int, class_id: int) -> dict[str, int]:
    """Return image id -> class id, 0 for none; {} where the file is missing or damaged, because it is only advice."""
    try:
        found = json.loads(db.paths.heatmap_findings(run_id, class_id).read_text())
    except (OSError, ValueError):
        return {}
    values = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    return values if all(isinstance(other, int) for other in values.values()) else {}
