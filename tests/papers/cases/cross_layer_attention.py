from __future__ import annotations

import random

from tests.papers.cases import Sample, decoder, lengths, texts
from tests.papers.cross_layer_attention import Config


def draw(rng: random.Random) -> tuple[Config, list[Sample]]:
    return Config(**decoder(rng), share=rng.randint(1, 4), first_plain=rng.randint(0, 2)), lengths(rng)


def inputs(config: Config, batch: list[Sample]) -> dict:
    return {"tokens": texts(config.vocab, batch)}


def useful_pairs(config: Config, sample: Sample) -> dict[str, int]:
    n = sample["n"]
    return {"causal": sum(key <= query for query in range(n) for key in range(n))}


def products(config: Config, sample: Sample) -> int:
    return 2 * config.layers * config.heads * config.head_dim * sample["n"] ** 2


def useful_products(config: Config, sample: Sample) -> int:
    return 2 * config.layers * config.heads * config.head_dim * useful_pairs(config, sample)["causal"]
