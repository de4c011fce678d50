"""Tiny copies of the sets of the papers, in their own layouts, and what a test asks of a set that was read."""

import json
from pathlib import Path

import numpy as np

from annotator.benchmark.datasets import voc_dataset
from spmll.single_positive_sampling import sample_single_positives, split_train_validation


def empty(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def write(path: Path, *lines: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def truth_of(dataset, part: str) -> dict[str, set[str]]:
    """File name -> names of the classes it shows."""
    part = getattr(dataset, part)
    return {
        path.name: {dataset.classes[c] for c in np.flatnonzero(row)}
        for path, row in zip(part.paths, part.truth, strict=True)
    }


def official_order(dataset) -> list[str]:
    """Names of the official training images, put together again from the two parts."""
    rows = np.concatenate(dataset.official_rows)
    paths = [*dataset.train.paths, *dataset.val.paths]
    return [paths[place].name for place in np.argsort(rows)]


def whole(dataset) -> np.ndarray:
    rows = np.concatenate(dataset.official_rows)
    return np.concatenate([dataset.train.truth, dataset.val.truth])[np.argsort(rows)]


def is_published_protocol(dataset, expected_order: list[str]) -> bool:
    train, val = split_train_validation(len(expected_order))
    return (
        official_order(dataset) == expected_order
        and np.array_equal(dataset.official_rows[0], train)
        and np.array_equal(dataset.official_rows[1], val)
        and np.array_equal(dataset.observed, sample_single_positives(whole(dataset))[train])
    )


# What each image shows in the tiny copies: a class of its own, and class 3 on every second one.
def shown(number: int) -> set[int]:
    return {number % 5} | ({3} if number % 2 else set())


def make_voc(root: Path, base: str = "VOCdevkit/VOC2012") -> Path:
    # Written in another order than the published one.
    images = {
        "train": [f"2008_{n:06}" for n in reversed(range(10))] + ["2007_000001"],
        "val": [f"2009_{n:06}" for n in range(4)],
    }
    for part, names in images.items():
        for column, name in enumerate(voc_dataset.VOC_CLASSES):
            flags = [(image, 1 if column in shown(int(image[-2:])) else 0 if column == 9 else -1) for image in names]
            write(root / base / f"ImageSets/Main/{name}_{part}.txt", *(f"{image} {flag:2d}" for image, flag in flags))
        for image in names:
            empty(root / base / f"JPEGImages/{image}.jpg")
    return root


CATEGORIES = [{"id": 7, "name": "train"}, {"id": 1, "name": "person"}, {"id": 90, "name": "toothbrush"}]
IDS = {"train": [9, 25, 100, 1000, 581929, 30, 31], "val": [42, 133]}


def make_coco(root: Path) -> Path:
    for part, ids in IDS.items():
        annotations = [
            {"image_id": image, "category_id": (7, 1, 90)[image % 3], "segmentation": [[1, 2]], "iscrowd": 1}
            for image in ids
        ]
        annotations += [{"image_id": ids[0], "category_id": 90}] * 2
        images = [{"id": image} for image in [*ids, 77]]  # 77 has no annotation
        content = {"images": images, "annotations": annotations, "categories": CATEGORIES}
        write(root / f"annotations/instances_{part}2014.json", json.dumps(content))
        for image in [*ids, 77]:
            empty(root / f"{part}2014/COCO_{part}2014_{image:012d}.jpg")
    return root


def make_nus(root: Path, count: int = 14, listed: bool = True) -> Path:
    names = {"Train": [f"actor\\{n:04}_7.jpg" for n in range(count)], "Test": [f"zoo\\{n:04}_8.jpg" for n in range(6)]}
    concepts = ["sky", "airport", "moon"]
    for part, images in names.items():
        write(root / f"ImageList/{part}Imagelist.txt", *images)
        for column, concept in enumerate(concepts):
            flags = [int(row % 4 == column) for row in range(len(images))]  # every fourth image shows nothing
            write(root / f"Groundtruth/TrainTestLabels/Labels_{concept}_{part}.txt", *flags)
        for image in images:
            empty(root / "Flickr" / image.replace("\\", "/"))
    if listed:
        write(root / "ConceptsList/Concepts81.txt", *concepts)
    return root


def make_cub(root: Path, base: str = "CUB_200_2011", names: str = "attributes.txt") -> Path:
    home = root / base
    images = [f"00{n % 3}.Bird/Bird_{n:04}.jpg" for n in range(12)]
    write(home / "images.txt", *(f"{n + 1} {image}" for n, image in enumerate(images)))
    write(home / "train_test_split.txt", *(f"{n + 1} {int(n % 4 != 3)}" for n in range(12)))
    cells = [(n + 1, a + 1, int(a in shown(n)), (n + a) % 4 + 1) for n in range(12) for a in range(5)]
    rows = [f"{n} {a} {there} {certain} 3.25" for n, a, there, certain in cells]
    rows[7] += " 0"  # the official file has such lines
    write(home / "attributes/image_attribute_labels.txt", *rows)
    write(root / names, *(f"{a + 1} has_colour::{a}" for a in range(5)))
    for image in images:
        empty(home / "images" / image)
    return root


TRUTH = np.array([[column in shown(row) for column in range(20)] for row in range(10)], float)
TEST = TRUTH[:3, ::-1]


def make_formatted(root: Path, folder: str, images: list[str] | None = None, truth=TRUTH, test=TEST) -> Path:
    images = images or [f"b{row}.jpg" for row in reversed(range(10))]
    tests = [f"t{row}.jpg" for row in range(3)]
    for name in [*images, *tests]:
        if ".." not in name and not name.startswith("/"):
            empty(root / folder / name.replace("\\", "/"))
    for part, labels, names in (("train", truth, images), ("val", test, tests)):
        np.save(root / f"formatted_{part}_labels.npy", labels)
        np.save(root / f"formatted_{part}_images.npy", np.array(names))
    return root


def make_folder(root: Path, count: int = 60) -> tuple[Path, Path]:
    for number in range(count):
        empty(root / f"images/{'deep/' if number % 2 else ''}{number:03}.jpg")
    write(
        root / "truth.csv",
        "image,class,state",
        *(f"{path.relative_to(root / 'images').as_posix()},fox,present" for path in root.glob("images/*.jpg")),
        *(f"{path.relative_to(root / 'images').as_posix()},deer,present" for path in root.glob("images/deep/00*.jpg")),
        "000.jpg,unicorn,absent",
        "002.jpg,deer,unsure",
    )
    return root / "images", root / "truth.csv"
