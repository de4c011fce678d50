"""Self-paced loss correction: from epoch 2, likely unseen cells count as present."""

from spmll.losses.self_paced_correction import SelfPacedCorrection
from spmll.methods.base import Method, search_grid
from spmll.methods.training_recipes import shared_protocol


class SPLC(Method):
    """Focal loss with self-paced correction, which is not stored."""

    name = "splc"
    title = "Self-paced loss correction"
    paper = "Zhang et al., Simple and Robust Loss Design for Multi-Label Learning with Missing Labels"
    year = 2021
    url = "https://arxiv.org/abs/2112.07368"
    assumes = "What nobody marked is absent, unless the network is sure that it is present."
    threshold = 0.55
    tunable = search_grid(tau=(0.5, 0.6, 0.7, 0.8), margin=(0.0, 0.5, 1.0), change_epoch=(1, 3, 6))
    published = shared_protocol()

    def __init__(self, tau: float = 0.6, margin: float = 1.0, gamma: float = 2.0, change_epoch: int = 1):
        """Store the constants.

        Args:
            tau: Probability above which an unseen cell counts as present.
            margin: Subtracted from logits of present cells.
            gamma: Focal exponent.
            change_epoch: Number of epochs before corrections.
        """
        if not change_epoch >= 0:
            raise ValueError(f"change_epoch = {change_epoch} is a number of epochs; it must not be negative.")
        self.tau, self.margin, self.gamma = tau, margin, gamma
        self.change_epoch = change_epoch
        self.criterion()  # what makes no sense is refused now, not at the first training

    loss_function: SelfPacedCorrection

    def criterion(self) -> SelfPacedCorrection:
        return SelfPacedCorrection(self.tau, self.margin, self.gamma, correcting=False)

    def begin_epoch(self, epoch: int) -> None:
        """Enable correction after epoch `change_epoch`."""
        self.loss_function.correcting = epoch > self.change_epoch
