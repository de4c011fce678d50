"""A project's backbone by name, published or adapted.

Weights under a restrictive license are downloaded only after its acceptance on this machine.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from annotator.errors import AnnotatorError
from annotator.progress_callbacks import ProgressCallback, StepCallback, ignore_steps
from annotator.settings import DEFAULT_BACKBONE
from annotator.store.database import heartbeat
from annotator.store.database.database import Database
from annotator.store.networks import adapted_networks, machine_settings
from spmll.backbones import hub, licenses
from spmll.backbones.curated import get_install_command

if TYPE_CHECKING:
    from spmll.backbones.frozen_backbone import Backbone
    from spmll.backbones.pretrained import Pretrained
    from spmll.backbones.published_weights import PublishedWeights

DEFAULT_MEASURE_SECONDS = 5.0


def prepare_backbone(
    name: str,
    ask_acceptance: Callable[[licenses.License], bool] = lambda licence: False,
    on_step: StepCallback = ignore_steps,
) -> None:
    """Make a backbone usable: accept its license, download its weights, and check them and its output.

    Args:
        ask_acceptance: Returns whether the person accepts a license, which is then stored.
        on_step: Called with (current step, bytes done, of).

    Raises:
        AnnotatorError: Unknown name, license not accepted, or weights unavailable.
    """
    if name == DEFAULT_BACKBONE:
        return
    from spmll.backbones.frozen_backbone import Backbone  # loads torch, so only when it is needed
    from spmll.backbones.pretrained import load_pretrained, split_joined_name

    check_installed(name)
    try:
        for part in split_joined_name(name):
            facts = _find_published_weights(part)
            if _needs_acceptance(facts.licence) and ask_acceptance(licenses.get_license(facts.licence)):
                machine_settings.accept_license(facts.licence)
            fetch_weights(part, lambda done, of, part=part: on_step(f"Downloading {part}", done, of))
            if facts.file and (path := hub.find_cached(facts.repository, facts.file)):
                hub.check_sha256(path)
        network = load_pretrained(name)
        Backbone(name, network)
        if network.text is not None:
            network.text.encode(["a photo"])  # its tokenizer is fetched, too
    except ValueError as error:
        raise AnnotatorError(str(error)) from error


def check_installed(name: str) -> None:
    """Raise AnnotatorError if the backbone's library is missing."""
    if command := get_install_command(name):
        raise AnnotatorError(f"{name} needs open_clip, which is not installed.\n    Install it with: {command}")


def _find_published_weights(part: str) -> "PublishedWeights":
    """Return location and license of a backbone's weights, asking the hub for the license if needed."""
    from spmll.backbones.published_weights import find_published_weights

    facts = find_published_weights(part)
    repository = facts.repository.partition("@")[0]
    if not repository or facts.licence or hub.is_cached(repository, facts.file):
        return facts
    return replace(facts, licence=hub.fetch_license(repository))


def _needs_acceptance(licence: str) -> bool:
    return licenses.must_be_accepted(licence) and licence not in machine_settings.load_accepted_licenses()


def check_license_accepted(name: str) -> None:
    """Raise AnnotatorError if a download needs an unaccepted license."""
    from spmll.backbones.pretrained import split_joined_name

    for part in split_joined_name(name):
        facts = _find_published_weights(part)
        if not _needs_acceptance(facts.licence):
            continue
        if facts.repository and hub.is_cached(facts.repository.partition("@")[0], facts.file):
            continue  # somebody downloaded it: a project that uses it goes on
        terms = licenses.get_license(facts.licence)
        raise AnnotatorError(
            f"The weights of {part} are under a licence that binds those who use them, and it was not accepted on this "
            f"machine yet: {terms.title}. {terms.sentence} {terms.url}\n"
            f"    Read it, then accept it with: annotator backbones --fetch {part} --accept-licence"
        )


def fetch_weights(name: str, on_progress: ProgressCallback) -> None:
    """Download missing weights from the hub.

    Args:
        on_progress: Called with (bytes done, of).

    Raises:
        AnnotatorError: License not accepted, or weights unavailable.
    """
    from spmll.backbones.pretrained import split_joined_name
    from spmll.backbones.published_weights import find_published_weights

    check_installed(name)
    check_license_accepted(name)
    for part in split_joined_name(name):
        facts = find_published_weights(part)
        if facts.repository and facts.file and hub.find_cached(facts.repository, facts.file) is None:
            try:
                hub.fetch(facts.repository, facts.file, on_progress)
            except ValueError as error:
                raise AnnotatorError(str(error)) from error


def load_project_network(db: Database, name: str) -> "Pretrained":
    """Return a project's network with its preprocessing. Raises AnnotatorError."""
    from spmll.backbones.pretrained import load_pretrained
    from spmll.backbones.sources.timm_models import LOCAL_DIR_PREFIX

    folder = adapted_networks.find_folder(db, name)
    if folder is None:
        check_license_accepted(name)
    try:
        return load_pretrained(name if folder is None else f"{LOCAL_DIR_PREFIX}{folder}")
    except ValueError as error:
        raise AnnotatorError(str(error)) from error


def load_project_backbone(db: Database, name: str) -> "Backbone":
    """Return a project's frozen backbone, on a GPU if possible. Raises AnnotatorError."""
    from spmll.backbones.frozen_backbone import load_on_device, warn_user

    def say(sentence: str) -> None:
        heartbeat.record_error(db, sentence)
        warn_user(sentence)

    try:
        return load_on_device(name, lambda: load_project_network(db, name), notify=say)
    except ValueError as error:
        raise AnnotatorError(str(error)) from error


def measure_speed(name: str, db: Database | None = None, seconds: float | None = None) -> machine_settings.NetworkSpeed:
    """Measure and store a backbone's images per second, on synthetic images without file reads.

    Args:
        db: Project with adapted backbones.
        seconds: None selects DEFAULT_MEASURE_SECONDS.

    Raises AnnotatorError.
    """
    import torch

    from annotator.worker.features.embed import BATCH_IMAGES, embedding_threads, forward
    from spmll.backbones.batch_size import tune_batch_size
    from spmll.backbones.frozen_backbone import load_backbone

    try:
        if db is not None:
            backbone = load_project_backbone(db, name)
        else:
            check_license_accepted(name)
            backbone = load_backbone(name, None)
    except ValueError as error:
        raise AnnotatorError(str(error)) from error
    seconds = seconds or DEFAULT_MEASURE_SECONDS
    tune_batch_size(backbone)
    batch, size = backbone.chunk if backbone.on_gpu else BATCH_IMAGES, backbone.input_size
    pixels = torch.randint(0, 256, (batch, 3, size, size), dtype=torch.uint8)
    with embedding_threads() as threads:

        def round_of_all() -> int:
            list(threads.map(lambda _: forward(pixels, backbone, True), range(threads.size)))
            return threads.size * len(pixels)

        round_of_all()  # memory is taken, and kernels are chosen
        began, done = time.perf_counter(), 0
        while (passed := time.perf_counter() - began) < seconds or not done:
            done += round_of_all()
        passed = time.perf_counter() - began
    speed = machine_settings.NetworkSpeed(round(done / passed, 2), backbone.setting, time.time())
    machine_settings.save_speed(name, speed)
    return speed
