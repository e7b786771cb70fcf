from __future__ import annotations

import random
from itertools import product

from tests.papers.cases import Sample, decoder, lengths, texts
from tests.papers.tree_decoding import Config


def draw(rng: random.Random) -> tuple[Config, list[Sample]]:
    config = Config(**decoder(rng), branches=[rng.randint(1, 3) for _ in range(rng.randint(1, 3))])
    return config, lengths(rng, high=16)


def nodes_of(config: Config) -> list[tuple[int, ...]]:
    """The path of each node from the root, by depth: products of the candidates of each head."""
    return [path for depth in range(len(config.branches) + 1) for path in product(*map(range, config.branches[:depth]))]


def inputs(config: Config, batch: list[Sample]) -> dict:
    nodes = [{"n": len(nodes_of(config))} for _ in batch]
    return {"prefix": texts(config.vocab, batch), "nodes": texts(config.vocab, nodes)}


def useful_pairs(config: Config, sample: Sample) -> dict[str, int]:
    n, nodes = sample["n"], nodes_of(config)
    ancestors = sum(path[: len(other)] == other for path in nodes for other in nodes)
    return {"prefix": sum(key <= query for query in range(n) for key in range(n)), "tree": len(nodes) * n + ancestors}


def products(config: Config, sample: Sample) -> int:
    return 2 * config.layers * config.heads * config.head_dim * (sample["n"] + len(nodes_of(config))) ** 2


def useful_products(config: Config, sample: Sample) -> int:
    return 2 * config.layers * config.heads * config.head_dim * sum(useful_pairs(config, sample).values())
