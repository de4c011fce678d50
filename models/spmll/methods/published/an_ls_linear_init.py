"""AN-LS in two stages: first the classifier alone on a frozen backbone, then the whole network."""

from dataclasses import replace

from spmll.losses.assume_negative_smoothed import AssumeNegativeSmoothed
from spmll.losses.base import check_fractions
from spmll.methods.published.linear_init import LinearInit
from spmll.methods.published.loss_only import ANLS
from spmll.methods.training_recipes import BENCHMARK_SETS, recipes_by_set


class ANLSLinearInit(LinearInit):
    """AN-LS with 25 epochs on a frozen backbone, then 10 of the whole network, which has a fresh optimiser.

    The paper has 5 of the whole network; the code made the tables. The rates and batches of the first stage are those
    of the paper.
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
        """Store linear, the share of the epochs with a frozen backbone; the others are as in AN-LS.

        Raises:
            ValueError: The form is unknown, or a number is outside its range.
        """
        check_fractions(linear=linear)
        self.positive, self.negative, self.linear = positive, negative, linear
        self.form, self.eps = form, eps
        self.criterion()  # what makes no sense is refused now, not at the first training

    def criterion(self) -> AssumeNegativeSmoothed:
        """Return the loss, which is the same in every epoch."""
        return AssumeNegativeSmoothed(self.positive, self.negative, self.form, self.eps)
