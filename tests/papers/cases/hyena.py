from __future__ import annotations

import random

from tests.papers.cases import Sample, lengths, texts
from tests.papers.hyena import Config


def draw(rng: random.Random) -> tuple[Config, list[Sample]]:
    config = Config(
        vocab=rng.randint(11, 40),
        width=rng.randint(5, 16),
        layers=rng.randint(1, 4),
        order=rng.randint(1, 3),
        short_kernel=rng.randint(1, 4),
        features=2 * rng.randint(1, 4) + 1,
        filter_hidden=rng.randint(3, 9),
        filter_layers=rng.randint(0, 3),
        hidden=rng.randint(5, 20),
    )
    return config, lengths(rng)


def inputs(config: Config, batch: list[Sample]) -> dict:
    return {"tokens": texts(config.vocab, batch)}


def useful_pairs(config: Config, sample: Sample) -> dict[str, int]:
    return {}


def products(config: Config, sample: Sample) -> int:
    return 0
