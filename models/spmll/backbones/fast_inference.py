"""The fastest equivalent form of a frozen network on this machine.

On CPUs, convolutional networks are limited by memory traffic. Hence channels_last, folded batch norm, fused oneDNN
calls, and chunks small enough for the cache. Transformers are limited by arithmetic, hence half precision. The original
network is used where outputs differ.
"""

import copy
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from timm.layers import BatchNormAct2d, Conv2dSame
from torch import nn

OUTPUT_TOLERANCE = 1e-3  # of features whose size is about 1; folding alone gives about 1e-5
HALF_TOLERANCE = 0.1  # of the length of an image's output; half precision gives 0.01 to 0.03

# Larger batches are no faster on a CPU: their maps leave the cache, and glibc hands such large buffers back
# to the kernel after each layer, which then clears every page again.
CPU_CHUNK_IMAGES = 4
GPU_CHUNK_IMAGES = 64

# bfloat16 on a CPU: tried for networks with this many weights, used if this many times as fast in the best of
# TIMING_ROUNDS.
MIN_BFLOAT16_WEIGHTS, MIN_BFLOAT16_SPEEDUP, TIMING_ROUNDS = 4_000_000, 1.3, 3

_ONEDNN_NAMES: dict[type[nn.Module], tuple[str, list[float]]] = {
    nn.Identity: ("none", []),
    nn.ReLU: ("relu", []),
    nn.ReLU6: ("hardtanh", [0.0, 6.0]),
    nn.SiLU: ("swish", []),
    nn.Hardswish: ("hardswish", []),
}


def find_fastest_forward(
    network: nn.Module, input_size: int, device: torch.device, *flags: bool
) -> tuple[Callable[..., Any], str, int]:
    """Return (fastest equivalent of `network`, its description, images per chunk).

    Outputs differ by rounding, in half precision by 1 to 2% of a vector's length. The function takes (N, 3, S, S)
    float32, channels_last, under torch.inference_mode(). `network` is not changed.

    Args:
        flags: Further positional arguments with which `network` is called for the comparison of outputs.
    """
    if device.type not in ("cpu", "cuda"):
        return network, f"{device.type}, channels_last", GPU_CHUNK_IMAGES
    examples = _make_examples(input_size, device)
    if device.type == "cuda":
        kind = torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16
        half = _wrap_in_autocast(network, "cuda", kind)
        with torch.inference_mode():
            if _are_close_in_half(half(examples, *flags), network(examples, *flags)):
                return half, f"CUDA, channels_last, {str(kind).removeprefix('torch.')} autocast", GPU_CHUNK_IMAGES
        return network, "CUDA, channels_last", GPU_CHUNK_IMAGES
    with torch.inference_mode():
        if any(isinstance(module, nn.BatchNorm2d) for module in network.modules()):
            try:
                folded = fold_batch_norm(network)
                if _are_close(folded(examples, *flags), network(examples, *flags)):
                    return folded, "CPU, channels_last, folded into oneDNN calls", CPU_CHUNK_IMAGES
            except (RuntimeError, AttributeError, NotImplementedError):
                pass  # a torch without these calls, or a layer they cannot do
        if has_bfloat16() and sum(weight.numel() for weight in network.parameters()) >= MIN_BFLOAT16_WEIGHTS:
            half = _wrap_in_autocast(copy_with_bfloat16_weights(network), "cpu", torch.bfloat16)
            examples = examples.repeat(CPU_CHUNK_IMAGES // 2, 1, 1, 1).contiguous(memory_format=torch.channels_last)
            try:
                if _are_close_in_half(half(examples, *flags), network(examples, *flags)) and measure_speedup(
                    lambda: half(examples, *flags), lambda: network(examples, *flags)
                ) > MIN_BFLOAT16_SPEEDUP:  # fmt: skip
                    return half, "CPU, channels_last, bfloat16", CPU_CHUNK_IMAGES
            except (RuntimeError, NotImplementedError):
                pass  # a layer that knows no such numbers
    return network, "CPU, channels_last", CPU_CHUNK_IMAGES


def has_bfloat16() -> bool:
    known = [getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported")]
    return any(is_there() for is_there in known if is_there is not None)


def copy_with_bfloat16_weights(network: nn.Module) -> nn.Module:
    """Copy a network and convert its matrices to bfloat16 once, which saves autocast's conversion in each pass."""
    reduced = copy.deepcopy(network)
    for module in reduced.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            module.to(torch.bfloat16)
    return reduced


def measure_speedup(first: Callable[[], object], second: Callable[[], object]) -> float:
    """Return how many times faster `first` is than `second`, by the best of several times."""
    seconds = [[], []]
    for _ in range(TIMING_ROUNDS):
        for of_one, run in zip(seconds, (first, second), strict=True):
            began = time.perf_counter()
            run()
            of_one.append(time.perf_counter() - began)
    return min(seconds[1]) / min(seconds[0])


def _make_examples(input_size: int, device: torch.device) -> torch.Tensor:
    waves = torch.linspace(-1, 1, 2 * 3 * input_size**2).view(2, 3, input_size, input_size).sin_()
    grain = torch.randn(waves.shape, generator=torch.Generator().manual_seed(0)) / 2
    return (waves + grain).to(device).contiguous(memory_format=torch.channels_last)


def _wrap_in_autocast(network: nn.Module, device: str, kind: torch.dtype) -> Callable[..., Any]:
    def half(images: torch.Tensor, *asked: bool) -> torch.Tensor | tuple[torch.Tensor, ...]:
        with torch.autocast(device, kind):
            return network(images, *asked)

    return half


def _are_close_in_half(
    some: torch.Tensor | tuple[torch.Tensor, ...], others: torch.Tensor | tuple[torch.Tensor, ...]
) -> bool:
    """Return whether half-precision outputs are finite and differ from the others by at most HALF_TOLERANCE."""
    for first, second in _pair_outputs(some, others):
        half, full = first.float().flatten(1), second.flatten(1)
        far = (half - full).norm(dim=1) > HALF_TOLERANCE * full.norm(dim=1) + 1e-6
        if not torch.isfinite(half).all() or far.any():
            return False
    return True


def _are_close(some: torch.Tensor | tuple[torch.Tensor, ...], others: torch.Tensor | tuple[torch.Tensor, ...]) -> bool:
    return all(
        torch.allclose(first, second, rtol=OUTPUT_TOLERANCE, atol=OUTPUT_TOLERANCE)
        for first, second in _pair_outputs(some, others)
    )


def _pair_outputs(
    some: torch.Tensor | tuple[torch.Tensor, ...], others: torch.Tensor | tuple[torch.Tensor, ...]
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    return zip(*((output,) if isinstance(output, torch.Tensor) else output for output in (some, others)), strict=True)


def fold_batch_norm(network: nn.Module) -> nn.Module:
    """Copy a frozen network with batch norm and activation fused into convolutions.

    Adjacent modules are assumed adjacent in the computation, so compare the outputs.
    """
    folded = copy.deepcopy(network)
    for parent in list(folded.modules()):
        children = list(parent.named_children())
        for (name, conv), (next_name, norm) in itertools.pairwise(children):
            if isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d) and _can_fold(conv, norm):
                setattr(parent, name, _FoldedConvolution(conv, norm))
                activation = getattr(norm, "act", None)
                swallowed = activation is None or type(activation) in _ONEDNN_NAMES
                setattr(parent, next_name, nn.Identity() if swallowed else activation)
    return folded.eval()


def _can_fold(conv: nn.Conv2d, norm: nn.BatchNorm2d) -> bool:
    return (
        type(conv) in {nn.Conv2d, Conv2dSame}
        and type(norm) in {nn.BatchNorm2d, BatchNormAct2d}
        and conv.out_channels == norm.num_features
        and conv.padding_mode == "zeros"
        and conv.dilation == (1, 1)
        and not isinstance(conv.padding, str)
        and norm.running_var is not None
    )


class _FoldedConvolution(nn.Module):
    """A module that computes convolution, batch norm and activation in one call."""

    def __init__(self, conv: nn.Conv2d, norm: nn.BatchNorm2d):
        super().__init__()
        assert norm.running_mean is not None and norm.running_var is not None  # _can_fold
        scale = (norm.weight if norm.affine else 1.0) / torch.sqrt(norm.running_var + norm.eps)
        bias = (norm.bias if norm.affine else 0.0) - norm.running_mean * scale
        self.bias = (bias if conv.bias is None else bias + conv.bias * scale).detach()
        self.weight = (conv.weight * scale[:, None, None, None]).detach()
        self.same = isinstance(conv, Conv2dSame)
        self.kernel, self.stride, self.padding = conv.kernel_size, conv.stride, conv.padding
        self.dilation, self.groups = conv.dilation, conv.groups
        activation = getattr(norm, "act", nn.Identity())
        self.activation, self.options = _ONEDNN_NAMES.get(type(activation), ("none", []))
        self.packed = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.packed:  # at the first call, which fastest() makes: only now is the size of the map known
            self._pack_weights(x)
        return torch.ops.mkldnn._convolution_pointwise(
            x, self.weight, self.bias, self.padding, self.stride, self.dilation, self.groups,
            self.activation, self.options, "",
        )  # fmt: skip

    def _pack_weights(self, x: torch.Tensor) -> None:
        """Compute the padding and reorder the weights for the size of this feature map."""
        if self.same:
            down, across = (self._count_padding(x.shape[2 + axis], axis) for axis in (0, 1))
            # TensorFlow puts an odd row or column of zeros at the end only, torch pads both ends alike. A kernel with a
            # row of zeros in front and that much more padding comes to the same, without the copy of the map that
            # F.pad makes (of the largest map: 2 ms of 33 an image).
            self.weight = F.pad(self.weight, (across % 2, 0, down % 2, 0))
            self.padding = (-(-down // 2), -(-across // 2))
        self.weight = torch.ops.mkldnn._reorder_convolution_weight(
            self.weight.contiguous(memory_format=torch.channels_last),
            self.padding, self.stride, self.dilation, self.groups, list(x.shape),
        )  # fmt: skip
        self.packed = True

    def _count_padding(self, length: int, axis: int) -> int:
        stride, reach = self.stride[axis], self.kernel[axis]
        return max((-(-length // stride) - 1) * stride + reach - length, 0)
