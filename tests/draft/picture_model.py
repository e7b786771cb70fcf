"""A transformer over patches of pictures that is hard to draft: it has rotations for every token, and rounded widths."""

import torch
from torch import nn


class Patches(nn.Module):
    """Patches of a picture with text after them; ``turns`` has a row for every patch, ``mask`` a number for every place."""

    def __init__(self, width=24, heads=4, shares=(2, 4), patch=2, channels=5, depth=2, multiple=8, words=20):
        super().__init__()
        assert sum(shares) * heads == width
        self.patch, self.heads, self.shares = patch, heads, shares
        self.config = {
            "width": width, "heads": heads, "shares": list(shares), "patch": patch, "channels": channels, "depth": depth,
            "multiple": multiple, "words": words,
        }  # fmt: skip
        self.proj = nn.Conv2d(channels, width, patch, patch)
        self.entry = nn.Linear(words, width)
        self.level = nn.Linear(1, min(width, 100))
        self.grown = nn.Linear(min(width, 100), width)
        hidden = -(-int(8 * width / 3) // multiple) * multiple
        self.blocks = nn.ModuleList(Block(width, hidden) for _ in range(depth))
        self.out = nn.Linear(width, channels * patch**2)

    def forward(self, picture, mask, turns, text):
        """Every patch of every picture."""
        items, _, high, wide = picture.shape
        seen = torch.nn.functional.max_pool2d(mask[:, None], self.patch).flatten(1)
        tokens = self.proj(picture).flatten(2).transpose(1, 2)
        assert len(turns) == tokens.shape[1]
        assert seen.shape == tokens.shape[:2]
        tokens = torch.cat([tokens * seen[..., None], self.entry(text)], 1)
        tokens = tokens + self.grown(self.level(text[:, :1, :1]))
        for block in self.blocks:
            tokens = block(tokens)
        return self.out(tokens[:, : turns.shape[0]])


class Block(nn.Module):
    """A feed-forward."""

    def __init__(self, width, hidden):
        super().__init__()
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        """Residual."""
        return x + self.down(torch.relu(self.up(x)))
