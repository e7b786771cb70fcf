"""Puts a real module into a regime: adapters beside linears, what trains, and what the backward pass recomputes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from symflops.ir.patterns import is_selector
from symflops.ir.regime import Passes, Recompute, Regime
from symflops.support.errors import SymflopsError
from symflops.training.introspect.checkpoints import outermost
from symflops.verify.running import needed

NAMES = ("base", "A", "B")


def train(real: Any, patterns: Sequence[str], freeze: Sequence[str], fixed: Collection[int] = ()) -> None:
    """Let the parameters train whose names match ``patterns``, none of ``freeze``, and whose id is not among ``fixed``."""
    for name, tensor in real.named_parameters():
        wanted = id(tensor) not in fixed and any(fnmatchcase(name, pattern) for pattern in patterns)
        tensor.requires_grad_(wanted and not any(fnmatchcase(name, pattern) for pattern in freeze))


@contextmanager
def recomputed(real: Any, recompute: Recompute | None) -> Iterator[dict[str, None]]:
    """Context manager in which modules are under activation checkpointing; yields the paths that were not called yet."""
    checkpoint = needed("torch.utils.checkpoint")
    modules = {name: module for name, module in real.named_modules() if name}
    chosen = {name: modules[name] for name in outermost(modules, recompute.groups)} if recompute else {}
    waiting = dict.fromkeys(chosen)
    for name, module in chosen.items():
        reentrant, called = bool(recompute and recompute.reentrant), partial(waiting.pop, name, None)
        module.forward = _checkpointed(checkpoint.checkpoint, module.forward, reentrant, called)
    try:
        with checkpoint.set_checkpoint_early_stop(recompute is None or recompute.early_stop):
            yield waiting
    finally:
        for module in chosen.values():
            del module.forward


def refuse(regime: Regime) -> None:
    """Refuse a regime with fields that cannot be applied to a real module.

    Raises:
        SymflopsError: the regime has such a field.
    """
    alone = Regime(regime.name, doc=regime.doc, lenient=regime.lenient, passes=Passes())
    kept = {name: getattr(regime, name) for name in ("train", "freeze", "adapters", "recompute")}
    recompute = regime.recompute
    if replace(alone, **kept) != regime or (recompute and (recompute.every > 1 or recompute.attention_only)):
        raise SymflopsError(
            f"regime '{regime.name}' cannot be applied to a real module: only what trains, is frozen, adapted and recomputed is"
        )
    if len(regime.adapters) > 1 or any(adapter.kind != "lora" for adapter in regime.adapters):
        raise SymflopsError(f"regime '{regime.name}' cannot be applied to a real module: only one set of LoRA adapters is")
    for pattern in regime.patterns:
        for word in pattern.split("."):
            if is_selector(word) and not word.isdigit():
                raise SymflopsError(f"'{pattern}' cannot be applied to a real module: write the index that '{word}' selects")


def check(real: Any, regime: Regime) -> None:
    """Check that a regime changes a module as its patterns say.

    Raises:
        SymflopsError: a pattern matches nothing, or a module that is never called, such as a list of modules.
    """
    torch, kind = needed("torch"), type(real).__name__
    modules = {name: module for name, module in real.named_modules() if name}
    groups = regime.recompute.groups if regime.recompute else ()
    targets = [target for adapter in regime.adapters for target in adapter.targets]
    parameters = [name for name, _ in real.named_parameters()]
    for noun, patterns, names in (
        ("parameter", [one for one in regime.train if one != "*"], parameters), ("parameter", regime.freeze, parameters),
        ("linear", targets, linears_of(real)), ("module", groups, modules),
    ):  # fmt: skip
        missing = [one for one in patterns if not any(fnmatchcase(name, one) for name in names)]
        if missing and (not regime.lenient or len(missing) == len(patterns)):
            raise SymflopsError(f"no {noun} of {kind} matches {', '.join(missing)}")
    for name in outermost(modules, groups):
        if type(modules[name]).forward is torch.nn.Module.forward:
            raise SymflopsError(f"'{name}' of {kind} is a list of modules, which is never called: write '{name}.*'")


def targets_of(real: Any, regime: Regime) -> tuple[str, ...]:
    """The paths of the linears of a module that have an adapter in a regime.

    Raises:
        SymflopsError: a target is a convolution.
    """
    weighted = (needed("torch").nn.modules.conv._ConvNd,)
    targets = [target for adapter in regime.adapters for target in adapter.targets]
    chosen = {name: one for name, one in real.named_modules() if any(fnmatchcase(name, target) for target in targets)}
    for name, module in chosen.items():
        if isinstance(module, weighted):
            raise SymflopsError(f"the adapter on '{name}' cannot be applied to a real module: only those of linears can")
    return tuple(name for name in linears_of(real) if name in chosen)


def linears_of(real: Any) -> tuple[str, ...]:
    """The paths of the linears of a module."""
    return tuple(name for name, module in real.named_modules() if type(module) is needed("torch").nn.Linear)


@contextmanager
def in_regime(real: Any, regime: Regime, rank: Any) -> Iterator[None]:
    """Context manager in which a module has a regime's adapters, with this rank, its trained parameters and its checkpoints."""
    fixed = {id(one) for one in real.parameters() if not one.requires_grad}
    with adapted(real, targets_of(real, regime), rank) as adapters, recomputed(real, regime.recompute):
        train(real, (*regime.train, *adapters), regime.freeze, fixed)
        yield


@contextmanager
def adapted(real: Any, targets: Sequence[str], rank: int) -> Iterator[set[str]]:
    """Context manager in which the linears at ``targets`` have adapters; yields names of adapter weights."""
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
    """Wrap the linear ``base`` with an adapter of ``rank``; the submodules are ``base``, ``A`` and ``B``."""
    torch = needed("torch")

    class Lora(torch.nn.Module):  # type: ignore[misc, name-defined]
        """A linear with an adapter: ``base(x) + B(A(x))``."""

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
    """Wrap ``forward`` so that the backward pass recomputes it.

    Key-value caches among the arguments are replaced by None, because a function that runs twice must not write to one.

    Args:
        checkpoint: PyTorch's checkpoint function.
        forward: The function to wrap.
        reentrant: Which of PyTorch's two implementations is used.
        called: Invoked at each call of the wrapped function.
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
    """Whether ``value`` is a key-value cache, judged by its class: argument names differ between models."""
    return type(value).__name__.endswith("Cache")
