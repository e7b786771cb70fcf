"""Random JSON: configs and batches that are nearly right, and values that are nothing of the kind."""

from __future__ import annotations

import json
import random
from typing import Any

from tests.fuzz.mutators import INJECTIONS, NASTY, mutate_bytes

NUMBERS = (0, 1, 2, 3, 7, 8, 64, -1, -(10**9), 10**6, 10**9, 10**12 - 1, 10**12, 10**15 - 1, 10**15, 10**18, 2**63, 2**64, 10**400, 0.5, 2.5, 4.0, -0.0, 1e308, 1e-320, float("nan"), float("inf"), float("-inf"))
SMALL = (0, 1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 64, 128)


def anything(rng: random.Random, depth: int = 0) -> Any:
    """Any JSON value, some nested, some nasty."""
    kind = rng.random()
    if depth > 3 or kind < 0.35:
        return rng.choice(NUMBERS)
    if kind < 0.5:
        return rng.choice((None, True, False, "", "silu", rng.choice(NASTY), rng.choice(INJECTIONS)))
    if kind < 0.75:
        return [anything(rng, depth + 1) for _ in range(rng.randrange(5))]
    if kind < 0.97:
        return {rng.choice(("lengths", "padded", "a", "", "shape", rng.choice(NASTY))): anything(rng, depth + 1) for _ in range(rng.randrange(4))}
    return nested(rng.choice((50, 150)), rng.random() < 0.5)


def nested(depth: int, mapping: bool = False) -> Any:
    """A value inside ``depth`` others."""
    value: Any = 1
    for _ in range(depth):
        value = {"a": value} if mapping else [value]
    return value


def put(config: dict[str, Any], key: str, value: Any) -> None:
    """Set a key whose points walk into nested objects."""
    *outer, last = key.split(".")
    for word in outer:
        inner = config.get(word)
        if not isinstance(inner, dict):
            inner = config[word] = {}
        config = inner
    config[last] = value


def a_config(fields: list[tuple[str, str]], known: list[dict[str, Any]], rng: random.Random) -> dict[str, Any]:
    """A config from a measured one (or none) in which some fields of the spec hold something else."""
    config = json.loads(json.dumps(rng.choice(known))) if known and rng.random() < 0.6 else {}
    for _ in range(rng.choice((0, 1, 1, 2, 4, 8))):
        key, kind = rng.choice(fields) if fields and rng.random() < 0.9 else (rng.choice(NASTY), "")
        put(config, key, likely(kind, rng) if rng.random() < 0.5 else anything(rng))
    return config


def likely(kind: str, rng: random.Random) -> Any:
    """A value of the kind that a size has."""
    if kind == "flag":
        return rng.random() < 0.5
    if kind == "text":
        return rng.choice(("rms_norm", "", "silu", "\u0000", rng.choice(INJECTIONS)))
    if kind == "list":
        return [rng.choice((*SMALL, -1, 10**15)) for _ in range(rng.randrange(5))]
    if kind == "position":
        return rng.choice((-2, -1, 0, 1, 3, -(10**6)))
    if kind == "rational":
        return rng.choice((0.5, 2.5, 4, 2.6666666, 0))
    return rng.choice((*SMALL, *NUMBERS[:16]))


def a_batch(streams: dict[str, int], rng: random.Random) -> Any:
    """A batch for streams (name -> number of axes), right or nearly so or not at all."""
    if rng.random() < 0.04:
        return anything(rng)
    count = rng.choice((0, 1, 1, 2, 3, 5))
    batch: dict[str, Any] = {}
    for name, axes in streams.items():
        batch[name] = [[rng.choice(SMALL) for _ in range(axes)] if axes != 1 else rng.choice(SMALL) for _ in range(count)] if axes else count
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        name = rng.choice((*streams, rng.choice(NASTY))) if streams else "x"
        match rng.randrange(7):
            case 0:
                batch.pop(name, None)
            case 1:
                batch[name] = anything(rng)
            case 2 if isinstance(batch.get(name), list):
                batch[name] = [*batch[name], anything(rng)]
            case 3 if isinstance(batch.get(name), list):
                batch[name] = [rng.choice(NUMBERS) if rng.random() < 0.4 else item for item in batch[name]]
            case 4 if isinstance(batch.get(name), list):
                batch[name] = {"lengths": batch[name], "padded": batch[name] if rng.random() < 0.6 else anything(rng)}
            case 5:
                batch[name] = rng.choice(NUMBERS)
            case _:
                batch[name] = {rng.choice(("lengths", "padded", "x")): anything(rng)}
    return batch


def as_text(value: Any, rng: random.Random) -> bytes:
    """``value`` as JSON, sometimes damaged."""
    text = json.dumps(value).encode()
    return mutate_bytes(text, rng) if rng.random() < 0.1 else text


def whole_batch(streams: dict[str, int]) -> dict[str, Any]:
    """A batch of two items that fits."""
    return {stream: [[4] * axes if axes != 1 else 4] * 2 if axes else 2 for stream, axes in streams.items()}
