"""Chooses the regimes of a proof, and applies a regime to a real module."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from random import Random
from typing import Any

from symflops.draft.sample.family import starred
from symflops.ir.regime import Adapter, Regime
from symflops.verify.bench import NAMES, adapted
from symflops.verify.tensors import needed

SHARES = (0.15, 0.5)  # of the parameters that train
RANK = 4
SINGLE = "single"


def regimes_of(real: Any, text: str, random: Random) -> list[Regime]:
    """Regimes of a proof: full training, adapters on some linears, two random choices of parameters."""
    found = [Regime("full", train=("*",))]
    targets = targets_of(real, text, random)
    if targets:
        found.append(Regime("lora", train=(), adapters=(Adapter("lora", RANK, targets, NAMES),)))
    groups = sorted({starred(name) for name, tensor in real.named_parameters() if tensor.requires_grad})
    for number, share in enumerate(SHARES, 1):
        train = tuple(group for group in groups if random.random() < share) or tuple(groups[:1])
        found.append(Regime(f"frozen_{number}", train=train))
    return found


def single_of(real: Any, random: Random) -> Regime:
    """Regime that trains up to three single parameters."""
    names = [name for name, tensor in real.named_parameters() if tensor.requires_grad]
    return Regime(SINGLE, train=tuple(random.sample(names, min(3, len(names)))))


def targets_of(real: Any, text: str, random: Random) -> tuple[str, ...]:
    """Name patterns of linears that get an adapter: about half of the last path words only linears have."""
    leaves = [(last_words(name), module) for name, module in real.named_modules() if name and not [*module.children()]]
    others = {word for word, module in leaves if type(module) is not needed("torch").nn.Linear}
    every = {word for word, _ in leaves}
    words = [word for word in sorted(every - others) if f"{word}: {{op: linear" in text]
    chosen = [word for word in words if random.random() < 0.5] or words[:1]
    return tuple(f"*{word}" for word in chosen if not any(other.endswith(word) for other in every - {word}))


def last_words(name: str) -> str:
    """Last word of a path; with the word before it if it is an index."""
    words = name.split(".")
    return ".".join(words[-2:]) if words[-1].isdigit() and len(words) > 1 else words[-1]


@contextmanager
def training(real: Any, regime: Regime) -> Iterator[set[str]]:
    """Context with a regime's adapters in a module; yields the names of the trained parameters."""
    if not regime.adapters:
        named = [name for name, tensor in real.named_parameters() if tensor.requires_grad]
        yield {name for name in named if matches(name, regime.train)}
        return
    adapter = regime.adapters[0]
    linear = needed("torch").nn.Linear
    linears = [name for name, module in real.named_modules() if type(module) is linear]
    with adapted(real, [name for name in linears if matches(name, adapter.targets)], adapter.rank) as weights:
        yield weights


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a name matches any of the patterns."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)
