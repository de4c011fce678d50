"""MS-COCO 2014: 82,081 training images, 40,137 test images (of val2014), 80 classes.

Lin et al., ECCV 2014. As in the papers, all images with annotations count, including crowds. Rows are sorted by image
id *as a string* ("100" before "25").
"""

import json
from collections import defaultdict
from pathlib import Path

import numpy as np

from annotator.benchmark.datasets import formatted
from annotator.benchmark.datasets.dataset import DataSet, Part, build_official_dataset
from annotator.benchmark.datasets.places import Loader, build_layout_error, find_missing, make_count_note, need_images

COCO_TITLE = "MS-COCO 2014"
# Names of the columns of formatted arrays, which do not carry them; annotations bring their own.
COCO_CLASS_LIST = (
    "person|bicycle|car|motorcycle|airplane|bus|train|truck|boat|traffic light|fire hydrant|stop sign|parking meter|"
    "bench|bird|cat|dog|horse|sheep|cow|elephant|bear|zebra|giraffe|backpack|umbrella|handbag|tie|suitcase|frisbee|"
    "skis|snowboard|sports ball|kite|baseball bat|baseball glove|skateboard|surfboard|tennis racket|bottle|wine glass|"
    "cup|fork|knife|spoon|bowl|banana|apple|sandwich|orange|broccoli|carrot|hot dog|pizza|donut|cake|chair|couch|"
    "potted plant|bed|dining table|toilet|tv|laptop|mouse|remote|keyboard|cell phone|microwave|oven|toaster|sink|"
    "refrigerator|book|clock|vase|scissors|teddy bear|hair drier|toothbrush"
)
COCO_CLASSES = tuple(COCO_CLASS_LIST.split("|"))
COCO_IMAGE_COUNTS = {"train": 82081, "val": 40137}
COCO_LAYOUTS = f"""\
      annotations/instances_{{train,val}}2014.json, train2014/COCO_train2014_*.jpg and val2014/COCO_val2014_*.jpg
{formatted.FORMATTED_LAYOUT}"""


def read_coco(root: Path, truth: Path | None = None) -> DataSet:
    """Read MS-COCO below `root`, or raise AnnotatorError with everything missing or wrong."""
    if formatted.has_formatted_arrays(root):
        return formatted.read_formatted(
            "coco",
            COCO_TITLE,
            root,
            ("",),
            len(COCO_CLASSES),
            lambda count: COCO_CLASSES if count == len(COCO_CLASSES) else None,
        )
    files = {part: f"annotations/instances_{part}2014.json" for part in COCO_IMAGE_COUNTS}
    problems = find_missing(root, [root / place for place in (*files.values(), "train2014", "val2014")])
    if problems:
        raise build_layout_error(COCO_TITLE, root, problems, COCO_LAYOUTS)
    contents = {part: _read_annotations(root / place, problems) for part, place in files.items()}
    if not problems and contents["train"][0] != contents["val"][0]:
        problems.append("the categories of train and val differ: are the two files of the same release?")
    if problems:
        raise build_layout_error(COCO_TITLE, root, problems, COCO_LAYOUTS)
    categories = contents["train"][0]
    parts, areas, notes = {}, {}, []
    for part, (_, pairs) in contents.items():
        ids, shown, areas[part] = _make_table(categories, pairs)
        names = [f"{part}2014/COCO_{part}2014_{number:012d}.jpg" for number in ids]
        parts[part] = Part(need_images(COCO_TITLE, root, names), shown)
        notes += make_count_note(f"images in {part} with an annotation", len(ids), COCO_IMAGE_COUNTS[part])
    labels, label_notes = formatted.read_observed_labels(root, parts["train"].truth)
    notes += make_count_note("classes", len(categories), len(COCO_CLASSES))
    of_train = areas["train"]
    return build_official_dataset(
        "coco", tuple(categories.values()), parts["train"], parts["val"], labels, notes + label_notes,
        of_train if (of_train[parts["train"].truth] > 0).all() else None,
    )  # fmt: skip


def _read_annotations(path: Path, problems: list[str]) -> tuple[dict[int, str], dict[tuple[int, int], float]]:
    """Return category names by id, and object areas by (image id, category id). Adds to `problems`."""
    pairs: dict[tuple[int, int], float] = defaultdict(float)
    try:
        with path.open(encoding="utf-8") as file:
            content = json.load(file, object_hook=_drop_outlines)
        categories = {category["id"]: str(category["name"]) for category in content["categories"]}
        for entry in content["annotations"]:
            area = entry.get("area")
            pairs[entry["image_id"], entry["category_id"]] += area if isinstance(area, (int, float)) else 0
    except OSError as error:
        problems.append(f"{path.name} cannot be read: {error.strerror or error}")
    except (ValueError, RecursionError) as error:
        problems.append(f"{path.name} is not complete JSON: {error}")
    except (KeyError, TypeError) as error:
        problems.append(
            f"{path.name} is not a file of COCO instances: it needs 'categories' (id, name) and 'annotations' "
            f"(image_id, category_id); {type(error).__name__}: {error}"
        )
    else:
        strange = {pair for pair in pairs if pair[1] not in categories or type(pair[0]) is not int or pair[0] < 0}
        if strange:
            problems.append(
                f"{path.name}: {len(strange):,} annotations have an unknown category or no image number, such as image "
                f"{next(iter(strange))[0]!r}, category {next(iter(strange))[1]!r}"
            )
        return categories, pairs
    return {}, {}


def _drop_outlines(entry: dict) -> dict:
    entry.pop("segmentation", None)
    return entry


def _make_table(
    categories: dict[int, str], pairs: dict[tuple[int, int], float]
) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Return image ids in published order, and per image and class the truth (bool) and the object area."""
    ids = sorted({image for image, _ in pairs}, key=str)
    rows = {image: row for row, image in enumerate(ids)}
    columns = {category: column for column, category in enumerate(categories)}
    truth, areas = (np.zeros((len(ids), len(columns)), kind) for kind in (bool, float))
    for (image, category), area in pairs.items():
        truth[rows[image], columns[category]] = True
        areas[rows[image], columns[category]] = area
    return ids, truth, areas


COCO_LOADER = Loader(
    "coco", COCO_TITLE, len(COCO_CLASSES), ("annotations/instances_train2014.json",), COCO_LAYOUTS, read_coco
)
