from __future__ import annotations

import random

from tests.papers.cases import Sample, decoder, lengths, texts, without
from tests.papers.ttt_linear import Config


def draw(rng: random.Random) -> tuple[Config, list[Sample]]:
    return Config(**without(decoder(rng), "groups"), mini_batch=rng.randint(1, 8)), lengths(rng)


def inputs(config: Config, batch: list[Sample]) -> dict:
    return {"tokens": texts(config.vocab, batch)}


def _mini_batches(config: Config, sample: Sample) -> list[int]:
    n, size = sample["n"], config.mini_batch
    return [sum(t // size == batch for t in range(n)) for batch in range(-(-n // size))]


def useful_pairs(config: Config, sample: Sample) -> dict[str, int]:
    n, size = range(sample["n"]), config.mini_batch
    return {"mini-batch": sum(key <= query and key // size == query // size for query in n for key in n)}


def products(config: Config, sample: Sample) -> int:
    d, found = config.head_dim, 0
    *updating, last = _mini_batches(config, sample)
    for r in (*updating, last):
        found += 2 * r * d * d + 2 * r * r * d
    return config.layers * config.heads * (found + sum(updating) * d * d)


def useful_products(config: Config, sample: Sample) -> int:
    discarded = sum(r * r for r in _mini_batches(config, sample)) - useful_pairs(config, sample)["mini-batch"]
    return products(config, sample) - 2 * config.layers * config.heads * config.head_dim * discarded
