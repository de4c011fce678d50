"""Writing the arrays of the single-positive multi-label literature: formatted_{split}_{images,labels,labels_obs}.npy.

Format: Cole et al., "Multi-Label Learning from Single Positive Labels", CVPR 2021,
https://github.com/elijahcole/single-positive-multi-label. `labels_obs` (n, C) is what was answered: 1 present, -1
absent, 0 not known. `labels` (n, C) is the truth, 1 and 0, with what the export fills in; it has no room for unknown,
so it is written only of a data set without unknown cells. classes.txt names the columns. Without splits, all images
are "train".
"""

from contextlib import ExitStack

import numpy as np

from annotator.exchange.files.growing import GrowingArray, Names
from annotator.exchange.formats.numpy_folder import place_images, write_classes
from annotator.exchange.formats.view import CODES, Output, View
from annotator.records import ASSUMED, MODEL


def write_spml(view: View, out: Output) -> None:
    """Two or three arrays a split; images of no split are left out."""
    is_filled = np.isin(view.sources, (MODEL, ASSUMED))
    with ExitStack() as stack:
        arrays = {split: _Arrays(split, view, out, stack) for split in view.splits or ("train",)}
        for block in view.blocks():
            kept = place_images(block, view, out)
            observed = np.where(is_filled[block.sources], 0, CODES[block.values])
            for split, of_split in arrays.items():
                rows = [row for row in kept if not view.splits or block.splits[row] == split]
                of_split.observed.add(observed[rows])
                if of_split.labels:
                    of_split.labels.add(block.values[rows] == 1)
                if rows:
                    of_split.names.add(kept[row] for row in rows)
        for split, of_split in arrays.items():
            for array in filter(None, (of_split.labels, of_split.observed)):
                array.finish()
            of_split.names.save(out.path(f"formatted_{split}_images.npy"))
    write_classes(view, out)


class _Arrays:
    """The arrays of one split."""

    def __init__(self, split: str, view: View, out: Output, stack: ExitStack):
        def array(name: str) -> GrowingArray:
            file = stack.enter_context(out.binary(f"formatted_{split}_{name}.npy"))
            return GrowingArray(file, np.int8, len(view.classes))

        self.names, self.observed = Names(), array("labels_obs")
        self.labels = None if "unknown" in view.has else array("labels")
