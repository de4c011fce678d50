"""Draws heat maps, the image regions that support a class, as PNG files."""

import numpy as np
from PIL import Image as Picture

from annotator.errors import AnnotatorError
from annotator.records import PRESENT
from annotator.snapshot.run_predictions import read_predictions
from annotator.store.database.arrays import replace_file_atomically
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.images.band_setting import get_shown_bands
from annotator.store.labels import decisions
from annotator.store.pictures.decoding import BadImage, open_rgb
from annotator.store.runs import runs
from annotator.store.runs.heatmap_findings import save_finding
from spmll.backbones.cam import color_heat_map, compute_heat_map
from spmll.backbones.occlusion import compute_logit_gains, find_confused_class
from spmll.linear.training import Head


class Explainer:
    """The drawer of heat maps, with the backbone and linear head of one run."""

    def __init__(self, db: Database, backbone):
        self.db = db
        self.backbone = backbone
        self._head: tuple[int, Head, list[int]] | None = None

    def draw(self, run_id: int, image_id: int, class_ids: list[int]) -> None:
        """Draw and store an image's heat maps. Raises AnnotatorError."""
        head, known = self._load_head(run_id)
        unknown = [class_id for class_id in class_ids if class_id not in known]
        if unknown:
            raise AnnotatorError(f"Run {run_id} knows nothing of class {unknown[0]}: it was added later.")
        size = self.backbone.input_size
        try:
            picture = open_rgb(
                images.find_image_path(self.db, image_id), at_least=(size, size), bands=get_shown_bands(self.db)
            )
        except BadImage as error:
            raise AnnotatorError(f"The image cannot be read any more: {error}.") from error
        columns = [known.index(class_id) for class_id in class_ids]
        image = self.backbone.preprocess(picture)
        heats = compute_heat_map(self.backbone, head.weight, head.bias, image, columns)
        others = [known.index(class_id) for class_id in self._find_shown_classes(image_id) if class_id in known]
        gained = np.zeros((len(columns), head.classes), np.float32)
        if any(other != column for other in others for column in columns):
            gained = compute_logit_gains(self.backbone, head.weight, head.bias, image, heats)
        for class_id, column, heat, gain in zip(class_ids, columns, heats, gained, strict=True):
            found = find_confused_class(gain, column, others)
            save_finding(self.db, run_id, class_id, image_id, None if found is None else known[found])
            with replace_file_atomically(self.db.paths.heatmap(run_id, image_id, class_id), sync=False) as part:
                Picture.fromarray(np.ascontiguousarray(color_heat_map(heat)), "RGBA").save(part, format="PNG")

    def _find_shown_classes(self, image_id: int) -> set[int]:
        """Return the classes that the image shows: labeled present, or predicted where unanswered."""
        labels = {label.class_id: label.state for label in decisions.load_labels(self.db, [image_id])}
        shown = {class_id for class_id, state in labels.items() if state == PRESENT}
        predictions = read_predictions(self.db)
        if predictions is None:
            return shown
        (row,), (has_row,) = predictions.find_rows([image_id])
        if not has_row:
            return shown
        likely = np.asarray(predictions.probabilities[[row]], np.float32)[0] >= predictions.run.threshold
        return shown | {class_id for class_id in predictions.class_ids[likely].tolist() if class_id not in labels}

    def _load_head(self, run_id: int) -> tuple[Head, list[int]]:
        if self._head is None or self._head[0] != run_id:
            run = runs.find_kept_run(self.db, run_id)
            if run is None:
                raise AnnotatorError(f"Run {run_id} is gone, newer ones have replaced it; ask for a newer heat map.")
            self._head = (run_id, Head.load(self.db.paths.run(run_id) / "head.safetensors"), run.class_ids)
        return self._head[1], self._head[2]
