"""Live verification of random regimes: random trained parameters, adapters and recomputation, measured and derived.

A :class:`Bench` holds one real model. A :class:`Choice` names the parameters that train (by whole real names, so that a pattern
cuts repeats at any layer) and the linears that get an adapter. :meth:`Bench.check` counts both passes of the real model with
PyTorch's counter, and derives them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from random import Random
from typing import TYPE_CHECKING, Any

from symflops.api import program_in
from symflops.compiler import Goal, Memo
from symflops.model.program import Program
from symflops.model.regime import Adapter, Recompute, Regime
from symflops.runtime.interpreted import InterpretedEstimator
from symflops.witness.cases import LiveCase
from symflops.witness.live import Figure, build, outputs_of, reference_of, run
from symflops.witness.modes import in_evaluation
from symflops.witness.random_choices import parts_of, pattern_of, some
from symflops.witness.tensors import arguments_of, moved, needed

if TYPE_CHECKING:
    from symflops.api import Model

NAMES = ("base", "A", "B")
LAYERS = re.compile(r"num_.*layers")


@dataclass(frozen=True, slots=True)
class Choice:
    """A random regime: patterns over parameter names (those with adapters applied), linears with an adapter, recomputation."""

    train: tuple[str, ...] = ()
    freeze: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    rank: int = 4
    recompute: Recompute | None = None

    def regime(self) -> Regime:
        """The choice as a regime."""
        adapters = (Adapter("lora", self.rank, self.targets, NAMES),) if self.targets else ()
        return Regime("drawn", train=self.train, freeze=self.freeze, adapters=adapters, recompute=self.recompute)


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


class Bench:
    """One real model of a spec, on which any number of choices are measured."""

    def __init__(self, model: Model, case: LiveCase) -> None:
        self.model, self.case = model, case
        self.real, config = build(reference_of(model, case), case, model.file.path.parent)
        self.config = in_evaluation(model.spec, config)
        program = model.program(["full"], ["torch"], self.config)
        sizes = InterpretedEstimator(program, self.config, regime="full", convention="torch").sizes
        self.fixed = {id(tensor) for tensor in self.real.parameters() if not tensor.requires_grad}  # by the class itself
        self.arguments = moved(arguments_of(program, case.batch, sizes, case.arguments), case.device)
        linear = needed("torch").nn.Linear
        self.linears = tuple(name for name, module in self.real.named_modules() if type(module) is linear)
        self.lists = dict(_uniform_lists(self.real))
        self.parts = {name: tuple(sorted(parts_of(self.real.get_submodule(name)))) for name in self.lists}

    def names(self, targets: Sequence[str] = ()) -> list[str]:
        """The names of all parameters, with adapters on ``targets``."""
        with adapted(self.real, targets, 1):
            return [name for name, _ in self.real.named_parameters()]

    @contextmanager
    def recomputed(self, recompute: Recompute | None) -> Iterator[None]:
        """Let PyTorch recompute the groups of modules inside the context."""
        checkpoint = needed("torch.utils.checkpoint")
        chosen = [
            module
            for name, module in self.real.named_modules()
            if recompute and any(fnmatchcase(name, group) and name.count(".") == group.count(".") for group in recompute.groups)
        ]
        for module in chosen:
            module.forward = _checkpointed(checkpoint.checkpoint, module.forward, bool(recompute and recompute.reentrant))
        try:
            with checkpoint.set_checkpoint_early_stop(recompute is None or recompute.early_stop):
                yield
        finally:
            for module in chosen:
                del module.forward

    def measured(self, choice: Choice) -> tuple[int, int, int]:
        """Trainable elements, forward and backward FLOPs of the real model."""
        with adapted(self.real, choice.targets, choice.rank) as adapters, self.recomputed(choice.recompute):
            trainable = 0
            for name, tensor in self.real.named_parameters():
                wanted = name in adapters or any(fnmatchcase(name, pattern) for pattern in choice.train)
                wanted = wanted and id(tensor) not in self.fixed
                tensor.requires_grad_(wanted and not any(fnmatchcase(name, pattern) for pattern in choice.freeze))
                trainable += tensor.numel() * tensor.requires_grad
            try:
                forward, backward = run(self.real, self.arguments, self.case, True, False, outputs_of(self.model))
            finally:
                self.real.requires_grad_(True)
        return trainable, forward.total, backward.total

    def derived(self, choice: Choice, known: bool = False) -> tuple[int, int, int]:
        """The figures of :meth:`measured`, from the spec; with ``known`` the number of layers is fixed, else a symbol."""
        return derived(self.model, choice.regime(), self.config, self.case.batch, known)

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


def derived(
    model: Model, regime: Regime, config: Mapping[str, Any], batch: Mapping[str, Any], known: bool = False
) -> tuple[int, int, int]:
    """Trainable elements, forward and backward FLOPs of a batch; with ``known`` the numbers of layers are fixed."""
    program = _fixed(model, regime, config) if known else replace(model, memo=Memo()).program([regime], ["torch"], config)
    estimator = InterpretedEstimator(program, config, regime=regime.name, convention="torch")
    moments = estimator.moments(**batch)
    backward = estimator.backward(moments) + estimator.recomputed(moments)
    return estimator.trainable_parameters, estimator.forward(moments), backward


def _fixed(model: Model, regime: Regime, config: Mapping[str, Any]) -> Program:
    """The program with fixed numbers of layers; it is not cached, since the next choice cuts the repeats elsewhere."""
    layers = (size for size in model.spec.sizes if any(LAYERS.fullmatch(key) for key in size.keys))
    sizes = {size.name.text: model.value_of(size, config) for size in layers}
    return program_in(replace(model, memo=Memo()).required(Goal.PROGRAM, [regime], ["torch"], config, sizes=sizes))


def _uniform_lists(real: Any) -> Iterator[tuple[str, int]]:
    """The outermost module lists whose items have one type, with their lengths."""
    for name, module in real.named_modules():
        kinds = {type(item) for item in module} if type(module).__name__ == "ModuleList" else set()
        if len(kinds) == 1 and kinds != {type(None)} and not re.search(r"\.\d+\.", name):
            yield name, len(module)


@contextmanager
def adapted(real: Any, targets: Sequence[str], rank: int) -> Iterator[set[str]]:
    """Put adapters on the linears at ``targets`` inside the context; the names of the adapters' weights."""
    before = {target: real.get_submodule(target) for target in targets}
    try:
        for target, module in before.items():
            real.set_submodule(target, lora(module, rank))
        yield adapter_weights(targets)
    finally:
        for target, module in before.items():
            real.set_submodule(target, module)


def adapter_weights(targets: Sequence[str]) -> set[str]:
    """The names of the weights of adapters on the linears at ``targets``."""
    return {f"{target}.{name}.weight" for target in targets for name in NAMES[1:]}


def lora(base: Any, rank: int) -> Any:
    """A linear with a low-rank adapter beside it: ``x.base``, ``x.A`` and ``x.B``."""
    torch = needed("torch")

    class Lora(torch.nn.Module):  # type: ignore[misc, name-defined]
        """``base(x) + B(A(x))``."""

        def __init__(self) -> None:
            super().__init__()
            device = base.weight.device
            self.base = base
            self.A = torch.nn.Linear(base.in_features, rank, bias=False, device=device)
            self.B = torch.nn.Linear(rank, base.out_features, bias=False, device=device)

        @property
        def weight(self) -> Any:
            return self.base.weight

        @property
        def bias(self) -> Any:
            return self.base.bias

        def forward(self, x: Any) -> Any:
            return self.base(x) + self.B(self.A(x))

    return Lora()


def _checkpointed(checkpoint: Callable[..., Any], forward: Callable[..., Any], reentrant: bool) -> Callable[..., Any]:
    """``forward``, recomputed in the backward pass.

    Every argument is passed through the checkpoint, as a reentrant one requires. Caches are replaced by None, because a
    function that runs twice must not write to one.
    """

    def run(*given: Any, **named: Any) -> Any:
        given = tuple(None if _is_cache(value) else value for value in given)
        named = {name: value for name, value in named.items() if not _is_cache(value)}

        def inner(*values: Any) -> Any:
            return forward(*values[: len(given)], **dict(zip(named, values[len(given) :], strict=True)))

        return checkpoint(inner, *given, *named.values(), use_reentrant=reentrant, preserve_rng_state=False)

    return run


def _is_cache(value: Any) -> bool:
    """Whether ``value`` is a cache of keys and values, by whatever name it is passed (``past_key_values``, ``layer_past``)."""
    return type(value).__name__.endswith("Cache")


def benches(models: Mapping[str, Model], cases: Mapping[str, Sequence[LiveCase]], layers: int = 3) -> list[tuple[str, Bench]]:
    """A bench per case in which no repeat is longer than ``layers``."""
    found = []
    for name, model in models.items():
        for row, case in enumerate(cases[name]):
            counts = [value for key, value in case.config.items() if LAYERS.fullmatch(key)]
            if max(counts, default=1) <= layers:
                found.append((f"{name}-{row}", Bench(model, case)))
    return found
