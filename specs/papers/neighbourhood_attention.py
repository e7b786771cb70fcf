"""Neighbourhood attention: each pixel attends to the square of pixels around it.

A. Hassani et al., Neighborhood Attention Transformer, arXiv 2204.07143: section 3 (relative biases, shifted windows at the
borders, overlapping tokenizer and downsampler, levels). Layer scale and drop path are left out.

Stream: image, height and width in pixels a sample; both are multiples of 4 * 2**(levels - 1), and at the last level, where
they are divided by that, still at least kernel.
Sizes: the fields of ``Config``. Level l has width * 2**l channels, heads * 2**l heads, and height / (4 * 2**l) by width /
(4 * 2**l) pixels, after two convolutions of stride 2 (width / 2 channels, then width) and one between two levels; all are 3
x 3 with padding 1.

At a border the window is shifted inwards, so each pixel has exactly kernel * kernel keys. They are gathered: exactly the
useful pairs.
The counter sees convolutions, linears, scores and mixes; not biases, softmax, norms, the mean over pixels. The classifier
runs once a sample.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
from torch import nn
from torch.nn import functional


@dataclass(frozen=True)
class Config:
    channels: int  # of the image
    width: int  # channels of the first level, even
    heads: int  # of the first level
    depths: list[int]  # layers of each level
    kernel: int  # side of the window, odd
    hidden_ratio: int  # hidden width of the feed-forward network over the width
    classes: int


def starts(length, kernel, device):
    """The first pixel of each pixel's window in one direction."""
    return (torch.arange(length, device=device) - kernel // 2).clamp(0, length - kernel)


class Attention(nn.Module):
    def __init__(self, width, heads, kernel):
        super().__init__()
        self.heads, self.kernel = heads, kernel
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.bias = nn.Parameter(torch.zeros(heads, 2 * kernel - 1, 2 * kernel - 1))

    def forward(self, x):  # [height, width, channels]
        high, wide, _ = x.shape
        step, places = (
            torch.arange(self.kernel, device=x.device),
            (torch.arange(size, device=x.device) for size in (high, wide)),
        )
        rows, columns = (starts(size, self.kernel, x.device)[:, None] + step for size in (high, wide))
        index = (rows[:, None, :, None] * wide + columns[None, :, None, :]).flatten(2).flatten(0, 1)  # [pixels, kernel**2]
        q, k, v = self.qkv(x).view(high * wide, 3, self.heads, -1).unbind(1)
        down, right = (window - place[:, None] + self.kernel - 1 for window, place in zip((rows, columns), places, strict=True))
        bias = (
            self.bias[:, down[:, None, :, None], right[None, :, None, :]].flatten(3).flatten(1, 2)
        )  # [heads, pixels, kernel**2]
        scores = q[:, :, None] @ k[index].permute(0, 2, 3, 1) * q.shape[-1] ** -0.5  # [pixels, heads, 1, kernel**2]
        mix = (scores + bias.transpose(0, 1)[:, :, None]).softmax(-1) @ v[index].transpose(1, 2)
        return self.out(mix.flatten(1)).view(x.shape)


class Block(nn.Module):
    def __init__(self, width, heads, c):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads, c.kernel)
        self.norm2 = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, c.hidden_ratio * width), nn.Linear(c.hidden_ratio * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Model(nn.Module):
    config_class = Config

    def __init__(self, config):
        super().__init__()
        self.config, c, last = asdict(config), config, len(config.depths) - 1
        self.stem1 = nn.Conv2d(c.channels, c.width // 2, 3, 2, 1)
        self.stem2, self.stem_norm = nn.Conv2d(c.width // 2, c.width, 3, 2, 1), nn.LayerNorm(c.width)
        self.levels = nn.ModuleList(
            nn.ModuleList(Block(c.width << i, c.heads << i, c) for _ in range(depth)) for i, depth in enumerate(c.depths)
        )
        self.reduce = nn.ModuleList(nn.Conv2d(c.width << i, c.width << i + 1, 3, 2, 1, bias=False) for i in range(last))
        self.reduce_norms = nn.ModuleList(nn.LayerNorm(c.width << i + 1) for i in range(last))
        self.norm, self.head = nn.LayerNorm(c.width << last), nn.Linear(c.width << last, c.classes)

    def forward(self, images):  # a list of [channels, height, width], or [b, channels, height, width]
        return torch.stack([self.sample(image) for image in images])

    def sample(self, image):
        x = self.stem_norm(self.stem2(self.stem1(image[None]))[0].permute(1, 2, 0))
        for i, level in enumerate(self.levels):
            x = nn.Sequential(*level)(x)
            if i < len(self.reduce):
                x = self.reduce_norms[i](self.reduce[i](x.permute(2, 0, 1)[None])[0].permute(1, 2, 0))
        return self.head(self.norm(x).mean((0, 1))[None])[0]
