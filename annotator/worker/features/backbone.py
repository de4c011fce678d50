"""The network of a project by its name: one that any project can name, or one that was adapted in this project.

Weights under a licence that binds their users are downloaded only once it was accepted on this machine.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from annotator.errors import AnnotatorError
from annotator.settings import DEFAULT_BACKBONE
from annotator.store.database import heartbeat
from annotator.store.database.database import Database
from annotator.store.networks import adapted
from annotator.store.networks import machine_settings as machine
from models.backbones import hub, licences
from models.backbones.curated import install_command

if TYPE_CHECKING:
    from models.backbones.networks import Backbone
    from models.backbones.pretrained import Pretrained
    from models.backbones.published import Published

MEASURED_SECONDS = 5.0
Show = Callable[[int, int, str], None]


def prepare_backbone(
    name: str,
    accepts: Callable[[licences.Licence], bool] = lambda licence: False,
    show: Show = lambda done, of, what: None,
) -> None:
    """Make sure that a network can be used: its licence accepted, its weights here, whole, and of finite output.

    Args:
        name: The name of the network.
        accepts: Asks a person whether a licence is accepted; an accepted one is recorded.
        show: Called with (bytes done, of, the present step).

    Raises:
        AnnotatorError: There is no such network, its licence is not accepted, its weights cannot be had.
    """
    if name == DEFAULT_BACKBONE:
        return
    from models.backbones.networks import Backbone  # loads torch, so only when it is needed
    from models.backbones.pretrained import parts_of, pretrained

    refuse_lacking(name)
    try:
        for part in parts_of(name):
            facts = _facts(part)
            if _is_to_accept(facts.licence) and accepts(licences.about(facts.licence)):
                machine.accept(facts.licence)
            fetch_weights(part, lambda done, of, part=part: show(done, of, f"Downloading {part}"))
            if facts.file and (path := hub.cached(facts.repository, facts.file)):
                hub.check(path)
        network = pretrained(name)
        Backbone(name, network)
        if network.text is not None:
            network.text.encode(["a photo"])  # its tokenizer is fetched, too
    except ValueError as error:
        raise AnnotatorError(str(error)) from error


def refuse_lacking(name: str) -> None:
    """Raise AnnotatorError for a network whose library is not installed."""
    if command := install_command(name):
        raise AnnotatorError(f"{name} needs open_clip, which is not installed.\n    Install it with: {command}")


def _facts(part: str) -> "Published":
    """Return the published facts of a network.

    The licence of a repository that is only on the hub is asked for there, before its download.
    """
    from models.backbones.published import published

    facts = published(part)
    repository = facts.repository.partition("@")[0]
    if not repository or facts.licence or hub.is_here(repository, facts.file):
        return facts
    return replace(facts, licence=hub.licence(repository))


def _is_to_accept(licence: str) -> bool:
    """Return whether a licence binds those who use the weights, and was not accepted on this machine."""
    return licences.must_be_accepted(licence) and licence not in machine.accepted_licences()


def refuse_unaccepted(name: str) -> None:
    """Raise AnnotatorError for a network whose weights would be downloaded under a licence that nobody accepted."""
    from models.backbones.pretrained import parts_of

    for part in parts_of(name):
        facts = _facts(part)
        if not _is_to_accept(facts.licence):
            continue
        if facts.repository and hub.is_here(facts.repository.partition("@")[0], facts.file):
            continue  # somebody downloaded it: a project that uses it goes on
        terms = licences.about(facts.licence)
        raise AnnotatorError(
            f"The weights of {part} are under a licence that binds those who use them, and it was not accepted on this "
            f"machine yet: {terms.title}. {terms.sentence} {terms.url}\n"
            f"    Read it, then accept it with: annotator backbones --fetch {part} --accept-licence"
        )


def fetch_weights(name: str, show: Callable[[int, int], None]) -> None:
    """Download and check the weights of a network, where they are on the hub and not on this machine.

    Args:
        name: The name of the network.
        show: Called with (bytes done, of).

    Raises:
        AnnotatorError: Its licence is not accepted, or its weights cannot be had.
    """
    from models.backbones.pretrained import parts_of
    from models.backbones.published import published

    refuse_lacking(name)
    refuse_unaccepted(name)
    for part in parts_of(name):
        facts = published(part)
        if facts.repository and facts.file and hub.cached(facts.repository, facts.file) is None:
            try:
                hub.fetch(facts.repository, facts.file, show)
            except ValueError as error:
                raise AnnotatorError(str(error)) from error


def network_of(db: Database, name: str) -> "Pretrained":
    """Return the network that a project calls by this name, with how its images are prepared.

    Raises AnnotatorError when its weights cannot be had.
    """
    from models.backbones.pretrained import pretrained
    from models.backbones.sources.timm_models import LOCAL_DIR

    folder = adapted.folder(db, name)
    if folder is None:
        refuse_unaccepted(name)
    try:
        return pretrained(name if folder is None else f"{LOCAL_DIR}{folder}")
    except ValueError as error:
        raise AnnotatorError(str(error)) from error


def backbone_of(db: Database, name: str) -> "Backbone":
    """Return that network frozen and in its fastest form: on a GPU if there is one with room for it.

    Raises AnnotatorError when its weights cannot be had.
    """
    from models.backbones.networks import loaded, notice

    def say(sentence: str) -> None:
        heartbeat.note_error(db, sentence)
        notice(sentence)

    try:
        return loaded(name, lambda: network_of(db, name), say=say)
    except ValueError as error:
        raise AnnotatorError(str(error)) from error


def measure_speed(name: str, db: Database | None = None, seconds: float | None = None) -> machine.Speed:
    """Measure how many images a second the network takes on this machine, regions included, and store the speed.

    The images are made up and in memory: reading files comes on top, which takes less where a network is slow.

    Args:
        name: The name of the network.
        db: A project that has adapted networks.
        seconds: To measure; None: MEASURED_SECONDS.

    Raises AnnotatorError when its weights cannot be had.
    """
    import torch

    from annotator.worker.features.embed import BATCH, embedding_threads, forward
    from models.backbones.batches import settle_batch
    from models.backbones.networks import load_backbone

    try:
        if db is not None:
            backbone = backbone_of(db, name)
        else:
            refuse_unaccepted(name)
            backbone = load_backbone(name, None)
    except ValueError as error:
        raise AnnotatorError(str(error)) from error
    seconds = seconds or MEASURED_SECONDS
    settle_batch(backbone)
    batch, size = backbone.chunk if backbone.on_gpu else BATCH, backbone.input_size
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
    speed = machine.Speed(round(done / passed, 2), backbone.setting, time.time())
    machine.keep_speed(name, speed)
    return speed
