"""Ultralytics YOLO: what its own checks find in a folder; runs in our environment with Ultralytics beside it.

Prints JSON: of a classification folder {"names", "train", "val"}, of a detection YAML {image: [class, ...]}.
"""

import json
import sys
from pathlib import Path

from ultralytics.data.utils import check_cls_dataset, check_det_dataset, img2label_paths, verify_image_label

task, path = sys.argv[1:]
if task == "classify":
    found = check_cls_dataset(path)
    images = {
        part: sorted(str(file.relative_to(found[part])) for file in found[part].rglob("*.jpg"))
        for part in ("train", "val")
    }
    answer = {"names": list(found["names"].values())} | images
else:
    found = check_det_dataset(path, autodownload=False)
    answer = {}
    for part in ("train", "val"):
        for image in sorted(Path(found[part]).rglob("*.jpg")):
            (label,) = img2label_paths([str(image)])
            _, boxes, *_, message = verify_image_label((str(image), label, "", False, len(found["names"]), 0, 0, False))
            assert boxes is not None, message
            name = str(image.relative_to(found["path"]))
            answer[name] = sorted({found["names"][int(number)] for number in boxes[:, 0]})
print("ANSWER", json.dumps(answer))
