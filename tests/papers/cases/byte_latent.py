from __future__ import annotations

import random

import torch

from tests.papers.byte_latent import Config
from tests.papers.cases import Sample


def draw(rng: random.Random) -> tuple[Config, list[Sample]]:
    heads, head_dim, parts = rng.randint(1, 3), rng.randint(2, 5), rng.randint(1, 3)
    config = Config(
        width=heads * head_dim,
        heads=heads,
        hidden=rng.randint(5, 20),
        encoder_layers=rng.randint(1, 2),
        decoder_layers=rng.randint(1, 3),
        window=rng.randint(1, 9),
        parts=parts,
        latent_layers=rng.randint(1, 3),
        latent_heads=rng.choice([heads, parts * heads]),
        latent_hidden=rng.randint(5, 30),
        tables=rng.randint(0, 3),
        entries=rng.randint(5, 50),
    )
    return config, [{"patches": [rng.randint(1, 6) for _ in range(rng.randint(1, 6))]} for _ in range(rng.randint(1, 3))]


def inputs(config: Config, batch: list[Sample]) -> dict:
    patches = [sample["patches"] for sample in batch]
    return {"text": [torch.randint(256, (sum(each),)) for each in patches], "patches": patches}


def useful_pairs(config: Config, sample: Sample) -> dict[str, int]:
    patch = [i for i, length in enumerate(sample["patches"]) for _ in range(length)]
    bytes_, patches = range(len(patch)), range(len(sample["patches"]))
    return {
        "window": sum(0 <= query - key < config.window for query in bytes_ for key in bytes_),
        "cross": sum(patch[byte] == vector // config.parts for byte in bytes_ for vector in range(len(patches) * config.parts)),
        "latent": sum(key <= query for query in patches for key in patches),
    }


def products(config: Config, sample: Sample) -> int:
    pairs = useful_pairs(config, sample)
    local = (config.encoder_layers + config.decoder_layers) * (pairs["window"] + pairs["cross"])
    return 2 * config.width * (local + config.latent_layers * config.parts * pairs["latent"])


def lengths_of(config: Config, sample: Sample) -> Sample:
    return {"n": sum(sample["patches"]), "p": len(sample["patches"])}
