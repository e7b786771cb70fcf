"""Live verification of regimes: applies adapters, freezing and recomputation to a real model, and compares both passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from symflops.api import Model
from symflops.compiler import Memo
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.ir.program import Program
from symflops.ir.regime import Recompute, Regime
from symflops.training.introspect.checkpoints import outermost
from symflops.verify.applied import NAMES, adapted, linears_of, recomputed, refuse, targets_of, train
from symflops.verify.authoring_report import render_figure
from symflops.verify.cases import LiveCase
from symflops.verify.classes import in_evaluation
from symflops.verify.live import build, outputs_of, reference_of, run
from symflops.verify.running import Figure, arguments_of, moved

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
        self.linears = linears_of(self.real)

    def measured(self, choice: Choice) -> tuple[int, int, int]:
        """Measure (trainable elements, forward FLOPs, backward FLOPs) of the real model under ``choice``."""
        with adapted(self.real, choice.targets, choice.rank) as adapters, recomputed(self.real, choice.recompute) as waiting:
            train(self.real, (*choice.train, *adapters), choice.freeze, self.fixed)
            trainable = sum(tensor.numel() for tensor in self.real.parameters() if tensor.requires_grad)
            try:
                forward, backward = run(self.real, self.arguments, self.case, True, False, outputs_of(self.model))
            finally:
                self.real.requires_grad_(True)
        self.idle = tuple(waiting)
        return trainable, forward.total, backward.total


def derived(program: Program, config: Mapping[str, Any], batch: Mapping[str, Any]) -> tuple[int, int, int]:
    """Derive (trainable elements, forward FLOPs, backward FLOPs) for the program's first regime."""
    estimator = InterpretedEstimator(program, config, regime=program.regimes[0].name, convention="torch")
    moments = estimator.moments(**batch)
    backward = estimator.backward(moments) + estimator.recomputed(moments)
    return estimator.trainable_parameters, estimator.forward(moments), backward


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


def choice_of(regime: Regime, bench: Bench) -> Choice:
    """The choice that applies ``regime`` to the real model of ``bench``.

    Raises:
        SymflopsError: a target is a convolution.
    """
    rank = regime.adapters[0].rank if regime.adapters else 1
    return Choice(regime.train, regime.freeze, targets_of(bench.real, regime), rank, regime.recompute)


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
