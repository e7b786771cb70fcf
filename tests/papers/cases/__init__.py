"""Random configs, batches and counts for each witness of a paper, from the paper's definitions alone.

A case module has the name of its witness, and these functions. A sample is a dict of lengths of its streams; a batch is a
list of samples.

- ``draw(rng)``: a config and a batch.
- ``inputs(config, batch)``: the arguments of the model's forward pass.
- ``useful_pairs(config, sample)``: pairs of query and key in one layer, by kind of attention, by brute force. A pair counts
  once for all heads.
- ``products(config, sample)``: multiply-adds of the forward pass outside of linear layers and convolutions.
- ``UNREAD``, if it is there: parts of names of parameters that may stay without a gradient.
"""

from __future__ import annotations

import random
from typing import Any

import torch

Sample = dict[str, Any]


def lengths(rng: random.Random, name: str = "n", low: int = 1, high: int = 24, step: int = 1) -> list[Sample]:
    """One to three samples of one stream, with lengths from ``low`` to ``high`` times ``step``."""
    return [{name: step * rng.randint(low, high)} for _ in range(rng.randint(1, 3))]


def texts(vocab: int, batch: list[Sample], name: str = "n") -> list[torch.Tensor]:
    return [torch.randint(vocab, (sample[name],)) for sample in batch]


def decoder(rng: random.Random) -> dict[str, int]:
    """Sizes that most language models have; heads are a multiple of groups."""
    groups = rng.randint(1, 2)
    return {
        "vocab": rng.randint(11, 40),
        "width": rng.randint(5, 16),
        "layers": rng.randint(1, 4),
        "heads": groups * rng.randint(1, 3),
        "groups": groups,
        "head_dim": rng.randint(2, 7),
        "hidden": rng.randint(5, 20),
    }


def encoder(rng: random.Random, low: int = 24) -> dict[str, int]:
    """Sizes of an encoder with learned positions, whose width is that of all heads."""
    heads = rng.randint(1, 3)
    return {
        "vocab": rng.randint(11, 40),
        "positions": rng.randint(low, low + 9),
        "width": heads * rng.randint(2, 7),
        "layers": rng.randint(1, 4),
        "heads": heads,
        "hidden": rng.randint(5, 20),
    }


def without(sizes: dict[str, int], *names: str) -> dict[str, int]:
    return {name: value for name, value in sizes.items() if name not in names}
