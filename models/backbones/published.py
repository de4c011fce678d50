"""The repository, file and licence of a network's weights, as far as the libraries state them."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import timm
import torchvision

from models.backbones.curated import CURATED, curated
from models.backbones.sources.open_clip_models import PREFIX
from models.backbones.sources.timm_models import HUB, LOCAL_DIR

NC = "cc-by-nc-4.0"
# open_clip states no licences. These are known to bind, by architecture/tag,
OF_OPEN_CLIP = {"MobileCLIP*": "apple-amlr", "*/dfn*": "apple-amlr", "*/metaclip*": NC, "nllb-clip*": NC}
# and these by the name of the repository.
OF_REPOSITORIES = {
    "apple/*": "apple-amlr", "timm/MobileCLIP*": "apple-amlr", "timm/vit_*_patch14_clip_*.dfn*": "apple-amlr",
    "facebook/dinov3*": "dinov3-license", "facebook/metaclip*": NC, "nvidia/*": "nvidia-open-model-license",
}  # fmt: skip
SWAG = "https://github.com/facebookresearch/SWAG/blob/main/LICENSE"  # as torchvision names it: CC BY-NC 4.0


@dataclass(frozen=True)
class Published:
    """Where the weights of a network are, and their licence.

    Attributes:
        licence: Name of the licence; "": not stated anywhere.
        repository: Repository on the hub; "" for weights that are installed, in a folder, or elsewhere.
        file: File of the weights in the repository; "": not known.
    """

    licence: str = ""
    repository: str = ""
    file: str = ""


def published(name: str) -> Published:
    """Return the facts of one network, not of a joined one; nothing is loaded or downloaded."""
    if known := curated(name):
        return Published(known.licence, known.repository, known.file if known.repository else "")
    if name.startswith(LOCAL_DIR):
        return Published()
    if name.startswith(HUB):
        return _of_repository(name.removeprefix(HUB))
    if name.startswith(PREFIX):
        return _of_open_clip(name.removeprefix(PREFIX))
    if not timm.is_model(name):
        return _of_torchvision(name)
    config: Any = timm.models.get_pretrained_cfg(name)
    if config is None:
        return Published()
    file = str(config.hf_hub_filename or "model.safetensors") if config.hf_hub_id else ""
    return Published(str(config.license or ""), str(config.hf_hub_id or ""), file)


def _of_repository(reference: str) -> Published:
    """Return the facts of a repository by its name, which may be that of a timm network or a curated one."""
    repository, _, revision = reference.partition("@")
    of_timm = repository.removeprefix("timm/")
    if repository != of_timm and timm.is_model(of_timm):
        known = published(of_timm)
        if known.repository == repository:
            return Published(known.licence, reference, "" if revision else known.file)
    licence = next((network.licence for network in CURATED if network.repository == repository), "")
    return Published(licence or _matching(OF_REPOSITORIES, repository), reference)


def _of_torchvision(name: str) -> Published:
    if name not in torchvision.models.list_models(torchvision.models):
        return Published()
    weights: Any = torchvision.models.get_model_weights(name)
    return Published(NC if weights.DEFAULT.meta.get("license") == SWAG else "")


def _matching(licences: dict[str, str], name: str) -> str:
    return next((licence for pattern, licence in licences.items() if fnmatchcase(name, pattern)), "")


def _of_open_clip(reference: str) -> Published:
    if reference.startswith(HUB):
        return _of_repository(reference.removeprefix(HUB))
    if reference.startswith(LOCAL_DIR):
        return Published()
    licence = _matching(OF_OPEN_CLIP, reference)
    try:
        import open_clip
    except ImportError:
        return Published(licence)
    config: Any = open_clip.get_pretrained_cfg(*reference.partition("/")[::2]) or {}
    repository, _, file = str(config.get("hf_hub") or "").rpartition("/")
    return Published(licence, repository, file or ("open_clip_model.safetensors" if repository else ""))
