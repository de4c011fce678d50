"""The Ray cluster executor: workers per machine, each with one chunk running and one waiting.

That limit is the back-pressure that bounds Ray's object stores. Ray Data is not used: it hides which rows a lost task
held, but each image must be stored exactly once and a file that kills its reader must be found. It is barely supported
through `ray://` (https://github.com/ray-project/ray/issues/39860). Ray's own retries are off.
"""

import math
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from annotator.cluster.connection import ClusterUse, build_cluster_lost_error, build_missing_program_error
from annotator.cluster.machines import build_no_cores_error, choose_machine_name, describe_excluded_machines
from annotator.errors import AnnotatorError, combine_problems
from annotator.store.database.database import Database
from annotator.store.features.feature_cache import FeatureCache
from annotator.store.images.band_setting import get_shown_bands
from annotator.store.images.file_addresses import ImageFiles, load_image_files, start_reading_image
from annotator.store.locations.location import READ_AHEAD_FILES
from annotator.store.pictures.decoding import BadImage, open_rgb
from annotator.worker.embedding.chunks import MAX_LOSSES, Chunk, ChunkQueue
from annotator.worker.embedding.cluster_workers import (
    CHUNKS_PER_WORKER,
    ClusterWorker,
    WorkerMachine,
    WorkerShare,
    split_machine,
)
from annotator.worker.embedding.node_worker import EmbeddedChunk, NodeWorker, StartReply, WorkerJob
from annotator.worker.embedding.result_writer import EmbeddingResult

MACHINE_CHECK_SECONDS = 2.0  # how often machines are looked for
WAIT_SECONDS = 0.5  # for a result, before the caller may report
MAX_SENT_BYTES = 32 << 20  # of files that travel with a chunk
MAX_FAILED_STARTS = 3  # of workers in a row that fail, until a machine is left out
NO_CORES_SECONDS = 120.0  # until a cluster without a core to work with is given up: machines may be about to join
MACHINE_RETRY_SECONDS = 60.0  # until a machine is tried again, unless it would fail in the same way
FULL_HINT = "(is its memory full, or the disk where Ray keeps temporary files?)"
FATAL_FILE_PROBLEM = f"{MAX_LOSSES} workers ended while they read it"


class ClusterExecutor:
    """An executor that embeds on the machines of a cluster (`note`: reason for a delay, or "")."""

    def __init__(self, ray: Any, db: Database, use: ClusterUse, work: WorkerJob, network: Any, cache: FeatureCache):
        """Put the backbone into the cluster's object store.

        Args:
            work: The job of each worker, whose `network` is replaced.
            network: The backbone's `Pretrained`.
        """
        self._ray, self._db, self._use, self._cache = ray, db, use, cache
        self._basis: Any = None  # a reference, once there is a basis
        reference = ray.put(network)
        self._work = replace(work, network=_NetworkReference(reference))
        self._actor = ray.remote(NodeWorker)
        self._machines: dict[str, WorkerMachine] = {}
        self._members: list[ClusterWorker] = []
        self._looked_at = 0.0
        self._began = time.monotonic()

    @property
    def workers(self) -> int:
        return sum(member.ready is not None for member in self._members)

    @property
    def note(self) -> str:
        """Return the reason for a delay and the excluded machines, or ""."""
        left_out = describe_excluded_machines(self._machines.values())
        if not self._machines and time.monotonic() - self._began > 10:
            return "Waiting for the cluster: no machine offers cores yet"
        if not self.workers and not left_out and time.monotonic() - self._began > 10:
            return "Waiting for the cluster: all of its cores are taken, or workers are starting"
        return "; ".join(left_out)

    def iterate_results(self, chunks: ChunkQueue, should_stop: Callable[[], bool]) -> Iterator[EmbeddingResult | None]:
        """Yield results, with None in between for progress reports. Raises AnnotatorError if no machine can embed."""
        try:
            while not should_stop() and (len(chunks) or any(member.sent_chunks for member in self._members)):
                self._refresh_machines()
                yield from self._distribute_chunks(chunks)
                for reference in self._wait_for_answers():
                    yield from self._receive_answer(reference, chunks)
                for member in [member for member in self._members if member.is_overdue()]:
                    yield from self._handle_lost_worker(member, chunks, "did not answer in time")
                yield None
        except ConnectionError as error:
            raise build_cluster_lost_error(self._use, error) from error
        except ImportError as error:  # through ray:// the head unpacks the worker's class before it is begun
            raise build_missing_program_error(self._use, error) from error
        finally:
            for member in self._members:
                self._kill_worker(member)
            self._members.clear()

    # -- machines and their workers

    def _refresh_machines(self) -> None:
        if time.monotonic() - self._looked_at < MACHINE_CHECK_SECONDS:
            return
        self._looked_at = time.monotonic()
        alive = {node["NodeID"]: node for node in self._ray.nodes() if node["Alive"]}
        self._machines = {node_id: machine for node_id, machine in self._machines.items() if node_id in alive}
        for node_id, node in alive.items():
            if node_id not in self._machines and (of_node := split_machine(node["Resources"])):
                name = choose_machine_name(node, self._machines.values())
                self._machines[node_id] = WorkerMachine(node_id, name, of_node)
        for machine in self._machines.values():
            if time.monotonic() > machine.retry_at:
                machine.exclusion_reason, machine.retry_at = "", math.inf
            if not machine.exclusion_reason:
                taken = [member.share for member in self._members if member.machine is machine]
                for share in _find_free_shares(machine.shares, taken):
                    self._start_worker(machine, share)
        if self._machines and not self._members:
            problems = [f"{machine.name} {machine.exclusion_reason}" for machine in self._machines.values()]
            raise combine_problems(f"No machine of the cluster ({self._use.cluster}) can embed:", problems)
        if not self._machines and time.monotonic() - self._began > NO_CORES_SECONDS:
            raise build_no_cores_error(self._use.cluster)

    def _start_worker(self, machine: WorkerMachine, share: WorkerShare) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        handle = self._actor.options(
            num_cpus=share.cpus,
            num_gpus=share.gpus,
            scheduling_strategy=NodeAffinitySchedulingStrategy(machine.node_id, soft=False),
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=CHUNKS_PER_WORKER,
        ).remote()
        work = replace(self._work, threads=share.thread_count, gpu=share.gpus > 0)
        self._members.append(ClusterWorker(machine, share, handle, handle.start.remote(work)))

    def _kill_worker(self, member: ClusterWorker) -> None:
        try:
            self._ray.kill(member.handle)
        except Exception:  # it is gone already, or the cluster is
            return

    # -- chunks

    def _distribute_chunks(self, chunks: ChunkQueue) -> Iterator[EmbeddingResult]:
        """Send chunks to free workers, and yield the results of images that nobody can read."""
        for wanted in range(1, CHUNKS_PER_WORKER + 1):  # one for each first
            for member in self._members:
                if member.ready is None or len(member.sent_chunks) >= wanted:
                    continue
                chunk = chunks.pop(member.choose_chunk_size(len(chunks), self.workers))
                if chunk is None:
                    return
                yield from self._send_chunk(member, chunk, chunks)

    def _send_chunk(self, member: ClusterWorker, chunk: Chunk, chunks: ChunkQueue) -> Iterator[EmbeddingResult]:
        """Send a chunk to a worker, with at most MAX_SENT_BYTES of files that its machine cannot read."""
        assert member.ready is not None  # or it would get nothing
        of_images: list[ImageFiles] = []
        contents: dict[int, bytes] = {}
        failures: list[tuple[int, str]] = []
        taken = room = 0
        of_chunk = load_image_files(self._db, chunk.image_ids.tolist())
        while taken < len(of_chunk) and room <= MAX_SENT_BYTES:
            several = of_chunk[taken : taken + READ_AHEAD_FILES]
            taken += len(several)
            unseen = [
                chunk.with_files or {place.folder for place in files.places} <= member.ready.unreadable_folders
                for files in several
            ]
            readings = [
                start_reading_image(files) if there else None for files, there in zip(several, unseen, strict=True)
            ]
            for files, read in zip(several, readings, strict=True):
                if read is not None:
                    try:
                        contents[files.image_id] = content = _read_bytes(read())
                    except (AnnotatorError, OSError) as error:
                        failures.append((files.image_id, str(error)))
                        continue
                    room += len(content)
                of_images.append(files)
        chunks.requeue(replace(chunk, image_ids=chunk.image_ids[taken:]))
        if failures:
            yield _build_failed_result(failures, socket.gethostname())
        if of_images:
            sent = replace(chunk, image_ids=np.array([files.image_id for files in of_images], np.int64))
            member.record_sent(member.handle.embed.remote(of_images, contents, self._get_basis_reference()), sent)

    def _get_basis_reference(self) -> Any:
        """Return a Ray reference to the project's region basis, or None until it exists."""
        if self._basis is None and self._cache.basis is not None:
            self._basis = self._ray.put(self._cache.basis)
        return self._basis

    def _wait_for_answers(self) -> list[Any]:
        starting = [member.pending_start for member in self._members if member.pending_start is not None]
        waiting = starting + [reference for member in self._members for reference in member.sent_chunks]
        if not waiting:
            time.sleep(WAIT_SECONDS)
            return []
        ready, _ = self._ray.wait(waiting, num_returns=1, timeout=WAIT_SECONDS)
        return ready

    def _receive_answer(self, reference: Any, chunks: ChunkQueue) -> Iterator[EmbeddingResult]:
        member = next(
            member for member in self._members if reference == member.pending_start or reference in member.sent_chunks
        )
        try:
            answer = self._ray.get(reference)
        except ConnectionError:
            raise
        except Exception as error:  # Ray's own errors, or what the worker raised
            yield from self._handle_lost_worker(member, chunks, _describe_failure(error), final=_is_final(error))
            return
        if isinstance(answer, StartReply):
            member.pending_start = None
            if answer.refusal:
                member.machine.exclusion_reason = answer.refusal
                self._remove_worker(member)
            else:
                member.ready = answer
            return
        chunk = member.record_received(reference)
        yield from self._accept_chunk(answer, chunk, member, chunks)

    def _accept_chunk(
        self, embedded: EmbeddedChunk, chunk: Chunk, member: ClusterWorker, chunks: ChunkQueue
    ) -> Iterator[EmbeddingResult]:
        """Yield a chunk's result, and requeue the images that only this machine can read."""
        failures, again = embedded.failures, []
        if not chunk.with_files:
            problems = _find_read_problems(self._db, [image_id for image_id, _ in failures])
            failures = [(image_id, problem) for image_id, problem in problems.items() if problem]
            again = [image_id for image_id, problem in problems.items() if not problem]
        chunks.requeue(Chunk(np.array(again, np.int64), chunk.losses, with_files=True))
        parts = embedded.image_ids, embedded.features, embedded.regions
        yield EmbeddingResult(*parts, failures, embedded.facts, embedded.appearances, member.machine.name)

    # -- losses

    def _handle_lost_worker(
        self, member: ClusterWorker, chunks: ChunkQueue, reason: str, *, final: bool = False
    ) -> Iterator[EmbeddingResult]:
        """Drop a lost worker and requeue its chunks (`final`: a new worker on its machine would fail too)."""
        if member.ready is None:
            member.machine.failed_starts += 1
            if final or member.machine.failed_starts >= MAX_FAILED_STARTS:
                member.machine.exclusion_reason = reason if final else f"{reason} {FULL_HINT}"
                member.machine.retry_at = math.inf if final else time.monotonic() + MACHINE_RETRY_SECONDS
        for place, sent in enumerate(member.sent_chunks.values()):
            if place:  # it was waiting: the chunk in front of it was at work
                chunks.requeue(sent.chunk)
            elif given_up := chunks.requeue_lost(sent.chunk):
                yield _build_failed_result(
                    [(image_id, FATAL_FILE_PROBLEM) for image_id in given_up], member.machine.name
                )
        self._remove_worker(member)
        self._looked_at = 0.0  # a new one at once

    def _remove_worker(self, member: ClusterWorker) -> None:
        self._members.remove(member)
        self._kill_worker(member)


def _find_read_problems(db: Database, image_ids: list[int]) -> dict[int, str]:
    """Return image id -> why its file cannot be read on this machine ("" if it can)."""
    problems: dict[int, str] = {}
    readings = [(files.image_id, start_reading_image(files)) for files in load_image_files(db, image_ids)]
    for image_id, read in readings:
        try:
            open_rgb(read(), at_least=(1, 1), bands=get_shown_bands(db))
            problems[image_id] = ""
        except (AnnotatorError, BadImage) as error:
            problems[image_id] = str(error)
    return problems


def _read_bytes(source: Path | BytesIO) -> bytes:
    return source.read_bytes() if isinstance(source, Path) else source.getvalue()


class _NetworkReference:
    """A callable that loads the backbone from Ray's object store."""

    def __init__(self, reference: Any):
        self._reference = [reference]  # in a list Ray leaves it a reference

    def __call__(self) -> Any:
        import ray

        return ray.get(self._reference[0])


def _find_free_shares(wanted: list[WorkerShare], taken: list[WorkerShare]) -> list[WorkerShare]:
    rest = list(taken)
    missing = []
    for share in wanted:
        if share in rest:
            rest.remove(share)
        else:
            missing.append(share)
    return missing


def _build_failed_result(failures: list[tuple[int, str]], node: str) -> EmbeddingResult:
    empty = np.zeros((0, 0), np.float16)
    return EmbeddingResult(np.zeros(0, np.int64), empty, empty[:, None], failures, node=node)


def _is_final(error: Exception) -> bool:
    """Return whether this error would stop every worker on this machine."""
    return "ModuleNotFoundError" in str(error) or "ImportError" in str(error)


def _describe_failure(error: Exception) -> str:
    text = str(error).strip()
    if _is_final(error):
        line = next((line for line in reversed(text.splitlines()) if "Error" in line), text)
        return f"has no complete annotator ({line.strip()}): pip install 'multilabel-annotator[cluster]' there"
    if "No space left" in text or type(error).__name__ == "OutOfDiskError":
        return "has a full disk: Ray needs room for temporary files there"
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [type(error).__name__]
    return f"lost its workers: {lines[-1] if 'Traceback' in text else lines[0]}"
