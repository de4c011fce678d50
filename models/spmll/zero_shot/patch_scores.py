"""Scores of texts for image patches, which find small objects.

After TagCLIP (Lin et al., AAAI 2024, https://arxiv.org/abs/2312.12828): classes compete in each patch, and the best
patch counts. Patch similarity (SCLIP, Wang et al., ECCV 2024) replaces its attention smoothing, the whole image's score
its crop step.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

SIMILARITY_SCALE = 20.0  # how much more patches that are alike count for each other
SHARE_EPS = 1e-6  # of a share, before its logit


def average_class_vectors(text_vectors: Tensor, counts: list[int]) -> Tensor:
    """Return each class's mean text vector, (C, E), of length 1.

    Args:
        text_vectors: (sum of counts, E), class after class.
    """
    return torch.stack([F.normalize(part.mean(0), dim=0) for part in text_vectors.split(counts)])


@torch.inference_mode()
def score_best_patch(patches: Tensor, classes: Tensor, nothing: Tensor, scale: float) -> Tensor:
    """Return (N, C) logits of each class's share in its best patch.

    The share is a softmax over classes and `nothing`, so that it can be small with one class.

    Args:
        patches: (N, P, E), unit vectors.
        classes: (C, E), unit vectors.
        nothing: (E,), texts that fit any image.
    """
    texts = torch.cat([classes, nothing[None]])
    shares = (scale * patches @ texts.T).softmax(-1)[..., :-1]
    own = F.normalize(patches - patches.mean(1, keepdim=True), dim=-1)
    shares = (SIMILARITY_SCALE * own @ own.transpose(1, 2)).softmax(-1) @ shares
    return torch.logit(shares.amax(1), eps=SHARE_EPS)
