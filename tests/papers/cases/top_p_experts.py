from __future__ import annotations

import random

import torch

from tests.papers.cases import Sample, decoder, lengths, texts, without
from tests.papers.top_p_experts import Config

UNREAD = (".experts.",)  # an expert may have no token
ALIKE = "experts"  # how many tokens an expert has depends on the data: all train, or none


def draw(rng: random.Random) -> tuple[Config, list[Sample]]:
    experts = rng.randint(2, 6)
    config = Config(**without(decoder(rng), "groups"), experts=experts, threshold=round(rng.uniform(0.1, 0.9), 2))
    return config, [sample | {"active": [rng.randint(1, experts) for _ in range(sample["n"])]} for sample in lengths(rng)]


def inputs(config: Config, batch: list[Sample]) -> dict:
    return {"tokens": texts(config.vocab, batch), "active": [torch.tensor(sample["active"]) for sample in batch]}


def useful_pairs(config: Config, sample: Sample) -> dict[str, int]:
    n = sample["n"]
    routes = sum(expert < count for count in sample["active"] for expert in range(config.experts))
    return {"causal": sum(key <= query for query in range(n) for key in range(n)), "routes": routes}


def products(config: Config, sample: Sample) -> int:
    return 2 * config.layers * config.heads * config.head_dim * sample["n"] ** 2


def useful_products(config: Config, sample: Sample) -> int:
    return 2 * config.layers * config.heads * config.head_dim * useful_pairs(config, sample)["causal"]


def lengths_of(config: Config, sample: Sample) -> Sample:
    return sample | {"routes": sum(sample["active"])}
