"""LL-Ct: the unseen cells with the largest loss count as present for one step."""

from spmll.methods.published.large_loss import LargeLoss, make_published_recipes


class LLCt(LargeLoss):
    """Large loss with temporary correction, published delta (CUB has .4)."""

    name = "ll_ct"
    title = "Large loss, temporary correction"
    assumes = "What nobody marked is absent, except what fits that worst: that is present for now."
    published = make_published_recipes(voc=0.2, coco=0.2, nus=0.2, cub=0.4)
    corrects = True
