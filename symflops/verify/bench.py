"""Live verification of regimes: applies adapters, freezing and recomputation to a real model, and compares both passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from symflops.api import Model
from symflops.compiler import Memo
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.ir.patterns import is_selector
from symflops.ir.program import Program
from symflops.ir.regime import Passes, Recompute, Regime
from symflops.support.findings import SymflopsError
from symflops.training.introspect.checkpoints import outermost
from symflops.verify.authoring_report import render_figure
from symflops.verify.cases import LiveCase
from symflops.verify.classes import in_evaluation
from symflops.verify.live import build, outputs_of, reference_of, run
from symflops.verify.running import Figure, arguments_of, moved, needed

NAMES = ("base", "A", "B")


MOST_GROUPS = 12
"""How many recomputed groups are tried alone, to find one that differs."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How a real model is trained in one measurement.

    ``train`` and ``freeze`` are patterns over parameter names, ``targets`` the paths of linears with an adapter of ``rank``.
    """

    train: tuple[str, ...] = ()
    freeze: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    rank: int = 4
    recompute: Recompute | None = None


class Bench:
    """The real model of one case of a spec, which can be measured under any :class:`Choice`.

    Attributes:
        idle: Paths that the last choice recomputes but the model never calls, such as that of a module list.
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
        """Context manager in which the modules of ``recompute`` are under activation checkpointing."""
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
        """Measure (trainable elements, forward FLOPs, backward FLOPs) of the real model under ``choice``."""
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
    """Derive (trainable elements, forward FLOPs, backward FLOPs) for the program's first regime."""
    estimator = InterpretedEstimator(program, config, regime=program.regimes[0].name, convention="torch")
    moments = estimator.moments(**batch)
    backward = estimator.backward(moments) + estimator.recomputed(moments)
    return estimator.trainable_parameters, estimator.forward(moments), backward


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


@dataclass(frozen=True, slots=True)
class RegimeReport:
    """Comparison of real model and spec on one case under a regime.

    Attributes:
        case: File and line of the case.
        regime: The name of the regime.
        trainable: Number of trainable parameter elements.
        forward: Forward FLOPs.
        backward: Backward FLOPs; they include recomputed work.
        idle: Paths to recompute that the real model never calls.
        group: (path, derived minus real backward FLOPs) of a module that differs if it alone is recomputed.
    """

    case: str
    regime: str
    trainable: Figure
    forward: Figure
    backward: Figure
    idle: tuple[str, ...] = ()
    group: tuple[str, int] | None = None

    @property
    def exact(self) -> bool:
        """Whether all three figures are equal."""
        return self.trainable.equal and self.forward.equal and self.backward.equal

    def as_json(self) -> dict[str, Any]:
        """Convert the report to JSON data; each figure is ``{"real": ..., "derived": ...}``."""
        figures = {"trainable_parameters": self.trainable, "forward": self.forward, "backward": self.backward}
        both = {name: {"real": figure.expected, "derived": figure.derived} for name, figure in figures.items()}
        return {"case": self.case, "exact": self.exact, **both}


def verify_regime(model: Model, case: LiveCase, regime: Regime) -> RegimeReport:
    """Apply ``regime`` to the real class of one case, run both passes, and compare with the derivation.

    Raises:
        SymflopsError: the regime has a field that is not supported here, or the case fails as in ``verify_live``.
    """
    plain = replace(regime, adapters=tuple(replace(adapter, names=NAMES) for adapter in regime.adapters))
    refuse(plain)
    bench = Bench(model, case)
    trainable, forward, backward = compared(model, case, plain, bench)
    report = RegimeReport(case.label, regime.name, trainable, forward, backward, bench.idle)
    if report.exact or bench.idle or not (trainable.equal and forward.equal):
        return report
    return replace(report, group=faulty_group(model, case, plain, bench))


def compared(model: Model, case: LiveCase, regime: Regime, bench: Bench) -> tuple[Figure, Figure, Figure]:
    """Measure and derive three figures: (trainable elements, forward FLOPs, backward FLOPs)."""
    program = replace(model, memo=Memo()).program([regime], ["torch"], bench.config)
    measured = bench.measured(choice_of(regime, bench))
    trainable, forward, backward = map(Figure, measured, derived(program, bench.config, case.batch))
    return trainable, forward, backward


def faulty_group(model: Model, case: LiveCase, regime: Regime, bench: Bench) -> tuple[str, int] | None:
    """Find a module that differs if it alone is recomputed: (path, derived minus real FLOPs); else None."""
    if regime.recompute is None:
        return None
    modules = {name: module for name, module in bench.real.named_modules() if name}
    for name in outermost(modules, regime.recompute.groups)[:MOST_GROUPS]:
        alone = replace(regime, recompute=replace(regime.recompute, groups=(name,)))
        backward = compared(model, case, alone, bench)[2]
        if not backward.equal:
            return name, backward.derived - backward.expected
    return None


def refuse(regime: Regime) -> None:
    """Refuse a regime with fields that are not supported on a real model.

    Raises:
        SymflopsError: the regime has such a field.
    """
    alone = Regime(regime.name, doc=regime.doc, lenient=regime.lenient, passes=Passes())
    kept = {name: getattr(regime, name) for name in ("train", "freeze", "adapters", "recompute")}
    if replace(alone, **kept) != regime:
        raise SymflopsError(
            f"regime '{regime.name}' cannot be verified live: only what trains, is frozen, adapted and recomputed is"
        )
    if len(regime.adapters) > 1 or any(adapter.kind != "lora" for adapter in regime.adapters):
        raise SymflopsError(f"regime '{regime.name}' cannot be verified live: only one set of LoRA adapters is")
    for pattern in regime.patterns:
        for word in pattern.split("."):
            if is_selector(word) and not word.isdigit():
                raise SymflopsError(f"'{pattern}' cannot be verified live: write the index that '{word}' selects")


def choice_of(regime: Regime, bench: Bench) -> Choice:
    """Convert ``regime`` to the choice that applies it to the real model of ``bench``.

    Raises:
        SymflopsError: a target is a convolution.
    """
    targets = regime.adapters[0].targets if regime.adapters else ()
    weighted = (needed("torch").nn.modules.conv._ConvNd,)
    for name, module in bench.real.named_modules():
        if isinstance(module, weighted) and any(fnmatchcase(name, target) for target in targets):
            raise SymflopsError(f"the adapter on '{name}' cannot be verified live: only those of linears are")
    chosen = tuple(name for name in bench.linears if any(fnmatchcase(name, target) for target in targets))
    rank = regime.adapters[0].rank if regime.adapters else 1
    return Choice(regime.train, regime.freeze, chosen, rank, regime.recompute)


def render_regime(report: RegimeReport) -> str:
    """Render a report as text: one line if exact, else a line per figure with its real and derived value."""
    head = f"{report.case}: {report.regime}"
    figures = (("trainable parameters", report.trainable), ("forward", report.forward), ("backward FLOPs", report.backward))
    if report.exact:
        return f"{head}: exact: " + ", ".join(f"{figure.expected:,} {name}" for name, figure in figures)
    lines = [f"{head}: differs", *(f"  {name}: {render_figure(figure)}" for name, figure in figures)]
    if report.group:
        name, more_work = report.group
        told = f"'{name}' alone differs by {more_work:+,}: is each operator of this module inside of its entry, and no other?"
        lines.append(f"  of what is recomputed, {told}")
    if report.idle:
        more = f" and {len(report.idle) - 1} more" if len(report.idle) > 1 else ""
        lines.append(
            f"  the model never calls '{report.idle[0]}'{more}, so that nothing of it is recomputed: name modules that run"
        )
    return "\n".join(lines)
