"""A trained model as a torch module from network outputs to logits, for ONNX.

It uses only pixels, no labels or outside models.
"""

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from typing_extensions import override

from spmll.ensemble.answered_head import BEST_REGION_SHARE
from spmll.ensemble.basis import Basis, signed_sqrt, to_float_tensor
from spmll.ensemble.collection_scoring import ImageModel
from spmll.ensemble.fit_ensemble import RIDGE_EPS
from spmll.ensemble.regions import RegionCodes
from spmll.ensemble.scorers import MAX_LOGIT, EnsembleModel, StackedScorer
from spmll.linear.training import Array, Head
from spmll.statistics.stacker import TAIL_LOGIT, Stacker

MIN_LENGTH = 1e-6  # a region nearer to the centre counts as being as far away as this
OWN_LINE_COLUMNS = (0, 1, 2, 3, 4, -1)  # the weights of a stacker's line that are none of models from elsewhere


class PortableModel(nn.Module):
    """Base of exportable torch modules that map image and region features to logits."""

    @override
    def forward(self, features: Tensor, regions: Tensor) -> Tensor:
        """Return logits (n, C), nan for classes without a model.

        Args:
            features: (n, D).
            regions: (n, R, D).
        """
        return self.forward_codes(features, None)

    @abstractmethod
    def forward_codes(self, features: Array, region_codes: RegionCodes | None) -> Tensor:
        """Return logits (n, C) from stored features and region codes."""


class PortableHead(PortableModel):
    """The exportable form of a linear head: a torch module from features to logits."""

    weight: Tensor
    bias: Tensor

    def __init__(self, head: Head):
        super().__init__()
        self.register_buffer("weight", head.weight)
        self.register_buffer("bias", head.bias)

    @override
    def forward_codes(self, features: Array, region_codes: RegionCodes | None) -> Tensor:
        return to_float_tensor(features) @ self.weight.T + self.bias


class PortableEnsemble(PortableModel):
    """The exportable form of a trained `auto` model: plain tensors of those parts that exist.

    C classes, D features, M weight columns of all models, S knots, T stackers:
        centre (D,), at_centre (C,), weight (D, M), of_regions (D, M)
        middle, level, raised (C,), gains (2, C), shares (3,): head, its regions, ridge regions
        own, second, joint (S, C), normal (S,), second_bias (C,), second_share (1,)
        known_bias (C,), lines (T, 6), slopes, shifts (T, C)
    """

    def __init__(self, tensors: dict[str, Tensor]):
        """Store the tensors by name. Models without tensors are left out."""
        super().__init__()
        self.has_second, self.has_stackers = "second" in tensors, "lines" in tensors
        self.has_regions = "of_regions" in tensors
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor)

    @classmethod
    def build(cls, model: ImageModel, basis: Basis | None) -> "PortableEnsemble | None":
        """Return an `auto` model's portable form, or None for others."""
        if isinstance(model, StackedScorer):
            ensemble, head = model.whole.parts
            stackers: Sequence[Stacker] = model.stackers
        elif isinstance(model, EnsembleModel):
            ensemble, head, stackers = model.ensemble, None, ()
        else:
            return None
        weight, at_centre, centre = ensemble.join_weights(*([] if head is None else [head.weight])).tensors
        method = ensemble.method
        tensors = {
            "centre": centre, "at_centre": at_centre, "weight": weight,
            "middle": ensemble.middle @ ensemble.weight, "level": ensemble.level, "raised": ensemble.raised,
            "gains": torch.stack(ensemble.gains),
            "shares": torch.tensor([ensemble.head_share, method.parts_of_head, method.parts_of_ridge]),
        }  # fmt: skip
        if basis is not None:
            tensors["of_regions"] = basis.axes @ (basis.axes.T @ weight)
        if (second := ensemble.second) is not None:
            tensors |= {"own": second.own, "second": second.second, "joint": second.joint, "normal": second.normal}
            tensors |= {"second_bias": second.head.bias, "second_share": torch.tensor([float(second.weight)])}
        if head is not None:
            numbers = [
                torch.tensor([one.line[list(OWN_LINE_COLUMNS)].tolist() for one in stackers]),
                *(torch.tensor([getattr(one, name).tolist() for one in stackers]) for name in ("slopes", "shifts")),
            ]
            tensors |= dict(zip(("lines", "slopes", "shifts"), numbers, strict=True)) | {"known_bias": head.bias}
        return cls({name: tensor.detach().float().clone().contiguous() for name, tensor in tensors.items()})

    def save(self, path: Path) -> None:
        save_file({name: tensor.contiguous() for name, tensor in self.state_dict().items()}, path)

    @classmethod
    def load(cls, path: Path) -> "PortableEnsemble | None":
        """Load a saved model, or None if missing or incomplete."""
        try:
            return cls(load_file(path))
        except (FileNotFoundError, SafetensorError):
            return None

    @override
    def forward(self, features: Tensor, regions: Tensor) -> Tensor:
        products = lengths = None
        if self.has_regions:
            centred = _signed_sqrt(regions) - self._get_tensor("centre")
            products = centred @ self._get_tensor("of_regions")
            lengths = centred.square().sum(-1, keepdim=True).sqrt().clamp(min=MIN_LENGTH)
        return self._compute_logits(_signed_sqrt(features), products, lengths)

    @override
    def forward_codes(self, features: Array, region_codes: RegionCodes | None) -> Tensor:
        products = lengths = None
        if self.has_regions and region_codes is not None:
            products = region_codes.products(self._get_tensor("of_regions"))
            lengths = region_codes.lengths
        return self._compute_logits(signed_sqrt(to_float_tensor(features)), products, lengths)

    def _get_tensor(self, name: str) -> Tensor:
        return cast(Tensor, getattr(self, name))

    def _compute_logits(self, roots: Tensor, products: Tensor | None, lengths: Tensor | None) -> Tensor:
        """Return logits from square-root features and region products (n, R, M)."""
        classes = self._get_tensor("level").shape[0]
        at_centre = self._get_tensor("at_centre")
        centred = roots - self._get_tensor("centre")
        scores = centred @ self._get_tensor("weight")
        length = centred.square().sum(1, keepdim=True).sqrt().clamp(min=MIN_LENGTH)
        wholes = torch.cat([scores[:, :classes] + at_centre, scores[:, classes:] / length], 1)
        best = None
        if products is not None and lengths is not None:
            best = torch.cat([products[..., :classes], products[..., classes:] / lengths], 2).amax(1)
            best = torch.cat([best[:, :classes] + at_centre, best[:, classes:]], 1)
        auto = self._compute_ensemble_logits(wholes, best, classes)
        return self._compute_stacked_logits(auto, wholes, best, classes) if self.has_stackers else auto

    def _compute_ensemble_logits(self, wholes: Tensor, best: Tensor | None, classes: int) -> Tensor:
        share, of_head, of_ridge = self._get_tensor("shares").unbind()
        gains, middle = self._get_tensor("gains"), self._get_tensor("middle")
        head, ridge = wholes[:, :classes], wholes[:, classes : 2 * classes] - middle
        if best is not None:
            head = head + of_head * (best[:, :classes] - head - gains[0])
            ridge = ridge + of_ridge * (best[:, classes : 2 * classes] - middle - ridge - gains[1])
        chance = (ridge + self._get_tensor("level")).clamp(RIDGE_EPS, 1 - RIDGE_EPS)
        of_ridge_model = torch.log(chance) - torch.log(1 - chance)
        logits = of_ridge_model + share * (head - of_ridge_model) + self._get_tensor("raised")
        if not self.has_second:
            return logits
        scores = wholes[:, -classes:]
        if best is not None:
            scores = scores + BEST_REGION_SHARE * (best[:, -classes:] - scores)
        normal = self._get_tensor("normal")[:, None]
        both = _interpolate(logits, self._get_tensor("own"), normal.expand_as(self._get_tensor("own")))
        both = both + self._get_tensor("second_share") * _interpolate(
            scores + self._get_tensor("second_bias"),
            self._get_tensor("second"),
            normal.expand_as(self._get_tensor("second")),
        )
        return torch.where(
            logits.isnan(), logits, _interpolate(both, self._get_tensor("joint"), self._get_tensor("own"))
        )

    def _compute_stacked_logits(self, auto: Tensor, wholes: Tensor, best: Tensor | None, classes: int) -> Tensor:
        auto = auto.clamp(-MAX_LOGIT, MAX_LOGIT)
        known = wholes[:, 2 * classes : 3 * classes]
        if best is not None:
            known = known + BEST_REGION_SHARE * (best[:, 2 * classes : 3 * classes] - known)
        known = known + self._get_tensor("known_bias")
        lacks = auto.isnan()
        own = torch.where(lacks, known, auto)
        logits = mean = torch.where(lacks, known, (auto + known) / 2)
        lines, slopes, shifts = self._get_tensor("lines"), self._get_tensor("slopes"), self._get_tensor("shifts")
        for stage in range(lines.shape[0]):
            present = torch.sigmoid(logits)
            others = present.sum(1, keepdim=True) - present
            line = lines[stage].unbind()
            inputs = (own, known, others.clamp(max=1), (others - 1).clamp(min=0), (mean - TAIL_LOGIT).clamp(max=0))
            logits = line[5] + sum(weight * values for weight, values in zip(line[:5], inputs, strict=True))
            logits = logits * slopes[stage] + shifts[stage]
        return torch.where(lacks, auto, logits)


def _signed_sqrt(features: Tensor) -> Tensor:
    """Return signed square roots by ONNX operations."""
    return features.sign() * features.abs().sqrt()


def _interpolate(values: Tensor, knots: Tensor, at_knots: Tensor) -> Tensor:
    places = (values[:, None] > knots).sum(1).clamp(1, knots.shape[0] - 1)
    below, above = knots.gather(0, places - 1), knots.gather(0, places)
    share = ((values - below) / (above - below).clamp(min=1e-9)).clamp(0, 1)
    low, high = at_knots.gather(0, places - 1), at_knots.gather(0, places)
    return low + share * (high - low)
