"""Scores of texts for the patches of an image, to find small objects that the vector of the whole image barely shows.

Lin et al., "TagCLIP: A Local-to-Global Framework to Enhance Open-Vocabulary Multi-Label Classification of CLIP Without
Training", AAAI 2024, https://arxiv.org/abs/2312.12828. Its first step: classes are compared in each patch, without the
last attention, and the image gets the scores of its best patch. Its second step smooths the scores of patches by the
attention of earlier layers, which not every network exposes; here the scores are smoothed over patches that are similar
in the shared space (self-correlation, as in Wang et al., "SCLIP", ECCV 2024). Its third step, which encodes a crop of
the image for each class that was found, is left out: it costs a pass of the network a class. The score of the whole
image replaces it (first_guess.py).
"""

import torch
import torch.nn.functional as F
from torch import Tensor

SIMILARITY_SCALE = 20.0  # how much more patches that are alike count for each other
SHARE_EPS = 1e-6  # of a share, before its logit


def average_class_vectors(text_vectors: Tensor, counts: list[int]) -> Tensor:
    """Return the mean vector of the texts of each class: (C, E) of length 1.

    Args:
        text_vectors: (sum of counts, E) of length 1, class after class.
        counts: Number of texts of each class, at least 1.
    """
    return torch.stack([F.normalize(part.mean(0), dim=0) for part in text_vectors.split(counts)])


@torch.inference_mode()
def score_best_patch(patches: Tensor, classes: Tensor, nothing: Tensor, scale: float) -> Tensor:
    """Return (N, C) float32 logits of the share of each class in the patch that fits it best.

    The share is a softmax over all classes and `nothing`: even with a single class, a patch can then have a small
    share.

    Args:
        patches: (N, P, E) of length 1.
        classes: (C, E) of length 1.
        nothing: (E,), the vector of texts that fit any image.
        scale: Scale of the network's logits.
    """
    texts = torch.cat([classes, nothing[None]])
    shares = (scale * patches @ texts.T).softmax(-1)[..., :-1]
    own = F.normalize(patches - patches.mean(1, keepdim=True), dim=-1)
    shares = (SIMILARITY_SCALE * own @ own.transpose(1, 2)).softmax(-1) @ shares
    return torch.logit(shares.amax(1), eps=SHARE_EPS)
