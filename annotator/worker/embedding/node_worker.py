"""The cluster side of `annotator embed`, without access to the project or its database.

The backbone comes with the job, unpacked only after a check for equal package versions.
"""

import os
import socket
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import Any

import numpy as np

from annotator.cluster.package_versions import find_version_mismatch
from annotator.errors import AnnotatorError
from annotator.store.features.shards import CodedRegions
from annotator.store.features.stored_basis import StoredBasis
from annotator.store.images.file_addresses import ImageFiles, open_image_file, start_reading_image
from annotator.store.locations.location import PendingRead
from annotator.store.pictures.appearance import Appearance
from annotator.store.pictures.bands import BandChoices
from annotator.store.pictures.decoding import ImageFacts


@dataclass(frozen=True)
class WorkerJob:
    """The job of a cluster worker."""

    name: str
    # returns the backbone's `Pretrained`
    network: Callable[[], Any]
    # package versions of the requesting machine
    versions: dict[str, str]
    # images decoded at once
    threads: int
    gpu: bool
    # folder -> sample images that test readability
    probes: dict[str, list[ImageFiles]]
    bands: BandChoices


@dataclass(frozen=True)
class StartReply:
    """A cluster worker's reply to its start."""

    pid: int
    host: str
    # backbone configuration in words
    setting: str = ""
    # why it cannot start, or ""
    refusal: str = ""
    unreadable_folders: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class EmbeddedChunk:
    """The embeddings of one chunk, as a cluster worker returns them."""

    # (n,) int64
    image_ids: np.ndarray
    # (n, D) float16
    features: np.ndarray
    # (n, R, D) float16, or codes
    regions: np.ndarray | CodedRegions
    # (image id, reason)
    failures: list[tuple[int, str]]
    # (image id, file metadata), images at URLs only
    facts: list[tuple[int, ImageFacts]]
    appearances: list[tuple[int, Appearance]]


class NodeWorker:
    """The Ray actor that embeds chunks. Ray runs two `embed` calls at once, so it never idles."""

    def __init__(self):
        self._stack = ExitStack()

    def start(self, work: WorkerJob) -> StartReply:
        """Check versions, build the backbone, test which folders are readable."""
        host = socket.gethostname()
        if reason := find_version_mismatch(work.versions):
            return StartReply(os.getpid(), host, refusal=reason)
        from annotator.worker.embedding.node_network import NodeNetwork

        self._network = self._stack.enter_context(
            NodeNetwork(work.name, work.network, work.threads, work.gpu, work.bands)
        )
        unseen = frozenset(folder for folder, probes in work.probes.items() if not any(map(_is_readable, probes)))
        return StartReply(os.getpid(), host, self._network.setting, "", unseen)

    def embed(
        self, of_images: list[ImageFiles], contents: dict[int, bytes], basis: StoredBasis | None = None
    ) -> EmbeddedChunk:
        """Embed a chunk.

        Args:
            of_images: Images and their files.
            contents: Image id -> file content, for files unreadable on this machine.
            basis: Region basis. Encoding regions here sends a tenth of the bytes.
        """

        def begin(place: int) -> PendingRead:
            files = of_images[place]
            content = contents.get(files.image_id)
            return start_reading_image(files, patient=True) if content is None else partial(BytesIO, content)

        ids = np.array([files.image_id for files in of_images], np.int64)
        batch = self._network.embed(len(of_images), begin)
        regions = batch.regions
        assert regions is not None  # they were asked for
        if basis is not None and np.isfinite(regions).all():
            from annotator.worker.features.region_coding import compute_region_codes

            regions = compute_region_codes(basis, regions)
        failures = [(int(ids[place]), reason) for place, reason in batch.failures]
        facts = [(int(ids[place]), facts) for place, facts in batch.facts]
        looks = [(int(ids[place]), appearance) for place, appearance in batch.appearances]
        return EmbeddedChunk(ids[batch.indices], batch.features, regions, failures, facts, looks)


def _is_readable(files: ImageFiles) -> bool:
    try:
        open_image_file(files)
    except AnnotatorError:
        return False
    return True
