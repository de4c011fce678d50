"""A key or a click -> the next image painted, in a real Chromium, beside the least that any page could do.

Pages take turns, round after round, in one browser; the same script in all of them takes the times (probe.py). Frames
are 16.7 ms apart when they follow each other; after a pause the first one may come at once.

The floor (floor.py) is a bare Starlette page, with a form for each of our pages; a second one, `picture_first`, puts
off all but the picture until it is drawn: a page can hardly be quicker. Ours are the pages as `annotator serve` serves
them, on projects made here; the worker is a process of its own, which either is not there or, in the rows of
`training`, trains and draws heat maps without end (in the floor's turns too). The floor appends labels to a file and
waits for the disk. Heat maps lie ready: what is measured is the page, not the drawing.
"""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from annotator.benchmark.harness.browser import chromium
from annotator.benchmark.harness.processes import say
from annotator.benchmark.interface import annotate, others
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
    "grid": others.grid,
    "review": others.review,
    "first-page": others.first_page,
}


def measure(*, keys: int = 60, rows: Sequence[str] = ()) -> dict:
    """Times of keys and clicks in milliseconds on our pages and on their floors, and bursts of keys.

    keys       presses in each row on each page; the 95th percentile of 60 is the third largest. `pace` has 1,000
               images where this is 60, and more or fewer in the same proportion
    rows       names out of ROWS; none: all
    returns    {"bench", "figures", "ratios"}: `<page>_[300_classes_]<press>[_training]_<p50 or p95>_ms`, the bursts in
               decisions, and ratios of ours over the floors of the same row

    Raises AnnotatorError for a row that does not exist, without a browser, without the sample images, or when a page
    stays without a picture.
    """
    unknown = [name for name in rows if name not in ROWS]
    if unknown:
        raise AnnotatorError(f"No row is called {', '.join(map(repr, unknown))}. There is: {', '.join(ROWS)}.")
    figures: dict[str, float] = {}
    ratios: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="annotator-bench-") as name, chromium() as browser:
        from playwright.sync_api import Error  # there, since a browser is

        for row in [row for row in ROWS if not rows or row in rows]:
            say(f"row {row}")
            try:
                more = ROWS[row](Ground(Path(name), browser, keys))
            except Error as error:
                raise AnnotatorError(f"Row {row} could not be measured: {error.message}") from error
            figures |= more[0]
            ratios |= more[1]
    return {"bench": "interface", "figures": figures | {"presses_per_row": keys}, "ratios": ratios}
