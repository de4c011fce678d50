"""`annotator bench interface`: a key or click -> the next image painted, in a real Chromium.

Pages take turns in one browser with two floors (benchmark/harness/floor.py): a bare page that waits for the disk, and
one that paints the picture before anything else. Frames are 16.7 ms apart. No worker runs but in the row `training`;
heat maps are drawn beforehand. Begin with ROW_MEASUREMENTS below; presses.py and bursts.py press the keys.
"""

from collections.abc import Callable, Sequence

from harness.browser import open_chromium

from annotator.benchmark.scratch import print_progress, scratch_folder
from annotator.errors import AnnotatorError
from benchmarks.interface import annotate_rows, gallery_rows, grid_review_rows, repeats
from benchmarks.interface.ground import Ground

ROW_MEASUREMENTS: dict[str, Callable[[Ground], tuple[dict, dict]]] = {
    "key": annotate_rows.measure_key_and_click,
    "training": annotate_rows.measure_training,
    "300-classes": annotate_rows.measure_300_classes,
    "1000-classes": annotate_rows.measure_1000_classes,
    "people": annotate_rows.measure_people,
    "pace": annotate_rows.measure_pace,
    "burst": annotate_rows.measure_burst,
    "repeats": repeats.measure_repeats,
    "grid": grid_review_rows.measure_grid,
    "review": grid_review_rows.measure_review,
    "gallery": gallery_rows.measure_gallery,
    "first-page": grid_review_rows.measure_first_page,
}


def measure(*, keys: int = 60, rows: Sequence[str] = ()) -> dict:
    """Measure keys and clicks in milliseconds on our pages and on their floors, and bursts of keys.

    Args:
        keys: Presses in each row on each page; the 95th percentile of 60 is the third largest. `pace` takes 1,000
            images at 60 keys, and more or fewer in proportion.
        rows: Names in ROW_MEASUREMENTS; (): all.

    Returns:
        {"bench", "figures", "ratios"}: `<page>_[300_classes_]<press>[_training]_<p50 or p95>_ms`, the bursts in
        decisions, and ratios of ours over the floors of the same row.

    Raises:
        AnnotatorError: A row does not exist, a browser or the sample images are missing, or a page shows no picture.
    """
    unknown = [name for name in rows if name not in ROW_MEASUREMENTS]
    if unknown:
        raise AnnotatorError(
            f"No row is called {', '.join(map(repr, unknown))}. There is: {', '.join(ROW_MEASUREMENTS)}."
        )
    figures: dict[str, float] = {}
    ratios: dict[str, float] = {}
    with scratch_folder() as folder, open_chromium() as browser:
        from playwright.sync_api import Error  # installed, since the browser has started

        for row in [row for row in ROW_MEASUREMENTS if not rows or row in rows]:
            print_progress(f"row {row}")
            try:
                row_figures, row_ratios = ROW_MEASUREMENTS[row](Ground(folder, browser, keys))
            except Error as error:
                raise AnnotatorError(f"Row {row} could not be measured: {error.message}") from error
            figures |= row_figures
            ratios |= row_ratios
    return {"bench": "interface", "figures": figures | {"presses_per_row": keys}, "ratios": ratios}
