"""Data parallel training: each process holds some images and takes the same steps.

All share one batch order, so the number of processes may change between runs.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel


class ParallelProcess:
    """This process's part of a data parallel training, in torch's default process group.

    Attributes:
        rank, of: Number of this process, and number of processes.
        owner: (N,) int64, the process of each image.
    """

    def __init__(self, owner: Tensor, rank: int | None = None, world_size: int | None = None):
        self.owner = owner
        self.rank = dist.get_rank() if rank is None else rank
        self.of = dist.get_world_size() if world_size is None else world_size

    @property
    def own_images(self) -> Tensor:
        """Return the rows that this process holds, (n,) int64."""
        return torch.nonzero(self.owner == self.rank).flatten()

    def wrap_network(self, network: nn.Module) -> nn.Module:
        """Wrap the network, so that processes start with equal weights and average their gradients."""
        return DistributedDataParallel(network, broadcast_buffers=False, find_unused_parameters=True)

    def split_into_batches(self, order: Tensor, batch: int) -> list[Tensor]:
        """Split a random order (N,) into batches, each with a proportional part per process.

        Last batches without an image for every process are dropped.
        """
        owner = self.owner[order]
        position = torch.zeros(len(order), dtype=torch.float64)
        for rank in range(self.of):
            held = owner == rank
            count = int(held.sum())
            position[held] = (torch.arange(count).double() + (rank + 1) / (self.of + 1)) / max(count, 1)
        parts = list(order[torch.argsort(position, stable=True)].split(batch))
        return [part for part in parts if len(torch.unique(self.owner[part])) == self.of]

    def select_own_rows(self, part: Tensor) -> Tensor:
        return part[self.owner[part] == self.rank]

    def compute_loss_weight(self, part: Tensor) -> float:
        """Return the loss scale that makes the averaged gradient that of the whole batch."""
        return self.of * len(self.select_own_rows(part)) / len(part)

    def make_view_generator(self, shared: torch.Generator) -> torch.Generator:
        """Return a random generator for this process's views, and advance `shared` equally in all processes."""
        return torch.Generator().manual_seed(int(torch.randint(2**62, (), generator=shared)) + self.rank)

    def gather(self, own: Tensor) -> Tensor:
        """Return the rows of all images (N, ...) on every process, gathered from each process's own rows (n, ...)."""
        pieces: list[Any] = [None] * self.of
        dist.all_gather_object(pieces, own.detach().cpu())
        first = pieces[0]
        whole = torch.zeros(len(self.owner), *first.shape[1:], dtype=first.dtype)
        for rank, piece in enumerate(pieces):
            whole[self.owner == rank] = piece
        return whole
