"""LL-R, large loss rejection: unseen cells with the largest loss are ignored."""

from spmll.methods.published.large_loss import LargeLoss, make_published_recipes


class LLR(LargeLoss):
    """Large loss rejection, delta as published for VOC (others .4)."""

    name = "ll_r"
    title = "Large loss rejection"
    assumes = "What nobody marked is absent, except what fits that worst: of that nothing is known."
    published = make_published_recipes(voc=0.2, coco=0.4, nus=0.4, cub=0.4)
    corrects = False
