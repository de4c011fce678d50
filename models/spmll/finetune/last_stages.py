"""The split of a pretrained network into a frozen front and trained last stages.

The front runs once per image (StageInputs), and its stored outputs feed LastStages. Trained stages:

    EfficientNet, MobileNet, ...    last three stages and the final convolution
    ViT, DeiT, EVA, ...             last third of blocks
    others with four stages         last one

Batch norm keeps its statistics, better than those of small batches.
"""

import copy
from typing import Any

import torch
from torch import Tensor, nn

from spmll.backbones import fast_inference
from spmll.backbones.frozen_backbone import Backbone
from spmll.backbones.network_parts import pool_outputs
from spmll.backbones.pretrained import Pretrained

BATCH_NORM = nn.modules.batchnorm._BatchNorm
MAX_COARSE_STAGES = 4  # a network with more counts its stages as EfficientNets do
TRAINED_STAGES = 3  # of those
BLOCKS_PER_TRAINED_BLOCK = 3  # one of so many blocks of a transformer
OUTPUT_TOLERANCE = 1e-3


class LastStages(nn.Module):
    """The trained part of a network: a module from the inputs of its first stage to classifier features (B, K)."""

    network: Any  # a timm network without what is frozen

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network
        for name, parameter in network.named_parameters():
            # A parameter of the network itself is a class token or a position embedding.
            parameter.requires_grad_("." in name)

    def train(self, mode: bool = True) -> "LastStages":
        """Set the mode, but keep batch norm statistics fixed."""
        super().train(mode)
        for module in self.modules():
            if isinstance(module, BATCH_NORM):
                module.eval()
        return self

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the features (B, K) that timm's classifier reads."""
        return self.network.forward_head(self.network.forward_features(inputs), pre_logits=True)

    def compute_backbone_features(self, inputs: Tensor) -> Tensor:
        """Return the Backbone's features (B, D)."""
        return pool_outputs(self.network, self.network.forward_features(inputs))


class StageInputs:
    """The frozen part of a network, as a fast function from images to the trained part's inputs of `shape` each."""

    def __init__(self, backbone: Backbone, front: nn.Module):
        self.backbone = backbone
        self._forward, _, self._chunk = fast_inference.find_fastest_forward(front, backbone.input_size, backbone.device)
        size = backbone.input_size
        self.shape = tuple(self(torch.zeros(1, 3, size, size, dtype=torch.uint8)).shape[1:])

    @torch.inference_mode()
    def __call__(self, images: Tensor) -> Tensor:
        """Return float16 inputs (N, ...) of uint8 images (N, 3, S, S). Thread-safe."""
        parts = [self._forward(self.backbone.normalize(part)).float() for part in images.split(self._chunk)]
        # Half precision ends at 65504; what is beyond would become infinite.
        return torch.cat(parts).clamp_(-65504, 65504).half().contiguous().cpu()


def split_network(backbone: Backbone, source: Pretrained) -> tuple[StageInputs, LastStages, str]:
    """Return (frozen part, trained part, description).

    Args:
        source: Network of `backbone`, not changed.

    Raises:
        ValueError: Stages are unknown or not sequential.
    """
    network: Any = source.network
    if source.library != "timm":
        raise ValueError(
            f"{backbone.name} cannot be adapted: only networks of timm can, one at a time: their stages are known."
        )
    first = _find_first_trained_stage(network, backbone.name)
    example = torch.zeros(1, 3, source.input_size, source.input_size, device=backbone.device)
    example[:, :, ::3, 1::2] = 1
    called = _find_modules_called_before(network, first, example)
    front, rest = _copy_front(network, first), _copy_rest(network, first, called)
    with torch.no_grad():
        whole = LastStages(copy.deepcopy(network)).eval()(example)
        try:
            joined = rest.eval()(front(example))
            same = joined.shape == whole.shape and torch.allclose(
                joined, whole, rtol=OUTPUT_TOLERANCE, atol=OUTPUT_TOLERANCE
            )
        except (RuntimeError, TypeError, ValueError, AttributeError):
            same = False
    if not same:
        raise ValueError(
            f"{backbone.name} cannot be adapted: its stages need more than what the stage before gives. "
            "Choose another network (annotator backbones lists some)."
        )
    return StageInputs(backbone, front), rest, f"{first} and what follows"


def merge_last_stages(source: Pretrained, trained: LastStages) -> nn.Module:
    """Return a CPU copy of the network with its trained last stages."""
    whole = copy.deepcopy(source.network).cpu()
    missing = whole.load_state_dict(
        {name: tensor.cpu() for name, tensor in trained.network.state_dict().items()}, False
    )
    assert not missing.unexpected_keys  # the trained part has the names of the whole
    return whole.eval()


class _StageInputCaught(Exception):
    """The exception that ends a forward pass at the first trained stage and carries that stage's input."""

    def __init__(self, inputs: Tensor):
        super().__init__()
        self.inputs = inputs


class _StageInputCatcher(nn.Module):
    """A module that replaces the first trained stage and raises `_StageInputCaught` with its input."""

    def forward(self, inputs: Tensor) -> Tensor:
        raise _StageInputCaught(inputs)


class _FrozenFront(nn.Module):
    """The frozen part, from images to the first trained stage."""

    network: Any

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        try:
            self.network.forward_features(images)
        except _StageInputCaught as caught:
            return caught.inputs
        raise ValueError("the first trained stage was not reached")


def _find_first_trained_stage(network: Any, name: str) -> str:
    for container in ("blocks", "stages", "layers"):
        stages = getattr(network, container, None)
        if isinstance(stages, nn.Sequential | nn.ModuleList) and len(stages) > 1:
            if container == "blocks" and not isinstance(stages[0], nn.Sequential):
                trained = max(1, len(stages) // BLOCKS_PER_TRAINED_BLOCK)
            else:
                trained = 1 if len(stages) <= MAX_COARSE_STAGES else TRAINED_STAGES
            return f"{container}.{len(stages) - trained}"
    for last in ("layer4", "s4"):
        if isinstance(getattr(network, last, None), nn.Module):
            return last
    raise ValueError(
        f"{name} cannot be adapted: where the stages of {type(network).__name__} begin is not known. Choose an "
        "EfficientNet, a ResNet, a ConvNeXt or a vision transformer."
    )


@torch.no_grad()
def _find_modules_called_before(network: Any, first: str, example: Tensor) -> set[str]:
    """Return the paths of the modules that a forward pass calls before the first trained stage."""
    called: list[str] = []
    hooks = []
    reached = False

    def note(path: str) -> Any:
        def hook(*_: Any) -> None:
            nonlocal reached
            reached |= path == first
            if not reached and not first.startswith(f"{path}."):
                called.append(path)

        return hook

    try:
        for path, module in network.named_modules():
            if path:
                hooks.append(module.register_forward_pre_hook(note(path)))
        network.forward_features(example)
    finally:
        for hook in hooks:
            hook.remove()
    return set(called)


def _copy_front(network: nn.Module, first: str) -> _FrozenFront:
    ours = copy.deepcopy(network).requires_grad_(False)
    container, _, number = first.rpartition(".")
    if container:
        stages: Any = ours.get_submodule(container)
        for place in range(int(number) + 1, len(stages)):
            stages[place] = nn.Identity()
        stages[int(number)] = _StageInputCatcher()
    else:
        setattr(ours, first, _StageInputCatcher())
    return _FrozenFront(ours).eval()


def _copy_rest(network: nn.Module, first: str, called: set[str]) -> LastStages:
    """Copy a network and replace the modules that were called before the first trained stage by identities."""
    ours: Any = copy.deepcopy(network).requires_grad_(True)
    for path in called:
        parent, _, child = path.rpartition(".")
        if any(path.startswith(f"{other}.") for other in called):
            continue  # goes with the one that it is in
        holder = ours.get_submodule(parent) if parent else ours
        if isinstance(holder, nn.Sequential | nn.ModuleList):
            holder[int(child)] = nn.Identity()
        else:
            setattr(holder, child, nn.Identity())
    if hasattr(ours, "_pos_embed"):  # adds class token and positions: the inputs have them
        ours._pos_embed = _identity
    return LastStages(ours)


def _identity(inputs: Tensor) -> Tensor:
    return inputs
