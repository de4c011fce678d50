"""AN-LS, first on a frozen backbone, then the whole network."""

from dataclasses import replace

from spmll.losses.assume_negative_smoothed import AssumeNegativeSmoothed
from spmll.losses.base import check_fractions
from spmll.methods.published.linear_init import LinearInit
from spmll.methods.published.loss_only import ANLS
from spmll.methods.training_recipes import BENCHMARK_SETS, recipes_by_set


class ANLSLinearInit(LinearInit):
    """AN-LS with 25 frozen epochs, then 10 of the whole network with a new optimizer.

    10 as in the code of the tables, 5 in the paper.
    """

    name = "an_ls+linear_init"
    title = "Assume negative, label smoothing, linear initialisation"
    paper = ANLS.paper
    year = ANLS.year
    url = ANLS.url
    assumes = ANLS.assumes
    threshold = ANLS.threshold
    yardstick = True
    published = recipes_by_set(
        *(
            replace(ANLS.published[name], epochs=35, linear_lr=1e-4, linear_batch=16 if name == "nus" else 8)
            for name in BENCHMARK_SETS
        )
    )

    def __init__(
        self,
        positive: float = 0.1,
        negative: float = 0.1,
        linear: float = 25 / 35,
        form: str = "code",
        eps: float = 1e-5,
    ):
        """Store the constants. `linear` is the share of frozen epochs."""
        check_fractions(linear=linear)
        self.positive, self.negative, self.linear = positive, negative, linear
        self.form, self.eps = form, eps
        self.criterion()  # what makes no sense is refused now, not at the first training

    def criterion(self) -> AssumeNegativeSmoothed:
        """Return the constant loss."""
        return AssumeNegativeSmoothed(self.positive, self.negative, self.form, self.eps)
