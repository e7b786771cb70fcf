"""Small modules of many kinds, to trace: each with arguments of its constructor, and inputs."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


class Perceptron(nn.Module):
    def __init__(self, width: int = 12, hidden: int = 20, layers: int = 3) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width)) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + layer(x)
        return x


class Attention(nn.Module):
    def __init__(self, width: int = 24, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        b, s, d = x.shape
        q, k, v = self.qkv(x).view(b, s, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        return self.out(functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, s, d))


class Resized(nn.Module):
    """Halves a picture and enlarges it again, to its own size only if one of its sides is no multiple of four."""

    def __init__(self, kernel: int = 3, channels: int = 3, wide: int = 5) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, wide, kernel, padding=(kernel - 1) // 2)
        self.last = nn.Conv2d(wide, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        whole = self.first(x)
        half = whole[..., ::2, ::2]
        if x.shape[-2] % 4 or x.shape[-1] % 4:
            return self.last(half.repeat_interleave(2, -1).repeat_interleave(2, -2)[..., : whole.shape[-2], : whole.shape[-1]])
        return self.last(half.repeat_interleave(2, -1).repeat_interleave(2, -2)) + x


class Convolutions(nn.Module):
    def __init__(self, channels: int = 6, kernel: int = 3, groups: int = 2) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, channels * groups, kernel, padding=kernel // 2)
        self.second = nn.Conv2d(channels * groups, channels * groups, kernel, groups=groups)
        self.norm, self.up = nn.GroupNorm(groups, channels * groups), nn.ConvTranspose2d(channels * groups, 5, 2, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        return functional.interpolate(self.up(self.norm(functional.pad(self.second(self.first(x)), (1, 0, 2, 1)))), scale_factor=2)


class Recurrent(nn.Module):
    def __init__(self, kind: str = "LSTM", width: int = 10, hidden: int = 16, layers: int = 2, both: bool = False) -> None:
        super().__init__()
        self.cells = getattr(nn, kind)(width, hidden, layers, batch_first=True, bidirectional=both)

    def forward(self, x: Tensor) -> Tensor:
        return self.cells(x)[0]


class Shared(nn.Module):
    """One layer that runs three times, and a head tied to an embedding."""

    def __init__(self, words: int = 30, width: int = 8) -> None:
        super().__init__()
        self.embedding, self.layer, self.head = nn.Embedding(words, width), nn.Linear(width, width), nn.Linear(width, words, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids: Tensor) -> dict[str, Tensor]:
        x = self.embedding(ids)
        for _ in range(3):
            x = self.layer(x)
        return {"logits": self.head(x)}


class Frozen(nn.Module):
    """A frozen layer below one that trains."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.below, self.above = nn.Linear(width, width).requires_grad_(False), nn.Linear(width, 3 * width)

    def forward(self, inputs: tuple[Tensor, list[Tensor]]) -> Tensor:
        x, (y,) = inputs
        return self.above(self.below(x) + y)


class Strict(nn.Module):
    """Fails unless its width is a multiple of its heads, and its text short."""

    def __init__(self, width: int = 24, heads: int = 4, longest: int = 32) -> None:
        super().__init__()
        if width % heads:
            raise ValueError("heads")
        self.longest, self.layer, self.table = longest, nn.Linear(width, width), nn.Embedding(longest, width)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.longest:
            raise ValueError("long")
        return self.layer(x + self.table.weight[: x.shape[1]])


class Branching(nn.Module):
    """Costs something else for texts from 20 on."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layer(x)
        return self.layer(x) if x.shape[1] >= 20 else x


class Quadratic(nn.Module):
    """Each layer is wider than the one before: no sum of equal layers."""

    def __init__(self, layers: int = 4) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4 + 2 * place, 6 + 2 * place) for place in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Alternating(nn.Module):
    """Every ``period``-th layer has two linears, the others one."""

    def __init__(self, width: int = 20, layers: int = 4, period: int = 2) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(2 if place % period == 0 else 1)))
            for place in range(layers)
        )

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Late(nn.Module):
    """The first three layers go through another width."""

    def __init__(self, width: int = 20, hidden: int = 12, layers: int = 7) -> None:
        super().__init__()
        wide = (nn.Linear(width, width, bias=False) for _ in range(layers - 3))
        self.layers = nn.ModuleList([*(Through(width, hidden) for _ in range(min(3, layers))), *wide])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Pooled(nn.Module):
    """After three plain layers come layers that pool windows of tokens, if a window is full, and add a vector."""

    def __init__(self, width: int = 20, rate: int = 3, offset: int = 20, layers: int = 7) -> None:
        super().__init__()
        plain = (nn.Linear(width, width, bias=False) for _ in range(min(3, layers)))
        self.layers = nn.ModuleList([*plain, *(Windows(width, rate, offset) for _ in range(layers - 3))])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Binary(nn.Module):
    """A number of codes that is a power of two, and twice as many outputs."""

    def __init__(self, width: int = 20, codes: int = 16) -> None:
        super().__init__()
        if codes & (codes - 1) != 0:
            raise ValueError("the number of codes is no power of two")
        self.linear = nn.Linear(width, codes << 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x)


class Windows(nn.Module):
    """Adds a linear of the mean of all windows, and a vector."""

    def __init__(self, width: int, rate: int, offset: int) -> None:
        super().__init__()
        self.rate = rate
        self.linear = nn.Linear(rate * width, width, bias=False)
        self.vector = nn.Parameter(torch.zeros(offset))

    def forward(self, x: Tensor) -> Tensor:
        windows = x.shape[1] // self.rate
        if windows > 0:
            full = x[:, : windows * self.rate].reshape(x.shape[0], windows, self.rate * x.shape[2])
            x = x + self.linear(full.mean(1, keepdim=True))
        return x + self.vector


class Through(nn.Module):
    """A width, and back by the same weights."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(hidden, width))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight.T @ self.weight


class Nested(nn.Module):
    """Groups of layers."""

    def __init__(self, width: int = 20, outer: int = 4, inner: int = 5) -> None:
        super().__init__()
        self.groups = nn.ModuleList(
            nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(inner)) for _ in range(outer)
        )

    def forward(self, x: Tensor) -> Tensor:
        for group in self.groups:
            for layer in group:
                x = layer(x)
        return x


class Valued(nn.Module):
    """Looks at a number of its inputs."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, x: Tensor, n: Tensor) -> Tensor:
        return self.layer(x[: int(n.sum())])


class Scaled(nn.Module):
    """Has a number that changes values alone, and one that changes the work."""

    def __init__(self, width: int = 8, scale: int = 12, repeats: int = 5) -> None:
        super().__init__()
        self.layer, self.scale, self.repeats = nn.Linear(width, width, bias=False), float(scale), float(repeats)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(round(self.repeats)):
            x = self.layer(x)
        return x * self.scale


class Unruled(nn.Module):
    """A bilinear form, which PyTorch's counter does not count."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.form = nn.Bilinear(width, width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.form(x, x)


class TwoTowers(nn.Module):
    """Texts, and pictures if there are any; one of two weights of each layer is read."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.vision, self.text = nn.Sequential(nn.Linear(9, width), nn.Linear(width, width)), nn.MultiheadAttention(width, 2)
        self.layers = nn.ModuleList(nn.ModuleDict({"used": nn.Linear(width, width), "other": nn.Linear(width, width)}) for _ in range(2))

    def forward(self, x: Tensor, picture: Tensor | None = None) -> Tensor:
        x = self.text(x, x, x)[0]
        for layer in self.layers:
            x = layer["used"](x)
        return x if picture is None else x + self.vision(picture)


class Einsum(nn.Module):
    def __init__(self, width: int = 8, rank: int = 3) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.zeros(rank, width))

    def forward(self, x: Tensor) -> Tensor:
        return torch.einsum("bsd,rd,rw->bsw", x, self.factor, self.factor)


class Skipping(nn.Module):
    """Leaves layers out at random while it trains."""

    def __init__(self, width: int = 12, layers: int = 3) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            if not (self.training and torch.rand([]) < 0.5):
                x = layer(x)
        return x


class Proportional(nn.Module):
    """Widths that are parts of another one, rounded in three ways."""

    def __init__(self, width: int = 40, part: float = 0.3) -> None:
        super().__init__()
        sides = (width, int(width * part), int(8 / 3 * width), math.ceil(width * 0.1), round(width / 4) + 1)
        self.layers = nn.Sequential(*(nn.Linear(*pair, bias=False) for pair in itertools.pairwise(sides)))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class Widened(nn.Module):
    """A shortcut needs weights only if widths differ."""

    def __init__(self, width: int = 8, factor: int = 3) -> None:
        super().__init__()
        self.layer = nn.Linear(width, width * factor, bias=False)
        self.shortcut = nn.Linear(width, width * factor, bias=False) if factor * width != width else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) + self.shortcut(x)


class Deep(nn.Module):
    """From ``deep`` layers on each layer has two linears; the layers from the 13th on see half of the tokens."""

    def __init__(self, width: int = 20, layers: int = 4, deep: float = 16.0, half: float = 99.0) -> None:
        super().__init__()
        each = 2 if layers >= deep else 1
        self.layers = nn.ModuleList(
            nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(each))) for _ in range(layers)
        )
        self.half = half

    def forward(self, x: Tensor) -> Tensor:
        for place, layer in enumerate(self.layers):
            x = layer(x[: x.shape[0] // 2] if place == self.half else x)
        return x


class Compared(nn.Module):
    """A field that is compared with the number of layers."""

    def __init__(self, width: int = 20, layers: int = 5, deep: int = 16) -> None:
        super().__init__()
        hidden = width if layers < deep else 2 * width
        self.layers = nn.ModuleList(Through(width, hidden) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Seldom(nn.Module):
    """Every ``period``-th layer runs twice, counted from the layer ``first``."""

    def __init__(self, width: int = 20, layers: int = 15, period: int = 6, first: int = 2) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(layers))
        self.twice = {place for place in range(layers) if place >= first and (place - first) % period == 0}

    def forward(self, x: Tensor) -> Tensor:
        for place, layer in enumerate(self.layers):
            x = layer(layer(x)) if place in self.twice else layer(x)
        return x


class Borrowing(nn.Module):
    """The last three layers use the keys of the layer before; fewer than four layers fail."""

    def __init__(self, width: int = 20, layers: int = 8) -> None:
        super().__init__()
        self.queries = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(layers))
        self.keys = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(layers - 3))

    def forward(self, x: Tensor) -> Tensor:
        for place, query in enumerate(self.queries):
            if place < len(self.keys):
                keys = self.keys[place](x)
            x = query(x) + keys
        return x


class Same(nn.Module):
    """Convolutions that keep the length if the kernel is odd; then each has a shortcut with weights."""

    def __init__(self, width: int = 10, kernel: int = 3, layers: int = 4) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(width, width, kernel, padding=kernel // 2, bias=False) for _ in range(layers))
        self.shortcut = nn.Conv1d(width, width, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            y = layer(x)
            x = y + self.shortcut(x) if y.shape == x.shape else y
        return x


class Ranked(nn.Module):
    """A factored layer whose rank is a field."""

    def __init__(self, width: int = 12, rank: int = 5) -> None:
        super().__init__()
        self.down, self.up = nn.Linear(width, rank, bias=False), nn.Linear(rank, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.up(self.down(x))


@dataclass
class Sizes:
    width: int = 12
    hidden: int = 20


class Configured(nn.Module):
    def __init__(self, config: Sizes) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(config.width, config.hidden), nn.Linear(config.hidden, config.width)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.up(x))


class Listed(nn.Module):
    """Widths by a list."""

    def __init__(self, widths: tuple[int, ...] = (6, 9, 7)) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(nn.Linear(*pair, bias=False) for pair in itertools.pairwise(widths)))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class Limited(nn.Module):
    """Has a second layer if its width is below a limit that is read as a float."""

    def __init__(self, width: int = 400, limit: int = 12) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(2 if width < float(limit) else 1)))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)
