"""Byte latent transformer: bytes are grouped into patches of uneven length, and only patches see the large model.

A. Pagnoni et al., Byte Latent Transformer: Patches Scale Better Than Tokens, arXiv 2412.09871: section 3.1 (latent model),
3.2 (local encoder: hash n-grams, cross-attention), 3.3 (local decoder). The patcher is not part of the model; rotary
positions are left out, and so is the decoder's shift by one patch, which moves no cost.

Streams of a sample: patches, p >= 1, each with its own length >= 1; bytes, n = the sum of these lengths.
Sizes: the fields of ``Config``. The latent width is parts * width: a patch is parts vectors of the local width.

Encoder: for each layer, a transformer layer over bytes, where byte t sees the last min(window, t + 1) bytes, then a
cross-attention without feed-forward: the parts vectors of a patch attend to the bytes of that patch (parts * n pairs). The
first vectors of a patch come from a linear of the maximum over its byte embeddings.
Latent model: causal over patches, p (p + 1) / 2 pairs.
Decoder: for each layer, a cross-attention, where a byte attends to the parts vectors of its patch (parts * n pairs), then a
transformer layer over bytes as above; it begins from the encoder's bytes. All of the decoder's cross-attentions read one
linear of the latent output. Keys are gathered per query or patch: exactly the useful pairs. Cross-attentions have norms
before queries and before keys and values.

Byte embeddings add one looked-up vector of each table of hashed n-grams (of 3, 4, ... bytes), by a rolling polynomial.
The counter sees linears, scores and mixes; not embeddings, maxima, softmax, norms.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
from torch import nn
from torch.nn import functional


@dataclass(frozen=True)
class Config:
    width: int  # width of bytes, heads * width of a head
    heads: int  # of local layers and cross-attentions
    hidden: int  # hidden width of local gated feed-forward networks
    encoder_layers: int
    decoder_layers: int
    window: int  # bytes of the local window
    parts: int  # vectors of a patch
    latent_layers: int
    latent_heads: int  # divides parts * width
    latent_hidden: int
    tables: int  # tables of hashed n-grams
    entries: int  # entries of such a table


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x, memory, groups):
        """Each of ``groups`` is a range of queries, and the range of keys that all of these see."""
        q, k, v = (
            layer(part).view(len(part), self.heads, -1).transpose(0, 1)
            for layer, part in ((self.query, x), (self.key, memory), (self.value, memory))
        )
        rows = []
        for asked, seen in groups:
            scores = q[:, slice(*asked)] @ k[:, slice(*seen)].mT * q.shape[-1] ** -0.5
            rows.append(scores.softmax(-1) @ v[:, slice(*seen)])
        return self.out(torch.cat(rows, 1).transpose(0, 1).flatten(1))


class Block(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.RMSNorm(width), Attention(width, heads), nn.RMSNorm(width)
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x, groups):
        y = self.norm1(x)
        x = x + self.attention(y, y, groups)
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Cross(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm, self.norm_memory, self.attention = nn.RMSNorm(width), nn.RMSNorm(width), Attention(width, heads)

    def forward(self, x, memory, groups):
        return x + self.attention(self.norm(x), self.norm_memory(memory), groups)


class Model(nn.Module):
    config_class = Config

    def __init__(self, config):
        super().__init__()
        self.config, self.c, c = asdict(config), config, config
        local, wide = (c.width, c.heads, c.hidden), c.parts * c.width
        self.embed = nn.Embedding(256, c.width)
        self.tables = nn.ModuleList(nn.Embedding(c.entries, c.width) for _ in range(c.tables))
        self.encoder = nn.ModuleList(Block(*local) for _ in range(c.encoder_layers))
        self.encoder_cross = nn.ModuleList(Cross(c.width, c.heads) for _ in range(c.encoder_layers))
        self.pool = nn.Linear(c.width, wide, bias=False)
        self.latent = nn.ModuleList(Block(wide, c.latent_heads, c.latent_hidden) for _ in range(c.latent_layers))
        self.spread = nn.Linear(wide, wide, bias=False)
        self.decoder_cross = nn.ModuleList(Cross(c.width, c.heads) for _ in range(c.decoder_layers))
        self.decoder = nn.ModuleList(Block(*local) for _ in range(c.decoder_layers))
        self.norm, self.head = nn.RMSNorm(c.width), nn.Linear(c.width, 256, bias=False)

    def forward(self, text, patches):
        """For each sample: its bytes [n], and the lengths of its patches, which sum to n."""
        return torch.cat([self.sample(*sample) for sample in zip(text, patches, strict=True)])

    def embedded(self, text):
        x, rolled = self.embed(text), text
        for back in range(1, len(self.tables) + 2):
            rolled = (rolled * 257 + functional.pad(text, (back, 0))[: len(text)]) % 1_000_000_007
            if back >= 2:  # this byte and two before are a 3-gram
                x = x + self.tables[back - 2](rolled % self.c.entries)
        return x

    def sample(self, text, lengths):
        c, n, p = self.c, len(text), len(lengths)
        ends = [sum(lengths[: i + 1]) for i in range(p)]
        own = [(end - length, end) for end, length in zip(ends, lengths, strict=True)]
        vectors = [(i * c.parts, (i + 1) * c.parts) for i in range(p)]
        near = [((t, t + 1), (max(0, t + 1 - c.window), t + 1)) for t in range(n)]
        x = self.embedded(text)
        y = self.pool(torch.stack([x[slice(*span)].amax(0) for span in own])).view(-1, c.width)
        for block, cross in zip(self.encoder, self.encoder_cross, strict=True):
            x = block(x, near)
            y = cross(y, x, list(zip(vectors, own, strict=True)))
        z = y.reshape(p, -1)
        for block in self.latent:
            z = block(z, [((i, i + 1), (0, i + 1)) for i in range(p)])
        z = self.spread(z).view(-1, c.width)
        for cross, block in zip(self.decoder_cross, self.decoder, strict=True):
            x = block(cross(x, z, list(zip(own, vectors, strict=True))), near)
        return self.head(self.norm(x))
