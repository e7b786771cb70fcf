"""Test-time training: the hidden state of a layer is a linear model that learns from the tokens it reads.

Y. Sun et al., Learning to (Learn at Test Time): RNNs with Expressive Hidden States, arXiv 2407.04620: section 2.3
(outer-loop views), 2.4 (mini-batches), 2.5 and appendix A (dual form), 2.7 (f(x) = x + LN(W x), learned initial state and
rate). The backbone is the transformer's; rotary positions are left out.

Stream: text, n >= 1 tokens a sample. Mini-batches: mini_batch tokens each; the last one of a sample may be shorter.
Sizes: the fields of ``Config``.

For each mini-batch of r tokens and each head (d = head_dim), with training view k, test view q, state W [d, d]: k @ W and q
@ W (r * d * d each); q @ k^T, all r * r products, then masked to tokens up to each one; that times the gradients of the
inner loss (r * r * d). Except after the last mini-batch, whose state nobody reads, W moves by k^T @ gradients (r * d * d).
Two gradients each in the backward pass, through the inner gradients too, which are written out and elementwise.

The counter sees linears and these five products; not norms and what is elementwise. The useful pairs are r * (r + 1) / 2 a
mini-batch.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
from torch import nn
from torch.nn import functional


@dataclass(frozen=True)
class Config:
    vocab: int  # entries of the vocabulary
    width: int  # model width
    layers: int
    heads: int
    head_dim: int  # width of a head, and of its state
    hidden: int  # hidden width of the gated feed-forward network
    mini_batch: int  # tokens of one inner step


def inner_gradient(z, target, weight, bias):
    """The gradient of |LN(z) - target|^2 / 2 in z, over the last axis."""
    spread = (z.var(-1, unbiased=False, keepdim=True) + 1e-6).sqrt()
    unit = (z - z.mean(-1, keepdim=True)) / spread
    slope = (weight * unit + bias - target) * weight
    return (slope - slope.mean(-1, keepdim=True) - unit * (slope * unit).mean(-1, keepdim=True)) / spread


class Learner(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, inner = c, c.heads * c.head_dim
        self.train_view, self.label_view, self.test_view = (nn.Linear(c.width, inner, bias=False) for _ in range(3))
        self.rate = nn.Linear(c.width, c.heads)
        self.state = nn.Parameter(torch.randn(c.heads, c.head_dim, c.head_dim) * 0.02)
        self.state_bias = nn.Parameter(torch.zeros(c.heads, 1, c.head_dim))
        self.inner_weight = nn.Parameter(torch.ones(c.heads, 1, c.head_dim))
        self.inner_bias = nn.Parameter(torch.zeros(c.heads, 1, c.head_dim))
        self.norm, self.out = nn.LayerNorm(inner), nn.Linear(inner, c.width, bias=False)

    def forward(self, x):
        size, d = self.c.mini_batch, self.c.head_dim
        views = (self.train_view, self.label_view, self.test_view)
        train, label, test = (view(x).view(len(x), -1, d).transpose(0, 1) for view in views)  # [heads, n, d]
        rate = self.rate(x).sigmoid().T[..., None] / d  # [heads, n, 1]
        state, bias, rows = self.state, self.state_bias, []
        for start in range(0, len(x), size):
            here = slice(start, start + size)
            k, q = train[:, here], test[:, here]
            gradient = inner_gradient(k @ state + bias, label[:, here] - k, self.inner_weight, self.inner_bias)
            step = rate[:, here] * gradient
            mixed = (q @ k.mT).tril() @ step
            z = q @ state + bias - mixed - step.cumsum(1)
            spread = (z.var(-1, unbiased=False, keepdim=True) + 1e-6).sqrt()
            rows.append(q + self.inner_weight * (z - z.mean(-1, keepdim=True)) / spread + self.inner_bias)
            if start + size < len(x):
                state, bias = state - k.mT @ step, bias - step.sum(1, keepdim=True)
        return self.out(self.norm(torch.cat(rows, 1).transpose(0, 1).flatten(1)))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm1, self.learner, self.norm2 = nn.RMSNorm(c.width), Learner(c), nn.RMSNorm(c.width)
        self.gate, self.up = nn.Linear(c.width, c.hidden, bias=False), nn.Linear(c.width, c.hidden, bias=False)
        self.down = nn.Linear(c.hidden, c.width, bias=False)

    def forward(self, x):
        x = x + self.learner(self.norm1(x))
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Model(nn.Module):
    config_class = Config

    def __init__(self, config):
        super().__init__()
        self.config = asdict(config)
        self.embed = nn.Embedding(config.vocab, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm, self.head = nn.RMSNorm(config.width), nn.Linear(config.width, config.vocab, bias=False)

    def forward(self, tokens):  # a list of [n], or [b, n]
        return torch.cat([self.head(self.norm(nn.Sequential(*self.blocks)(self.embed(sample)))) for sample in tokens])
