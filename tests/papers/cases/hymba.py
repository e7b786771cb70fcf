from __future__ import annotations

import random

from tests.papers.cases import Sample, decoder, lengths, texts
from tests.papers.hymba import Config


def draw(rng: random.Random) -> tuple[Config, list[Sample]]:
    sizes = decoder(rng)
    layers = range(sizes["layers"])
    config = Config(
        **sizes,
        meta=rng.randint(0, 4),
        window=rng.randint(1, 9),
        global_layers=[i for i in layers if rng.random() < 0.4],
        reuse_layers=[i for i in layers if i and rng.random() < 0.4],
        state=rng.randint(1, 4),
        kernel=rng.randint(1, 4),
        rank=rng.randint(1, 3),
    )
    return config, lengths(rng)


def inputs(config: Config, batch: list[Sample]) -> dict:
    return {"tokens": texts(config.vocab, batch)}


def useful_pairs(config: Config, sample: Sample) -> dict[str, int]:
    pairs, rows = {"global": 0, "local": 0}, range(config.meta + sample["n"])
    for query in rows:
        for key in rows:
            pairs["global"] += key <= query
            pairs["local"] += key <= query and (key < config.meta or query - key < config.window)
    return pairs


def products(config: Config, sample: Sample) -> int:
    pairs = useful_pairs(config, sample)
    seen = sum(pairs["global" if i in config.global_layers else "local"] for i in range(config.layers))
    return 2 * config.heads * config.head_dim * seen


def useful_products(config: Config, sample: Sample) -> int:
    """With the scan, which PyTorch does not count: a state is made, added to and read."""
    scanned = 3 * config.layers * config.heads * config.head_dim * config.state * (config.meta + sample["n"])
    return products(config, sample) + scanned
