"""A project whose network can be adapted in seconds: small drawings, all complete, and a tiny network of timm."""

import uuid
from dataclasses import fields
from pathlib import Path

import numpy as np
import timm
import torch
from conftest import CLASSES, draw

from annotator.exchange.project_setup import set_up_project
from annotator.records import Decision
from annotator.store.database.arrays import save_array
from annotator.store.database.database import Database
from annotator.store.disk.durable import make_folder
from annotator.store.labels import decisions
from annotator.store.networks import configuration
from annotator.store.networks.adapted_networks import FITTED_IMAGES_FILE, AdaptedNetwork, write_facts
from annotator.worker.process import Worker

IMAGES, SIZE = 72, 64


def make_network(folder: Path) -> Path:
    """A network of random weights, as timm keeps it."""
    torch.manual_seed(0)
    made = timm.create_model("test_efficientnet", pretrained=False)
    made.pretrained_cfg = dict(made.pretrained_cfg) | {"input_size": (3, SIZE, SIZE), "license": "mit"}
    timm.models.save_for_hf(made, str(folder), safe_serialization=True)
    return folder


def shown(number: int) -> tuple[str, ...]:
    """What is drawn on an image."""
    return tuple(name for bit, name in enumerate(CLASSES) if (number * 7 + 1) >> bit & 1)


def draw_all(folder: Path) -> Path:
    for number in range(IMAGES):
        draw(folder / f"{number:03}.jpg", shown(number), seed=number)
    return folder


def make_project(folder: Path, photos: Path, network: Path) -> Database:
    """Its images are all complete and have features."""
    classes = folder.with_name("classes.txt")
    classes.write_text("\n".join(CLASSES))
    set_up_project(folder, images_folder=photos, class_file=classes)
    db = Database(folder)
    configuration.set_backbone(db, f"local-dir:{network}")
    for number in range(IMAGES):
        made = [
            Decision(_id(), "label", "Ann", "click", image_id=number + 1, class_id=CLASSES.index(name) + 1, state=1)
            for name in shown(number)
        ]
        decisions.save(db, [*made, Decision(_id(), "done", "Ann", "done", image_id=number + 1)])
    worker = Worker(folder)
    worker.image_embedder.embed_missing()
    worker.close()
    return db


def _id() -> str:
    return str(uuid.uuid4())


def pretend_adapted(db: Database, name: str, parent: str, fitted: np.ndarray, **facts: object) -> AdaptedNetwork:
    """Facts of an adapted network without its weights, as of one that was fitted to these images."""
    numbers = dict.fromkeys((field.name for field in fields(AdaptedNetwork)), 0)
    made = AdaptedNetwork(
        **(numbers | {"name": name, "parent": parent, "what": "", "licence": "", "is_better": True} | facts)
    )
    make_folder(db.paths.adapted_network(name))
    save_array(db.paths.adapted_network(name) / FITTED_IMAGES_FILE, fitted.astype(np.int64))
    write_facts(db.paths.adapted_network(name), made)
    return made
