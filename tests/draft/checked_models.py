"""Modules that use what a spec is checked for: a tied head, norms of a part and of heads together, pictures of a fixed size."""

from __future__ import annotations

import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel


class Tied(nn.Module):
    """A head whose weight is the table, a norm of a part of a projection, and a norm over all heads together."""

    def __init__(self, words=31, width=24, heads=3, size=8, part=10, rest=6, depth=2):
        super().__init__()
        self.table = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width, heads, size, part, rest) for _ in range(depth))
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.table.weight

    def forward(self, tokens):
        """Logits."""
        x = self.table(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Block(nn.Module):
    """A latent of which a part is normalised, and products of each head that are normalised together."""

    def __init__(self, width, heads, size, part, rest):
        super().__init__()
        self.part, self.rest, self.heads, self.size = part, rest, heads, size
        self.down = nn.Linear(width, part + rest)
        self.latent = nn.LayerNorm(part)
        self.up = nn.Linear(part, heads * size)
        self.mixer = nn.Parameter(torch.ones(heads, size, size))
        self.norm = nn.LayerNorm(heads * size)
        self.out = nn.Linear(heads * size, width)

    def forward(self, x):
        """Residual."""
        latent, _ = self.down(x).split([self.part, self.rest], -1)
        found = self.up(self.latent(latent)).unflatten(-1, (self.heads, self.size)).transpose(1, 2)
        found = torch.matmul(found, self.mixer).transpose(1, 2).flatten(2)
        return x + self.out(self.norm(found))


class Picture(nn.Module):
    """Patches of pictures whose side a config gives, with a learned place for each."""

    def __init__(self, side=8, patch=4, channels=3, width=16, classes=5):
        super().__init__()
        self.side = side
        self.proj = nn.Conv2d(channels, width, patch, patch)
        self.places = nn.Embedding((side // patch) ** 2, width)
        self.head = nn.Linear(width, classes)

    def forward(self, pixels):
        """A value for every patch and class."""
        assert pixels.shape[2:] == (self.side, self.side)
        found = self.proj(pixels).flatten(2).transpose(1, 2)
        return self.head(found + self.places.weight)


class Mixed(nn.Module):
    """Tokens, some of which stand for features."""

    MARK = 3

    def __init__(self, words=31, width=16, features=6, hidden=20):
        super().__init__()
        self.table = nn.Embedding(words, width)
        self.proj = nn.Linear(features, width)
        self.up = nn.Linear(width, hidden)
        self.head = nn.Linear(hidden, words)

    def forward(self, tokens, features):
        """Logits."""
        x = self.table(tokens)
        marked = tokens == self.MARK
        assert int(marked.sum()) == features.shape[0] * features.shape[1]
        x = x.masked_scatter(marked[..., None], self.proj(features))
        return self.head(self.up(x).relu())


class Optional(nn.Module):
    """A norm that a word asks for, and that is not there by default."""

    def __init__(self, width=16, hidden=20, norm_type: str | None = None):  # layer
        super().__init__()
        if norm_type == "layer":
            self.norm = nn.LayerNorm(width)
        elif norm_type is None:
            self.norm = nn.Identity()
        else:
            raise ValueError(f"unsupported norm_type: {norm_type}")
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x):
        """Residual."""
        return x + self.down(self.up(self.norm(x)))


class Rotary(nn.Module):
    """Heads whose first half turns with the second; of heads of one number each is broadcast to two."""

    def __init__(self, words=31, width=24, heads=3, depth=2):
        super().__init__()
        self.table = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Turned(width, heads) for _ in range(depth))

    def forward(self, tokens):
        """Hidden states."""
        x = self.table(tokens)
        for block in self.blocks:
            x = block(x)
        return x


class Turned(nn.Module):
    """Attention with rotary positions, without a width of a head."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def turned(self, x):
        """By the angle of each position."""
        x = x.unflatten(-1, (self.heads, self.size)).transpose(1, 2)
        rates = 1.0 / 10000 ** (torch.arange(0, self.size, 2) / self.size)
        angles = torch.outer(torch.arange(x.shape[2]), rates)
        angles = torch.cat((angles, angles), -1).to(x)
        first, second = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
        return x * angles.cos() + torch.cat((-second, first), -1) * angles.sin()

    def forward(self, x):
        """Residual."""
        scores = self.turned(self.query(x)) @ self.turned(self.key(x)).transpose(-1, -2)
        values = x.unflatten(-1, (self.heads, self.size)).transpose(1, 2)
        return x + self.out((scores.softmax(-1) @ values).transpose(1, 2).flatten(2))


class Unfit(nn.Module):
    """A module that does not run with its own defaults: its width must be that of its heads together."""

    def __init__(self, width=10, heads=3, size=8, extra=True):
        super().__init__()
        self.heads = heads
        self.up = nn.Linear(width, heads * size)
        self.mixer = nn.Parameter(torch.ones(heads, size, size))
        self.out = nn.Linear(heads * size, width, bias=extra)
        if width != heads * size:
            raise ValueError("the width is not that of all heads")

    def forward(self, x):
        """Residual."""
        found = self.up(x).unflatten(-1, (self.heads, self.mixer.shape[1])).transpose(1, 2)
        return x + self.out((found @ self.mixer).transpose(1, 2).flatten(2))


class AskingConfig(PretrainedConfig):
    """A config that does not declare all that its class asks for, and a property of which sets another field."""

    model_type = "asking"
    width: int = 16

    @property
    def pairs(self):
        """Half of the width."""
        return self.width // 2

    @pairs.setter
    def pairs(self, value):
        self.width = 2 * value


class Asking(PreTrainedModel):
    """A feed-forward whose inner width its config may have."""

    config_class = AskingConfig

    def __init__(self, config):
        super().__init__(config)
        inner = getattr(config, "inner_width", 24)
        self.up, self.down = nn.Linear(config.width, inner), nn.Linear(inner, config.width)
        self.post_init()

    def forward(self, x):
        """Residual."""
        return x + self.down(torch.relu(self.up(x)))
