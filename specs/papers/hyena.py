"""Hyena: long convolutions by FFT, with filters that a network makes from positions, and gates.

M. Poli et al., Hyena Hierarchy: Towards Larger Convolutional Language Models, arXiv 2302.10866: section 3.1 (recurrence),
3.3 (implicit filters, window), algorithms 1 to 3.

Stream: text, n >= 1 tokens a sample.
Sizes: the fields of ``Config``.

A linear makes order + 1 projections; a short causal depthwise convolution with bias runs over each. The network of filters
is a linear, a sine, filter_layers times a linear and a sine, and a linear without bias to order * width; its input are
fixed features of positions. It runs once a layer and batch, over the positions of the longest sample; shorter samples use
its first rows. The rest of the layer runs for each sample.

The counter sees linears and the short convolutions; not FFTs, gates, sines, norms. There are no pairs of tokens.
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
    order: int  # long convolutions, with a gate each
    short_kernel: int  # width of the short convolutions
    features: int  # features of a position, odd: the time, and cosines and sines of its multiples
    filter_hidden: int  # width of the network of filters
    filter_layers: int  # its hidden linears, from width to width
    hidden: int  # hidden width of the feed-forward network


class Filters(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, f = c, c.filter_hidden
        self.enter, self.out = nn.Linear(c.features, f), nn.Linear(f, c.order * c.width, bias=False)
        self.inner = nn.ModuleList(nn.Linear(f, f) for _ in range(c.filter_layers))

    def forward(self, n, device):
        time = torch.arange(n, device=device)[:, None] / n
        angles = 6.283 * time * torch.arange(1, (self.c.features + 1) // 2, device=device)
        x = torch.sin(self.enter(torch.cat([time, angles.cos(), angles.sin()], 1)))
        for layer in self.inner:
            x = torch.sin(layer(x))
        decay = torch.linspace(1, 5, self.c.width, device=device)
        return self.out(x).view(n, self.c.order, self.c.width) * torch.exp(-time * decay)[:, None]


class Operator(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, inner = c, (c.order + 1) * c.width
        self.enter, self.out = nn.Linear(c.width, inner), nn.Linear(c.width, c.width)
        self.short = nn.Conv1d(inner, inner, c.short_kernel, groups=inner)
        self.filters, self.skip = Filters(c), nn.Parameter(torch.zeros(c.order, c.width))

    def forward(self, x, filters):
        n = len(x)
        x = self.short(functional.pad(self.enter(x).T, (self.c.short_kernel - 1, 0))[None])[0].T
        value, *gates = x.split(self.c.width, 1)
        for i, gate in enumerate(gates):
            spectrum = torch.fft.rfft(value, 2 * n, 0) * torch.fft.rfft(filters[:n, i], 2 * n, 0)
            value = gate * (torch.fft.irfft(spectrum, 2 * n, 0)[:n] + self.skip[i] * value)
        return self.out(value)


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm1, self.operator, self.norm2 = nn.LayerNorm(c.width), Operator(c), nn.LayerNorm(c.width)
        self.up, self.down = nn.Linear(c.width, c.hidden), nn.Linear(c.hidden, c.width)

    def forward(self, texts):
        filters = self.operator.filters(max(map(len, texts)), texts[0].device)
        texts = [x + self.operator(self.norm1(x), filters) for x in texts]
        return [x + self.down(functional.gelu(self.up(self.norm2(x)))) for x in texts]


class Model(nn.Module):
    config_class = Config

    def __init__(self, config):
        super().__init__()
        self.config = asdict(config)
        self.embed = nn.Embedding(config.vocab, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm, self.head = nn.LayerNorm(config.width), nn.Linear(config.width, config.vocab, bias=False)

    def forward(self, tokens):  # a list of [n], or [b, n]
        texts = nn.Sequential(*self.blocks)([self.embed(sample) for sample in tokens])
        return torch.cat([self.head(self.norm(x)) for x in texts])
