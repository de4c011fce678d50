"""Adapting a network, the switch to it, taking it home, and the process that a worker starts for Settings."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from harness import projects
from safetensors.numpy import load_file
from typing_extensions import override

from annotator.errors import AnnotatorError
from annotator.records import Decision
from annotator.store.database.database import Database
from annotator.store.features.shards import list_shards
from annotator.store.labels import decisions
from annotator.store.networks import adaptation, adapted_networks, configuration
from annotator.worker.process import Worker, prepare_next_backbone
from benchmarks.faults.scenes.scene import Scene, compute_digests

SCENE_IMAGES, SCENE_CLASSES, INPUT_SIDE_PIXELS = 72, 3, 64
TINY_ARCHITECTURE = "test_efficientnet"  # of timm; its weights are drawn
FIRST_NETWORK = "network.adapted1"
ADAPTATION_EPOCHS = 2
FEATURE_TOLERANCE = 2e-3  # features of one image that were computed in other batches, relative to their scale


class Adapt(Scene):
    """An adapting of two epochs on 72 small images; a kill must leave the network in use, and no incomplete network."""

    name, is_repeatable = "adapt", False
    loads = ("torch", "timm", "annotator.worker.process", "annotator.worker.adapting.local_training")

    @override
    def make(self) -> None:
        made = self.folder.with_name("made to adapt")
        if not made.exists():
            make_adaptable_project(made)
        shutil.copytree(made, self.folder, dirs_exist_ok=True)
        db = Database(self.project)
        configuration.set_backbone(db, f"local-dir:{self.folder / 'network'}")
        worker = Worker(self.project)
        worker.image_embedder.embed_missing()
        worker.close()
        db.close()
        self.features = _read_features(self.project)
        self.reference: dict[str, Any] = {}

    @override
    def build_command(self) -> Sequence[object]:
        return ["adapt", self.project, "--epochs", ADAPTATION_EPOCHS]

    @override
    def read_state(self) -> Any:
        db = Database(self.project)
        names = [network.name for network in adapted_networks.load_networks(db)]
        state = [configuration.get_backbone(db).rpartition("/")[2], adapted_networks.get_next_backbone(db), names]
        db.close()
        return state

    @override
    def is_allowed(self, state: Any, before: Any, after: Any) -> bool:
        used, following, names = state
        known = {"", *before[2], *after[2]}
        return used in (before[0], after[0]) and following in known and names in (before[2], after[2])

    @override
    def check_always(self) -> list[str]:
        db = Database(self.project)
        broken = super().check_always()
        place = db.paths.adapted_network("")
        for folder in sorted(place.iterdir()) if place.exists() else ():
            if folder.name.startswith("."):
                continue
            try:
                network = compute_digests(folder, ("facts.json", "README.md"))
                if self.reference.setdefault(folder.name, network) != network or not (folder / "facts.json").exists():
                    broken.append(f"{folder.name} is another network than without a kill")
            except OSError as error:
                broken.append(f"{folder.name}: {error}")
        features = _read_features(self.project)
        for name, (ids, values) in features.items():
            known_ids, known = self.features.setdefault(name, (ids, values))
            if not set(ids) <= set(known_ids) or len(set(ids)) < len(ids):
                broken.append(f"features of {name}: images {sorted(ids)}")
            elif (
                np.abs(values - known[np.searchsorted(known_ids, ids)]).max(initial=0)
                > FEATURE_TOLERANCE * np.abs(known).max()
            ):
                broken.append(f"features of {name} are of another network")
        used = db.paths.features(configuration.get_backbone(db)).name
        if len(features.get(used, ([], None))[0]) < SCENE_IMAGES:
            broken.append(f"{used} is in use without features of all images")
        if (at_work := adaptation.get_running(db)) is not None:
            broken.append(f"process {at_work.pid} is said to adapt still")
        db.close()
        return broken

    @override
    def check_completed(self) -> list[str]:
        worker = Worker(self.project)
        worker.close()
        db = Database(self.project)
        running = db.value("SELECT count(*) FROM job WHERE state = 'running'")
        db.close()
        wrong = [f"{running} requests hang as running"] if running else []
        return wrong + (["adapting is there still"] if (self.project / "adapting").exists() else [])


class Switch(Adapt):
    """The computing of an adapted network's features, and the switch to it."""

    name, is_repeatable = "switch", True

    @override
    def make(self) -> None:
        super().make()
        from annotator.worker.adapting.adapt_now import adapt_now

        done = adapt_now(self.project, epochs=ADAPTATION_EPOCHS)
        assert done.network
        db = Database(self.project)
        adapted_networks.set_next_backbone(db, done.network.name)
        db.close()

    @override
    def build_command(self) -> Sequence[object]:
        return ["call", f"{__name__}:switch_network", self.project]


class AdaptedExport(Switch):
    """The export of an adapted network into a folder; a kill must leave all of it or nothing."""

    name, is_repeatable = "adapted_export", False

    @override
    def build_command(self) -> Sequence[object]:
        db = Database(self.project)
        name = adapted_networks.load_networks(db)[0].name
        db.close()
        return ["adapted", self.project, name, "--export", self.folder / "mine"]

    @override
    def read_state(self) -> Any:
        mine = self.folder / "mine"
        return sorted(path.name for path in mine.iterdir()) if mine.exists() else None

    @override
    def is_allowed(self, state: Any, before: Any, after: Any) -> bool:
        return state in (before, after)


class AdaptForWorker(Adapt):
    """A worker that was asked to adapt; if killed, the process that it started must end too, and continue later."""

    name, is_timed, is_repeatable = "adapt_of_worker", True, True
    ending = 20.0  # 10 seconds, and those of a busy machine

    @override
    def make(self) -> None:
        super().make()
        db = Database(self.project)
        adaptation.set_request(db, "run")
        db.close()

    @override
    def build_command(self) -> Sequence[object]:
        return ["worker", self.project]

    @override
    def build_next_command(self) -> Sequence[object]:
        return ["adapt", self.project]

    @override
    def find_leftovers(self) -> list[str]:
        # Only the next worker writes there and clears up there, and the command that follows is none.
        return [name for name in super().find_leftovers() if "/first_orders/" not in name]

    @override
    def is_allowed(self, state: Any, before: Any, after: Any) -> bool:
        # How far a worker comes before it is ended depends on the machine: sometimes it has adapted the network.
        finished = [before[0], before[1], [*before[2], FIRST_NETWORK]]
        return super().is_allowed(state, before, after) or super().is_allowed(state, before, finished)


def switch_network(project: str) -> None:
    """Compute the features of the next network, and switch to it.

    Raises:
        AnnotatorError: The network is not used afterwards.
    """
    prepare_next_backbone(Path(project), lambda done, of: None)
    db = Database(Path(project))
    following = adapted_networks.get_next_backbone(db)
    db.close()
    if following:
        raise AnnotatorError(f"{following} is not used.")


def _read_features(project: Path) -> dict[str, tuple[list[int], np.ndarray]]:
    """Return folder of features -> ids in their order, and the features of each."""
    found: dict[str, tuple[list[int], np.ndarray]] = {}
    for folder in sorted((project / "features").glob("*/")):
        shards = [load_file(path) for path in list_shards(folder)]
        if shards:
            ids = np.concatenate([shard["image_ids"] for shard in shards])
            values = np.concatenate([shard["features"].astype(np.float32) for shard in shards])
            order = np.argsort(ids)
            found[folder.name] = ids[order].tolist(), values[order]
    return found


def make_adaptable_project(folder: Path) -> None:
    """Make a network of random weights, and a project in which each class is a colour somewhere in the image."""
    import timm.models
    import torch
    from PIL import Image

    torch.manual_seed(0)
    network: Any = timm.create_model(TINY_ARCHITECTURE, pretrained=False)
    network.pretrained_cfg = dict(network.pretrained_cfg) | {
        "input_size": (3, INPUT_SIDE_PIXELS, INPUT_SIDE_PIXELS),
        "license": "mit",
    }
    save: Any = getattr(timm.models, "save_for_hf")  # noqa: B009 - not typed
    save(network, str(folder / "network"), safe_serialization=True)
    (folder / "images").mkdir()
    chance = np.random.default_rng(0)
    shows = [
        [class_ for class_ in range(SCENE_CLASSES) if (number * 7 + 1) >> class_ & 1] for number in range(SCENE_IMAGES)
    ]
    for number, present in enumerate(shows):
        pixels = chance.integers(150, 190, (72, 96, 3), dtype=np.uint8)
        for class_ in present:
            colour = np.roll((220, 90, 30), class_)
            pixels[18:54, 32 * class_ + 4 : 32 * class_ + 28] = colour
        Image.fromarray(pixels).save(folder / "images" / f"{number:03}.png")
    db = projects.make_empty_project(folder, SCENE_CLASSES)
    for number, present in enumerate(shows, start=1):
        given = [Decision(f"{number}-{one}", "label", "Ann", "click", number, 1 + one, 1) for one in present]
        decisions.save(db, [*given, Decision(f"{number}-done", "done", "Ann", "done", number)])
    db.close()
