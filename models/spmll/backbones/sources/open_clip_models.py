"""Text-image networks of open_clip, by tag, local-dir: or hf-hub:.

For weights files open_clip assumes OpenAI's preprocessing (its issue 1068). Here the architecture's published
one applies.
"""

import difflib
import json
from pathlib import Path
from typing import Any

from torch import nn

from spmll.backbones import hub
from spmll.backbones.sources.network_source import Pretrained, Source, format_no_weights, format_reason
from spmll.backbones.sources.open_clip_vision import ClipText, ClipVision, MatrixProduct
from spmll.backbones.sources.timm_models import HUB_PREFIX, LOCAL_DIR_PREFIX, apply_family

OPEN_CLIP_PREFIX = "open_clip:"
CONFIG_FILE = "open_clip_config.json"
# that open_clip prefers to pickles
PREFERRED_FILES = ("open_clip_model.safetensors", "open_clip_pytorch_model.safetensors")
PREPROCESSING_KEYS = ("mean", "std", "interpolation")


def load(name: str) -> Pretrained:
    """Return an open_clip network with its text encoder, or raise ValueError."""
    try:
        import open_clip
    except ImportError as error:
        raise ValueError(f"{name} needs open_clip: pip install 'multilabel-annotator[clip]'") from error
    reference = name.removeprefix(OPEN_CLIP_PREFIX)
    if reference.startswith(LOCAL_DIR_PREFIX):
        _check_folder(Path(reference.removeprefix(LOCAL_DIR_PREFIX)))
        architecture, tag = reference, None
    elif reference.startswith(HUB_PREFIX):
        architecture, tag = reference, None
    else:
        architecture, tag = _resolve_name(open_clip, name)
    try:
        with hub.offline_if_unreachable():
            model: Any = open_clip.create_model(architecture, pretrained=tag, require_pretrained=True)
    except Exception as error:  # json, safetensors, the hub, a wrong shape
        if reference.startswith(LOCAL_DIR_PREFIX):
            raise ValueError(f"The network in {reference} cannot be loaded: {format_reason(error)}.") from error
        raise ValueError(format_no_weights(name, error)) from error
    return _build_pretrained(open_clip, model.eval(), architecture, tag)


def _build_pretrained(open_clip: Any, model: Any, architecture: str, tag: str | None) -> Pretrained:
    visual = model.visual
    prepared = dict(visual.preprocess_cfg) | _find_published_preprocessing(open_clip, visual, architecture, tag)
    size = prepared["size"]
    side = max(size) if isinstance(size, tuple | list) else int(size)
    vision, library, projection = _split_image_encoder(visual)
    if library == "timm":
        side = apply_family(vision, side)
    model.visual = nn.Identity()  # only texts are encoded by what is left
    text = ClipText(model, projection, lambda: _load_tokenizer(open_clip, architecture))
    interpolation = prepared["interpolation"] if prepared["interpolation"] in ("bilinear", "bicubic") else "bicubic"
    return Pretrained(
        vision.eval(), library, side, tuple(prepared["mean"]), tuple(prepared["std"]), interpolation, text
    )


def _split_image_encoder(visual: Any) -> tuple[nn.Module, str, nn.Module]:
    """Return (encoder up to pooled features, name of its library, the projection that follows)."""
    trunk = getattr(visual, "trunk", None)
    if trunk is not None and getattr(trunk, "global_pool", "") != "":  # else the head pools, too
        classifier = trunk.get_classifier()
        return trunk, "timm", nn.Sequential(classifier, visual.head)
    if ClipVision.fits(visual):
        return ClipVision(visual), "open_clip", nn.Identity() if visual.proj is None else MatrixProduct(visual.proj)
    return visual, "", nn.Identity()


def _find_published_preprocessing(open_clip: Any, visual: Any, architecture: str, tag: str | None) -> dict[str, Any]:
    """Return the preprocessing that the architecture was published with, or {} if open_clip knows it already."""
    stated: dict[str, Any] = {}
    if architecture.startswith(LOCAL_DIR_PREFIX):
        config = json.loads(
            (Path(architecture.removeprefix(LOCAL_DIR_PREFIX)) / CONFIG_FILE).read_text(encoding="utf-8")
        )
        stated = config.get("preprocess_cfg") or {}
    elif architecture.startswith(HUB_PREFIX) or (tag and open_clip.get_pretrained_cfg(architecture, tag)):
        return {}  # they say it themselves
    missing = [key for key in PREPROCESSING_KEYS if stated.get(key) is None]
    for published in open_clip.list_pretrained_tags_by_model(architecture):
        config = open_clip.get_pretrained_cfg(architecture, published)
        return {key: config[key] for key in missing if config.get(key) is not None}
    config = getattr(getattr(visual, "trunk", None), "pretrained_cfg", None) or {}
    return {key: config[key] for key in missing if config.get(key) is not None}


def _load_tokenizer(open_clip: Any, architecture: str) -> Any:
    with hub.offline_if_unreachable():
        return open_clip.get_tokenizer(architecture)


def _resolve_name(open_clip: Any, name: str) -> tuple[str, str]:
    """Return the (architecture, tag or weights file) that a name means, or raise ValueError with similar names."""
    architecture, _, tag = name.removeprefix(OPEN_CLIP_PREFIX).partition("/")
    tags = open_clip.list_pretrained_tags_by_model(architecture)
    if tag in tags or (tag and Path(tag).is_file() and architecture in open_clip.list_models()):
        return architecture, tag
    if tags:
        raise ValueError(f"open_clip has no weights {tag!r} of {architecture}. There is: {', '.join(tags)}.")
    near = difflib.get_close_matches(name, names(), n=5, cutoff=0.5)
    hint = f"Near it: {', '.join(near)}." if near else "A name is open_clip:ARCHITECTURE/TAG."
    raise ValueError(f"open_clip has no network called {name.removeprefix(OPEN_CLIP_PREFIX)!r}. {hint}")


def _check_folder(folder: Path) -> None:
    if not (folder / CONFIG_FILE).is_file():
        raise ValueError(f"There is no network in {folder}: it has no {CONFIG_FILE}, as open_clip writes it.")
    weights = sorted(file.name for file in folder.glob("*.safetensors"))
    if not weights:
        raise ValueError(
            f"There is no network in {folder}: it has no weights as safetensors; other forms are not read."
        )
    pickles = sorted(file.name for ending in ("*.bin", "*.pth") for file in folder.glob(ending))
    if pickles and not set(PREFERRED_FILES) & set(weights):
        raise ValueError(
            f"{folder} has {pickles[0]} beside {weights[0]}, and open_clip would read the former: a pickle, which may "
            f"hold a program. Rename {weights[0]} to {PREFERRED_FILES[0]}, or move {', '.join(pickles)} elsewhere."
        )


def names() -> list[str]:
    try:
        import open_clip
    except ImportError:
        return []
    return [f"{OPEN_CLIP_PREFIX}{architecture}/{tag}" for architecture, tag in open_clip.list_pretrained()]


SOURCE = Source(lambda name: name.startswith(OPEN_CLIP_PREFIX), load, lambda: ())
