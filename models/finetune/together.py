"""One training by several processes: each holds some of the images, all take the same steps (data parallel training).

A batch has as many images as with one process, in an order that all processes agree on, so that a training may go on
with more or fewer of them after one was lost. Gradients are averaged by torch's DistributedDataParallel; each process
weighs its loss by its share of the batch.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel


class Together:
    """One of several processes in torch's default process group.

    Attributes:
        rank, of: This process, and how many there are.
        owner: (N,) int64: which process holds each image.
    """

    def __init__(self, owner: Tensor, rank: int | None = None, of: int | None = None):
        self.owner = owner
        self.rank = dist.get_rank() if rank is None else rank
        self.of = dist.get_world_size() if of is None else of

    @property
    def own(self) -> Tensor:
        """(n,) int64 rows of the images that this process holds."""
        return torch.nonzero(self.owner == self.rank).flatten()

    def wrapped(self, network: nn.Module) -> nn.Module:
        """The network with averaged gradients; its weights become those of the first process."""
        return DistributedDataParallel(network, broadcast_buffers=False, find_unused_parameters=True)

    def parts(self, order: Tensor, batch: int) -> list[Tensor]:
        """Batches of a random order (N,), each with images of every process, in the shares in which they hold them.

        The end of the order, where one has none left, is left out; a small training is one batch.
        """
        owner = self.owner[order]
        position = torch.zeros(len(order), dtype=torch.float64)
        for rank in range(self.of):
            held = owner == rank
            count = int(held.sum())
            position[held] = (torch.arange(count).double() + (rank + 1) / (self.of + 1)) / max(count, 1)
        parts = list(order[torch.argsort(position, stable=True)].split(batch))
        return [part for part in parts if len(torch.unique(self.owner[part])) == self.of]

    def mine(self, part: Tensor) -> Tensor:
        """The rows of a batch that this process holds."""
        return part[self.owner[part] == self.rank]

    def weight(self, part: Tensor) -> float:
        """Of this process's loss, so that the average of all gradients is that of the batch."""
        return self.of * len(self.mine(part)) / len(part)

    def generator(self, shared: torch.Generator) -> torch.Generator:
        """Of this process's views; `shared` moves on alike in all processes."""
        return torch.Generator().manual_seed(int(torch.randint(2**62, (), generator=shared)) + self.rank)

    def gathered(self, own: Tensor) -> Tensor:
        """(N, ...) of all images on every process, of (n, ...) of those that this one holds."""
        pieces: list[Any] = [None] * self.of
        dist.all_gather_object(pieces, own.detach().cpu())
        first = pieces[0]
        whole = torch.zeros(len(self.owner), *first.shape[1:], dtype=first.dtype)
        for rank, piece in enumerate(pieces):
            whole[self.owner == rank] = piece
        return whole
