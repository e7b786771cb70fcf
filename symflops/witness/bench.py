"""Measures regimes on one real model: applies adapters, freezing and recomputation to it, and counts both passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any

from symflops.live.checkpoints import outermost
from symflops.model.program import Program
from symflops.model.regime import Recompute
from symflops.runtime.interpreted import InterpretedEstimator
from symflops.witness.cases import LiveCase
from symflops.witness.config_classes import in_evaluation
from symflops.witness.live import build, outputs_of, reference_of, run
from symflops.witness.tensors import arguments_of, moved, needed

if TYPE_CHECKING:
    from symflops.api import Model

NAMES = ("base", "A", "B")


@dataclass(frozen=True, slots=True)
class Choice:
    """What trains and is frozen (patterns over parameter names, adapters included), linears with an adapter, recomputation."""

    train: tuple[str, ...] = ()
    freeze: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    rank: int = 4
    recompute: Recompute | None = None


class Bench:
    """One real model of a spec, on which any number of choices are measured.

    Attributes:
        idle: The modules that the last choice recomputes and that the model never calls, as a list that it goes through itself.
    """

    def __init__(self, model: Model, case: LiveCase) -> None:
        self.idle: tuple[str, ...] = ()
        self.model, self.case = model, case
        self.real, config = build(reference_of(model, case), case, model.file.path.parent)
        self.config = in_evaluation(model.spec, config)
        program = model.program(["full"], ["torch"], self.config)
        sizes = InterpretedEstimator(program, self.config, regime="full", convention="torch").sizes
        self.fixed = {id(tensor) for tensor in self.real.parameters() if not tensor.requires_grad}  # by the class itself
        self.arguments = moved(arguments_of(program, case.batch, sizes, case.arguments), case.device)
        linear = needed("torch").nn.Linear
        self.linears = tuple(name for name, module in self.real.named_modules() if type(module) is linear)

    @contextmanager
    def recomputed(self, recompute: Recompute | None) -> Iterator[None]:
        """Let PyTorch recompute the groups of modules inside the context."""
        checkpoint = needed("torch.utils.checkpoint")
        modules = {name: module for name, module in self.real.named_modules() if name}
        chosen = {name: modules[name] for name in outermost(modules, recompute.groups)} if recompute else {}
        waiting = dict.fromkeys(chosen)
        for name, module in chosen.items():
            reentrant, called = bool(recompute and recompute.reentrant), partial(waiting.pop, name, None)
            module.forward = _checkpointed(checkpoint.checkpoint, module.forward, reentrant, called)
        try:
            with checkpoint.set_checkpoint_early_stop(recompute is None or recompute.early_stop):
                yield
        finally:
            for module in chosen.values():
                del module.forward
            self.idle = tuple(waiting)

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


def derived(program: Program, config: Mapping[str, Any], batch: Mapping[str, Any]) -> tuple[int, int, int]:
    """The figures of :meth:`Bench.measured`, derived, of the first regime of ``program`` under the convention ``torch``."""
    estimator = InterpretedEstimator(program, config, regime=program.regimes[0].name, convention="torch")
    moments = estimator.moments(**batch)
    backward = estimator.backward(moments) + estimator.recomputed(moments)
    return estimator.trainable_parameters, estimator.forward(moments), backward


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


def _checkpointed(
    checkpoint: Callable[..., Any], forward: Callable[..., Any], reentrant: bool, called: Callable[[], object]
) -> Callable[..., Any]:
    """``forward``, recomputed in the backward pass; it says when it is ``called``.

    Every argument is passed through the checkpoint, as a reentrant one requires. Caches are replaced by None, because a
    function that runs twice must not write to one.
    """

    def run(*given: Any, **named: Any) -> Any:
        called()
        given = tuple(None if _is_cache(value) else value for value in given)
        named = {name: value for name, value in named.items() if not _is_cache(value)}

        def inner(*values: Any) -> Any:
            return forward(*values[: len(given)], **dict(zip(named, values[len(given) :], strict=True)))

        return checkpoint(inner, *given, *named.values(), use_reentrant=reentrant, preserve_rng_state=False)

    return run


def _is_cache(value: Any) -> bool:
    """Whether ``value`` is a cache of keys and values, by whatever name it is passed (``past_key_values``, ``layer_past``)."""
    return type(value).__name__.endswith("Cache")
