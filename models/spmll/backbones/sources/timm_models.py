"""Networks of timm, by name, hf-hub: or local-dir:."""

from pathlib import Path
from typing import Any

import timm.models
from timm.data.config import resolve_model_data_config
from torch import nn

from spmll.backbones import families, hub
from spmll.backbones.sources.network_source import (
    Pretrained,
    Source,
    describe_offline_choice,
    format_no_weights,
    format_reason,
)

LOCAL_DIR_PREFIX, HUB_PREFIX = "local-dir:", "hf-hub:"  # timm's own prefixes


def knows(name: str) -> bool:
    """Return whether timm has an architecture of this name, or reads names with its prefix."""
    return name.startswith((LOCAL_DIR_PREFIX, HUB_PREFIX)) or timm.is_model(name)


def load(name: str) -> Pretrained:
    """Return a timm network, or raise ValueError without valid weights."""
    if name.startswith(LOCAL_DIR_PREFIX):
        return _load_folder(Path(name.removeprefix(LOCAL_DIR_PREFIX)))
    if not name.startswith(HUB_PREFIX):
        published = timm.models.get_pretrained_cfg(name)
        if published is None or not published.has_weights:
            raise ValueError(
                f"timm knows the architecture {name!r} but has no weights for it. {describe_offline_choice()}"
            )
    try:
        with hub.offline_if_unreachable():
            network = timm.create_model(name, pretrained=True)
    except Exception as error:  # what is raised depends on the hub, the cache and the kind of failure
        raise ValueError(format_no_weights(name, error)) from error
    return to_pretrained(network)


def _load_folder(folder: Path) -> Pretrained:
    missing = [name for name in ("config.json", "model.safetensors") if not (folder / name).is_file()]
    if missing:
        raise ValueError(f"There is no network in {folder}: it has no {' and no '.join(missing)}, as timm writes them.")
    try:
        network = timm.create_model(f"{LOCAL_DIR_PREFIX}{folder}", pretrained=True)
    except Exception as error:  # json, safetensors, a wrong shape, an unknown architecture
        raise ValueError(f"The network in {folder} cannot be loaded: {format_reason(error)}.") from error
    return to_pretrained(network)


def to_pretrained(network: nn.Module) -> Pretrained:
    data = resolve_model_data_config(network)
    interpolation = data["interpolation"] if data["interpolation"] in {"bilinear", "bicubic"} else "bicubic"
    size = apply_family(network, max(data["input_size"][1:]))
    return Pretrained(network.eval(), "timm", size, tuple(data["mean"]), tuple(data["std"]), interpolation)


def apply_family(network: Any, size: int) -> int:
    """Set a timm network's pooling and input size to those of its family, and return the input size."""
    family = families.find_family((network.pretrained_cfg or {}).get("architecture") or "")
    if family is None:
        return size
    if family.pooling and getattr(network, "global_pool", None) != family.pooling:
        network.reset_classifier(0, global_pool=family.pooling)
    if size != family.published_size or family.used_size == family.published_size:
        return size
    network.set_input_size(img_size=(family.used_size, family.used_size))
    return family.used_size


def names() -> list[str]:
    return timm.list_models()


SOURCE = Source(knows, load, names)
