"""Networks of timm: by name, from the hub (hf-hub:), from a folder in timm's form (local-dir:)."""

from pathlib import Path
from typing import Any

import timm
from timm.data.config import resolve_model_data_config
from torch import nn

from models.backbones import families, hub
from models.backbones.sources.source import Pretrained, Source, no_weights, offline_choice, reason

LOCAL_DIR, HUB = "local-dir:", "hf-hub:"  # timm's own prefixes


def knows(name: str) -> bool:
    """Return whether timm has an architecture of that name, or the name begins with one of timm's two prefixes."""
    return name.startswith((LOCAL_DIR, HUB)) or timm.is_model(name)


def load(name: str) -> Pretrained:
    """Return the network. Raise ValueError if its weights cannot be had, or are damaged."""
    if name.startswith(LOCAL_DIR):
        return _from_folder(Path(name.removeprefix(LOCAL_DIR)))
    if not name.startswith(HUB):
        published = timm.models.get_pretrained_cfg(name)
        if published is None or not published.has_weights:
            raise ValueError(f"timm knows the architecture {name!r} but has no weights for it. {offline_choice()}")
    try:
        with hub.quick_to_give_up():
            network = timm.create_model(name, pretrained=True)
    except Exception as error:  # what is raised depends on the hub, the cache and the kind of failure
        raise ValueError(no_weights(name, error)) from error
    return described_by_timm(network)


def _from_folder(folder: Path) -> Pretrained:
    """Return a network from config.json and model.safetensors, as timm writes them; other weight files are not read."""
    missing = [name for name in ("config.json", "model.safetensors") if not (folder / name).is_file()]
    if missing:
        raise ValueError(f"There is no network in {folder}: it has no {' and no '.join(missing)}, as timm writes them.")
    try:
        network = timm.create_model(f"{LOCAL_DIR}{folder}", pretrained=True)
    except Exception as error:  # json, safetensors, a wrong shape, an unknown architecture
        raise ValueError(f"The network in {folder} cannot be loaded: {reason(error)}.") from error
    return described_by_timm(network)


def described_by_timm(network: nn.Module) -> Pretrained:
    """Return a network of timm with its own mean, deviation and interpolation, used as its family is (families.py)."""
    data = resolve_model_data_config(network)
    interpolation = data["interpolation"] if data["interpolation"] in {"bilinear", "bicubic"} else "bicubic"
    size = as_family(network, max(data["input_size"][1:]))
    return Pretrained(network.eval(), "timm", size, tuple(data["mean"]), tuple(data["std"]), interpolation)


def as_family(network: Any, size: int) -> int:
    """Set pooling and input size of a timm network for frozen features; return the input size in pixels.

    timm interpolates the position embeddings (bicubic, as it does when it loads weights for another size).
    """
    family = families.family_of((network.pretrained_cfg or {}).get("architecture") or "")
    if family is None:
        return size
    if family.pooling and getattr(network, "global_pool", None) != family.pooling:
        network.reset_classifier(0, global_pool=family.pooling)
    if size != family.published or family.used == family.published:
        return size
    network.set_input_size(img_size=(family.used, family.used))
    return family.used


def names() -> list[str]:
    """Return the names of all architectures."""
    return timm.list_models()


SOURCE = Source(knows, load, names)
