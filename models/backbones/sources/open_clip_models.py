"""Text-image networks of open_clip: open_clip:ARCHITECTURE/TAG; also open_clip:local-dir: and open_clip:hf-hub:.

A file can replace the tag. open_clip then prepares images as OpenAI's first networks did, whatever the architecture
(its issue 1068: SigLIP 2 silently gets wrong pixels). Here such a file, and a folder that does not state how its images
are prepared, get the preparation published for the architecture.
"""

import difflib
import json
from pathlib import Path
from typing import Any

from torch import nn

from models.backbones import hub
from models.backbones.sources.open_clip_vision import ClipText, ClipVision, Times
from models.backbones.sources.source import Pretrained, Source, no_weights, reason
from models.backbones.sources.timm_models import HUB, LOCAL_DIR, as_family

PREFIX = "open_clip:"
CONFIG = "open_clip_config.json"
FIRST = ("open_clip_model.safetensors", "open_clip_pytorch_model.safetensors")  # that open_clip prefers to pickles
PREPARED = ("mean", "std", "interpolation")


def load(name: str) -> Pretrained:
    """Return the network with its text encoder.

    Raises:
        ValueError: open_clip is missing, the name is unknown, or the weights cannot be had.
    """
    try:
        import open_clip
    except ImportError as error:
        raise ValueError(f"{name} needs open_clip: pip install 'multilabel-annotator[clip]'") from error
    reference = name.removeprefix(PREFIX)
    if reference.startswith(LOCAL_DIR):
        _check_folder(Path(reference.removeprefix(LOCAL_DIR)))
        architecture, tag = reference, None
    elif reference.startswith(HUB):
        architecture, tag = reference, None
    else:
        architecture, tag = _known(open_clip, name)
    try:
        with hub.quick_to_give_up():
            model: Any = open_clip.create_model(architecture, pretrained=tag, require_pretrained=True)
    except Exception as error:  # json, safetensors, the hub, a wrong shape
        if reference.startswith(LOCAL_DIR):
            raise ValueError(f"The network in {reference} cannot be loaded: {reason(error)}.") from error
        raise ValueError(no_weights(name, error)) from error
    return _described(open_clip, model.eval(), architecture, tag)


def _described(open_clip: Any, model: Any, architecture: str, tag: str | None) -> Pretrained:
    visual = model.visual
    prepared = dict(visual.preprocess_cfg) | _as_published(open_clip, visual, architecture, tag)
    size = prepared["size"]
    side = max(size) if isinstance(size, tuple | list) else int(size)
    vision, library, projection = _halves(visual)
    if library == "timm":
        side = as_family(vision, side)
    model.visual = nn.Identity()  # only texts are encoded by what is left
    text = ClipText(model, projection, lambda: _tokenizer(open_clip, architecture))
    interpolation = prepared["interpolation"] if prepared["interpolation"] in ("bilinear", "bicubic") else "bicubic"
    return Pretrained(
        vision.eval(), library, side, tuple(prepared["mean"]), tuple(prepared["std"]), interpolation, text
    )


def _halves(visual: Any) -> tuple[nn.Module, str, nn.Module]:
    """Return an image encoder up to its pooled features, its library, and the projection that follows."""
    trunk = getattr(visual, "trunk", None)
    if trunk is not None and getattr(trunk, "global_pool", "") != "":  # else the head pools, too
        classifier = trunk.get_classifier()
        return trunk, "timm", nn.Sequential(classifier, visual.head)
    if ClipVision.fits(visual):
        return ClipVision(visual), "open_clip", nn.Identity() if visual.proj is None else Times(visual.proj)
    return visual, "", nn.Identity()


def _as_published(open_clip: Any, visual: Any, architecture: str, tag: str | None) -> dict[str, Any]:
    """Return the mean, deviation and interpolation published for images, where open_clip would only guess them.

    {} where open_clip has them, or none are published.
    """
    stated: dict[str, Any] = {}
    if architecture.startswith(LOCAL_DIR):
        config = json.loads((Path(architecture.removeprefix(LOCAL_DIR)) / CONFIG).read_text(encoding="utf-8"))
        stated = config.get("preprocess_cfg") or {}
    elif architecture.startswith(HUB) or (tag and open_clip.get_pretrained_cfg(architecture, tag)):
        return {}  # they say it themselves
    missing = [key for key in PREPARED if stated.get(key) is None]
    for published in open_clip.list_pretrained_tags_by_model(architecture):
        config = open_clip.get_pretrained_cfg(architecture, published)
        return {key: config[key] for key in missing if config.get(key) is not None}
    config = getattr(getattr(visual, "trunk", None), "pretrained_cfg", None) or {}
    return {key: config[key] for key in missing if config.get(key) is not None}


def _tokenizer(open_clip: Any, architecture: str) -> Any:
    with hub.quick_to_give_up():
        return open_clip.get_tokenizer(architecture)


def _known(open_clip: Any, name: str) -> tuple[str, str]:
    """Return the architecture and the tag, or file, of a name. Raise ValueError with near names."""
    architecture, _, tag = name.removeprefix(PREFIX).partition("/")
    tags = open_clip.list_pretrained_tags_by_model(architecture)
    if tag in tags or (tag and Path(tag).is_file() and architecture in open_clip.list_models()):
        return architecture, tag
    if tags:
        raise ValueError(f"open_clip has no weights {tag!r} of {architecture}. There is: {', '.join(tags)}.")
    near = difflib.get_close_matches(name, names(), n=5, cutoff=0.5)
    hint = f"Near it: {', '.join(near)}." if near else "A name is open_clip:ARCHITECTURE/TAG."
    raise ValueError(f"open_clip has no network called {name.removeprefix(PREFIX)!r}. {hint}")


def _check_folder(folder: Path) -> None:
    if not (folder / CONFIG).is_file():
        raise ValueError(f"There is no network in {folder}: it has no {CONFIG}, as open_clip writes it.")
    weights = sorted(file.name for file in folder.glob("*.safetensors"))
    if not weights:
        raise ValueError(
            f"There is no network in {folder}: it has no weights as safetensors; other forms are not read."
        )
    pickles = sorted(file.name for ending in ("*.bin", "*.pth") for file in folder.glob(ending))
    if pickles and not set(FIRST) & set(weights):
        raise ValueError(
            f"{folder} has {pickles[0]} beside {weights[0]}, and open_clip would read the former: a pickle, which may "
            f"hold a program. Rename {weights[0]} to {FIRST[0]}, or move {', '.join(pickles)} elsewhere."
        )


def names() -> list[str]:
    """Return all architectures with their tags; [] without open_clip."""
    try:
        import open_clip
    except ImportError:
        return []
    return [f"{PREFIX}{architecture}/{tag}" for architecture, tag in open_clip.list_pretrained()]


SOURCE = Source(lambda name: name.startswith(PREFIX), load, lambda: ())
