"""The options of a comparison of training methods, and their defaults."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from annotator.benchmark.first_named_class import MAX_STRENGTH, NAMING_KINDS, RANDOM_NAMING, Naming
from annotator.benchmark.methods import changed_parameters, measures
from annotator.benchmark.methods.supervision import LABEL_KINDS, VALIDATION_KINDS, Supervision
from annotator.errors import AnnotatorError, combine_problems, did_you_mean
from annotator.settings import DEFAULT_BACKBONE
from spmll.backbones.curated import reads_text
from spmll.catalog import METHOD_NEEDS
from spmll.methods import METHODS
from spmll.single_positive_sampling import ALL_LABELS

REGIME_NAMES = ("linear", "finetune")
PRECISION_NAMES = ("fp32", "bf16", "fp16")
PROTOCOL_NAMES = ("own", "cole")
# torchvision's first weights, with which all papers of this literature began; timm's default is a newer training.
PAPER_BACKBONE = "resnet50.tv_in1k"
PAPER_IMAGE_SIZE = 448  # pixels, in all papers of this literature


@dataclass(frozen=True)
class Options:
    """The options of a comparison of training methods."""

    methods: tuple[str, ...] = ("all",)
    regime: str = "linear"
    shares: tuple[float, ...] = (1.0,)
    seeds: int = 3
    trials: int = 1
    backbone: str | None = None
    epochs: int | None = None
    size: int = PAPER_IMAGE_SIZE
    batch: int | None = None
    device: str = "auto"
    linear_init: bool = False
    work: Path = Path("bench-methods")
    no_split: bool = False
    on: str = "local"
    clicks: tuple[str, ...] = ("random",)
    strengths: tuple[float, ...] = (1.0,)
    precision: str | None = None
    protocol: str = "own"
    changed: tuple[str, ...] = ()
    labels: str = "single"
    positives: int = 1
    negatives: int = 0
    validate: str = "full"
    measures: tuple[str, ...] = ()

    @property
    def namings(self) -> tuple[Naming, ...]:
        """Return all click models to compare: random first as baseline, then each kind at each strength."""
        others = (kind for kind in dict.fromkeys(self.clicks) if kind != "random")
        return RANDOM_NAMING, *(Naming(kind, strength) for kind in others for strength in self.strengths)

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """Return the changed constants by method. Raises AnnotatorError if they are not valid."""
        return changed_parameters.parse_changes(self.changed, self.methods)

    @property
    def supervision(self) -> Supervision:
        return Supervision(self.labels, self.positives, self.negatives, self.validate)

    @property
    def network(self) -> str:
        """Return the chosen backbone, or the regime's default."""
        ours = self.regime == "linear" and self.protocol == "own"
        return self.backbone or (DEFAULT_BACKBONE if ours else PAPER_BACKBONE)

    @property
    def reads_regions(self) -> bool:
        return any(METHODS[name].reads == "regions" for name in self.methods)

    @property
    def reads_names(self) -> bool:
        return any("text" in METHODS[name].needs for name in self.methods)

    def find_obstacle(self, name: str) -> str:
        """Return the reason why a method cannot take part, with advice, or ""."""
        method, whole = METHODS[name], self.regime == "finetune"
        if whole and (method.reads == "regions" or method.needs):
            return f"{name} learns from a frozen network (--regime linear); whole networks learn by the others"
        if self.protocol == "cole" and (method.reads != "features" or method.needs):
            return f"{name} is no linear classifier on features, and --protocol cole trains nothing else"
        if self.protocol == "cole" and any(settings.linear_lr for settings in method.published.values()):
            return f"{name} ends with the whole network, and --protocol cole trains linear classifiers only"
        if "text" in method.needs and not reads_text(self.network):
            return (
                f"{name} needs {METHOD_NEEDS['text']}, and {self.network} knows no texts: name one that does, such as "
                "--backbone open_clip:PE-Core-T-16-384/meta (annotator backbones lists them)"
            )
        return ""

    def check_and_resolve(self) -> "Options":
        """Return the options with "all", "auto" and None resolved. AnnotatorError lists everything wrong."""
        whole = self.regime == "finetune"
        trainable = tuple(
            name for name, method in METHODS.items() if not (method.yardstick or self.find_obstacle(name))
        )
        names = trainable if "all" in self.methods else tuple(dict.fromkeys(self.methods))
        unknown = [name for name in names if name not in METHODS]
        wrong = [f"no method is called {name!r}. {did_you_mean(name, METHODS, 99)}" for name in unknown]
        wrong += [reason for name in names if name in METHODS and (reason := self.find_obstacle(name))]
        if self.regime not in REGIME_NAMES:
            wrong.append(f"no regime is called {self.regime!r}. {did_you_mean(self.regime, REGIME_NAMES)}")
        wrong += [f"a share must be in (0, 1], not {share:g}" for share in self.shares if not 0 < share <= 1]
        wrong += [
            f"no way of clicking is called {kind!r}. {did_you_mean(kind, NAMING_KINDS)}"
            for kind in self.clicks
            if kind not in NAMING_KINDS
        ]
        wrong += [
            f"a strength of salience must be in (0, {MAX_STRENGTH:g}], not {strength:g}"
            for strength in self.strengths
            if not 0 < strength <= MAX_STRENGTH
        ]
        for name, least in (("seeds", 1), ("trials", 1), ("epochs", 1), ("batch", 1), ("size", 32)):
            if (value := getattr(self, name)) is not None and value < least:
                wrong.append(f"{name} is {value} and must be at least {least}")
        if self.no_split and (whole or self.trials > 1):
            wrong.append("without a split there are no validation images: it takes --regime linear and one trial")
        if not (names and self.shares and self.clicks and self.strengths):
            wrong.append("there must be at least one method, one share, one way of clicking and one strength")
        wrong += self._find_precision_problems() + self._find_protocol_problems()
        wrong += self._find_supervision_problems() + measures.find_unknown_measures(self.measures)
        if whole and self.on != "local":
            wrong.append("whole networks are trained on this machine: --on is for --regime linear")
        if self.work.exists() and not self.work.is_dir():
            wrong.append(f"--work {self.work} is a file; it must be a folder, or a name that is free")
        wrong += _find_device_problems(self.device)
        try:
            changed_parameters.parse_changes(self.changed, names)
        except AnnotatorError as error:
            wrong.append(str(error))
        if wrong:
            raise combine_problems("This comparison cannot be made:", wrong)
        device = self._device
        shares = tuple(sorted(dict.fromkeys(self.shares)))
        strengths = tuple(sorted(dict.fromkeys(self.strengths)))
        filled = {
            "methods": names,
            "device": device,
            "backbone": self.network,
            "shares": shares,
            "strengths": strengths,
        }
        return Options(**(asdict(self) | filled))

    @property
    def _device(self) -> str:
        return ("cuda" if torch.cuda.is_available() else "cpu") if self.device == "auto" else self.device

    def _find_protocol_problems(self) -> list[str]:
        if self.protocol not in PROTOCOL_NAMES:
            return [f"no protocol is called {self.protocol!r}. {did_you_mean(self.protocol, PROTOCOL_NAMES)}"]
        if self.protocol == "own":
            return []
        wrong = []
        if self.regime != "linear":
            wrong.append("--protocol cole is of linear classifiers: it takes --regime linear")
        if self.trials > 1 or self.batch is not None:
            wrong.append("--protocol cole tries its own learning rates and batches: leave out --trials and --batch")
        if self.no_split:
            wrong.append("--protocol cole chooses its settings on validation images, and --no-split leaves none")
        if self.validate == "none":
            wrong.append("--protocol cole chooses its settings on validation images: leave out --validate none")
        if self.on != "local":
            wrong.append("--protocol cole trains on this machine: leave out --on")
        return wrong

    def _find_precision_problems(self) -> list[str]:
        if self.precision is None:
            return []
        if self.precision not in PRECISION_NAMES:
            return [f"no precision is called {self.precision!r}. {did_you_mean(self.precision, PRECISION_NAMES)}"]
        if self.regime != "finetune":
            return [f"--precision is of whole networks: it takes --regime finetune, not {self.regime}"]
        if self.precision == "fp16" and self._device == "cpu":
            return ["fp16 needs a GPU: a CPU trains with --precision fp32 or bf16"]
        return []

    def _find_supervision_problems(self) -> list[str]:
        wrong = []
        for noun, value, known in (
            ("kind of labels", self.labels, LABEL_KINDS),
            ("way to validate", self.validate, VALIDATION_KINDS),
        ):
            if value not in known:
                wrong.append(f"no {noun} is called {value!r}. {did_you_mean(value, known)}")
        if self.positives != ALL_LABELS and self.positives < 1:
            wrong.append(f"positives is {self.positives} and must be at least 1, or all")
        if self.negatives != ALL_LABELS and self.negatives < 0:
            wrong.append(f"negatives is {self.negatives} and must be at least 0, or all")
        if self.labels == "full" and (self.positives, self.negatives) != (1, 0):
            wrong.append("full labels are all labels: leave out --positives and --negatives")
        if not self.supervision.hides and len(self.namings) > 1:
            wrong.append("with every label known it makes no difference which is clicked: leave out --clicks")
        if self.validate == "none" and self.trials > 1:
            wrong.append("tuning needs validation images: --validate none takes one trial")
        if "wasserstein" in self.measures and self.no_split:
            wrong.append("the measure wasserstein is of validation images, and --no-split leaves none")
        return wrong


def _find_device_problems(name: str) -> list[str]:
    if name == "auto":
        return []
    try:
        torch.zeros((), device=name)
    except (RuntimeError, AssertionError) as error:  # an assertion: torch was built without CUDA
        return [f"device {name!r} cannot be used here: {str(error).splitlines()[0]}"]
    return []
