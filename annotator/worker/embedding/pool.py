"""The executor of a Ray cluster: workers on every machine, chunks for each as fast as it takes them.

A worker has one chunk at work and one waiting, never more, and each result is received before the next is asked for:
that is the back-pressure, and it bounds what Ray's object stores hold. Machines may come and go. A worker that is lost
costs its chunks, which go to others; its machine gets a new one. A machine on which workers cannot start is left out,
and the reason is shown.

Ray Data is not used, although it maps batches with pools of actors, too. What is lost with a worker must be one chunk,
known by its images, since each must be in the shards exactly once and a file that kills its reader must be found; Ray
Data hides which rows were in a lost task. Its pipelines are hardly supported through `ray://`
(https://github.com/ray-project/ray/issues/39860), and lost blocks of a lost machine are made again by lineage, outside
of its back-pressure (docs.ray.io, Ray Data, fault tolerance). So there are actors, one chunk at work and one waiting
for each, and a queue of our own. Ray's own retries are off (max_restarts = max_task_retries = 0): the queue knows more.
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

from annotator.cluster.connection import Use, lost, without_program
from annotator.errors import AnnotatorError, several
from annotator.store.database.database import Database
from annotator.store.features.cache import FeatureCache
from annotator.store.images.band_setting import shown_bands
from annotator.store.images.file_addresses import ImageFiles, image_files, reading_image
from annotator.store.locations.location import AT_A_TIME
from annotator.store.pictures.decoding import BadImage, open_rgb
from annotator.worker.embedding.chunks import LOSSES, Chunk, Chunks
from annotator.worker.embedding.members import AHEAD, Machine, Member, Share, shares
from annotator.worker.embedding.node import Embedded, Ready, Work
from annotator.worker.embedding.node import Member as OnNode
from annotator.worker.embedding.results import Result

LOOK_SECONDS = 2.0  # how often machines are looked for
WAIT_SECONDS = 0.5  # for a result, before the caller may report
SENT_BYTES = 32 << 20  # of files that travel with a chunk
STARTS = 3  # of workers in a row that fail, until a machine is left out
NO_CORES_SECONDS = 120.0  # until a cluster without a core to work with is given up: machines may be about to join
AGAIN_SECONDS = 60.0  # until a machine is tried again, unless it would fail in the same way
FULL = "(is its memory full, or the disk where Ray keeps temporary files?)"
FATAL = f"{LOSSES} workers ended while they read it"


class Pool:
    """An executor that embeds on the machines of a cluster.

    Attributes:
        note: The reason for a delay, "" for none.
        workers: The number at work now.
    """

    def __init__(self, ray: Any, db: Database, use: Use, work: Work, network: Any, cache: FeatureCache):
        """Put the network into the cluster, once; each machine takes it from there.

        Args:
            ray: The module, connected to a cluster.
            db: The project's database.
            use: The cluster, and what messages say about it.
            work: The job of each worker; its `network` is replaced.
            network: The Pretrained of the backbone.
            cache: The features of the project.
        """
        self._ray, self._db, self._use, self._cache = ray, db, use, cache
        self._basis: Any = None  # a reference, once there is a basis
        reference = ray.put(network)
        self._work = replace(work, network=_Network(reference))
        self._actor = ray.remote(OnNode)
        self._machines: dict[str, Machine] = {}
        self._members: list[Member] = []
        self._looked_at = 0.0
        self._began = time.monotonic()

    @property
    def workers(self) -> int:
        """Return the number of workers that are ready."""
        return sum(member.ready is not None for member in self._members)

    @property
    def note(self) -> str:
        """Return the reason for a delay and the machines left out, in words; "" for none."""
        left_out = [
            f"{machine.name} is left out: {machine.reason}" for machine in self._machines.values() if machine.reason
        ]
        if not self._machines and time.monotonic() - self._began > 10:
            return "Waiting for the cluster: no machine offers cores yet"
        if not self.workers and not left_out and time.monotonic() - self._began > 10:
            return "Waiting for the cluster: all of its cores are taken, or workers are starting"
        return "; ".join(left_out)

    def results(self, chunks: Chunks, should_stop: Callable[[], bool]) -> Iterator[Result | None]:
        """Yield results as they come, and None between them so that the caller can report progress.

        Ends when all is done, or after should_stop returns True.

        Raises:
            AnnotatorError: No machine can embed, or the cluster is gone.
        """
        try:
            while not should_stop() and (len(chunks) or any(member.out for member in self._members)):
                self._look_at_machines()
                yield from self._hand_out(chunks)
                for reference in self._wait():
                    yield from self._take_in(reference, chunks)
                for member in [member for member in self._members if member.is_overdue()]:
                    yield from self._lose(member, chunks, "did not answer in time")
                yield None
        except ConnectionError as error:
            raise lost(self._use, error) from error
        except ImportError as error:  # through ray:// the head unpacks the worker's class before it is begun
            raise without_program(self._use, error) from error
        finally:
            for member in self._members:
                self._kill(member)
            self._members.clear()

    # -- machines and their workers

    def _look_at_machines(self) -> None:
        """Add new machines, forget those that are gone, and start the workers that are missing."""
        if time.monotonic() - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = time.monotonic()
        alive = {node["NodeID"]: node for node in self._ray.nodes() if node["Alive"]}
        self._machines = {node_id: machine for node_id, machine in self._machines.items() if node_id in alive}
        for node_id, node in alive.items():
            if node_id not in self._machines and (of_node := shares(node["Resources"])):
                self._machines[node_id] = Machine(node_id, self._name(node), of_node)
        for machine in self._machines.values():
            if time.monotonic() > machine.again_at:
                machine.reason, machine.again_at = "", math.inf
            if not machine.reason:
                taken = [member.share for member in self._members if member.machine is machine]
                for share in _missing(machine.shares, taken):
                    self._start(machine, share)
        if self._machines and not self._members:
            problems = [f"{machine.name} {machine.reason}" for machine in self._machines.values()]
            raise several(f"No machine of the cluster ({self._use.on}) can embed:", problems)
        if not self._machines and time.monotonic() - self._began > NO_CORES_SECONDS:
            raise AnnotatorError(
                f"The cluster ({self._use.on}) offers no cores to work with. Machines join it with: "
                "ray start --address=HEAD:6379 --num-cpus=8"
            )

    def _name(self, node: dict[str, Any]) -> str:
        name = node.get("NodeManagerHostname") or node.get("NodeName") or node["NodeID"][:8]
        taken = {machine.name for machine in self._machines.values()}
        return name if name not in taken else f"{name} ({node['NodeID'][:6]})"

    def _start(self, machine: Machine, share: Share) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        handle = self._actor.options(
            num_cpus=share.cpus,
            num_gpus=share.gpus,
            scheduling_strategy=NodeAffinitySchedulingStrategy(machine.node_id, soft=False),
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=AHEAD,
        ).remote()
        work = replace(self._work, threads=share.threads, gpu=share.gpus > 0)
        self._members.append(Member(machine, share, handle, handle.start.remote(work)))

    def _kill(self, member: Member) -> None:
        try:
            self._ray.kill(member.handle)
        except Exception:  # it is gone already, or the cluster is
            return

    # -- chunks

    def _hand_out(self, chunks: Chunks) -> Iterator[Result]:
        """Give each worker the chunks it can take.

        Yields results for images that this process could not read for a worker.
        """
        for wanted in range(1, AHEAD + 1):  # one for each first
            for member in self._members:
                if member.ready is None or len(member.out) >= wanted:
                    continue
                chunk = chunks.take(member.next_size(len(chunks), self.workers))
                if chunk is None:
                    return
                yield from self._send(member, chunk, chunks)

    def _send(self, member: Member, chunk: Chunk, chunks: Chunks) -> Iterator[Result]:
        """Send a chunk to a worker, with the content of the files that its machine cannot read.

        Images beyond SENT_BYTES of content go back to the queue. Yields a result for images that this process cannot
        read.
        """
        assert member.ready is not None  # or it would get nothing
        of_images: list[ImageFiles] = []
        contents: dict[int, bytes] = {}
        failures: list[tuple[int, str]] = []
        taken = room = 0
        of_chunk = image_files(self._db, chunk.image_ids.tolist())
        while taken < len(of_chunk) and room <= SENT_BYTES:
            several = of_chunk[taken : taken + AT_A_TIME]
            taken += len(several)
            unseen = [
                chunk.with_files or {place.folder for place in files.places} <= member.ready.unseen for files in several
            ]
            readings = [reading_image(files) if there else None for files, there in zip(several, unseen, strict=True)]
            for files, read in zip(several, readings, strict=True):
                if read is not None:
                    try:
                        contents[files.image_id] = content = _content(read())
                    except (AnnotatorError, OSError) as error:
                        failures.append((files.image_id, str(error)))
                        continue
                    room += len(content)
                of_images.append(files)
        chunks.give_back(replace(chunk, image_ids=chunk.image_ids[taken:]))
        if failures:
            yield _failed(failures, socket.gethostname())
        if of_images:
            sent = replace(chunk, image_ids=np.array([files.image_id for files in of_images], np.int64))
            member.send(member.handle.embed.remote(of_images, contents, self._basis_there()), sent)

    def _basis_there(self) -> Any:
        """Return a reference to the axes along which the project's regions are coded; None until they are settled."""
        if self._basis is None and self._cache.basis is not None:
            self._basis = self._ray.put(self._cache.basis)
        return self._basis

    def _wait(self) -> list[Any]:
        """Return references that are ready, after WAIT_SECONDS at most."""
        starting = [member.starting for member in self._members if member.starting is not None]
        waiting = starting + [reference for member in self._members for reference in member.out]
        if not waiting:
            time.sleep(WAIT_SECONDS)
            return []
        ready, _ = self._ray.wait(waiting, num_returns=1, timeout=WAIT_SECONDS)
        return ready

    def _take_in(self, reference: Any, chunks: Chunks) -> Iterator[Result]:
        member = next(member for member in self._members if reference == member.starting or reference in member.out)
        try:
            answer = self._ray.get(reference)
        except ConnectionError:
            raise
        except Exception as error:  # Ray's own errors, or what the worker raised
            yield from self._lose(member, chunks, _why(error), final=_is_final(error))
            return
        if isinstance(answer, Ready):
            member.starting = None
            if answer.refusal:
                member.machine.reason = answer.refusal
                self._drop(member)
            else:
                member.ready = answer
            return
        chunk = member.receive(reference)
        yield from self._result(answer, chunk, member, chunks)

    def _result(self, embedded: Embedded, chunk: Chunk, member: Member, chunks: Chunks) -> Iterator[Result]:
        """Yield the result of a chunk.

        Images that the worker could not read but this machine can are queued again, with their files.
        """
        failures, again = embedded.failures, []
        if not chunk.with_files:
            problems = _problems(self._db, [image_id for image_id, _ in failures])
            failures = [(image_id, problem) for image_id, problem in problems.items() if problem]
            again = [image_id for image_id, problem in problems.items() if not problem]
        chunks.give_back(Chunk(np.array(again, np.int64), chunk.losses, with_files=True))
        parts = embedded.image_ids, embedded.features, embedded.regions
        yield Result(*parts, failures, embedded.facts, embedded.appearances, member.machine.name)

    # -- losses

    def _lose(self, member: Member, chunks: Chunks, why: str, *, final: bool = False) -> Iterator[Result]:
        """Drop a lost worker: its chunks go back to the queue; yield failures for images that are given up.

        Args:
            member: The worker.
            chunks: The queue of chunks of images.
            why: Why it was lost.
            final: Whether a new worker would end the same way.
        """
        if member.ready is None:
            member.machine.failed_starts += 1
            if final or member.machine.failed_starts >= STARTS:
                member.machine.reason = why if final else f"{why} {FULL}"
                member.machine.again_at = math.inf if final else time.monotonic() + AGAIN_SECONDS
        for place, sent in enumerate(member.out.values()):
            if place:  # it was waiting: the chunk in front of it was at work
                chunks.give_back(sent.chunk)
            elif given_up := chunks.lose(sent.chunk):
                yield _failed([(image_id, FATAL) for image_id in given_up], member.machine.name)
        self._drop(member)
        self._looked_at = 0.0  # a new one at once

    def _drop(self, member: Member) -> None:
        self._members.remove(member)
        self._kill(member)


def _problems(db: Database, image_ids: list[int]) -> dict[int, str]:
    """Return image id -> why it cannot be read on this machine, "" when it can."""
    problems: dict[int, str] = {}
    readings = [(files.image_id, reading_image(files)) for files in image_files(db, image_ids)]
    for image_id, read in readings:
        try:
            open_rgb(read(), at_least=(1, 1), bands=shown_bands(db))
            problems[image_id] = ""
        except (AnnotatorError, BadImage) as error:
            problems[image_id] = str(error)
    return problems


def _content(source: Path | BytesIO) -> bytes:
    return source.read_bytes() if isinstance(source, Path) else source.getvalue()


class _Network:
    """A callable that returns the network on a machine of the cluster; only a reference travels until it is called."""

    def __init__(self, reference: Any):
        self._reference = [reference]  # in a list Ray leaves it a reference

    def __call__(self) -> Any:
        import ray

        return ray.get(self._reference[0])


def _missing(wanted: list[Share], taken: list[Share]) -> list[Share]:
    """Return the shares that no worker has."""
    rest = list(taken)
    missing = []
    for share in wanted:
        if share in rest:
            rest.remove(share)
        else:
            missing.append(share)
    return missing


def _failed(failures: list[tuple[int, str]], node: str) -> Result:
    empty = np.zeros((0, 0), np.float16)
    return Result(np.zeros(0, np.int64), empty, empty[:, None], failures, node=node)


def _is_final(error: Exception) -> bool:
    """Return whether each further worker on this machine would fail in the same way."""
    return "ModuleNotFoundError" in str(error) or "ImportError" in str(error)


def _why(error: Exception) -> str:
    text = str(error).strip()
    if _is_final(error):
        line = next((line for line in reversed(text.splitlines()) if "Error" in line), text)
        return f"has no complete annotator ({line.strip()}): pip install 'multilabel-annotator[cluster]' there"
    if "No space left" in text or type(error).__name__ == "OutOfDiskError":
        return "has a full disk: Ray needs room for temporary files there"
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [type(error).__name__]
    return f"lost its workers: {lines[-1] if 'Traceback' in text else lines[0]}"
