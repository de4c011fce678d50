"""Removing old backups: the newest stay, and every part that one of them names."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.store.disk.durable import sync_folder
from annotator.store.upkeep.backup import MANIFESTS, PARTS, alone


@dataclass(frozen=True)
class Pruned:
    """What went. backups: how many; parts, bytes: files that only they had; kept: names of those that stay."""

    backups: int
    parts: int
    bytes: int
    kept: list[str]


def prune(target: Path, keep: int) -> Pruned:
    """Keep the newest `keep` backups of a folder and remove the others, with the parts that no other one names.

    Manifests go first, then parts: whatever ends it, each backup that is still listed is whole, and the next call
    removes what was left.

    Raises:
        AnnotatorError: For fewer than one, and where a backup that stays cannot be read, before anything is removed;
            AlreadyRunning while somebody backs up to it.
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
