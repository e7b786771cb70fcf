from __future__ import annotations

import random

import torch

from tests.papers.cases import Sample
from tests.papers.graph_transformer import Config

UNREAD = (".edges.",)  # nobody reads the edges of the last layer


def draw(rng: random.Random) -> tuple[Config, list[Sample]]:
    heads = rng.randint(1, 3)
    config = Config(
        node_features=rng.randint(1, 6),
        edge_features=rng.randint(1, 6),
        positions=rng.randint(1, 6),
        width=4 * heads * rng.randint(1, 3),
        layers=rng.randint(1, 4),
        heads=heads,
        outputs=rng.randint(1, 5),
    )
    return config, [{"nodes": rng.randint(1, 12), "edges": rng.randint(1, 30)} for _ in range(rng.randint(1, 3))]


def inputs(config: Config, batch: list[Sample]) -> dict:
    return {
        "nodes": [torch.randn(sample["nodes"], config.node_features) for sample in batch],
        "places": [torch.randn(sample["nodes"], config.positions) for sample in batch],
        "edges": [torch.randn(sample["edges"], config.edge_features) for sample in batch],
        "ends": [torch.randint(sample["nodes"], (sample["edges"], 2)).tolist() for sample in batch],
    }


def useful_pairs(config: Config, sample: Sample) -> dict[str, int]:
    return {"edges": sample["edges"]}


def products(config: Config, sample: Sample) -> int:
    return 2 * config.layers * config.width * sample["edges"]
