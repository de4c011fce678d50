"""How rarely people mark each class where it is present, estimated from the marks alone.

People who name one class of an image name some classes more often than others: the salient, the large, the frequent. A
model of the marks then ranks the other classes too low, and these are the ones left to find. With a naming rate e =
P(marked | there), a class is present with P(marked | image) / e (Elkan and Noto, "Learning classifiers from only
positive and unlabeled data", KDD 2008, lemma 1); here e is a class's own (Bekker, Robberechts and Davis, "Beyond the
selected completely at random assumption for learning from positive and unlabeled data", ECML PKDD 2019).

e is estimated as Elkan and Noto do: the mean prediction for marked cells of a model that has not seen them. That is too
low for a class that the model cannot recognise: its prediction is the same everywhere, and raising it would rank random
cells above those of other classes. So a class is raised only as far as its marked cells stand out from the others.
"""

from torch import Tensor

from spmll.ensemble.moments import Moments

MAX_IMAGES = 2000  # with a mark, from which rates are estimated, at most
HALFWAY_MARKS = 5.0  # marks with which a class is drawn half of the way to the usual rate
MIN_RATE, MAX_RATE = 0.02, 0.97  # rates
EPSILON = 1e-3  # of a prediction, and of what an image leaves to the others


def predict_leave_one_out(
    moments: Moments, weight: Tensor, level: Tensor, ridge: float, units: Tensor, marked: Tensor
) -> Tensor:
    """Return the ridge model's predictions (m, C) for images, each by the model without the image itself.

    They are exact (Allen, "The relationship between variable selection and data augmentation", Technometrics 1974).

    Args:
        moments: Moments of the images that the ridge model was fitted to, with answers less `level`.
        weight: (D, C) of the ridge model.
        level: (C,) share of the images on which each class is marked.
        ridge: As in Moments.solve.
        units: (m, D) of some of these images.
        marked: (m, C) bool, marks of the same m images.
    """
    rows, marks = units - moments.mean, marked.to(units.dtype)
    left = (1 - moments.leverages(rows, ridge)).clamp(min=EPSILON)[:, None]
    return marks - (marks - (rows @ weight + level)) / left


def estimate_log_naming_rates(predicted: Tensor, level: Tensor, marked: Tensor) -> Tensor:
    """Return the log of each class's naming rate relative to the usual rate: (C,).

    A naming rate is the probability that a class is marked where it is present. The result is 0 for a class without a
    mark, and for a class whose marked cells the model cannot tell from others.

    Args:
        predicted: (m, C) from `predict_leave_one_out`.
        level: (C,) share of the images on which each class is marked.
        marked: (m, C) bool, marks of the same m images.
    """
    marks = marked.sum(0)
    rates = ((predicted.clamp(EPSILON, 1) * marked).sum(0) / marks.clamp(min=1)).clamp(MIN_RATE, MAX_RATE)
    stands_out = ((rates - level) / rates).clamp(0, 1)
    logs, weights = rates.log(), marks * stands_out
    usual = (logs * weights).sum() / weights.sum().clamp(min=EPSILON)
    return (logs - usual) * stands_out * marks / (marks + HALFWAY_MARKS)
