from __future__ import annotations

import random

from tests.papers.cases import Sample, decoder, lengths, texts, without
from tests.papers.mixture_of_block_attention import Config


def draw(rng: random.Random) -> tuple[Config, list[Sample]]:
    sizes = without(decoder(rng), "groups")
    full = rng.randint(0, sizes["layers"])
    return Config(**sizes, full_layers=full, block=rng.randint(2, 6), top=rng.randint(1, 4)), lengths(rng)


def inputs(config: Config, batch: list[Sample]) -> dict:
    return {"tokens": texts(config.vocab, batch)}


def useful_pairs(config: Config, sample: Sample) -> dict[str, int]:
    pairs = {"routed": 0, "full": 0}
    for query in range(sample["n"]):
        own = query // config.block
        chosen = [own, *range(own)][: config.top]  # any choice of the others has as many tokens
        pairs["routed"] += sum(key // config.block in chosen for key in range(query + 1))
        pairs["full"] += query + 1
    return pairs


def products(config: Config, sample: Sample) -> int:
    n, routed = sample["n"], config.layers - config.full_layers
    means = n * -(-n // config.block)
    pairs = 2 * config.full_layers * n * n + routed * (2 * useful_pairs(config, sample)["routed"] + means)
    return config.heads * config.head_dim * pairs


def useful_products(config: Config, sample: Sample) -> int:
    pairs, routed = useful_pairs(config, sample), config.layers - config.full_layers
    means = sample["n"] * -(-sample["n"] // config.block)
    return config.heads * config.head_dim * (2 * config.full_layers * pairs["full"] + routed * (2 * pairs["routed"] + means))
