"""Live verification of one regime: applies adapters, freezing and recomputation to the real model, and compares."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from symflops.compiler import Memo
from symflops.diagnostics.findings import SymflopsError
from symflops.live.checkpoints import outermost
from symflops.model.patterns import is_selector
from symflops.model.regime import Passes, Regime
from symflops.witness.authoring_report import render_figure
from symflops.witness.bench import NAMES, Bench, Choice, derived
from symflops.witness.cases import LiveCase
from symflops.witness.counting import Figure
from symflops.witness.tensors import needed

if TYPE_CHECKING:
    from symflops.api import Model


MOST_GROUPS = 12
"""Groups that are tried alone, to find one that differs."""


@dataclass(frozen=True, slots=True)
class RegimeReport:
    """The real model and the spec compared on one case under a regime: trainable elements, and FLOPs of both passes.

    The backward pass includes recomputed work, as in PyTorch's counter. ``idle`` are modules to recompute that the real model
    never calls; ``group`` is one that differs if it alone is recomputed, and by how many FLOPs.
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
        """Whether nothing differs."""
        return self.trainable.equal and self.forward.equal and self.backward.equal

    def as_json(self) -> dict[str, Any]:
        """The report as plain data: for each figure the real and the derived value."""
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
    """What trains, and both passes, each real and derived."""
    program = replace(model, memo=Memo()).program([regime], ["torch"], bench.config)
    measured = bench.measured(choice_of(regime, bench))
    trainable, forward, backward = map(Figure, measured, derived(program, bench.config, case.batch))
    return trainable, forward, backward


def faulty_group(model: Model, case: LiveCase, regime: Regime, bench: Bench) -> tuple[str, int] | None:
    """The first group that differs if it alone is recomputed, and by how much; None if none does, or nothing is recomputed."""
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
    """The choice that applies ``regime`` to the real model of ``bench``.

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
    """The report as text: one line if exact, else all figures."""
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
