"""The data sets for comparing methods: published ones, or any image folder with truth.

Each set has one file and one line in DATASETS. Start with dataset.py.
"""

from pathlib import Path

from annotator.benchmark.datasets import formatted
from annotator.benchmark.datasets.clicks import draw_clicks, draw_observed_labels
from annotator.benchmark.datasets.coco_dataset import COCO_LOADER
from annotator.benchmark.datasets.cub_dataset import CUB_LOADER
from annotator.benchmark.datasets.dataset import DataSet, Part
from annotator.benchmark.datasets.folder import FOLDER_LOADER
from annotator.benchmark.datasets.nus_dataset import NUS_LOADER
from annotator.benchmark.datasets.places import Loader
from annotator.benchmark.datasets.voc_dataset import VOC_LOADER
from annotator.errors import AnnotatorError, did_you_mean

DATASETS: dict[str, Loader] = {
    loader.name: loader for loader in (VOC_LOADER, COCO_LOADER, NUS_LOADER, CUB_LOADER, FOLDER_LOADER)
}

__all__ = ["DATASETS", "DataSet", "Loader", "Part", "draw_clicks", "draw_observed_labels", "load_dataset"]


def load_dataset(name: str | None, root: Path, truth: Path | None = None) -> DataSet:
    """Read a published data set or an image folder with complete labels.

    Args:
        name: Key of DATASETS. None selects `folder` if `truth` is given, else recognizes the published set.
        root: Folder of the data set. Nothing outside it is read.
        truth: A CSV `image,labels` or `image,class,state`, for `folder` only.

    Raises:
        AnnotatorError: For an unknown name, invalid files, or `truth` with a published set.
    """
    if name is not None and name not in DATASETS:
        raise AnnotatorError(f"There is no data set {name!r}. {did_you_mean(name, DATASETS)}")
    if not root.is_dir():
        raise AnnotatorError(f"There is no folder {root}. Is the path spelled right, and the disk mounted?")
    name = name or (FOLDER_LOADER.name if truth else _recognize_dataset(root))
    if truth is not None and name != FOLDER_LOADER.name:
        raise AnnotatorError(
            f"{DATASETS[name].title} brings its own truth, so {truth} would not be read. Leave the truth out, or take "
            f"{root} as a plain folder of images ({FOLDER_LOADER.name!r})."
        )
    return DATASETS[name].read(root, truth)


def _recognize_dataset(root: Path) -> str:
    papers = [loader for loader in DATASETS.values() if loader.classes]
    matches = [loader.name for loader in papers if any((root / mark).exists() for mark in loader.marker_paths)]
    if not matches and formatted.has_formatted_arrays(root):
        count = formatted.count_columns(root)
        matches = [loader.name for loader in papers if loader.classes == count]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise AnnotatorError(f"{root} holds {' and '.join(matches)}: say which one is meant, or give its own folder.")
    layouts = "\n".join(f"    {loader.name}: {loader.title}\n{loader.layouts}" for loader in DATASETS.values())
    raise AnnotatorError(
        f"{root} holds none of the sets that are known by their layout. Images of your own need a truth beside them: "
        f"--truth FILE.csv. Read are:\n{layouts}"
    )
