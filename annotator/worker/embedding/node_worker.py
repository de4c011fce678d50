"""The part of `annotator embed` that runs on a machine of a cluster: it reads images, embeds them, returns features.

It knows nothing of the project or its database. The network comes with the job, so no weights need to be there. This
program must be there, in the same version: that is checked before the network is unpacked.
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
    """The job of a worker.

    Attributes:
        name: The name of the backbone.
        network: Called for the Pretrained that the backbone is built of.
        versions: The versions on the machine that asks (annotator/cluster/package_versions.py).
        threads: Images decoded at once.
        gpu: Whether the worker has a GPU, or a share of one.
        probes: For each folder of images a few, to see whether this machine can read them.
        bands: Which bands are shown of images of many.
    """

    name: str
    network: Callable[[], Any]
    versions: dict[str, str]
    threads: int
    gpu: bool
    probes: dict[str, list[ImageFiles]]
    bands: BandChoices


@dataclass(frozen=True)
class StartReply:
    """A worker's answer to its start.

    Attributes:
        setting: How the network runs, in words.
        refusal: Why the worker cannot begin, "" when it can.
        unreadable_folders: Folders whose images it cannot read.
    """

    pid: int
    host: str
    setting: str = ""
    refusal: str = ""
    unreadable_folders: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class EmbeddedChunk:
    """The features of one chunk.

    Attributes:
        image_ids: (n,) int64.
        features: (n, D) float16.
        regions: (n, R, D) float16, or their codes.
        failures: (image id, reason) of images that could not be embedded.
        facts: (image id, facts) of images that were read at addresses.
        appearances: (image id, how it looks) of the images.
    """

    image_ids: np.ndarray
    features: np.ndarray
    regions: np.ndarray | CodedRegions
    failures: list[tuple[int, str]]
    facts: list[tuple[int, ImageFacts]]
    appearances: list[tuple[int, Appearance]]


class NodeWorker:
    """One worker of the cluster. Ray calls `embed` for two chunks at once, so that the worker never waits for one."""

    def __init__(self):
        self._stack = ExitStack()

    def start(self, work: WorkerJob) -> StartReply:
        """Check versions, build the network, and test which folders can be read here."""
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
            of_images: The images and their files.
            contents: Image id -> the content of its file, for those that this machine cannot read itself.
            basis: The project's basis; with it, regions become codes here, a tenth of the bytes to send.
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
