"""Training on a Ray cluster: Ray Train runs node_run.py while this process waits.

Ray Train cannot be driven through `ray://`, so a cluster task drives it.
"""

import contextlib
import math
import socket
from collections.abc import Callable
from typing import Any

from safetensors.torch import load

from annotator.cluster.connection import (
    ClusterUse,
    build_cluster_lost_error,
    build_missing_program_error,
    connect_to_cluster,
)
from annotator.cluster.machines import build_no_cores_error
from annotator.cluster.package_versions import get_package_versions
from annotator.errors import AnnotatorError
from annotator.store.images.band_setting import get_shown_bands
from annotator.store.images.file_addresses import load_image_files
from annotator.worker.adapting.adaptation_progress import Paused
from annotator.worker.adapting.local_training import Training

CORES_PER_WORKER = 4  # of a worker on a machine without GPU
WAIT_SECONDS = 1.0


def train_on_cluster(on: str, training: Training, storage: str | None, notify: Callable[[str], None]) -> None:
    """Train on a cluster and store weights and embeddings in `training`. Raises Paused or AnnotatorError.

    Args:
        storage: Folder or URL of checkpoints. None selects a project folder, for single-machine clusters only.
    """
    use = ClusterUse(on, "annotator adapt PROJECT --on local", "The same command goes on from the last checkpoint.")
    with connect_to_cluster(use) as ray:
        try:
            content = _run_on_cluster(ray, on, training, storage, notify)
        except ImportError as error:
            raise build_missing_program_error(use, error) from error
        except ConnectionError as error:
            raise build_cluster_lost_error(use, error) from error
    tensors = load(content)
    unread = tensors.pop("unread").tolist()
    training.adopt_result(
        {name.removeprefix("network."): tensor for name, tensor in tensors.items() if name.startswith("network.")},
        tensors["fitted"].numpy(),
        tensors["judging"].numpy(),
        unread,
    )


def _run_on_cluster(ray: Any, on: str, training: Training, storage: str | None, notify: Callable[[str], None]) -> bytes:
    from annotator.worker.adapting.node_run import run_ray_training
    from annotator.worker.adapting.node_task import AdaptationTask, ProgressBoard
    from annotator.worker.embedding.cluster_executor import _NetworkReference

    plan, work = training.plan, training.work
    nodes = [node for node in ray.nodes() if node["Alive"]]
    gpu = any(node["Resources"].get("GPU", 0) >= 1 for node in nodes)
    cores_per_worker = (
        1.0
        if gpu
        else min(
            CORES_PER_WORKER,
            max(1, min(_get_node_cores(node) for node in nodes if _get_node_cores(node)) if nodes else 1),
        )
    )
    workers = sum(
        int(node["Resources"].get("GPU", 0)) if gpu else math.floor(_get_node_cores(node) / cores_per_worker)
        for node in nodes
    )
    if not workers:
        raise build_no_cores_error(on)
    place = storage or _get_project_storage(training, on, nodes)
    board = ray.remote(ProgressBoard).options(num_cpus=0).remote()
    task = AdaptationTask(
        name=f"{plan.name}-{training.digest}",
        parent=plan.parent,
        network=_NetworkReference(ray.put(training.source.images_only())),
        images=load_image_files(training.db, plan.image_ids.tolist()),
        labels=plan.labels,
        mask=plan.mask,
        unbiased=plan.unbiased,
        held_out=plan.held_out,
        method=plan.method,
        parameters=plan.parameters,
        epochs=plan.epochs,
        versions=get_package_versions(),
        board=board,
        bands=get_shown_bands(training.db),
    )
    notify(f"On the cluster with {workers} processes at most; checkpoints in {place}.")
    resources = {"CPU": cores_per_worker} | ({"GPU": 1.0} if gpu else {})
    job = ray.remote(run_ray_training).options(num_cpus=0, max_retries=0).remote(task, workers, resources, gpu, place)
    refusal = ""
    while True:
        ready, _ = ray.wait([job], timeout=WAIT_SECONDS)
        if ready:
            break
        with contextlib.suppress(ray.exceptions.RayError):
            said = ray.get(board.get_state.remote())
            training.epochs_done = max(training.epochs_done, said["done"] if said["doing"] == "training" else 0)
            work.report(f"{said['doing']} ({said['workers']} processes)", said["done"], said["of"])
            refusal = said["refusal"]
        if refusal:
            ray.cancel(job, force=True)
            raise AnnotatorError(f"The training on the cluster ({on}) ended: {refusal}")
        if work.should_stop():
            ray.cancel(job, force=True)
            raise Paused
    try:
        return ray.get(job)
    except ray.exceptions.RayError as error:
        raise AnnotatorError(f"The training on the cluster ({on}) ended: {_extract_reason(error)}") from error


def _get_project_storage(training: Training, on: str, nodes: list[Any]) -> str:
    """Return the project's checkpoint folder. Raises AnnotatorError for multi-machine clusters."""
    others = {str(node.get("NodeManagerHostname")) for node in nodes} - {socket.gethostname()}
    if others:
        raise AnnotatorError(
            f"The cluster ({on}) has other machines ({', '.join(sorted(others)[:5])}), so checkpoints need a place "
            "that all of them reach: --storage s3://bucket/adapting, or --storage with a folder that they share."
        )
    return str((training.folder / "storage").resolve())


def _get_node_cores(node: Any) -> float:
    return node["Resources"].get("CPU", 0.0)


def _extract_reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    ours = [line for line in lines if "AnnotatorError" in line]
    return (ours or lines)[-1].rpartition("AnnotatorError: ")[2]
