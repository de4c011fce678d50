"""The parts of a network without its classifier, by its last output.

maps (N, K, h, w) or (N, h, w, K)    regions: parts of the map, through the tail
tokens (N, P + h x w, K)             P class and register tokens, then patches:
    average pooling                  a region averages its patches
    attention pooling                (SigLIP, PE-Core) pools a region's patches
    class token                      (DINO, CLIP, DeiT) see `TokenNetwork`
other outputs                        regions: features of the whole image
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from typing_extensions import override

from spmll.backbones.joined_networks import NetworkGroup, prepare_pixels
from spmll.backbones.sources.network_source import Pretrained

GRID_SIDE = 3
REGION_COUNT = GRID_SIDE * GRID_SIDE  # of an image, row by row from the top left


@dataclass(frozen=True)
class NetworkParts:
    """The parts of a network without its classifier, as functions of images.

    Attributes:
        whole: images -> (N, D), or with a second argument True also regions (N, REGION_COUNT, D).
        trunk, tail: `whole` in two steps, through a feature map.
        map_layer: Module that Grad-CAM reads through `to_map`. None selects the trunk's map.
    """

    whole: nn.Module
    trunk: nn.Module
    tail: nn.Module
    map_layer: nn.Module | None
    to_map: Callable[[Tensor], Tensor]
    sees_regions: bool


class MethodModule(nn.Module):
    """A module whose forward calls one method of a network and shares its weights."""

    def __init__(self, network: nn.Module, method: str, **options: Any):
        super().__init__()
        self.network, self.method, self.options = network, method, options

    @override
    def forward(self, x: Tensor) -> Tensor:
        return getattr(self.network, self.method)(x, **self.options)


class Permute(nn.Module):
    """A module that permutes the dimensions of a tensor."""

    def __init__(self, *order: int):
        super().__init__()
        self.order = order

    @override
    def forward(self, x: Tensor) -> Tensor:
        return x.permute(self.order)


class TrunkAndTail(nn.Module):
    """Trunk and tail in one module, from images to features and regions."""

    def __init__(self, trunk: nn.Module, tail: nn.Module, sees_regions: bool):
        super().__init__()
        self.trunk, self.tail, self.sees_regions = trunk, tail, sees_regions

    @override
    def forward(self, images: Tensor, regions: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        maps = self.trunk(images)
        features = self.tail(maps)
        if not regions:
            return features
        if not self.sees_regions:
            return features, features.unsqueeze(1).expand(-1, REGION_COUNT, -1)
        return features, self._apply_tail(F.adaptive_avg_pool2d(maps, GRID_SIDE))

    def features_and_places(self, images: Tensor) -> tuple[Tensor, Tensor, tuple[int, int]]:
        """Return image features (N, D), features of each position of the map (N, h x w, D), and its size (h, w)."""
        maps = self.trunk(images)
        if not self.sees_regions:
            return self.tail(maps), self.tail(maps)[:, None], (1, 1)
        return self.tail(maps), self._apply_tail(maps), (maps.shape[2], maps.shape[3])

    def _apply_tail(self, maps: Tensor) -> Tensor:
        places = maps.flatten(2).transpose(1, 2)
        return self.tail(places.flatten(0, 1)[..., None, None]).unflatten(0, places.shape[:2])


class TokenNetwork(nn.Module):
    """A module that pools a network's class, register and patch tokens to features.

    With a class token, features are [class token, average patch], as in DINOv2's linear evaluation (Oquab et al. 2024).
    A region has [class token, its average patch], which a head trained on class tokens needs.
    """

    network: Any  # of timm, or alike: forward_features, forward_head

    def __init__(self, network: nn.Module, grid: tuple[int, int]):
        super().__init__()
        self.network, self.grid = network, grid
        self.num_prefix_tokens = int(getattr(network, "num_prefix_tokens", 0))

    @property
    def reads_class_token(self) -> bool:
        return _reads_class_token(self.network)

    @override
    def forward(self, images: Tensor, regions: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        tokens = self.network.forward_features(images)
        features = self.pool(tokens)
        return (features, self.pool_regions(tokens)) if regions else features

    def pool(self, tokens: Tensor) -> Tensor:
        """Return features (N, D) of tokens."""
        return pool_outputs(self.network, tokens)

    def pool_regions(self, tokens: Tensor) -> Tensor:
        """Return region features (N, REGION_COUNT, D) of tokens."""
        prefix = tokens[:, : self.num_prefix_tokens]
        patches = self._select_patches(tokens).unflatten(1, self.grid)
        regions = [
            patches[:, rows, columns].flatten(1, 2)
            for rows in _slice_grid(self.grid[0])
            for columns in _slice_grid(self.grid[1])
        ]
        if self.reads_class_token:
            means = _apply_final_norm(self.network, torch.stack([region.mean(1) for region in regions], 1))
            return torch.cat([self._apply_head(tokens)[:, None].expand(-1, REGION_COUNT, -1), means], 2)
        return torch.stack([self._apply_head(torch.cat([prefix, region], 1)) for region in regions], 1)

    def features_and_places(self, images: Tensor) -> tuple[Tensor, Tensor, tuple[int, int]]:
        """Return image features (N, D), pooled single patches (N, h x w, K), and the patch grid's size (h, w)."""
        tokens = self.network.forward_features(images)
        patches = self._select_patches(tokens)
        pool = getattr(self.network, "attn_pool", None)
        places = patches if pool is None else pool(patches.flatten(0, 1)[:, None]).unflatten(0, patches.shape[:2])
        return self.pool(tokens), _apply_final_norm(self.network, places), self.grid

    def to_map(self, tokens: Tensor) -> Tensor:
        """Return patches as a map (N, K, h, w)."""
        return self._select_patches(tokens).unflatten(1, self.grid).permute(0, 3, 1, 2)

    def _select_patches(self, tokens: Tensor) -> Tensor:
        return tokens[:, self.num_prefix_tokens :]

    def _apply_head(self, tokens: Tensor) -> Tensor:
        return self.network.forward_head(tokens, pre_logits=True)


class JoinedNetwork(nn.Module):
    """A module that runs several networks on pixels in [0, 1] and concatenates their scaled features."""

    def __init__(self, sources: list[Pretrained], parts: list[nn.Module]):
        super().__init__()
        self.sources, self.parts = sources, nn.ModuleList(parts)

    @override
    def forward(self, images: Tensor, regions: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        outputs = [
            part(prepare_pixels(images, source), True) for part, source in zip(self.parts, self.sources, strict=True)
        ]
        # The mean square of all numbers is 1, which suits half precision, and no network outweighs another.
        length = (sum(features.shape[1] for features, _ in outputs) / len(outputs)) ** 0.5
        features = torch.cat([F.normalize(features.float(), dim=1) for features, _ in outputs], 1) * length
        if not regions:
            return features
        return features, torch.cat([F.normalize(part.float(), dim=2) for _, part in outputs], 2) * length


def pool_outputs(network: Any, outputs: Tensor) -> Tensor:
    """Return features (N, D) from a last map or tokens."""
    features = network.forward_head(outputs, pre_logits=True)
    if outputs.ndim != 3 or not _reads_class_token(network):
        return features
    patches = outputs[:, network.num_prefix_tokens :]
    return torch.cat([features, _apply_final_norm(network, patches.mean(1))], 1)


def _reads_class_token(network: Any) -> bool:
    return getattr(network, "global_pool", "") == "token" and hasattr(network, "num_prefix_tokens")


def _apply_final_norm(network: Any, pooled: Tensor) -> Tensor:
    norm = getattr(network, "fc_norm", None)
    return pooled if norm is None else norm(pooled)


def extract_parts(source: Pretrained, device: torch.device) -> NetworkParts:
    """Remove a network's classifier in place, and return the other parts."""
    network: Any = source.network.to(device).to(memory_format=torch.channels_last).eval().requires_grad_(False)
    if isinstance(network, NetworkGroup):
        parts = [extract_parts(part, device) for part in network.sources]
        whole = JoinedNetwork(network.sources, [part.whole for part in parts])
        sees_regions = any(part.sees_regions for part in parts)
        last = parts[-1]
        layer = last.map_layer or last.trunk
        return NetworkParts(whole, nn.Identity(), whole, layer, last.to_map, sees_regions)
    size = source.input_size
    example = torch.zeros(1, 3, size, size, device=device)
    if source.library in ("timm", "open_clip"):
        network.reset_classifier(0)
        with torch.no_grad():
            ends_in = network.forward_features(example)
        if found := _extract_map_parts(network, ends_in) or _extract_token_parts(network, ends_in, example):
            return found
    elif source.library:
        _remove_last_linear(network)
    whole = TrunkAndTail(nn.Identity(), network, False)
    return NetworkParts(whole, nn.Identity(), network, _find_map_layer(network, example), _to_square_map, False)


def _extract_map_parts(network: Any, maps: Tensor) -> NetworkParts | None:
    if maps.ndim != 4:
        return None
    trunk, tail = MethodModule(network, "forward_features"), MethodModule(network, "forward_head", pre_logits=True)
    if maps.shape[1] != network.num_features and maps.shape[3] == network.num_features:
        trunk, tail = nn.Sequential(trunk, Permute(0, 3, 1, 2)), nn.Sequential(Permute(0, 2, 3, 1), tail)
        maps = maps.permute(0, 3, 1, 2)
    if maps.shape[1] != network.num_features or maps.shape[2:].numel() <= 1:
        return None
    sees_regions = _accepts_small_maps(tail, maps)
    return NetworkParts(TrunkAndTail(trunk, tail, sees_regions), trunk, tail, None, _identity, sees_regions)


def _extract_token_parts(network: Any, tokens: Tensor, example: Tensor) -> NetworkParts | None:
    """Return the parts of a network that ends in tokens of a patch grid, or None for other networks."""
    prefix = getattr(network, "num_prefix_tokens", None)
    if tokens.ndim != 3 or not isinstance(prefix, int):
        return None
    grid = _find_patch_grid(network, tokens.shape[1] - prefix, example)
    if grid is None:
        return None
    whole = TokenNetwork(network, grid)
    try:
        with torch.no_grad():
            features, regions = whole(example, True)
    except (RuntimeError, ValueError, AssertionError, IndexError):  # its pooling has learned how many tokens there are
        return None
    if features.ndim != 2 or regions.shape != (1, REGION_COUNT, features.shape[1]):
        return None
    layer = _find_map_layer(whole, example)
    return NetworkParts(whole, nn.Identity(), whole, layer, whole.to_map, True)


def _find_patch_grid(network: Any, patches: int, example: Tensor) -> tuple[int, int] | None:
    """Return (rows, columns) of patches, or None if unclear."""
    sizes = getattr(getattr(network, "patch_embed", None), "patch_size", None)
    if isinstance(sizes, tuple | list) and len(sizes) == 2:
        grid = tuple(side // patch for side, patch in zip(example.shape[2:], sizes, strict=True))
        if grid[0] * grid[1] == patches:
            return grid[0], grid[1]
    side = round(patches**0.5)
    return (side, side) if patches > 1 and side * side == patches else None


def _slice_grid(length: int) -> Iterator[slice]:
    """Yield the slices of `length` positions over which adaptive average pooling averages."""
    for place in range(GRID_SIDE):
        yield slice(place * length // GRID_SIDE, -(-(place + 1) * length // GRID_SIDE))


@torch.no_grad()
def _accepts_small_maps(tail: nn.Module, maps: Tensor) -> bool:
    try:
        return tail(maps[:, :, :1, :1]).shape == tail(maps).shape
    except (RuntimeError, ValueError, AssertionError):  # it has learned, or checks, how large a map is
        return False


def _remove_last_linear(network: nn.Module) -> None:
    name, _ = [(name, module) for name, module in network.named_modules() if isinstance(module, nn.Linear)][-1]
    parent, _, child = name.rpartition(".")
    setattr(network.get_submodule(parent), child, nn.Identity())


def _find_map_layer(network: nn.Module, example: Tensor) -> nn.Module | None:
    """Return the layer that Grad-CAM reads: a transformer's last norm1, else the last map."""
    norms = [
        module
        for name, module in network.named_modules()
        if name.endswith((".norm1", ".ln_1")) and isinstance(module, nn.LayerNorm)
    ]
    if norms:  # after the last attention only the class token may count, and the gradient of every patch be zero
        return norms[-1]
    maps: list[nn.Module] = []

    def note(module: nn.Module, _inputs: tuple, output: object) -> None:
        if isinstance(output, Tensor) and output.ndim == 4 and min(output.shape[2:]) > 1:
            maps.append(module)

    hooks = [module.register_forward_hook(note) for module in network.modules() if module is not network]
    try:
        with torch.no_grad():
            network(example)
    finally:
        for hook in hooks:
            hook.remove()
    return maps[-1] if maps else None


def _identity(output: Tensor) -> Tensor:
    return output


def _to_square_map(output: Tensor) -> Tensor:
    """Return (N, K, h, w), assuming that tokens end in a square of patches."""
    if output.ndim == 3:
        side = int(output.shape[1] ** 0.5)
        return output[:, output.shape[1] - side * side :].unflatten(1, (side, side)).permute(0, 3, 1, 2)
    if output.ndim == 4 and output.shape[1] == output.shape[2] != output.shape[3]:  # channels last
        return output.permute(0, 3, 1, 2)
    return output
