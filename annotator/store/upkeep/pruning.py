"""Removal of old backups: the newest stay, with every part that one of them names."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.store.disk.durable import sync_folder
from annotator.store.upkeep.backup import MANIFESTS, PARTS, alone


@dataclass(frozen=True)
class Pruned:
    """The result of removing old backups.

    Attributes:
        backups: Number of backups removed.
        parts, bytes: Number and size of the files that only they had.
        kept: Names of the backups that stay.
    """

    backups: int
    parts: int
    bytes: int
    kept: list[str]


def prune(target: Path, keep: int) -> Pruned:
    """Keep the newest `keep` backups of a folder; remove the others, and parts that only they name.

    Manifests are removed before parts: if the removal is interrupted, each backup still listed is complete, and the
    next call removes the rest.

    Raises:
        AnnotatorError: `keep` is below 1, or the manifest of a backup that stays cannot be read; nothing is removed
            then.
        AlreadyRunning: Another process backs up to the folder.
    """
    if keep < 1:
        raise AnnotatorError(f"At least the newest backup stays: {keep} cannot be kept.")
    with alone(target):
        manifests = sorted((target / MANIFESTS).glob("[0-9]*.json"))
        stay, go = manifests[-keep:], manifests[:-keep]
        named = _named(stay)
        for manifest in go:
            manifest.unlink()
        sync_folder(target / MANIFESTS)
        gone = [part for part in (target / PARTS).glob("??/*") if part.is_file() and part.name not in named]
        size = sum(part.stat().st_size for part in gone)
        for part in gone:
            part.unlink()
    return Pruned(len(go), len(gone), size, [manifest.stem for manifest in stay])


def _named(manifests: Sequence[Path]) -> set[str]:
    named: set[str] = set()
    for manifest in manifests:
        try:
            named |= {part["sha256"] for part in json.loads(manifest.read_text())["parts"]}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise AnnotatorError(
                f"The backup {manifest} cannot be read ({error}), so nobody knows which files it needs. Nothing was "
                "removed.\n    Delete this manifest if a newer backup is whole, and try again."
            ) from error
    return named
