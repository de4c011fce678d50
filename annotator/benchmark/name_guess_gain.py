"""The gain of predictions from class names: average precision on unlabeled cells, and human effort."""

import shutil
import uuid
from pathlib import Path
from typing import Any

import numpy as np

from annotator.benchmark.datasets.clicks import draw_clicks
from annotator.benchmark.effort import curves
from annotator.benchmark.effort.comparison import OUR_POLICY
from annotator.benchmark.effort.effort_measurement import make_project
from annotator.benchmark.effort.play import PERFECT_PERSON, Play, run_play
from annotator.benchmark.scratch import print_progress, scratch_folder
from annotator.errors import AnnotatorError
from annotator.records import PRESENT, Decision
from annotator.snapshot.run_predictions import read_predictions
from annotator.store.classes import classes, name_texts
from annotator.store.database.database import Database
from annotator.store.features.feature_cache import open_features
from annotator.store.labels import audits, decisions
from annotator.store.networks import configuration
from annotator.store.runs import prediction_sources
from annotator.worker.process import Worker
from annotator.worker.training.train import train
from spmll.statistics.metrics import hidden_average_precision

BENCH_ANNOTATOR = "Bench"


def measure(images: Path, truth: Path, backbone: str, *, effort: bool = True, seed: int = 0) -> dict[str, Any]:
    """Measure average precision on unlabeled cells, and human effort, with and without class names.

    Args:
        truth: CSV of all labels.
        effort: Also simulate a person.

    Raises:
        AnnotatorError: If the backbone cannot read text, or truth does not match.
    """
    with scratch_folder() as folder:
        without, with_names = folder / "without", folder / "with"
        shown = make_project(without, images, truth, backbone)
        shutil.copytree(without, with_names, ignore=shutil.ignore_patterns("*.lock", "*-shm"))
        figures: dict[str, float | None] = {
            "images": len(shown),
            "classes": shown.shape[1],
            "chance AP": float(shown.mean()),
        }
        figures |= _measure_guesses(with_names, shown)
        told, ratios = draw_clicks(shown, 1.0, seed), {}
        for name, project in (("without names", without), ("with names", with_names)):
            ap = _measure_after_clicks(project, folder / "told", shown, told)
            figures |= {
                f"{name}, one label an image: hidden AP": ap[0],
                f"{name}, one label an image: hidden mAP": ap[1],
            }
        if effort:
            limit = float(shown.sum() + len(shown))
            for name, project in (("without names", without), ("with names", with_names)):
                at: Any = curves.find_goal_point(
                    run_play(project, folder / "played", shown, Play(OUR_POLICY, PERFECT_PERSON, seed), limit)
                )
                figures[f"{name}: actions to recall 0.95"] = at and at["actions"]
            actions = [figures[f"{name}: actions to recall 0.95"] for name in ("without names", "with names")]
            if actions[0] and actions[1]:
                ratios["actions without names over with them"] = round(actions[0] / actions[1], 3)
    return {"bench": "names", "backbone": backbone, "figures": figures, "ratios": ratios}


def _measure_guesses(project: Path, shown: np.ndarray) -> dict[str, float | None]:
    worker, figures = Worker(project), {}
    try:
        if name_texts.build_wording(worker.db) is None:
            raise AnnotatorError(name_texts.describe_state(worker.db))
        worker.name_guesser.publish_if_due(all_embedded=True)
        figures |= _measure_ranking(worker.db, shown, "names alone, whole images")
        print_progress("comparing names with patches")
        while worker.name_guesser.compare_some_patches():
            pass
        figures |= _measure_ranking(worker.db, shown, "names alone, patches too")
    finally:
        worker.close()
    return figures


def _measure_ranking(db: Database, shown: np.ndarray, name: str) -> dict[str, float | None]:
    if error := name_texts.load_newest_guess(db).error:
        raise AnnotatorError(f"Classes could not be guessed from their names: {error}")
    (opened,) = prediction_sources.open_scores(db)
    class_ids = [class_.id for class_ in classes.load_active_classes(db)]
    scores = prediction_sources.load_aligned_scores(db, opened, audits.load_readable_image_ids(db), class_ids).astype(
        np.float32
    )
    ap = hidden_average_precision(scores, np.zeros(shown.shape, np.int8), shown)
    return {f"{name}: AP": ap.cells, f"{name}: mAP": ap.classes}


def _measure_after_clicks(project: Path, copy: Path, shown: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Train on `labels` in a copy, and return average precision on unlabeled cells: over all, and class mean."""
    shutil.copytree(project, copy, ignore=shutil.ignore_patterns("*.lock", "*-shm"))
    try:
        db = Database(copy)
        image_ids, class_ids = (
            audits.load_readable_image_ids(db),
            [class_.id for class_ in classes.load_active_classes(db)],
        )
        decisions.save(
            db,
            [
                Decision(
                    str(uuid.uuid4()),
                    "label",
                    BENCH_ANNOTATOR,
                    "click",
                    int(image_ids[row]),
                    class_ids[column],
                    PRESENT,
                )
                for row, column in np.argwhere(labels > 0).tolist()
            ],
        )
        backbone = configuration.get_backbone(db)
        train(db, open_features(db, backbone), configuration.get_method(db), configuration.get_parameters(db), backbone)
        predictions = read_predictions(db)
        assert predictions is not None  # a training has just published some
        scores = predictions.align(predictions.probabilities, image_ids, np.array(class_ids)).astype(np.float32)
        ap = hidden_average_precision(scores, labels, shown)
    finally:
        shutil.rmtree(copy, ignore_errors=True)
    return ap.cells, ap.classes
