"""Loads a safetensors classifier as a torch module."""

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from annotator.errors import AnnotatorError
from annotator.exchange.classifier.description import parse_description
from annotator.worker.taking_home.classifier_writer import ClassifierModule
from annotator.worker.taking_home.portable_classifier import PortableClassifier
from spmll.backbones.frozen_backbone import Backbone
from spmll.backbones.pretrained import load_pretrained
from spmll.ensemble.portable import PortableEnsemble, PortableHead, PortableModel
from spmll.linear.training import Head


def load_module(path: str | Path) -> ClassifierModule:
    """Return a classifier as a torch module from RGB uint8 (n, 3, S, S) to probabilities (n, C).

    Args:
        path: A .safetensors file with its .json file.

    Raises:
        AnnotatorError: The files are not valid, or the backbone is missing.
    """
    path = Path(path)
    try:
        tensors = load_file(path)
        text = path.with_suffix(".json").read_text(encoding="utf-8")
    except (OSError, SafetensorError, UnicodeDecodeError) as error:
        raise AnnotatorError(f"{path} and its .json file cannot be read: {error}.") from None
    description = parse_description(text, str(path.with_suffix(".json")))
    try:
        source = load_pretrained(str(description.facts.get("built_on", description.network)))
        backbone = Backbone(description.network, source, "cpu")
        state = _select_by_prefix(tensors, "network.")
        source.network.load_state_dict(state)
        rest = (tensors["columns"], tensors["slopes"], tensors["shifts"])
        return ClassifierModule(
            PortableClassifier(backbone, state, _build_model(_select_by_prefix(tensors, "model.")), *rest, description)
        )
    except (ValueError, KeyError, RuntimeError) as error:
        raise AnnotatorError(f"{path} is no classifier that can be used: {error}") from error


def _build_model(tensors: dict[str, Tensor]) -> PortableModel:
    if "centre" in tensors:
        return PortableEnsemble(tensors)
    head = Head(tensors["weight"].shape[1], tensors["weight"].shape[0])
    head.weight, head.bias = tensors["weight"], tensors["bias"]
    return PortableHead(head)


def _select_by_prefix(tensors: dict[str, Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
