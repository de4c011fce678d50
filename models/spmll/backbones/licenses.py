"""Licenses of weights, by the names of timm and the hub, without torch."""

from dataclasses import dataclass

OPEN_LICENSES = (  # use for any purpose, with the notice kept
    "apache-2.0", "mit", "bsd", "bsd-2-clause", "bsd-3-clause", "isc", "unlicense", "cc0-1.0", "cc-by-4.0",
)  # fmt: skip


@dataclass(frozen=True)
class License:
    """The license of a network's weights (`sentence`: what it requires of users)."""

    title: str
    url: str
    sentence: str


BINDING_LICENSES = {
    "dinov3-license": License(
        "DINOv3 License (Meta)",
        "https://ai.meta.com/resources/models-and-libraries/dinov3-license/",
        "Commercial use is allowed; some uses are not, and who passes the weights on passes the licence on.",
    ),
    "apple-amlr": License(
        "Apple Machine Learning Research Model License",
        "https://huggingface.co/apple/MobileCLIP2-S0/blob/main/LICENSE",
        "For research purposes only.",
    ),
    "apple-ascl": License(
        "Apple Sample Code License",
        "https://huggingface.co/apple/DFN2B-CLIP-ViT-B-16/blob/main/LICENSE",
        "Apple's own terms.",
    ),
    "fastvit-license": License(
        "FastViT licence (Apple)", "https://github.com/apple/ml-fastvit/blob/main/LICENSE", "Apple's own terms."
    ),
    "mobileone-license": License(
        "MobileOne licence (Apple)", "https://github.com/apple/ml-mobileone/blob/main/LICENSE", "Apple's own terms."
    ),
    "cvnets-license": License(
        "CVNets licence (Apple)", "https://github.com/apple/ml-cvnets/blob/main/LICENSE", "Apple's own terms."
    ),
    "nvidia-open-model-license": License(
        "NVIDIA Open Model License",
        "https://www.nvidia.com/en-us/agreements/enterprise-software/nvidia-open-model-license/",
        "Commercial use is allowed under NVIDIA's own terms.",
    ),
    "fair-noncommercial-research-license": License(
        "FAIR Noncommercial Research License",
        "https://huggingface.co/facebook/fair-noncommercial-research-license",
        "For noncommercial research only.",
    ),
    "cc-by-nc-4.0": License(
        "Creative Commons Attribution-NonCommercial 4.0",
        "https://creativecommons.org/licenses/by-nc/4.0/",
        "Not for commercial purposes.",
    ),
    "seer-license": License(
        "SEER licence (Meta)",
        "https://github.com/facebookresearch/vissl/blob/main/projects/SEER/MODEL_LICENSE.md",
        "Meta's own terms.",
    ),
}


def must_be_accepted(licence: str) -> bool:
    """Return whether a user must accept this license before its weights are downloaded."""
    return bool(licence) and licence not in OPEN_LICENSES and licence != "unknown"


def get_license(licence: str) -> License:
    """Return the license of this name, with a general hint if the name is not listed."""
    return BINDING_LICENSES.get(licence) or License(licence, "", "Its terms are with the weights on the hub.")
