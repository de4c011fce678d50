"""Draw the sample data: 160 scenes, their classes and the whole truth about them.

Every scene has a random generator of its own, seeded by its number: scenes do not
depend on each other, and processes share the work.

    python docs/sample_data/generate.py [--out FOLDER]
"""

import argparse
import csv
from concurrent.futures import ProcessPoolExecutor
from io import BytesIO
from pathlib import Path

import numpy as np
from biomes import BIOME_CHANCES, BIOMES
from scene import paint_scene

OUT = Path(__file__).resolve().parents[2] / "sample_data"
SEED = 20260
IMAGES = 160
QUALITY = 88
LABEL_CHANCES = (0.16, 0.3, 0.28, 0.18, 0.08)  # of 1, 2, 3, ... classes meant for a scene
LEAST_IMAGES = 18  # of every class
CLASSES = {
    "tree": "a tree of any kind: broad crown, poplar, conifer, bare in winter",
    "house": "a cottage with roof and chimney",
    "windmill": "a tower mill with four sails",
    "lighthouse": "a banded tower with a lantern, by the sea",
    "boat": "a sailing or fishing boat on the water",
    "balloon": "a hot-air balloon with its basket",
    "sheep": "a sheep, white or dark, standing or grazing",
    "duck": "a duck, swimming or on land",
    "flower": "a clump of large flowers in the foreground",
    "mushroom": "toadstools in the foreground",
    "fence": "a wooden fence: posts and rails, or pickets",
    "tractor": "a farm tractor",
}


def draw_scene(index: int) -> tuple[bytes, list[str], list[tuple]]:
    """The JPEG of one scene, its labels in the order of CLASSES, and (class, box) of each thing; tries again while
    nothing can be seen."""
    for attempt in range(20):
        rng = np.random.default_rng([SEED, index, attempt])
        biome = BIOMES[int(rng.choice(len(BIOMES), p=BIOME_CHANCES))]
        names = list(biome.chances)
        weights = np.array([biome.chances[name] for name in names], float)
        count = 1 + int(rng.choice(len(LABEL_CHANCES), p=LABEL_CHANCES))
        wanted = [str(name) for name in rng.choice(names, size=count, replace=False, p=weights / weights.sum())]
        image, boxes = paint_scene(rng, biome, wanted)
        if boxes:
            seen = {name for name, _ in boxes}
            buffer = BytesIO()
            image.save(buffer, "JPEG", quality=QUALITY)
            return buffer.getvalue(), [name for name in CLASSES if name in seen], boxes
    raise RuntimeError(f"Scene {index} stayed empty after 20 attempts; are LEAST_SHARE or LEAST_PIXELS too strict?")


def write_all(out: Path) -> dict[str, list[str]]:
    """Write images/, classes.txt, truth.csv and boxes.csv under out; returns the labels by file name."""
    folder = out / "images"
    folder.mkdir(parents=True, exist_ok=True)
    truth: dict[str, list[str]] = {}
    places: list[tuple] = []
    with ProcessPoolExecutor(max_workers=2) as pool:
        for index, (jpeg, labels, boxes) in enumerate(pool.map(draw_scene, range(IMAGES), chunksize=4)):
            name = f"scene_{index:03d}.jpg"
            (folder / name).write_bytes(jpeg)
            truth[name] = labels
            places += [(name, kind, *box) for kind, box in boxes]
    (out / "classes.txt").write_text("".join(f"{name}\t{text}\n" for name, text in CLASSES.items()), encoding="utf-8")
    with (out / "truth.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["image", "labels"])
        writer.writerows([name, "|".join(labels)] for name, labels in truth.items())
    with (out / "boxes.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["image", "class", "left", "top", "right", "bottom"])
        writer.writerows(places)
    return truth


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the sample scenes and write their truth.")
    parser.add_argument("--out", type=Path, default=OUT, help="folder to write into")
    out = parser.parse_args().out
    truth = write_all(out)
    counts = {name: sum(name in labels for labels in truth.values()) for name in CLASSES}
    print(f"{len(truth)} scenes in {out}, {sum(counts.values()) / len(truth):.2f} labels an image")
    print("  ".join(f"{name} {count}" for name, count in counts.items()))
    if rare := [name for name, count in counts.items() if count < LEAST_IMAGES]:
        raise SystemExit(
            f"Too few images (fewer than {LEAST_IMAGES}) of: {', '.join(rare)}. Raise their chances in biomes.py."
        )


if __name__ == "__main__":
    main()
