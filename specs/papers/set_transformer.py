"""Set transformer: attention between a set and learned points.

J. Lee et al., Set Transformer: A Framework for Attention-based Permutation-Invariant Neural Networks, arXiv 1810.00825:
section 3.1 (blocks, induced points), 3.2 (pooling), 3.3 (architecture). With the layer norms.

Stream: set, n >= 1 elements a sample.
Sizes: the fields of ``Config``. No masks: all pairs are useful and computed.

MAB(X, Y): linears of X to queries and of Y to keys and values; the mix is added to the projected queries, norm; then x +
relu(linear(x)), norm. Encoder layer: H = MAB(points, X) with its own induced points, then MAB(X, H): 2 * points * n pairs.
Learned points are projected once a sample. Pooling: the pooled rows are MAB(seeds, relu(linear(X))), seeds * n pairs.
Decoder layer: MAB(Z, Z) over the seeds, seeds**2 pairs. Each seed's row goes to a linear. Output: [seeds, outputs] of each
sample.

The counter sees linears, scores and mixes; not softmax and norms.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
from torch import nn
from torch.nn import functional


@dataclass(frozen=True)
class Config:
    features: int  # of an element
    width: int  # model width, heads * width of a head
    heads: int
    points: int  # induced points of an encoder layer
    encoder_layers: int
    seeds: int  # pooled rows
    decoder_layers: int
    outputs: int  # of a seed


class Block(nn.Module):
    """MAB: the rows of ``x`` attend to those of ``y``."""

    def __init__(self, width, width_x, width_y, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = nn.Linear(width_x, width), nn.Linear(width_y, width), nn.Linear(width_y, width)
        self.norm1, self.inner, self.norm2 = nn.LayerNorm(width), nn.Linear(width, width), nn.LayerNorm(width)

    def forward(self, x, y):
        q, k, v = (
            layer(part).view(len(part), self.heads, -1).transpose(0, 1)
            for layer, part in ((self.query, x), (self.key, y), (self.value, y))
        )
        mix = q + (q @ k.mT * (self.norm1.normalized_shape[0] ** -0.5)).softmax(-1) @ v
        x = self.norm1(mix.transpose(0, 1).flatten(1))
        return self.norm2(x + functional.relu(self.inner(x)))


class Induced(nn.Module):
    def __init__(self, c, width_x):
        super().__init__()
        self.points = nn.Parameter(torch.randn(c.points, c.width))
        self.gather, self.spread = Block(c.width, c.width, width_x, c.heads), Block(c.width, width_x, c.width, c.heads)

    def forward(self, x):
        return self.spread(x, self.gather(self.points, x))


class Model(nn.Module):
    config_class = Config

    def __init__(self, config):
        super().__init__()
        self.config, c = asdict(config), config
        self.encoder = nn.ModuleList(Induced(c, c.width if i else c.features) for i in range(c.encoder_layers))
        self.before = nn.Linear(c.width, c.width)
        self.seeds, self.pool = nn.Parameter(torch.randn(c.seeds, c.width)), Block(c.width, c.width, c.width, c.heads)
        self.decoder = nn.ModuleList(Block(c.width, c.width, c.width, c.heads) for _ in range(c.decoder_layers))
        self.head = nn.Linear(c.width, c.outputs)

    def forward(self, sets):  # a list of [n, features], or [b, n, features]
        return torch.cat([self.sample(elements) for elements in sets])

    def sample(self, elements):
        x = self.pool(self.seeds, functional.relu(self.before(nn.Sequential(*self.encoder)(elements))))
        for block in self.decoder:
            x = block(x, x)
        return self.head(x)
