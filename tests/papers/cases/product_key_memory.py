from __future__ import annotations

import random

from tests.papers.cases import Sample, encoder, lengths, texts
from tests.papers.product_key_memory import Config


def draw(rng: random.Random) -> tuple[Config, list[Sample]]:
    sizes, sub_keys = encoder(rng), rng.randint(2, 6)
    config = Config(
        **sizes,
        memory_layers=[i for i in range(sizes["layers"]) if rng.random() < 0.5],
        memory_heads=rng.randint(1, 3),
        query_dim=2 * rng.randint(1, 4),
        sub_keys=sub_keys,
        top=rng.randint(1, sub_keys),
    )
    return config, lengths(rng, low=2)


def inputs(config: Config, batch: list[Sample]) -> dict:
    return {"tokens": texts(config.vocab, batch)}


def useful_pairs(config: Config, sample: Sample) -> dict[str, int]:
    n = sample["n"]
    return {"causal": sum(key <= query for query in range(n) for key in range(n))}


def products(config: Config, sample: Sample) -> int:
    n = sample["n"]
    looked = config.memory_heads * config.sub_keys * config.query_dim
    return 2 * config.layers * config.width * n * n + len(config.memory_layers) * n * looked


def useful_products(config: Config, sample: Sample) -> int:
    discarded = sample["n"] ** 2 - useful_pairs(config, sample)["causal"]
    return products(config, sample) - 2 * config.layers * config.width * discarded
