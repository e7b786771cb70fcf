from __future__ import annotations

import random

from tests.papers.cases import Sample, decoder, lengths, texts, without
from tests.papers.native_sparse_attention import Config


def draw(rng: random.Random) -> tuple[Config, list[Sample]]:
    stride = rng.randint(1, 3)
    sizes = without(decoder(rng), "head_dim") | {"key_dim": rng.randint(2, 7), "value_dim": rng.randint(2, 7)}
    config = Config(
        **sizes,
        block=stride * rng.randint(1, 3),
        stride=stride,
        compress_hidden=rng.randint(3, 9),
        chosen_block=stride * rng.randint(1, 3),
        top=rng.randint(3, 5),
        window=rng.randint(1, 9),
    )
    return config, lengths(rng, low=config.block)


def inputs(config: Config, batch: list[Sample]) -> dict:
    return {"tokens": texts(config.vocab, batch)}


def useful_pairs(config: Config, sample: Sample) -> dict[str, int]:
    n, pairs = sample["n"], {"compressed": 0, "chosen": 0, "window": 0}
    for query in range(n):
        for start in range(0, n, config.stride):
            pairs["compressed"] += start + config.block - 1 <= query
        own = query // config.chosen_block
        order = [own, *(block for block in (own - 1, 0) if 0 <= block < own), *range(own)]
        chosen = list(dict.fromkeys(order))[: config.top]  # any choice of the others has as many tokens
        pairs["chosen"] += sum(key // config.chosen_block in chosen for key in range(query + 1))
        pairs["window"] += sum(query - key < config.window for key in range(query + 1))
    return pairs


def products(config: Config, sample: Sample) -> int:
    return config.layers * config.heads * (config.key_dim + config.value_dim) * sum(useful_pairs(config, sample).values())
