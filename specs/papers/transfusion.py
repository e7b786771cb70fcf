"""Transfusion: one transformer over text, causal, and images, bidirectional inside of each.

C. Zhou et al., Transfusion: Predict the Next Token and Diffuse Images with One Multi-Modal Model, arXiv 2408.11039: section
3 (data, architecture with linear patch layers, attention). The VAE is not part of the model; rotary positions are left out.

Streams of a sample: text, the tokens of all its pieces of text (with begin- and end-of-image tokens), pieces may be empty;
images, each with its own number of patches >= 1. A sample is text 0, image 0, text 1, ..., image K-1, text K: one more
piece than images, K >= 0.
Sizes: the fields of ``Config``.

Row i of the whole sequence sees rows up to i, and an image's row all rows of its image too: with N rows and y_j patches in
image j, N (N + 1) / 2 + sum of y_j (y_j - 1) / 2 pairs. Keys are sliced for each piece of a row: exactly the useful pairs.

Patches enter by a linear, plus the time of their image: a sinusoidal vector, linear, silu, linear, once an image. Rows of
text go to the head, rows of images to a linear; the final norm covers all rows.
Outputs: logits [text, vocab] and noise [patches, patch], of all samples, both in the loss.
The counter sees linears, scores and mixes; not embeddings, softmax, norms.
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
    head_dim: int  # width of a head
    hidden: int  # hidden width of the gated feed-forward network
    patch: int  # latent numbers of a patch
    time_dim: int  # width of the sinusoidal vector of a time, even


def last_seen(texts, images):
    """For each row of the sequence, the number of rows that it sees, counted from the first one."""
    ends, rows = [], 0
    for i, text in enumerate(texts):
        ends += range(rows + 1, rows + text + 1)
        rows += text
        if i < len(images):
            rows += images[i]
            ends += [rows] * images[i]
    return ends


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads, inner = c.heads, c.heads * c.head_dim
        self.query, self.key, self.value = (nn.Linear(c.width, inner, bias=False) for _ in range(3))
        self.out = nn.Linear(inner, c.width, bias=False)

    def forward(self, x, ends):
        q, k, v = (layer(x).view(len(x), self.heads, -1).transpose(0, 1) for layer in (self.query, self.key, self.value))
        rows = []
        for i, end in enumerate(ends):
            scores = q[:, i : i + 1] @ k[:, :end].mT * q.shape[-1] ** -0.5
            rows.append(scores.softmax(-1) @ v[:, :end])
        return self.out(torch.cat(rows, 1).transpose(0, 1).flatten(1))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.RMSNorm(c.width), Attention(c), nn.RMSNorm(c.width)
        self.gate, self.up = nn.Linear(c.width, c.hidden, bias=False), nn.Linear(c.width, c.hidden, bias=False)
        self.down = nn.Linear(c.hidden, c.width, bias=False)

    def forward(self, x, ends):
        x = x + self.attention(self.norm1(x), ends)
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Model(nn.Module):
    config_class = Config

    def __init__(self, config):
        super().__init__()
        self.config, c = asdict(config), config
        self.embed, self.patch_in = nn.Embedding(c.vocab, c.width), nn.Linear(c.patch, c.width)
        self.time_in, self.time_out = nn.Linear(c.time_dim, c.width), nn.Linear(c.width, c.width)
        self.blocks = nn.ModuleList(Block(c) for _ in range(c.layers))
        self.norm, self.head = nn.RMSNorm(c.width), nn.Linear(c.width, c.vocab, bias=False)
        self.patch_out = nn.Linear(c.width, c.patch)

    def forward(self, text, images, times):
        """For each sample: its pieces of text [n], its images [patches, patch], and the times [images] of these."""
        logits, noise = zip(*map(self.sample, text, images, times), strict=True)
        return torch.cat(logits), torch.cat(noise)

    def noised(self, image, time):
        steps = torch.arange(self.config["time_dim"] // 2, device=image.device)
        angles = time * torch.exp(-steps / len(steps) * 9.21)
        wave = torch.cat([angles.cos(), angles.sin()])[None]
        return self.patch_in(image) + self.time_out(functional.silu(self.time_in(wave)))

    def sample(self, text, images, times):
        pieces, pictured = [], []
        for i, words in enumerate(text):
            pieces.append(self.embed(words))
            pictured += [False] * len(words)
            if i < len(images):
                pieces.append(self.noised(images[i], times[i]))
                pictured += [True] * len(images[i])
        x, ends = torch.cat(pieces), last_seen([len(words) for words in text], [len(image) for image in images])
        for block in self.blocks:
            x = block(x, ends)
        x = self.norm(x)
        words, patches = ([i for i, image in enumerate(pictured) if image == wanted] for wanted in (False, True))
        return self.head(x[words]), self.patch_out(x[patches])
