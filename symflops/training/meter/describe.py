"""Text that describes a meter at the start of a job, and the lines of rates that it prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from symflops.evaluate.evidence import summary
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.lengths import Lengths
from symflops.evaluate.units import AS_SOURCE, MULTIPLY_ADD, TWICE_AS_HIGH, unit_of
from symflops.training.meter.accumulate import Accumulator

FORMULA = "MFU = FLOPs of the model / (seconds x devices x peak); HFU counts recomputation and padding too"


def description(meter: Any, streams: Mapping[str, Any]) -> str:
    """Describe parameters, FLOPs, device, peak with its source, and the MFU formula, as lines of text.

    ``streams`` is one batch of this process, whose FLOPs are added to the closed forms; it may be empty.
    """
    whose = "data-parallel group" if meter.scope == "global" else "process"
    lines = [] if meter.phases else ["no MFU: there is no estimator"]
    for phase in meter.phases.values():
        one = phase.estimator
        if phase.awaited is not None:
            lines.append(f"{f'phase {phase.name}: ' if phase.name else ''}no MFU until its program is derived")
            continue
        kind = f"regime {getattr(one, 'regime', '?')}, convention {getattr(one, 'convention', '?')}"
        lines.append(f"{f'phase {phase.name}: ' if phase.name else ''}{one.parameters:,} parameters, {kind}")
        for label, name in (("forward", "forward"), ("a step", "total"), ("recomputed", "recomputed")):
            pairs = zip(one.moment_sets, one.coefficients[name], strict=True)
            terms = [f"{value:,} {moment}" for moment, value in pairs if value]
            if terms:
                lines.append(f"  {unit_of(one)} {label} = {' + '.join(terms)}, summed over the items of the {whose}")
        lines += [f"  {line}" for line in of_convention(one)]
        if one.whole:
            lines.append(f"  {', '.join(one.whole)}: of each micro-batch as a whole, then summed")
        if isinstance(one, InterpretedEstimator):
            lines += [f"  {line.strip()}" for line in summary(one.evidence)]
        if streams:
            lines.append(numbers(one, streams))
    count = f"{meter.devices} device{'s' * (meter.devices > 1)}"
    lines.append(f"{count} ({meter.peak.reported or 'name unknown'}), peak {meter.peak}")
    return "\n".join([*lines, FORMULA])


def of_convention(estimator: Any) -> Iterator[str]:
    """Yield lines on the framework version that the convention reproduces, and on the unit of rates."""
    from symflops.read.reproduced import reproduced_by

    version = reproduced_by(getattr(estimator, "convention", ""))
    if version:
        yield f"the convention reproduces {version.sentence}"
    if unit_of(estimator) == "MACs":
        yield "rates and totals are logged in FLOPs, two a MAC"
    elif getattr(estimator, "unit", "") == AS_SOURCE:
        yield TWICE_AS_HIGH


def numbers(estimator: Any, streams: Mapping[str, Any]) -> str:
    """Describe one batch in a line: number of samples, forward FLOPs per sample, FLOPs of both passes."""
    sums = Accumulator(estimator)
    sums.add(**streams)
    found = sums.read(reduce=False)
    forward, total = (found.flops(estimator.coefficients[kind], estimator.padded) for kind in ("forward", "total"))
    entry = next(iter(streams.values()))
    count = max(entry.count if isinstance(entry, Lengths) else len(entry["lengths"] if isinstance(entry, dict) else entry), 1)
    unit = unit_of(estimator)
    per_sample = f"{forward // count:,} {unit} forward per sample"
    return f"  this batch: {count} samples, {per_sample}, {total:,} {unit} a step of this process"


def line_of(phase: str, values: Mapping[str, float], seconds: float, unit: str = "flops") -> str:
    """Format a phase's rates as a log line; ``seconds`` is the duration of one step."""
    rates = [f"{values['tflops']:.4g} TFLOP/s/GPU"] if "tflops" in values else []
    rates += [f"{name.upper()} {100 * values[name]:.3g}%" for name in ("mfu", "hfu") if name in values] or ["MFU unknown"]
    if unit == AS_SOURCE and "mfu" in values:
        rates.append(f"a multiply-add as {MULTIPLY_ADD[unit]} (as two, MFU {200 * values['mfu']:.3g}%)")
    if "tokens_per_second" in values:
        rates.append(f"{values['tokens_per_second']:,.0f} tokens/s")
    return f"{phase + ': ' if phase else ''}{', '.join([*rates, f'{1000 * seconds:,.1f} ms'])}"
