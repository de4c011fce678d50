"""The losses by name. The table is the registry: a new loss is one file and one entry here."""

from models.losses.assume_negative import AssumeNegative
from models.losses.base import Loss, no_such
from models.losses.entropy_maximization import EntropyMaximization
from models.losses.generalized_robust import GeneralizedRobust

LOSSES: dict[str, type[Loss]] = {
    loss.name: loss
    for loss in (
        AssumeNegative,
        EntropyMaximization,
        GeneralizedRobust,
    )
}


def make_loss(name: str, **constants: float) -> Loss:
    """A loss by its name, with its own constants. Raises ValueError for an unknown name, listing those there are."""
    if name not in LOSSES:
        raise no_such("loss", name, LOSSES)
    return LOSSES[name](**constants)
