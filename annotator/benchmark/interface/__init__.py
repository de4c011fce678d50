"""`annotator bench interface`: a key or click -> the next image painted, in a real Chromium.

Pages take turns in one browser with two floors (benchmark/harness/floor.py): a bare page that waits for the disk, and
one that paints the picture before anything else. Frames are 16.7 ms apart. No worker runs but in the row `training`;
heat maps are drawn beforehand. Begin with ROWS below; presses.py and bursts.py press the keys.
"""

from collections.abc import Callable, Sequence

from annotator.benchmark.harness.browser import chromium
from annotator.benchmark.harness.processes import say
from annotator.benchmark.harness.scratch import scratch_folder
from annotator.benchmark.interface import annotate, gallery, others, repeats
from annotator.benchmark.interface.ground import Ground
from annotator.errors import AnnotatorError

ROWS: dict[str, Callable[[Ground], tuple[dict, dict]]] = {
    "key": annotate.key_and_click,
    "training": annotate.training,
    "300-classes": annotate.classes_300,
    "1000-classes": annotate.classes_1000,
    "people": annotate.people,
    "pace": annotate.pace,
    "burst": annotate.burst,
    "repeats": repeats.repeats,
    "grid": others.grid,
    "review": others.review,
    "gallery": gallery.gallery,
    "first-page": others.first_page,
}


def measure(*, keys: int = 60, rows: Sequence[str] = ()) -> dict:
    """Measure keys and clicks in milliseconds on our pages and on their floors, and bursts of keys.

    Args:
        keys: Presses in each row on each page; the 95th percentile of 60 is the third largest. `pace` takes 1,000
            images at 60 keys, and more or fewer in proportion.
        rows: Names in ROWS; (): all.

    Returns:
        {"bench", "figures", "ratios"}: `<page>_[300_classes_]<press>[_training]_<p50 or p95>_ms`, the bursts in
        decisions, and ratios of ours over the floors of the same row.

    Raises:
        AnnotatorError: A row does not exist, a browser or the sample images are missing, or a page shows no picture.
    """
    unknown = [name for name in rows if name not in ROWS]
    if unknown:
        raise AnnotatorError(f"No row is called {', '.join(map(repr, unknown))}. There is: {', '.join(ROWS)}.")
    figures: dict[str, float] = {}
    ratios: dict[str, float] = {}
    with scratch_folder() as folder, chromium() as browser:
        from playwright.sync_api import Error  # installed, since the browser has started

        for row in [row for row in ROWS if not rows or row in rows]:
            say(f"row {row}")
            try:
                row_figures, row_ratios = ROWS[row](Ground(folder, browser, keys))
            except Error as error:
                raise AnnotatorError(f"Row {row} could not be measured: {error.message}") from error
            figures |= row_figures
            ratios |= row_ratios
    return {"bench": "interface", "figures": figures | {"presses_per_row": keys}, "ratios": ratios}
