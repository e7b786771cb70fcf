from __future__ import annotations

import random

from tests.papers.cases import Sample, encoder, lengths, texts
from tests.papers.linformer import Config


def draw(rng: random.Random) -> tuple[Config, list[Sample]]:
    sharing = rng.choice(["none", "heads", "keys-values", "layers"])
    return Config(**encoder(rng), rank=rng.randint(1, 9), sharing=sharing), lengths(rng)


def inputs(config: Config, batch: list[Sample]) -> dict:
    return {"tokens": texts(config.vocab, batch)}


def useful_pairs(config: Config, sample: Sample) -> dict[str, int]:
    return {"projected": sum(1 for _ in range(sample["n"]) for _ in range(config.rank))}


def products(config: Config, sample: Sample) -> int:
    pairs = useful_pairs(config, sample)["projected"]
    return config.layers * config.width * (2 * pairs + 2 * config.rank * sample["n"])
