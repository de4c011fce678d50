"""The images of a project, as input to training methods."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from annotator.errors import AnnotatorError
from annotator.store.database.database import Database
from annotator.store.features.feature_cache import FeatureCache
from annotator.store.images.band_setting import get_shown_bands
from annotator.worker.features.backbone import load_project_backbone
from annotator.worker.features.region_cache import RegionCache
from annotator.worker.training import external_predictions
from spmll.ensemble.regions import Regions
from spmll.rows import Rows
from spmll.trainers.base import Progress

if TYPE_CHECKING:
    from annotator.worker.training.project_maps import ProjectMaps
    from spmll.backbones.frozen_backbone import Backbone


class ProjectImages:
    """The training inputs of the images of an embedding cache, in its order."""

    def __init__(
        self,
        db: Database,
        cache: FeatureCache,
        backbone: str,
        load: Callable[[], "Backbone"] | None,
        regions: RegionCache,
        class_ids: Sequence[int] = (),
    ):
        """Give trainers access to the images of a cache (`load` returns the backbone, None loads it by name)."""
        self._class_ids = class_ids
        self._db, self._cache, self._backbone, self._load, self._regions = db, cache, backbone, load, regions

    @property
    def features(self) -> Rows:
        return self._cache.features

    @property
    def memory(self) -> dict[str, Any]:
        return self._regions.memory

    def region_codes(self, progress: Progress) -> Regions:
        """Return all region codes, computing only new ones."""
        return self._regions.get_codes(self._cache, lambda: progress("looking at regions of images", 0, 0))

    def name_scores(self) -> np.ndarray:
        """Return the probabilities predicted from class names. Raises AnnotatorError if there are none."""
        return external_predictions.load_name_scores(self._db, self._cache, list(self._class_ids))

    def maps(self) -> "ProjectMaps":
        """Return the feature maps of the images. Raises AnnotatorError if the backbone has none."""
        # These take seconds to import, and only methods that read maps need them.
        from annotator.worker.features.map_cache import MapFiles
        from annotator.worker.training.project_maps import ProjectMaps
        from spmll.backbones.feature_maps import FeatureMaps

        backbone = self._load() if self._load else load_project_backbone(self._db, self._backbone)
        try:
            network = FeatureMaps(backbone)
        except ValueError as error:
            raise AnnotatorError(f"{error} Or choose a method that reads no maps.") from error
        files = MapFiles(self._db.paths.features(backbone.name) / "maps", network, bands=get_shown_bands(self._db))
        return ProjectMaps(self._db, files, self._cache.image_ids)
