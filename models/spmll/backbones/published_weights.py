"""Repository, file and license of network weights, as stated by libraries."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import timm.models
import torchvision

from spmll.backbones.curated import CURATED_NETWORKS, find_curated
from spmll.backbones.sources.open_clip_models import OPEN_CLIP_PREFIX
from spmll.backbones.sources.timm_models import HUB_PREFIX, LOCAL_DIR_PREFIX

NONCOMMERCIAL_LICENSE = "cc-by-nc-4.0"
# open_clip states no licences. These are known to bind, by architecture/tag,
OPEN_CLIP_LICENSES = {
    "MobileCLIP*": "apple-amlr",
    "*/dfn*": "apple-amlr",
    "*/metaclip*": NONCOMMERCIAL_LICENSE,
    "nllb-clip*": NONCOMMERCIAL_LICENSE,
}
# and these by the name of the repository.
REPOSITORY_LICENSES = {
    "apple/*": "apple-amlr", "timm/MobileCLIP*": "apple-amlr", "timm/vit_*_patch14_clip_*.dfn*": "apple-amlr",
    "facebook/dinov3*": "dinov3-license", "facebook/metaclip*": NONCOMMERCIAL_LICENSE,
    "nvidia/*": "nvidia-open-model-license",
}  # fmt: skip
SWAG_LICENSE_URL = "https://github.com/facebookresearch/SWAG/blob/main/LICENSE"  # as torchvision names it: CC BY-NC 4.0


@dataclass(frozen=True)
class PublishedWeights:
    """Where a network's weights are published, and under which license. Unknown fields are empty."""

    licence: str = ""
    repository: str = ""
    file: str = ""


def find_published_weights(name: str) -> PublishedWeights:
    """Return the location and license of one network's weights."""
    if known := find_curated(name):
        return PublishedWeights(known.licence, known.repository, known.file if known.repository else "")
    if name.startswith(LOCAL_DIR_PREFIX):
        return PublishedWeights()
    if name.startswith(HUB_PREFIX):
        return _find_repository_weights(name.removeprefix(HUB_PREFIX))
    if name.startswith(OPEN_CLIP_PREFIX):
        return _find_open_clip_weights(name.removeprefix(OPEN_CLIP_PREFIX))
    if not timm.is_model(name):
        return _find_torchvision_weights(name)
    config: Any = timm.models.get_pretrained_cfg(name)
    if config is None:
        return PublishedWeights()
    file = str(config.hf_hub_filename or "model.safetensors") if config.hf_hub_id else ""
    return PublishedWeights(str(config.license or ""), str(config.hf_hub_id or ""), file)


def _find_repository_weights(reference: str) -> PublishedWeights:
    repository, _, revision = reference.partition("@")
    of_timm = repository.removeprefix("timm/")
    if repository != of_timm and timm.is_model(of_timm):
        known = find_published_weights(of_timm)
        if known.repository == repository:
            return PublishedWeights(known.licence, reference, "" if revision else known.file)
    licence = next((network.licence for network in CURATED_NETWORKS if network.repository == repository), "")
    return PublishedWeights(licence or _match_license(REPOSITORY_LICENSES, repository), reference)


def _find_torchvision_weights(name: str) -> PublishedWeights:
    if name not in torchvision.models.list_models(torchvision.models):
        return PublishedWeights()
    weights: Any = torchvision.models.get_model_weights(name)
    return PublishedWeights(NONCOMMERCIAL_LICENSE if weights.DEFAULT.meta.get("license") == SWAG_LICENSE_URL else "")


def _match_license(licenses: dict[str, str], name: str) -> str:
    return next((licence for pattern, licence in licenses.items() if fnmatchcase(name, pattern)), "")


def _find_open_clip_weights(reference: str) -> PublishedWeights:
    if reference.startswith(HUB_PREFIX):
        return _find_repository_weights(reference.removeprefix(HUB_PREFIX))
    if reference.startswith(LOCAL_DIR_PREFIX):
        return PublishedWeights()
    licence = _match_license(OPEN_CLIP_LICENSES, reference)
    try:
        import open_clip
    except ImportError:
        return PublishedWeights(licence)
    config: Any = open_clip.get_pretrained_cfg(*reference.partition("/")[::2]) or {}
    repository, _, file = str(config.get("hf_hub") or "").rpartition("/")
    return PublishedWeights(licence, repository, file or ("open_clip_model.safetensors" if repository else ""))
