"""The label-wise embedding model of LAGC: each class attends to the feature map.

One encoder layer over places, two decoder layers of class queries. Xie et al., NeurIPS 2022, and its code,
after Query2Label (Liu et al. 2021, https://arxiv.org/abs/2107.10834) without self-attention of queries.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

POSITION_TEMPERATURE = 10_000.0  # of the sine code: how much slower its slowest wave is than its fastest


class LabelDecoder(nn.Module):
    """A network from maps to logits (B, C), also unit embeddings (B, C, P) if `projecting`."""

    def __init__(
        self,
        channels: int,
        classes: int,
        *,
        width: int = 0,
        heads: int = 4,
        feed_forward: int = 0,
        dropout: float = 0.1,
        decoder_layers: int = 2,
        projection: int = 128,
        generator: torch.Generator | None = None,
    ):
        """Build the network, by default as published for ResNet-50 (d = 2048).

        Args:
            channels: K.
            width: d after a 1x1 convolution. 0 keeps K without one.
            heads: Attention heads per layer.
            feed_forward: Inner size, 0 for 4 d.
            projection: P.

        Raises:
            ValueError: d is not divisible by `heads` and 4.
        """
        super().__init__()
        d = width or channels
        if d % heads or d % 4:
            raise ValueError(
                f"A width of {d} can be divided neither among {heads} heads nor the four parts of the position code"
                if d % heads and d % 4
                else f"A width of {d} must be divisible by the {heads} heads and by 4. Set width to a number that is."
            )
        inner = feed_forward or 4 * d
        seed = torch.randint(2**62, (), generator=generator)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(seed))
            self.reduce = nn.Conv2d(channels, d, 1) if width else nn.Identity()
            self.encoder = EncoderLayer(d, heads, inner, dropout)
            self.decoder = nn.ModuleList(DecoderLayer(d, heads, inner, dropout) for _ in range(decoder_layers))
            self.norm = nn.LayerNorm(d)
            for matrix in [p for part in (self.encoder, self.decoder) for p in part.parameters() if p.ndim > 1]:
                nn.init.xavier_uniform_(matrix)
            self.queries = nn.Parameter(torch.randn(classes, d))
            bound = 1 / math.sqrt(d)
            self.weight = nn.Parameter(torch.empty(classes, d).uniform_(-bound, bound))
            self.bias = nn.Parameter(torch.empty(classes).uniform_(-bound, bound))
            self.project = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, projection))
        self.projecting = False  # set by the method: the projection is of the second stage only

    def embed(self, maps: Tensor) -> Tensor:
        """Return the embedding of each class in each map: (B, K, h, w) -> (B, C, d)."""
        maps = self.reduce(maps)
        places = maps.flatten(2).transpose(1, 2)
        where = sine_position_encoding(*maps.shape[1:], device=maps.device).to(maps.dtype)
        places = self.encoder(places, where)
        queries = self.queries.to(places.dtype)
        answers = torch.zeros_like(queries).expand(len(maps), -1, -1)
        for layer in self.decoder:
            answers = layer(answers, queries, places, where)
        return self.norm(answers)

    def forward(self, maps: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Return logits (B, C), or (logits, embeddings)."""
        embeddings = self.embed(maps)
        logits = (embeddings * self.weight).sum(-1) + self.bias
        if not (self.projecting and self.training):
            return logits
        return logits, F.normalize(self.project(embeddings).float(), dim=-1)


class TransformerLayer(nn.Module):
    """A post-norm layer of attention and feed-forward network."""

    def __init__(self, d: int, heads: int, inner: int, dropout: float):
        super().__init__()
        self.attention = nn.MultiheadAttention(d, heads, dropout, batch_first=True)
        self.feed = make_feed_forward(d, inner, dropout)
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.dropout = nn.Dropout(dropout)

    def apply_feed_forward(self, inputs: Tensor, attention_output: Tensor) -> Tensor:
        """Return the layer's output, given its input and the output of its attention."""
        attended = self.norm1(inputs + self.dropout(attention_output))
        return self.norm2(attended + self.dropout(self.feed(attended)))


class EncoderLayer(TransformerLayer):
    """A transformer layer of self-attention among the positions of a map."""

    def forward(self, places: Tensor, where: Tensor) -> Tensor:
        """Return updated embeddings (B, T, d) of T positions. `where` is their position encoding."""
        asked = places + where
        heard, _ = self.attention(asked, asked, places, need_weights=False)
        return self.apply_feed_forward(places, heard)


class DecoderLayer(TransformerLayer):
    """A transformer layer in which class embeddings attend to the positions of a map only."""

    def forward(self, answers: Tensor, queries: Tensor, places: Tensor, where: Tensor) -> Tensor:
        """Return updated class embeddings (B, C, d), which are called `answers` here."""
        heard, _ = self.attention(answers + queries, places + where, places, need_weights=False)
        return self.apply_feed_forward(answers, heard)


def make_feed_forward(d: int, inner: int, dropout: float) -> nn.Sequential:
    """Return the feed-forward network of a transformer layer, with two linear layers."""
    return nn.Sequential(nn.Linear(d, inner), nn.ReLU(), nn.Dropout(dropout), nn.Linear(inner, d))


def sine_position_encoding(d: int, height: int, width: int, device: torch.device | str = "cpu") -> Tensor:
    """Return the sine encoding of the positions of a map, (height x width, d), as in DETR (Carion et al. 2020).

    Half of the d numbers encode the row and half the column, scaled to 2 pi. d must be divisible by 4.
    """
    half = d // 2
    period = POSITION_TEMPERATURE ** (2 * torch.arange(half, device=device).div(2, rounding_mode="floor") / half)

    def waves(length: int) -> Tensor:
        place = torch.arange(1, length + 1, device=device) / (length + 1e-6) * 2 * math.pi
        angle = place[:, None] / period
        return torch.stack([angle[:, 0::2].sin(), angle[:, 1::2].cos()], dim=2).flatten(1)

    rows = waves(height)[:, None].expand(height, width, half)
    columns = waves(width)[None].expand(height, width, half)
    return torch.cat([rows, columns], dim=2).flatten(0, 1)
