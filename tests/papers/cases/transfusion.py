from __future__ import annotations

import random

import torch

from tests.papers.cases import Sample, decoder, without
from tests.papers.transfusion import Config

UNREAD = ("patch_in", "patch_out", "time_")  # a batch may have no image


def draw(rng: random.Random) -> tuple[Config, list[Sample]]:
    config = Config(**without(decoder(rng), "groups"), patch=rng.randint(2, 9), time_dim=2 * rng.randint(1, 4))
    batch = []
    for images in range(rng.randint(1, 3)):
        text = [rng.randint(i == 0, 6) for i in range(images + 1)]
        batch.append({"text": text, "images": [rng.randint(1, 8) for _ in range(images)]})
    return config, batch


def inputs(config: Config, batch: list[Sample]) -> dict:
    return {
        "text": [[torch.randint(config.vocab, (n,)) for n in sample["text"]] for sample in batch],
        "images": [[torch.randn(y, config.patch) for y in sample["images"]] for sample in batch],
        "times": [torch.rand(len(sample["images"])) for sample in batch],
    }


def useful_pairs(config: Config, sample: Sample) -> dict[str, int]:
    piece = []  # the image of each row, or nothing
    for i, words in enumerate(sample["text"]):
        piece += [None] * words
        piece += [i] * sample["images"][i] if i < len(sample["images"]) else []
    rows = range(len(piece))
    seen = sum(key <= query or (piece[key] is not None and piece[key] == piece[query]) for query in rows for key in rows)
    return {"mixed": seen}


def products(config: Config, sample: Sample) -> int:
    return 2 * config.layers * config.heads * config.head_dim * useful_pairs(config, sample)["mixed"]


def lengths_of(config: Config, sample: Sample) -> Sample:
    return {"n": sum(sample["text"]), "m": sum(sample["images"]), "items": {"images": sample["images"]}}


def whole(sample: Sample) -> bool:
    """A sample without images runs by itself, and no gradient of what images alone go through passes it."""
    return bool(sample["images"])
