"""Graph transformer with edge features: nodes attend along edges, and edges are updated too.

V. P. Dwivedi, X. Bresson, A Generalization of Transformer Networks to Graphs, arXiv 2012.09699: section 2 (Laplacian
positions, layer with edge features, readout). With layer norms.

Streams of a sample: nodes, n >= 1; edges, e >= 1, each from one node to another or the same one, in any number per node.
Both lengths are free.
Sizes: the fields of ``Config``.

Layer: linears of nodes to queries, keys, values, and of edges to one vector for each head. Along an edge, query * key *
edge vector, element by element, is the new edge, and its sum over the width of a head is the score: here the product of the
query with key * edge vector. A node's softmax is over the edges that end there. Then, for nodes and edges alike, a linear
with residual and norm, and a feed-forward network of twice the width with residual and norm. Keys are gathered per node:
exactly one pair an edge, e in all. The last layer updates edges too, though nobody reads them: that work has no backward
pass.
Readout: the mean of nodes, then linears to width / 2, to width / 4 and to outputs, once a sample.

The counter sees linears, scores and mixes (each heads * head width an edge); not embeddings, element-wise products,
softmax, norms, means.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
from torch import nn
from torch.nn import functional


@dataclass(frozen=True)
class Config:
    node_features: int
    edge_features: int
    positions: int  # Laplacian eigenvectors of a node
    width: int  # of nodes and edges, heads * width of a head, a multiple of 4
    layers: int
    heads: int
    outputs: int


class Update(nn.Module):
    """What follows the attention: for nodes, and for edges."""

    def __init__(self, width):
        super().__init__()
        self.out, self.norm1 = nn.Linear(width, width), nn.LayerNorm(width)
        self.up, self.down, self.norm2 = nn.Linear(width, 2 * width), nn.Linear(2 * width, width), nn.LayerNorm(width)

    def forward(self, x, more):
        x = self.norm1(x + self.out(more))
        return self.norm2(x + self.down(functional.relu(self.up(x))))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.edge = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.nodes, self.edges = Update(width), Update(width)

    def forward(self, x, edges, ends):
        q, k, v = (layer(x).view(len(x), self.heads, -1) for layer in (self.query, self.key, self.value))
        weighted = k[[start for start, _ in ends]] * self.edge(edges).view(len(edges), self.heads, -1)
        more = q[[end for _, end in ends]] * weighted * q.shape[-1] ** -0.5
        rows = []
        for node in range(len(x)):
            coming = [i for i, (_, end) in enumerate(ends) if end == node]
            if coming:
                scores = q[node, :, None] @ weighted[coming].permute(1, 2, 0) * q.shape[-1] ** -0.5
                values = v[[ends[i][0] for i in coming]].transpose(0, 1)
                rows.append((scores.softmax(-1) @ values).flatten())
            else:
                rows.append(torch.zeros_like(x[node]))
        return self.nodes(x, torch.stack(rows)), self.edges(edges, more.flatten(1))


class Model(nn.Module):
    config_class = Config

    def __init__(self, config):
        super().__init__()
        self.config, c = asdict(config), config
        self.node_in, self.edge_in = nn.Linear(c.node_features, c.width), nn.Linear(c.edge_features, c.width)
        self.place_in = nn.Linear(c.positions, c.width)
        self.blocks = nn.ModuleList(Block(c.width, c.heads) for _ in range(c.layers))
        self.readout1, self.readout2 = nn.Linear(c.width, c.width // 2), nn.Linear(c.width // 2, c.width // 4)
        self.head = nn.Linear(c.width // 4, c.outputs)

    def forward(self, nodes, places, edges, ends):
        """For each graph: [n, node_features], [n, positions], [e, edge_features], and a list of (from, to)."""
        return torch.cat([*map(self.sample, nodes, places, edges, ends)])

    def sample(self, nodes, places, edges, ends):
        x, y = self.node_in(nodes) + self.place_in(places), self.edge_in(edges)
        for block in self.blocks:
            x, y = block(x, y, ends)
        return self.head(functional.relu(self.readout2(functional.relu(self.readout1(x.mean(0, keepdim=True))))))
