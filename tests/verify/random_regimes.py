"""Random regimes on real models: random trained parameters, adapters and recomputation, measured and derived."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from random import Random
from typing import Any

from symflops.api import Model, program_in
from symflops.compiler import Goal, Memo
from symflops.ir.program import Program
from symflops.ir.regime import Adapter, Recompute, Regime
from symflops.verify.applied import NAMES, adapted, adapter_weights
from symflops.verify.bench import Bench, Choice, derived
from symflops.verify.cases import LiveCase
from symflops.verify.running import Figure

LAYERS = re.compile(r"num_.*layers")
SHARES = (0.0, 0.02, 0.1, 0.5, 0.9, 1.0)


def parts_of(modules: Any) -> set[str]:
    """The paths of modules with parameters inside ``modules``, without module lists and dicts."""
    return {
        path
        for module in modules
        for path, part in module.named_modules()
        if path and type(part).__name__ not in ("ModuleList", "ModuleDict") and next(part.parameters(), None) is not None
    }


def pattern_of(random: Random, names: Sequence[str]) -> tuple[str, ...]:
    """A pattern from a random name, with one end or some components replaced by ``*``; empty if it matches no name."""
    words = random.choice(names).split(".")
    cut = random.randrange(len(words))
    pattern = random.choice(
        (
            ".".join([*words[:cut], "*"]),
            ".".join(["*", *words[cut:]]),
            ".".join("*" if random.random() < 0.3 else word for word in words),
        )
    )
    return (pattern,) if any(fnmatchcase(name, pattern) for name in names) else ()


def some(random: Random, names: Sequence[str]) -> tuple[str, ...]:
    """A random share of ``names``: of all, of one layer, or of those that end alike."""
    share = random.choice(SHARES)
    kind = random.randrange(3)
    if kind and names:
        example = random.choice(names).split(".")
        start, end = ".".join(example[:2]), example[-1] if kind == 1 else ".".join(example[-2:])
        names = [name for name in names if (name.startswith(start) if kind == 1 else name.endswith(end))]
    return tuple(name for name in names if random.random() < share)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One choice with its figures, real and derived: trainable elements and both passes."""

    choice: Choice
    trainable: Figure
    forward: Figure
    backward: Figure

    @property
    def exact(self) -> bool:
        """Whether nothing differs."""
        return self.trainable.equal and self.forward.equal and self.backward.equal


class RandomBench(Bench):
    """A bench that draws choices, checks them, and reduces those that differ."""

    def __init__(self, model: Model, case: LiveCase) -> None:
        super().__init__(model, case)
        self.lists = dict(_uniform_lists(self.real))
        self.parts = {name: tuple(sorted(parts_of(self.real.get_submodule(name)))) for name in self.lists}

    def names(self, targets: Sequence[str] = ()) -> list[str]:
        """The names of all parameters, with adapters on ``targets``."""
        with adapted(self.real, targets, 1):
            return [name for name, _ in self.real.named_parameters()]

    def derived(self, choice: Choice, known: bool = False) -> tuple[int, int, int]:
        """The figures of :meth:`measured`, from the spec; with ``known`` the number of layers is fixed, else a symbol."""
        return derived_of(self.model, regime_of_choice(choice), self.config, self.case.batch, known)

    def check(self, choice: Choice, known: bool = False) -> Outcome:
        """Measure and derive."""
        return Outcome(choice, *map(Figure, self.measured(choice), self.derived(choice, known)))

    def draw(self, random: Random) -> Choice:
        """A random choice: few or many single parameters, whole modules by pattern, adapters on some linears."""
        targets = some(random, self.linears) if random.random() < 0.5 else ()
        names = self.names(targets)
        adapters = adapter_weights(targets)
        train = some(random, [name for name in names if name not in adapters])
        if random.random() < 0.2:
            train = (*train, *pattern_of(random, names))
        freeze = some(random, names) if random.random() < 0.3 else ()
        if random.random() < 0.1:
            freeze = (*freeze, *pattern_of(random, names))
        freeze = tuple(name for name in freeze if name not in train)
        return Choice(train, freeze, targets, random.choice((1, 4, 8)), self.draw_recompute(random))

    def draw_recompute(self, random: Random) -> Recompute | None:
        """None, or a random recomputation of lists, single items or parts of items, in one of PyTorch's three modes."""
        if not self.lists or random.random() < 0.5:
            return None
        names = random.choice([[name] for name in self.lists] + [list(self.lists)])
        parts = self.parts[names[0]] if len(names) == 1 else ()
        below = f".{random.choice(parts)}" if parts and random.random() < 0.4 else ""
        index = "*" if below or random.random() < 0.8 else str(random.randrange(min(self.lists[name] for name in names)))
        early, reentrant = random.choice(((True, False), (False, False), (True, True)))
        return Recompute(tuple(f"{name}.{index}{below}" for name in names), early_stop=early, reentrant=reentrant)

    def smallest(self, choice: Choice, fails: Callable[[Choice], bool] | None = None) -> Choice:
        """A minimal choice that still fails: removing any further name makes it pass."""
        differs = fails or (lambda smaller: not self.check(smaller).exact)
        for field in ("train", "freeze", "targets"):
            size = len(getattr(choice, field))
            while size:
                position = 0
                while position < len(getattr(choice, field)):
                    kept = getattr(choice, field)
                    smaller = replace(choice, **{field: kept[:position] + kept[position + size :]})
                    if differs(smaller):
                        choice = smaller
                    else:
                        position += size
                size //= 2
        return choice


def regime_of_choice(choice: Choice) -> Regime:
    """A choice as a regime."""
    adapters = (Adapter("lora", choice.rank, choice.targets, NAMES),) if choice.targets else ()
    return Regime("drawn", train=choice.train, freeze=choice.freeze, adapters=adapters, recompute=choice.recompute)


def derived_of(model: Model, regime: Regime, config: Mapping[str, Any], batch: Mapping[str, Any], known: bool = False) -> tuple[int, int, int]:
    """Trainable elements, forward and backward FLOPs of a batch; with ``known`` the numbers of layers are fixed."""
    program = _fixed(model, regime, config) if known else replace(model, memo=Memo()).program([regime], ["torch"], config)
    return derived(program, config, batch)


def _fixed(model: Model, regime: Regime, config: Mapping[str, Any]) -> Program:
    """The program with fixed numbers of layers; it is not cached, since the next choice cuts the repeats elsewhere."""
    layers = (size for size in model.spec.sizes if any(LAYERS.fullmatch(key) for key in size.keys))
    sizes = {size.name.text: model.value_of(size, config) for size in layers}
    return program_in(replace(model, memo=Memo()).compiled(Goal.PROGRAM, [regime], ["torch"], config, sizes=sizes))


def _uniform_lists(real: Any) -> Iterator[tuple[str, int]]:
    """The outermost module lists whose items have one type, with their lengths."""
    for name, module in real.named_modules():
        kinds = {type(item) for item in module} if type(module).__name__ == "ModuleList" else set()
        if len(kinds) == 1 and kinds != {type(None)} and not re.search(r"\.\d+\.", name):
            yield name, len(module)


def benches(models: Mapping[str, Model], cases: Mapping[str, Sequence[LiveCase]], layers: int = 3) -> list[tuple[str, RandomBench]]:
    """A bench per case in which no repeat is longer than ``layers``."""
    found = []
    for name, model in models.items():
        for row, case in enumerate(cases[name]):
            counts = [value for key, value in case.config.items() if LAYERS.fullmatch(key)]
            if max(counts, default=1) <= layers:
                found.append((f"{name}-{row}", RandomBench(model, case)))
    return found
