"""What a comparison has finished, on the disk: killed, or asked for again, it goes on where it was.

Every result is a small file, written under another name and renamed, and named by everything that decides it: the
data, the choices, and the source of the code that learned. Whoever changes a loss gets new figures for the methods that
use it, and keeps the others.
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

from models.methods import METHODS
from models.trainers import trainer_class

HERE = "annotator.benchmark.methods"


class Work:
    """One folder of finished results."""

    def __init__(self, folder: Path, basis: dict[str, Any]):
        """Makes the folder.

        Args:
            basis: Whatever all results of this comparison depend on, as JSON values.

        Raises:
            OSError: The folder cannot be made.
        """
        self.folder = folder
        self.basis = basis
        folder.mkdir(parents=True, exist_ok=True)

    def finished(self, kind: str, what: dict[str, Any]) -> dict | None:
        """The result of that name, None where there is none.

        Args:
            kind: The first word of the file's name.
            what: Everything besides the basis that the result depends on, JSON values; with "method", its sources too.
        """
        path = self.place(kind, what, ".json")
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def finish(self, kind: str, what: dict[str, Any], result: dict) -> None:
        """Keep a result: JSON values, nan included."""
        write(self.place(kind, what, ".json"), json.dumps(result).encode())

    def array(self, kind: str, make: Callable[[], np.ndarray]) -> np.ndarray:
        """One large array that depends on the basis alone; made if it is not there."""
        path = self.place(kind, {}, ".npy")
        if not path.exists():
            part = path.with_name(f".{path.name}.{os.getpid()}.part")
            with part.open("wb") as file:
                np.save(file, make(), allow_pickle=False)
            part.replace(path)
        return np.load(path, allow_pickle=False)

    def place(self, kind: str, what: dict[str, Any] | None = None, ending: str = "") -> Path:
        """Where something that depends on `what` and the basis lies."""
        what = what or {}
        sources = {"sources": sources_of(what["method"], self.basis["regime"])} if "method" in what else {}
        key = json.dumps([self.basis, what, sources], sort_keys=True)
        words = [kind, *(f"{what[name]}" for name in ("method", "share", "seed") if name in what)]
        return self.folder / f"{'-'.join(words)}-{hashlib.sha256(key.encode()).hexdigest()[:12]}{ending}"


def write(path: Path, content: bytes) -> None:
    """Replaces the file at once or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.write_bytes(content)
    part.replace(path)


@cache
def sources_of(name: str, regime: str) -> str:
    """A hash of the code that makes a method's figures."""
    digest = hashlib.sha256()
    for module, path in sorted(modules_of(name, regime).items()):
        digest.update(module.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def modules_of(name: str, regime: str) -> dict[str, Path]:
    """The files that a method's figures come from: its own, what trains and judges it, all of models these import."""
    frozen = trainer_class(METHODS[name].reads).__module__
    trainer = [f"{HERE}.finetune"] if regime == "finetune" else [frozen, f"{HERE}.images"]
    judge = [f"{HERE}.epochs", f"{HERE}.task", "annotator.benchmark.datasets.clicks", "annotator.benchmark.naming"]
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
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "models":
                names = [f"models.{alias.name}" for alias in node.names] if node.module == "models" else []
                waiting += [node.module, *names]
    return paths
