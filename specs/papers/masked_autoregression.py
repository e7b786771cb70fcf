"""Masked autoregression on continuous tokens: encoder, decoder, and a diffusion head for each unknown token.

T. Li et al., Autoregressive Image Generation without Vector Quantization, arXiv 2406.11838: section 3 (diffusion loss,
masked autoregressive model, bidirectional attention) and its section on the implementation (class tokens, denoising
network). Without dropout.

Stream: image; a sample has u >= 0 known tokens and m >= 1 unknown ones, u + m <= positions.
Sizes: the fields of ``Config``.

Encoder: buffer copies of a class embedding, then the known tokens through a linear and a norm: buffer + u rows, each sees
all. Decoder: a linear to its width, mask tokens at the unknown places: buffer + u + m rows, each sees all. All pairs are
useful and computed.
Head: a small network for each draw of noise of each unknown token, repeat * m rows. Each row has a time (sinusoidal vector,
linear, silu, linear), a linear of the decoder's row, and residual layers modulated by their sum (linear to three widths:
shift, scale, gate).

Output: the predicted noise, [repeat * m, token_dim] of all samples.
The counter sees linears, scores and mixes; not embeddings, softmax, norms, modulation.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
from torch import nn
from torch.nn import functional


@dataclass(frozen=True)
class Config:
    classes: int
    positions: int  # tokens of the largest image
    token_dim: int  # numbers of a token
    buffer: int  # class tokens
    encoder_width: int
    encoder_layers: int
    decoder_width: int
    decoder_layers: int
    heads: int  # of both, divides both widths
    hidden_ratio: int  # hidden width of feed-forward networks over the width
    head_width: int  # width of the diffusion head
    head_layers: int  # its residual layers
    time_dim: int  # width of the sinusoidal vector of a time, even
    repeat: int  # draws of noise for each unknown token


class Block(nn.Module):
    def __init__(self, width, heads, ratio):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, ratio * width), nn.Linear(ratio * width, width)

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).view(len(x), 3, self.heads, -1).permute(1, 2, 0, 3)
        mix = (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
        x = x + self.out(mix.transpose(0, 1).flatten(1))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Residual(nn.Module):
    """A layer of the diffusion head."""

    def __init__(self, width):
        super().__init__()
        self.modulate, self.norm = nn.Linear(width, 3 * width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x, condition):
        shift, scale, gate = self.modulate(functional.silu(condition)).chunk(3, 1)
        return x + gate * self.down(functional.silu(self.up(self.norm(x) * (1 + scale) + shift)))


class Head(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.time_dim, width = c.time_dim, c.head_width
        self.enter, self.condition = nn.Linear(c.token_dim, width), nn.Linear(c.decoder_width, width)
        self.time_in, self.time_out = nn.Linear(c.time_dim, width), nn.Linear(width, width)
        self.layers = nn.ModuleList(Residual(width) for _ in range(c.head_layers))
        self.norm, self.modulate = nn.LayerNorm(width, elementwise_affine=False), nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, c.token_dim)

    def forward(self, noisy, times, z):
        steps = torch.arange(self.time_dim // 2, device=noisy.device)
        angles = times[:, None] * torch.exp(-steps / len(steps) * 9.21)
        time = self.time_out(functional.silu(self.time_in(torch.cat([angles.cos(), angles.sin()], 1))))
        x, condition = self.enter(noisy), time + self.condition(z)
        for layer in self.layers:
            x = layer(x, condition)
        shift, scale = self.modulate(functional.silu(condition)).chunk(2, 1)
        return self.out(self.norm(x) * (1 + scale) + shift)


class Model(nn.Module):
    config_class = Config

    def __init__(self, config):
        super().__init__()
        self.config, self.c, c = asdict(config), config, config
        wide, narrow, rows = c.encoder_width, c.decoder_width, c.buffer + c.positions
        self.classes, self.token_in, self.token_norm = (
            nn.Embedding(c.classes, wide),
            nn.Linear(c.token_dim, wide),
            nn.LayerNorm(wide),
        )
        self.encoder_places, self.decoder_places = (
            nn.Parameter(torch.zeros(rows, wide)),
            nn.Parameter(torch.zeros(rows, narrow)),
        )
        self.head_places, self.mask = nn.Parameter(torch.zeros(c.positions, narrow)), nn.Parameter(torch.zeros(1, narrow))
        self.encoder = nn.ModuleList(Block(wide, c.heads, c.hidden_ratio) for _ in range(c.encoder_layers))
        self.encoder_norm, self.decoder_in = nn.LayerNorm(wide), nn.Linear(wide, narrow)
        self.decoder = nn.ModuleList(Block(narrow, c.heads, c.hidden_ratio) for _ in range(c.decoder_layers))
        self.decoder_norm, self.head = nn.LayerNorm(narrow), Head(c)

    def forward(self, labels, known, known_places, unknown_places, noisy, times):
        """Of each sample: class [], known [u, token_dim], places [u], [m], noisy [repeat * m, token_dim], times [repeat * m]."""
        return torch.cat([*map(self.sample, labels, known, known_places, unknown_places, noisy, times)])

    def sample(self, label, known, known_places, unknown_places, noisy, times):
        c, start = self.c, list(range(self.c.buffer))
        places = torch.cat([torch.tensor(start, device=label.device).to(known_places), known_places + c.buffer])
        x = torch.cat([self.classes(label).expand(c.buffer, -1), self.token_in(known)])
        x = self.encoder_norm(nn.Sequential(*self.encoder)(self.token_norm(x + self.encoder_places[places])))
        x = torch.cat([self.decoder_in(x), self.mask.expand(len(unknown_places), -1)])
        x = x + self.decoder_places[torch.cat([places, unknown_places + c.buffer])]
        x = self.decoder_norm(nn.Sequential(*self.decoder)(x))
        z = x[len(places) :] + self.head_places[unknown_places]
        return self.head(noisy, times, z.repeat(c.repeat, 1))
