from __future__ import annotations

import random

from tests.papers.cases import Sample, decoder, lengths, texts, without
from tests.papers.reformer import Config


def draw(rng: random.Random) -> tuple[Config, list[Sample]]:
    chunk = rng.randint(2, 5)
    config = Config(**without(decoder(rng), "groups"), chunk=chunk, buckets=2 * rng.randint(1, 4), rounds=rng.randint(1, 3))
    return config, lengths(rng, high=6, step=chunk)


def inputs(config: Config, batch: list[Sample]) -> dict:
    return {"tokens": texts(config.vocab, batch)}


def useful_pairs(config: Config, sample: Sample) -> dict[str, int]:
    """Pairs of a round and head that lie in the same or in neighbouring chunks; how many share a bucket depends on the data."""
    n, size = sample["n"], config.chunk
    return {"chunks": sum(query // size - 1 <= key // size <= query // size for query in range(n) for key in range(n))}


def products(config: Config, sample: Sample) -> int:
    hashes = sample["n"] * config.buckets // 2
    each = 2 * useful_pairs(config, sample)["chunks"] + hashes
    return config.layers * config.rounds * config.heads * config.head_dim * each
