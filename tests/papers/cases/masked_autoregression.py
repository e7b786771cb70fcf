from __future__ import annotations

import random

import torch

from tests.papers.cases import Sample
from tests.papers.masked_autoregression import Config


def draw(rng: random.Random) -> tuple[Config, list[Sample]]:
    heads = rng.randint(1, 3)
    config = Config(
        classes=rng.randint(2, 9),
        positions=rng.randint(16, 20),
        token_dim=rng.randint(2, 6),
        buffer=rng.randint(1, 4),
        encoder_width=heads * rng.randint(2, 7),
        encoder_layers=rng.randint(1, 3),
        decoder_width=heads * rng.randint(2, 7),
        decoder_layers=rng.randint(1, 3),
        heads=heads,
        hidden_ratio=rng.randint(1, 4),
        head_width=rng.randint(3, 12),
        head_layers=rng.randint(1, 3),
        time_dim=2 * rng.randint(1, 4),
        repeat=rng.randint(1, 4),
    )
    return config, [{"known": rng.randint(0, 8), "unknown": rng.randint(1, 8)} for _ in range(rng.randint(1, 3))]


def inputs(config: Config, batch: list[Sample]) -> dict:
    order = [torch.randperm(config.positions)[: sample["known"] + sample["unknown"]] for sample in batch]
    rows = [config.repeat * sample["unknown"] for sample in batch]
    return {
        "labels": torch.randint(config.classes, (len(batch),)),
        "known": [torch.randn(sample["known"], config.token_dim) for sample in batch],
        "known_places": [places[: sample["known"]] for places, sample in zip(order, batch, strict=True)],
        "unknown_places": [places[sample["known"] :] for places, sample in zip(order, batch, strict=True)],
        "noisy": [torch.randn(n, config.token_dim) for n in rows],
        "times": [1000 * torch.rand(n) for n in rows],
    }


def useful_pairs(config: Config, sample: Sample) -> dict[str, int]:
    known = config.buffer + sample["known"]
    return {"encoder": known**2, "decoder": (known + sample["unknown"]) ** 2}


def products(config: Config, sample: Sample) -> int:
    pairs = useful_pairs(config, sample)
    encoder = config.encoder_layers * config.encoder_width * pairs["encoder"]
    return 2 * (encoder + config.decoder_layers * config.decoder_width * pairs["decoder"])
