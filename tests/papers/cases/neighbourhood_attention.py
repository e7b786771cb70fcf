from __future__ import annotations

import random

import torch

from tests.papers.cases import Sample
from tests.papers.neighbourhood_attention import Config


def draw(rng: random.Random) -> tuple[Config, list[Sample]]:
    heads, depths = rng.randint(1, 2), [rng.randint(1, 2) for _ in range(rng.randint(1, 3))]
    config = Config(
        channels=rng.randint(1, 4),
        width=2 * heads * rng.randint(1, 3),
        heads=heads,
        depths=depths,
        kernel=rng.choice([1, 3]),
        hidden_ratio=rng.randint(1, 3),
        classes=rng.randint(2, 9),
    )
    step, low = 4 * 2 ** (len(depths) - 1), config.kernel
    return config, [
        {"height": step * rng.randint(low, low + 2), "width": step * rng.randint(low, low + 2)}
        for _ in range(rng.randint(1, 3))
    ]


def inputs(config: Config, batch: list[Sample]) -> dict:
    return {"images": [torch.randn(config.channels, sample["height"], sample["width"]) for sample in batch]}


def useful_pairs(config: Config, sample: Sample) -> dict[str, int]:
    pairs = {}
    for level in range(len(config.depths)):
        high, wide = sample["height"] // (4 << level), sample["width"] // (4 << level)
        pairs[f"level {level}"] = _in_reach(high, config.kernel) * _in_reach(wide, config.kernel)
    return pairs


def _in_reach(length: int, kernel: int) -> int:
    """Pairs in one direction: the kernel nearest pixels, counted where the window lies inside."""
    windows = [min(max(i - kernel // 2, 0), length - kernel) for i in range(length)]
    return sum(start <= j < start + kernel for start in windows for j in range(length))


def products(config: Config, sample: Sample) -> int:
    pairs = useful_pairs(config, sample).values()
    return sum(2 * depth * (config.width << i) * some for i, (depth, some) in enumerate(zip(config.depths, pairs, strict=True)))
