from __future__ import annotations

import random

import torch

from tests.papers.cases import Sample, lengths
from tests.papers.set_transformer import Config


def draw(rng: random.Random) -> tuple[Config, list[Sample]]:
    heads = rng.randint(1, 3)
    config = Config(
        features=rng.randint(1, 6),
        width=heads * rng.randint(2, 7),
        heads=heads,
        points=rng.randint(1, 6),
        encoder_layers=rng.randint(1, 3),
        seeds=rng.randint(1, 4),
        decoder_layers=rng.randint(0, 2),
        outputs=rng.randint(1, 5),
    )
    return config, lengths(rng)


def inputs(config: Config, batch: list[Sample]) -> dict:
    return {"sets": [torch.randn(sample["n"], config.features) for sample in batch]}


def useful_pairs(config: Config, sample: Sample) -> dict[str, int]:
    n = sample["n"]
    return {"gather": config.points * n, "spread": n * config.points, "pool": config.seeds * n, "seeds": config.seeds**2}


def products(config: Config, sample: Sample) -> int:
    pairs = useful_pairs(config, sample)
    encoder = config.encoder_layers * (pairs["gather"] + pairs["spread"])
    return 2 * config.width * (encoder + pairs["pool"] + config.decoder_layers * pairs["seeds"])
