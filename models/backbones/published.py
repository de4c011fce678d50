"""Where the weights of a network lie, and under which licence, as far as the libraries say."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import timm

from models.backbones.curated import curated
from models.backbones.sources.open_clip_models import PREFIX
from models.backbones.sources.timm_models import HUB, LOCAL_DIR

# open_clip says nothing of licences. These are Apple's, by architecture/tag.
APPLES = ("MobileCLIP*", "*/dfn*")


@dataclass(frozen=True)
class Published:
    """licence      "": nobody says
    repository   on the hub; "" for what is installed, in a folder, or elsewhere
    file         of the weights in it; "": not known
    """

    licence: str = ""
    repository: str = ""
    file: str = ""


def published(name: str) -> Published:
    """The facts of one network, not of a joined one; nothing is loaded or asked for."""
    if known := curated(name):
        return Published(known.licence, known.repository, known.file if known.repository else "")
    if name.startswith(LOCAL_DIR):
        return Published()
    if name.startswith(HUB):
        return Published(repository=name.removeprefix(HUB))
    if name.startswith(PREFIX):
        return _of_open_clip(name.removeprefix(PREFIX))
    if not timm.is_model(name):
        return Published()
    config: Any = timm.models.get_pretrained_cfg(name)
    if config is None:
        return Published()
    file = str(config.hf_hub_filename or "model.safetensors") if config.hf_hub_id else ""
    return Published(str(config.license or ""), str(config.hf_hub_id or ""), file)


def _of_open_clip(reference: str) -> Published:
    licence = "apple-amlr" if any(fnmatchcase(reference, pattern) for pattern in APPLES) else ""
    if reference.startswith(HUB):
        return Published(licence, reference.removeprefix(HUB))
    try:
        import open_clip
    except ImportError:
        return Published(licence)
    config: Any = open_clip.get_pretrained_cfg(*reference.partition("/")[::2]) or {}
    repository, _, file = str(config.get("hf_hub") or "").rpartition("/")
    return Published(licence, repository, file or ("open_clip_model.safetensors" if repository else ""))
