"""One process of a cluster training, without access to the project or its database."""

import contextlib
import hashlib
import os
import shutil
import socket
import stat
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from annotator.cluster.package_versions import find_version_mismatch
from annotator.errors import AnnotatorError
from annotator.store.disk import processes
from annotator.store.disk.file_permissions import get_user_id, is_open_to_others
from annotator.store.images.file_addresses import open_image_file
from annotator.worker.adapting.node_task import RESULT_FILE, AdaptationTask
from annotator.worker.features.map_cache import MapFiles, StoredMaps
from spmll.backbones.frozen_backbone import Backbone
from spmll.finetune.adapt import (
    WEAK_VIEWS,
    AdaptationLabels,
    adapt_last_stages,
    compute_stage_features,
    make_adaptation_recipe,
)
from spmll.finetune.last_stages import split_network
from spmll.finetune.parallel_process import ParallelProcess
from spmll.finetune.views import MapExamples
from spmll.methods import make_method

CHECKPOINT_FILE = "checkpoint.safetensors"
SEED = 0


def train_on_node(config: dict[str, Any]) -> None:
    import ray
    import ray.train
    import ray.train.torch
    import torch.distributed as dist
    from safetensors.torch import save_file

    task: AdaptationTask = config["task"]
    _check_versions(task)
    context = ray.train.get_context()
    rank, world_size = context.get_world_rank(), context.get_world_size()
    device = ray.train.torch.get_device()
    torch.set_num_threads(max(1, int(config["cpus"])))
    source = task.network()
    backbone = Backbone(task.parent, source, str(device))
    inputs, last_stages, what = split_network(backbone, source)
    folder = _create_process_folder(f"{task.name}-{hashlib.sha256(config['storage'].encode()).hexdigest()[:12]}")
    files = MapFiles(folder, inputs, strong=0, open_file=_open_image, bands=task.bands)
    owner = np.arange(len(task.images)) % world_size
    unread = _make_inputs(task, files, np.flatnonzero(owner == rank), rank, world_size)
    everything: list[Any] = [None] * world_size
    dist.all_gather_object(everything, unread)
    lost = np.array(sorted({row for rows in everything for row in rows}), np.int64)
    rows = np.setdiff1d(np.arange(len(task.images)), lost)
    fitted, judging = (rows[task.held_out[rows] == held] for held in (False, True))

    def build_examples(of_rows: np.ndarray) -> MapExamples:
        return MapExamples(
            StoredMaps(files, [task.images[row].image_id for row in of_rows]), weak=WEAK_VIEWS, device=str(device)
        )

    path = folder / f"{rank}-{CHECKPOINT_FILE}"
    path.unlink(missing_ok=True)
    before = ray.train.get_checkpoint()
    if before is not None:
        with before.as_directory() as kept:
            shutil.copy(Path(kept) / CHECKPOINT_FILE, path)
    together = ParallelProcess(torch.from_numpy(owner[fitted]), rank, world_size)
    if rank == 0:
        ray.get(task.board.say.remote(doing="training", done=0, of=task.epochs, workers=world_size))
    training = adapt_last_stages(
        last_stages,
        build_examples(fitted),
        AdaptationLabels(task.labels[fitted], task.mask[fitted], task.unbiased[fitted]),
        make_method(task.method, **task.parameters),
        make_adaptation_recipe(task.epochs),
        seed=SEED,
        checkpoint=path,
        parallel=together,
    )
    with tempfile.TemporaryDirectory() as report:
        for epoch in training:
            checkpoint = None
            if rank == 0:
                shutil.copy(path, Path(report) / CHECKPOINT_FILE)
                checkpoint = ray.train.Checkpoint.from_directory(report)
            ray.train.report({"epoch": epoch.number, "loss": epoch.loss}, checkpoint=checkpoint)
            if rank == 0:  # an epoch is said to be done when Ray has noted it: it is not trained again
                ray.train.get_all_reported_checkpoints(ray.train.CheckpointConsistencyMode.COMMITTED)
                ray.get(task.board.say.remote(doing="training", done=epoch.number, of=epoch.total, workers=world_size))
        parts = []
        for of_rows in (fitted, judging):
            mine = ParallelProcess(torch.from_numpy(owner[of_rows]), rank, world_size)
            own = compute_stage_features(
                last_stages, build_examples(of_rows), lambda: False, mine.own_images, as_backbone=True
            )
            parts.append(mine.gather(torch.from_numpy(own)))
        checkpoint = None
        if rank == 0:
            weights = training.copy_weights()
            tensors = {"fitted": parts[0], "judging": parts[1], "unread": torch.from_numpy(lost)}
            tensors |= {f"network.{name}": tensor.contiguous() for name, tensor in weights.items()}
            save_file(tensors, Path(report) / RESULT_FILE, {"what": what})
            shutil.copy(path, Path(report) / CHECKPOINT_FILE)
            checkpoint = ray.train.Checkpoint.from_directory(report)
        ray.train.report({"epoch": task.epochs}, checkpoint=checkpoint)
    shutil.rmtree(folder, ignore_errors=True)


def _open_image(files: Any) -> Any:
    return open_image_file(files, patient=True)


def _make_inputs(task: AdaptationTask, files: MapFiles, own_rows: np.ndarray, rank: int, world_size: int) -> list[int]:
    """Prepare the inputs of this process's images, and return unreadable rows. Raises AnnotatorError if most are."""
    import ray

    unread: list[int] = []
    done = 0
    for held_out in (True, False):
        rows = own_rows[task.held_out[own_rows] == held_out]
        by_id = {task.images[row].image_id: int(row) for row in rows}
        items: list[Any] = [(image_id, task.images[row]) for image_id, row in by_id.items()]
        for made, failures in files.make_maps(items, not held_out):
            unread += [by_id[image_id] for image_id in failures]
            if rank == 0:
                ray.get(
                    task.board.say.remote(
                        doing="preparing images",
                        done=(done + made) * world_size,
                        of=len(task.images),
                        workers=world_size,
                    )
                )
        done += len(rows)
    if len(unread) * 2 > len(own_rows):
        raise AnnotatorError(
            f"{socket.gethostname()} cannot read {len(unread)} of its {len(own_rows)} images. The folders of images "
            "must be there under the same path, or be addresses (annotator init --in-place)."
        )
    return unread


def _create_process_folder(name: str) -> Path:
    """Create a private temporary folder and delete those of ended processes."""
    folder = Path(tempfile.gettempdir()) / f"annotator-adapting-{get_user_id()}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != get_user_id() or is_open_to_others(found):
        raise AnnotatorError(
            f"{folder} is needed for temporary files, but is not a folder that is yours alone. Delete it, or name "
            "another place in TMPDIR."
        )
    of_run = folder / name
    of_run.mkdir(mode=0o700, exist_ok=True)
    for left in of_run.iterdir():
        if left.name.isdecimal() and not processes.process_exists(int(left.name)):
            shutil.rmtree(left, ignore_errors=True)
    own_folder = of_run / str(os.getpid())  # not shared: Ray may begin the next processes before the last have ended
    own_folder.mkdir(mode=0o700, exist_ok=True)
    return own_folder


def _check_versions(task: AdaptationTask) -> None:
    if reason := find_version_mismatch(task.versions):
        raise AnnotatorError(f"{socket.gethostname()} {reason}: install the same versions there.")
