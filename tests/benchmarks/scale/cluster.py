"""`annotator embed` on a Ray cluster of this machine beside this process alone, undisturbed and with workers killed."""

import importlib.util
import itertools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from harness.child_processes import GRACE_SECONDS, close_input, start_module
from harness.ray_cluster import Cluster

from annotator.benchmark.scratch import print_progress, scratch_folder
from annotator.errors import AnnotatorError
from annotator.exchange.project_setup import set_up_project
from annotator.store.database.database import Database
from annotator.store.features.shards import list_shards, locate_arrays, read_ids
from annotator.store.networks import configuration
from benchmarks.scale.photo_files import write_photos

PHOTO_KILOBYTES = 50  # of a photo


def measure(images: int = 20_000, workers: int = 3, kill_seconds: float = 20.0) -> dict[str, Any]:
    """Measure `annotator embed` from its start to its end, here alone, on a cluster, and on a cluster with kills.

    Args:
        images: The number of photos.
        workers: Machines of the cluster: processes of `ray start` with one core each, beside a head without.
        kill_seconds: One worker is ended with SIGKILL this often.

    Returns:
        {"bench", "figures", "ratios"}: seconds and images a second here alone, on the cluster, and on it with kills;
        the kills; how many images are in no shard or in several after each (0). Ratios: cluster over alone, kills over
        none.

    Raises:
        AnnotatorError: Without Ray, on systems without /proc, and when a command fails.
    """
    if importlib.util.find_spec("ray") is None:
        raise AnnotatorError("Ray is not installed. Install it with: pip install 'multilabel-annotator[cluster]'")
    if not Path("/proc/self/stat").exists():
        raise AnnotatorError("bench cluster finds the workers that it ends in /proc, which this system does not have.")
    with scratch_folder() as folder:
        print_progress(f"Writing {images:,} photos.")
        write_photos(folder / "photos", images, PHOTO_KILOBYTES)
        set_up_project(folder / "project", images_folder=folder / "photos")
        db = Database(folder / "project")
        figures: dict[str, float] = {"images": images, "workers": workers}
        figures |= _measure_embedding(db, "local", images)
        cluster = Cluster(cpus=0)
        try:
            for _ in range(workers):
                cluster.add_machine()
            figures |= _measure_embedding(db, "cluster", images, cluster)
            figures |= _measure_embedding(db, "kills", images, cluster, kill_seconds)
        finally:
            cluster.end()
    ratios = {
        "cluster_over_local": figures["cluster_seconds"] / figures["local_seconds"],
        "kills_over_cluster": figures["kills_seconds"] / figures["cluster_seconds"],
    }
    return {"bench": "cluster", "figures": figures, "ratios": {name: round(ratio, 3) for name, ratio in ratios.items()}}


def _measure_embedding(
    db: Database, name: str, images: int, cluster: Cluster | None = None, kill_seconds: float = 0.0
) -> dict[str, float]:
    """Embed all images in a process of its own; return its figures, with `name` in their names; remove the features."""
    print_progress(f"Embedding: {name}.")
    kills = 0
    with tempfile.TemporaryFile() as errors:
        process = start_module(
            "annotator", "embed", db.paths.project, "--json", *(["--on", "ray"] if cluster else []),
            output=errors, results=subprocess.PIPE, environment=cluster.environment if cluster else None,
        )  # fmt: skip
        try:
            if cluster and kill_seconds:
                kills = _kill_workers(cluster, process, kill_seconds)
            assert process.stdout is not None
            said = process.stdout.read()
            if process.wait():
                errors.seek(0)
                raise AnnotatorError(f"annotator embed failed ({name}):\n{errors.read()[-2000:].decode().strip()}")
        finally:
            process.terminate()
            process.wait(GRACE_SECONDS)
            close_input(process)
    result = json.loads(said.splitlines()[-1])
    folder = db.paths.features(configuration.get_backbone(db))
    times = Counter(itertools.chain.from_iterable(_read_image_ids(path) for path in list_shards(folder)))
    shutil.rmtree(folder)
    figures: dict[str, float] = {
        f"{name}_seconds": result["seconds"],
        f"{name}_images_a_second": result["images_a_second"],
        f"{name}_not_once": images - sum(count == 1 for count in times.values()),
    }
    return figures | ({f"{name}_killed_workers": kills} if kill_seconds else {})


def _kill_workers(cluster: Cluster, process: subprocess.Popen, seconds: float) -> int:
    """Kill a worker every `seconds` while the process runs; return the number of kills."""
    kills, next_at = 0, time.monotonic() + seconds
    while process.poll() is None:
        if time.monotonic() >= next_at and (workers := cluster.list_workers()):
            os.kill(workers[kills % len(workers)], signal.SIGKILL)
            kills, next_at = kills + 1, next_at + seconds
        time.sleep(0.1)
    return kills


def _read_image_ids(path: Path) -> list[int]:
    return read_ids(path, locate_arrays(path)[0])[0].tolist()
