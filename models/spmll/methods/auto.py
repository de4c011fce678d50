"""Auto: this project's own method, put together from what ranked hidden positives best on several collections.

The gradient-trained half is the generalized robust loss (methods/published/gr.py) on the square roots of pooled
features; the other half, and the regions of images that both score, are in spmll/ensemble/fit_ensemble.py.
docs/benchmarks.md has the evidence.
"""

from typing import ClassVar

from spmll.losses.base import check_non_negative
from spmll.methods.published.gr import GR
from spmll.methods.training_recipes import TrainingRecipe


class Auto(GR):
    """The generalized robust loss, ridge regression, regions of images, and images without a label together.

    The constants were chosen on eleven collections (photographs, cut-out objects, drawings, letters, digits; 160 to 600
    images, 5 to 42 classes), with one click on 2 to 100 % of the images, random or salient: one set for all of them;
    `second` on six more. Four others were kept back (docs/benchmarks.md).
    Once people have answered whole questions, those of PARAMETERS_WITH_ANSWERS replace them.

    Only this method uses predictions of other models (`annotator predictions`): how far each is trusted is learned from
    answers. Published methods are trained as published.
    """

    name = "auto"
    title = "Auto (our own method)"
    paper = "None: this project's own"
    year = 2026
    url = "https://arxiv.org/abs/2405.03501"
    assumes = "What nobody marked is mostly absent; images without a label look like those with one."
    threshold = 0.3
    reads = "regions"
    reproduced = "none are published: it is this project's own, and docs/benchmarks.md has what was measured"
    skips_validation = True
    tunable: ClassVar[dict[str, tuple]] = {}
    published: ClassVar[dict[str, TrainingRecipe]] = {}

    # The constants that rank hidden labels best after single clicks are not the best for answers to whole questions,
    # which are about likely cells and state absences as well. These finished data sets sooner (docs/benchmarks.md).
    PARAMETERS_WITH_ANSWERS: ClassVar[dict[str, float]] = {
        "head": 0.4,
        "head_of_all": 0.65,
        "parts_of_head": 0.3,
        "parts_of_ridge": 0.35,
        "evened_of_head": 0.5,
        "overlooked": 0.5,
        "second": 0.0,
    }

    def __init__(
        self,
        head: float = 0.3,
        head_of_all: float = 0.3,
        parts_of_head: float = 0.45,
        parts_of_ridge: float = 0.65,
        evened_of_head: float = 1.0,
        ridge: float = 1.0,
        absent: float = 0.0,
        unlabelled: float = 0.2,
        rounds: int = 2,
        sharpness: float = 3.0,
        overlooked: float = 0.75,
        second: float = 0.5,
    ):
        """Store weights of the models and constants of the ridge model; defaults are for a training on clicks alone.

        Args:
            head: Weight of the gradient-trained head against the ridge model while few images have a label.
            head_of_all: Weight of the head once all images have a label, when no unlabeled images are left to learn
                from.
            parts_of_head: Share of the head's score that comes from the best region of the image.
            parts_of_ridge: Share of the ridge model's score that comes from the best region of the image.
            evened_of_head: Share of the average advantage of the best region that is subtracted from the head's scores.
            ridge: Weight of the squared weights in the ridge model.
            absent: How far below an unseen cell the ridge model places a cell that a person ruled out.
            unlabelled: Weight of an image without a label against an image with one, in the ridge model; 0: not used.
            rounds: How often the ridge model is fitted to its own answers.
            sharpness: The power these answers are raised to.
            overlooked: Share of the correction, in logits, for classes that people mark rarely where they are present.
            second: Weight of the model that corrects the order within each class, once all images have a label and
                where marks are hard to tell apart (spmll/ensemble/second_model.py); 0: none.

        Raises:
            ValueError: A value is negative, or a share is above 1.
        """
        super().__init__()
        check_non_negative(
            head=head,
            head_of_all=head_of_all,
            parts_of_head=parts_of_head,
            parts_of_ridge=parts_of_ridge,
            evened_of_head=evened_of_head,
            overlooked=overlooked,
            second=second,
            absent=absent,
            unlabelled=unlabelled,
            rounds=rounds,
            sharpness=sharpness,
        )
        shares = {
            "head": head,
            "head_of_all": head_of_all,
            "parts_of_head": parts_of_head,
            "parts_of_ridge": parts_of_ridge,
            "evened_of_head": evened_of_head,
            "overlooked": overlooked,
        }
        wrong = [f"{name} = {value}" for name, value in shares.items() if value > 1]
        if wrong or not ridge > 0:
            raise ValueError(f"Shares must be at most 1 and ridge above 0: {', '.join([*wrong, f'ridge = {ridge}'])}.")
        self.head, self.head_of_all = head, head_of_all
        self.parts_of_head, self.parts_of_ridge = parts_of_head, parts_of_ridge
        self.evened_of_head = evened_of_head
        self.ridge = ridge
        self.absent = absent
        self.unlabelled = unlabelled
        self.rounds = rounds
        self.sharpness = sharpness
        self.overlooked = overlooked
        self.second = second

    def with_answer_parameters(self) -> "Auto":
        """Return the method with the constants of PARAMETERS_WITH_ANSWERS, except those changed from their defaults."""
        usual, constants = Auto().parameters, self.parameters
        constants.update(
            {name: value for name, value in self.PARAMETERS_WITH_ANSWERS.items() if constants[name] == usual[name]}
        )
        return Auto(**constants)

    def make_head_method(self) -> GR:
        """Return the method of the gradient-trained half, which reads features alone."""
        return GR()
