from __future__ import annotations

import random

from tests.papers.bigbird import Config
from tests.papers.cases import Sample, encoder, lengths, texts


def draw(rng: random.Random) -> tuple[Config, list[Sample]]:
    block = rng.randint(2, 4)
    config = Config(
        **encoder(rng, low=10 * block),
        block=block,
        global_blocks=rng.randint(0, 2),
        window_blocks=rng.choice([1, 3, 5]),
        random_blocks=rng.randint(0, 3),
    )
    return config, lengths(rng, high=10, step=block)


def inputs(config: Config, batch: list[Sample]) -> dict:
    return {"tokens": texts(config.vocab, batch)}


def useful_pairs(config: Config, sample: Sample) -> dict[str, int]:
    blocks, pairs = sample["n"] // config.block, 0
    for i in range(blocks):
        near = [abs(i - j) <= config.window_blocks // 2 for j in range(blocks)]
        fixed = sum(i < config.global_blocks or j < config.global_blocks or near[j] for j in range(blocks))
        pairs += min(blocks, fixed + config.random_blocks) * config.block**2
    return {"blocks": pairs}


def products(config: Config, sample: Sample) -> int:
    return 2 * config.layers * config.width * useful_pairs(config, sample)["blocks"]
