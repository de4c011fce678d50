"""A copy of an embedded project that stores answers and trains with the worker's code."""

import shutil
from pathlib import Path

import numpy as np

from annotator.errors import AnnotatorError, NothingToLearn
from annotator.indexing import find_positions
from annotator.records import Batch, Decision
from annotator.snapshot.run_predictions import read_predictions
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.features.feature_cache import open_features
from annotator.store.images import images
from annotator.store.labels import audits, decisions, implied_cells
from annotator.store.networks import configuration
from annotator.store.networks.adapted_networks import AdaptedNetwork
from annotator.store.runs import runs
from annotator.worker.adapting.adapt_now import adapt_now
from annotator.worker.features.region_cache import RegionCache
from annotator.worker.process import prepare_next_backbone
from annotator.worker.training.incremental_update import Updater
from annotator.worker.training.schedule import RunInputs, Schedule
from annotator.worker.training.train import train


class ProjectCopy:
    """A copy of an embedded project without decisions, deleted by `close`."""

    def __init__(self, template: Path, folder: Path, *, learns: bool, seed: int):
        shutil.copytree(template, folder, copy_function=_link_or_copy, ignore=shutil.ignore_patterns("*.lock", "*-shm"))
        self.db = Database(folder)
        self.learns = learns
        self.image_ids = audits.load_readable_image_ids(self.db)
        self.class_ids = np.array([class_.id for class_ in classes.load_active_classes(self.db)], np.int64)
        self.chance = np.random.default_rng([seed, 2])
        self._cache = open_features(self.db, configuration.get_backbone(self.db))
        self._regions, self._updater, self._schedule = RegionCache(), Updater(), Schedule(clock=None)

    def store_answers(self, *answers: Decision | Batch) -> None:
        """Store answers. Raises AnnotatorError if the store refuses one."""
        if refused := decisions.save(self.db, answers).refused:
            raise AnnotatorError(f"The store refused an answer: {next(iter(refused.values()))}")

    def keep_up(self) -> None:
        """Train or update the model whenever the worker would."""
        if not self.learns:
            return
        if self._schedule.is_due(self.db, len(self._cache.image_ids)):
            self._train_model()
        elif runs.load_current_run(self.db) is not None:
            self._updater.update(self.db, self._cache)

    def adapt_network(self) -> AdaptedNetwork | None:
        """Adapt the backbone like `annotator adapt`, and use it if better. None without labels to learn from."""
        try:
            made = adapt_now(self.db.paths.project).network
        except NothingToLearn:
            return None
        if made is None:
            raise KeyboardInterrupt  # adapt_now takes a signal for a pause
        self.change_network()
        return made

    def change_network(self) -> None:
        """Switch to the project's next backbone, if any, with new embeddings."""
        prepare_next_backbone(self.db.paths.project, lambda done, of: None)
        self._cache = open_features(self.db, configuration.get_backbone(self.db))
        self._regions, self._updater = RegionCache(), Updater()
        self.keep_up()

    def _train_model(self) -> None:
        basis = RunInputs.from_project(self.db, len(self._cache.image_ids))
        method, parameters = configuration.get_method(self.db), configuration.get_parameters(self.db)
        try:
            train(self.db, self._cache, method, parameters, basis.backbone, regions=self._regions)
        except NothingToLearn:  # tried again when there are more answers
            self._schedule.failed_inputs = basis

    def load_labels(self) -> np.ndarray:
        """Return given and implied labels, (N, C) int8, audits.OPEN if unanswered."""
        labels = audits.load_label_matrix(self.db, self.image_ids, self.class_ids)[0]
        image_ids, class_ids, states, _ = implied_cells.load_cells(self.db).T
        rows, columns = find_positions(image_ids, self.image_ids)[0], find_positions(class_ids, self.class_ids)[0]
        labels[rows, columns] = np.where(labels[rows, columns] == audits.OPEN, states, labels[rows, columns])
        return labels

    def load_chances(self) -> np.ndarray | None:
        """Return current probabilities, (N, C), nan for classes without a model, or None before the first training."""
        predictions = read_predictions(self.db)
        if predictions is None:
            return None
        return predictions.align(predictions.probabilities, self.image_ids, predictions.class_ids).astype(np.float32)

    def find_row(self, image_id: int) -> int:
        return int(find_positions([image_id], self.image_ids)[0][0])

    def find_rows(self, image_ids: list[int]) -> np.ndarray:
        return find_positions(image_ids, self.image_ids)[0]

    def find_column(self, class_id: int) -> int:
        return int(find_positions([class_id], self.class_ids)[0][0])

    def shuffle_images(self) -> list[int]:
        """Return all image ids in the order of their content hashes, starting at a random hash."""
        return images.load_ids_from_hash(self.db, self.chance.bytes(8).hex(), len(self.image_ids))

    def close(self) -> None:
        shutil.rmtree(self.db.paths.project, ignore_errors=True)


def _link_or_copy(source: str, target: str) -> None:
    """Hard-link read-only embedding files and copy all others."""
    if source.endswith(".safetensors"):
        Path(target).hardlink_to(source)
    else:
        shutil.copy2(source, target)
