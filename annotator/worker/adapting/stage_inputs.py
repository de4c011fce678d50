"""Inputs of the first trained stage on disk: two views per training image."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from annotator.errors import AnnotatorError, NothingToLearn
from annotator.progress_callbacks import ProgressCallback
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.locations.location import ImageSource
from annotator.store.pictures.bands import BandChoices
from annotator.worker.adapting.adaptation_plan import AdaptationPlan, check_plan
from annotator.worker.features.map_cache import MapFiles, StoredMaps
from spmll.finetune.adapt import WEAK_VIEWS
from spmll.finetune.last_stages import StageInputs
from spmll.finetune.views import MapExamples

MAX_INPUT_BYTES = 40 << 30  # of inputs on the disk: 400,000 images of the default network
INPUTS_FOLDER = "inputs"


def open_input_files(folder: Path, inputs: StageInputs, bands: BandChoices) -> MapFiles:
    """Return the files in an adaptation folder that hold the inputs of the first trained stage."""
    return MapFiles(folder / INPUTS_FOLDER, inputs, strong=0, bands=bands)


def limit_to_disk_space(plan: AdaptationPlan, bytes_each: int, max_bytes: int = MAX_INPUT_BYTES) -> AdaptationPlan:
    """Return the plan with training images dropped until its inputs fit in `max_bytes`. Raises NothingToLearn.

    Images with unbiased labels are kept first.
    """
    fitted = plan.fitted_rows
    room = max((max_bytes - len(plan.held_out_rows) * bytes_each) // (WEAK_VIEWS * bytes_each), 0)
    if len(fitted) <= room:
        return plan
    chance = np.random.default_rng(0).random(len(fitted))
    order = np.lexsort([chance, ~plan.unbiased[fitted].any(1)])
    smaller = plan.select_rows(np.sort(np.concatenate([plan.held_out_rows, fitted[order[:room]]])))
    check_plan(smaller)
    return smaller


def make_inputs(
    db: Database,
    plan: AdaptationPlan,
    files: MapFiles,
    on_progress: ProgressCallback,
    should_stop: Callable[[], bool],
) -> AdaptationPlan:
    """Prepare missing inputs, and return the plan without unreadable images. Raises DiskFull or NothingToLearn.

    The reason is stored per image.
    """
    unread: set[int] = set()
    done = 0
    for rows, views in ((plan.held_out_rows, False), (plan.fitted_rows, True)):
        items: list[tuple[int, ImageSource]] = []
        for image_id in plan.image_ids[rows].tolist():
            if files.has_maps(image_id, views):
                continue
            try:
                items.append((image_id, images.find_image_source(db, image_id)))
            except AnnotatorError as error:
                images.mark_problem(db, image_id, str(error))
                unread.add(image_id)
        have = done + len(rows) - len(items)
        for made, failures in files.make_maps(items, views, should_stop):
            for image_id, reason in failures.items():
                images.mark_problem(db, image_id, reason)
                unread.add(image_id)
            on_progress(have + made, len(plan.image_ids))
            should_stop()
        done += len(rows)
    read = np.array([image_id not in unread for image_id in plan.image_ids.tolist()], bool)
    if not plan.is_settled:
        plan = replace(plan.select_rows(np.flatnonzero(read)), is_settled=True)
        check_plan(plan)
    elif not read.all():
        raise NothingToLearn(
            f"{int((~read).sum())} images of the adapting that was begun cannot be read any more (annotator status "
            "names them). Bring them back, or begin anew: annotator adapt PROJECT --anew"
        )
    return plan


def build_examples(plan: AdaptationPlan, rows: np.ndarray, files: MapFiles, device: str) -> MapExamples:
    """Return the stored inputs of these rows as training examples."""
    return MapExamples(StoredMaps(files, plan.image_ids[rows].tolist()), weak=WEAK_VIEWS, device=device)
