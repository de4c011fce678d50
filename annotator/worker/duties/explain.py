"""Draws heat maps, the regions of an image that support a class, and stores them as small PNG files."""

import numpy as np
from PIL import Image as Picture

from annotator.errors import AnnotatorError
from annotator.store.database.arrays import replacing
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.pictures.decoding import BadImage, open_rgb
from annotator.store.runs import runs
from models.backbones.cam import colour, heat_map
from models.linear.training import Head


class Explainer:
    """Draws heat maps with the real network and the head of a run."""

    def __init__(self, db: Database, backbone):
        self.db = db
        self.backbone = backbone
        self._head: tuple[int, Head, list[int]] | None = None

    def draw(self, run_id: int, image_id: int, class_ids: list[int]) -> None:
        """Draw the image's heat maps for these classes and keep them.

        Raises AnnotatorError when the run is gone or does not know a class, or the image cannot be read; DiskFull.
        """
        head, known = self._run(run_id)
        unknown = [class_id for class_id in class_ids if class_id not in known]
        if unknown:
            raise AnnotatorError(f"Run {run_id} knows nothing of class {unknown[0]}: it was added later.")
        size = self.backbone.input_size
        try:
            picture = open_rgb(images.image_path(self.db, image_id), at_least=(size, size))
        except BadImage as error:
            raise AnnotatorError(f"The image cannot be read any more: {error}.") from error
        columns = [known.index(class_id) for class_id in class_ids]
        heats = heat_map(self.backbone, head.weight, head.bias, self.backbone.preprocess(picture), columns)
        for class_id, heat in zip(class_ids, heats, strict=True):
            with replacing(self.db.paths.heatmap(run_id, image_id, class_id), sync=False) as part:
                Picture.fromarray(np.ascontiguousarray(colour(heat)), "RGBA").save(part, format="PNG")

    def _run(self, run_id: int) -> tuple[Head, list[int]]:
        if self._head is None or self._head[0] != run_id:
            run = runs.kept_run(self.db, run_id)
            if run is None:
                raise AnnotatorError(f"Run {run_id} is gone, newer ones have replaced it; ask for a newer heat map.")
            self._head = (run_id, Head.load(self.db.paths.run(run_id) / "head.safetensors"), run.class_ids)
        return self._head[1], self._head[2]
