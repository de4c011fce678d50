"""Adapted backbones of a project, one folder each.

adapted/NAME/config.json, model.safetensors     timm format
adapted/NAME/README.md                          model card
adapted/NAME/facts.json, seen.npy               AdaptedNetwork, fitted images
"""

import json
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from annotator.errors import AnnotatorError, did_you_mean
from annotator.store.database import new_folders
from annotator.store.database.arrays import open_array
from annotator.store.database.database import Database
from annotator.store.networks.network_judgement import NetworkJudgement

FACTS_FILE, FITTED_IMAGES_FILE = "facts.json", "seen.npy"
NEXT_BACKBONE_SETTING = "next_backbone"


@dataclass(frozen=True)
class AdaptedNetwork(NetworkJudgement):
    """An adapted backbone, compared with its parent on images withheld from fitting."""

    name: str
    # backbone whose last stages were trained
    parent: str
    # trained stages, in words
    what: str
    # license of the parent's weights, per timm
    licence: str
    # unix seconds
    created_at: float
    epochs: int
    seconds: float
    images: int
    answers: int
    # newest decision used for fitting
    newest_decision: int
    held_out_images: int
    held_out_answers: int
    judged_classes: int
    classes: int
    # answers in the project at the start, 0 if not stored
    known_answers: int = 0


def find_folder(db: Database, name: str) -> Path | None:
    place = db.paths.adapted_network(name)
    return place if (place / FACTS_FILE).is_file() else None


def load_networks(db: Database) -> list[AdaptedNetwork]:
    """Return readable adapted backbones, oldest first."""
    found: list[AdaptedNetwork] = []
    for path in sorted(db.paths.adapted_network("").glob(f"*/{FACTS_FILE}")):
        try:
            facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            facts.setdefault("known_answers", 0)  # of a version that did not note it
            found.append(AdaptedNetwork(**{field.name: facts[field.name] for field in fields(AdaptedNetwork)}))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return sorted(found, key=lambda network: network.created_at)


def find_free_name(db: Database, parent: str) -> str:
    """Return a new backbone name: efficientnet_lite2.adapted1, then ...2."""
    root = parent.rsplit("/", 1)[-1].rsplit(":", 1)[-1].split(".adapted")[0]
    number = 1
    while db.paths.adapted_network(f"{root}.adapted{number}").exists():
        number += 1
    return f"{root}.adapted{number}"


def write_facts(place: Path, facts: AdaptedNetwork) -> None:
    (place / FACTS_FILE).write_text(json.dumps(asdict(facts), indent=1), encoding="utf-8")


def load_fitted_image_ids(db: Database, name: str) -> np.ndarray:
    """Return the images that a backbone or its parents were fitted to: (n,) int64."""
    ids = [np.zeros(0, np.int64)]
    known: set[str] = set()
    by_name = {network.name: network for network in load_networks(db)}
    while name in by_name and name not in known:
        known.add(name)
        with suppress(OSError, ValueError):
            ids.append(np.asarray(open_array(db.paths.adapted_network(name) / FITTED_IMAGES_FILE, None, 1), np.int64))
        name = by_name[name].parent
    return np.unique(np.concatenate(ids))


def find_first_parent(db: Database, name: str) -> str:
    """Return the original backbone behind an adapted one, or itself."""
    by_name = {network.name: network.parent for network in load_networks(db)}
    known: set[str] = set()
    while name in by_name and name not in known:
        known.add(name)
        name = by_name[name]
    return name


def export(db: Database, name: str, target: Path) -> None:
    """Copy a backbone with its card atomically to a new folder. Raises AnnotatorError for a bad name or target."""
    source = find_folder(db, name)
    if source is None:
        names = [network.name for network in load_networks(db)]
        raise AnnotatorError(
            f"No adapted network is called {name!r}. {did_you_mean(name, names, max_listed=len(names))}"
        )
    if target.exists():
        raise AnnotatorError(f"{target} exists already. Name a new folder.")
    new_folders.remove_unfinished_folders(target.parent, target.name)
    with new_folders.replace_folder_atomically(target) as part:
        shutil.copytree(source, part, ignore=shutil.ignore_patterns(FACTS_FILE, FITTED_IMAGES_FILE), dirs_exist_ok=True)


def get_next_backbone(db: Database) -> str:
    """Return the backbone to switch to once all images have its embeddings, or ""."""
    name = db.get_setting(NEXT_BACKBONE_SETTING, "")
    return name if isinstance(name, str) else ""


def set_next_backbone(db: Database, name: str) -> None:
    """Set the backbone to prepare, "" for none."""
    db.set_setting(NEXT_BACKBONE_SETTING, name)
