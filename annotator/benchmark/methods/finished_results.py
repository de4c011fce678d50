"""The finished results of a comparison on disk, which later calls reuse.

Files are named by data, choices and source code, so a changed loss recomputes only its methods.
"""

import ast
import hashlib
import importlib.util
import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from spmll.methods import METHODS
from spmll.trainers import get_trainer_class

METHODS_PACKAGE = "annotator.benchmark.methods"


class Work:
    """A folder that stores finished results for later calls with the same basis."""

    def __init__(self, folder: Path, basis: dict[str, Any]):
        """Create the folder, for results that depend on `basis` (JSON values). Raises OSError if that fails."""
        self.folder = folder
        self.basis = basis
        folder.mkdir(parents=True, exist_ok=True)

    def load_result(self, kind: str, parameters: dict[str, Any]) -> dict | None:
        """Return the stored result for these parameters and the basis, or None."""
        path = self.get_path(kind, parameters, ".json")
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def store_result(self, kind: str, parameters: dict[str, Any], result: dict) -> None:
        replace_file(self.get_path(kind, parameters, ".json"), json.dumps(result).encode())

    def get_array(self, kind: str, make: Callable[[], np.ndarray]) -> np.ndarray:
        """Return a large array that depends only on the basis, computed by `make` and stored if missing."""
        path = self.get_path(kind, {}, ".npy")
        if not path.exists():
            part = path.with_name(f".{path.name}.{os.getpid()}.part")
            with part.open("wb") as file:
                np.save(file, make(), allow_pickle=False)
            part.replace(path)
        return np.load(path, allow_pickle=False)

    def get_path(self, kind: str, parameters: dict[str, Any] | None = None, ending: str = "") -> Path:
        """Return the path of a stored file, which depends on kind, parameters and basis."""
        parameters = parameters or {}
        sources = (
            {"sources": hash_sources(parameters["method"], self.basis["regime"], self.basis.get("protocol", "own"))}
            if "method" in parameters
            else {}
        )
        key = json.dumps([self.basis, parameters, sources], sort_keys=True)
        words = [kind, *(f"{parameters[name]}" for name in ("method", "share", "seed") if name in parameters)]
        return self.folder / f"{'-'.join(words)}-{hashlib.sha256(key.encode()).hexdigest()[:12]}{ending}"


def replace_file(path: Path, content: bytes) -> None:
    """Write a file in one step, so that readers see the old or the new content."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.write_bytes(content)
    part.replace(path)


@cache
def hash_sources(name: str, regime: str, protocol: str = "own") -> str:
    """Return a hash of the source files on which a method's figures depend."""
    digest = hashlib.sha256()
    for module, path in sorted(find_modules(name, regime, protocol).items()):
        digest.update(module.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def find_modules(name: str, regime: str, protocol: str = "own") -> dict[str, Path]:
    """Return by module the source files on which a method's figures depend, including imports."""
    frozen = get_trainer_class(METHODS[name].reads).__module__
    trainer = (
        [f"{METHODS_PACKAGE}.finetune"] if regime == "finetune" else [frozen, f"{METHODS_PACKAGE}.compared_images"]
    )
    if protocol == "cole":
        trainer = [f"{METHODS_PACKAGE}.cole"]
    judge = [
        f"{METHODS_PACKAGE}.epochs",
        f"{METHODS_PACKAGE}.task",
        f"{METHODS_PACKAGE}.supervision",
        "annotator.benchmark.datasets.clicks",
        "annotator.benchmark.first_named_class",
    ]
    waiting = [METHODS[name].__module__, *trainer, *judge]
    paths: dict[str, Path] = {}
    while waiting:
        module = waiting.pop()
        spec = importlib.util.find_spec(module) if module not in paths else None
        # A package's own file is its table, which changes with every method there is, not with what this one does.
        if spec is None or spec.origin is None or spec.submodule_search_locations is not None:
            continue
        paths[module] = Path(spec.origin)
        tree = ast.parse(paths[module].read_bytes())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "spmll":
                names = [f"spmll.{alias.name}" for alias in node.names] if node.module == "spmll" else []
                waiting += [node.module, *names]
    return paths
