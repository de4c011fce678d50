"""One training by several processes: each holds some of the images, all take the same steps (data parallel training).

A batch has as many images as with one process, in an order that all processes agree on, so that a training may continue
with more or fewer processes after one was lost. Gradients are averaged by torch's DistributedDataParallel; each process
weighs its loss by its share of the batch.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel


class ParallelProcess:
    """One of several processes in torch's default process group.

    Attributes:
        rank, of: Number of this process, and the number of processes.
        owner: (N,) int64: the process that holds each image.
    """

    def __init__(self, owner: Tensor, rank: int | None = None, world_size: int | None = None):
        self.owner = owner
        self.rank = dist.get_rank() if rank is None else rank
        self.of = dist.get_world_size() if world_size is None else world_size

    @property
    def own_images(self) -> Tensor:
        """Return the rows of the images that this process holds, (n,) int64."""
        return torch.nonzero(self.owner == self.rank).flatten()

    def wrap_network(self, network: nn.Module) -> nn.Module:
        """Return the network with averaged gradients; its weights become those of the first process."""
        return DistributedDataParallel(network, broadcast_buffers=False, find_unused_parameters=True)

    def split_into_batches(self, order: Tensor, batch: int) -> list[Tensor]:
        """Return batches of a random order (N,), each with images of every process in proportion to what they hold.

        Batches at the end in which a process has no image are left out; a small training is one batch.
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
        """Return the rows of a batch that this process holds."""
        return part[self.owner[part] == self.rank]

    def compute_loss_weight(self, part: Tensor) -> float:
        """Return the factor of this process's loss with which the average of all gradients is that of the batch."""
        return self.of * len(self.select_own_rows(part)) / len(part)

    def make_view_generator(self, shared: torch.Generator) -> torch.Generator:
        """Return a generator for the views of this process; `shared` advances equally in all processes."""
        return torch.Generator().manual_seed(int(torch.randint(2**62, (), generator=shared)) + self.rank)

    def gather(self, own: Tensor) -> Tensor:
        """Return an array (N, ...) for all images, on every process, from (n, ...) of the images held here."""
        pieces: list[Any] = [None] * self.of
        dist.all_gather_object(pieces, own.detach().cpu())
        first = pieces[0]
        whole = torch.zeros(len(self.owner), *first.shape[1:], dtype=first.dtype)
        for rank, piece in enumerate(pieces):
            whole[self.owner == rank] = piece
        return whole
