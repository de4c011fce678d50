"""The cluster task that runs Ray Train. torch is imported lazily, because Ray also imports this file elsewhere."""

import contextlib
import hashlib
import socket
from pathlib import Path
from typing import Any

from annotator.errors import AnnotatorError
from annotator.worker.adapting.node_task import RESULT_FILE, AdaptationTask

MAX_WORKER_FAILURES = 20  # of workers or machines, until it is given up


def train_in_worker(config: dict[str, Any]) -> None:
    """Train in one worker of Ray Train, and report errors that a restart would not fix.

    Args:
        config: {"task": AdaptationTask, "cpus": cores per worker, "storage": str}.
    """
    import ray

    from annotator.worker.adapting.node_training import train_on_node

    try:
        train_on_node(config)
    except (AnnotatorError, ImportError, ValueError, TypeError, OSError) as error:
        ray.get(config["task"].board.say.remote(refusal=f"{socket.gethostname()}: {error}"))
        raise


def run_ray_training(
    task: AdaptationTask, workers: int, resources: dict[str, float], use_gpu: bool, storage: str
) -> bytes:
    """Run the training with Ray Train and return the bytes of RESULT_FILE.

    A lost worker costs one epoch. A later task with the same name and storage resumes.
    """
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    trainer = TorchTrainer(
        train_in_worker,
        train_loop_config={"task": task, "cpus": resources.get("CPU", 1), "storage": storage},
        scaling_config=ScalingConfig(
            num_workers=(1, workers), use_gpu=use_gpu, resources_per_worker=resources, placement_strategy="SPREAD"
        ),
        run_config=RunConfig(
            name=task.name, storage_path=storage, failure_config=FailureConfig(max_failures=MAX_WORKER_FAILURES)
        ),
    )
    with contextlib.suppress(AttributeError):
        # Ray reserves the machines of a killed run under its id for three minutes more: the same id gets them at once.
        run_id = f"{task.name}-{hashlib.sha256(storage.encode()).hexdigest()[:12]}"
        object.__setattr__(trainer.train_run_context, "run_id", run_id)
    result = trainer.fit()
    assert result.checkpoint is not None  # at the end one is always reported
    with result.checkpoint.as_directory() as folder:
        return (Path(folder) / RESULT_FILE).read_bytes()
