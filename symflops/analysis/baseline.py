"""Finds the baseline that a spec names, validates it, and compares the model with it."""

from __future__ import annotations

from symflops.analysis.comparison import CONVENTION, REGIME, Comparison, Side
from symflops.api import Model, load
from symflops.evaluate.item_analysis import Against
from symflops.evaluate.typical_values import default_sizes
from symflops.ir.program import Program
from symflops.ir.spec import BaselineSpec
from symflops.support.findings import Diagnostic, Source, SpecError, SymflopsError, did_you_mean


def against(model: Model, program: Program | None = None) -> Against | None:
    """Compare a model with its baseline, as pages print the result; None if :func:`compared` gives None."""
    found = compared(model, REGIME, CONVENTION, program)
    return found.told() if found else None


def compared(model: Model, regime: str, convention: str, program: Program | None = None) -> Comparison | None:
    """Compare a model at default sizes with its baseline.

    Returns None if the spec names no baseline, or if a size has no default. ``program`` is the program derived at the
    defaults, if it already exists.

    Raises:
        SymflopsError: the baseline spec is missing, lacks a named field or stream, or accepts none of the lengths.
    """
    if model.spec.baseline is None:
        return None
    base, own = baseline_of(model), Side(model, {}, regime, convention, program)
    misnamed(own, base, model.spec.baseline)
    return None if default_sizes(own.program) is None else Comparison(own, base, model.spec.baseline)


def check(model: Model) -> None:
    """Check that a model can be compared with its baseline, if it has one.

    Raises:
        SpecError: the comparison fails.
    """
    try:
        against(model)
    except SpecError:
        raise
    except SymflopsError as error:
        assert model.spec.baseline is not None
        hint = "'config' says its config, 'batch' its lengths, 'lengths' those that grow here"
        message = f"the baseline '{model.spec.baseline.name}' does not compare: {error}"
        raise SpecError([Diagnostic("bad-field", message, model.spec.baseline.name.span, hint)]) from None


def sources_of(model: Model) -> tuple[Source, ...]:
    """Source files of a model's pages: its own spec files and those of its baseline."""
    base = baseline_of(model).spec.sources if model.spec.baseline else ()
    return (*model.spec.sources, *base)


def baseline_of(model: Model) -> Model:
    """Load the model that ``model`` names as its baseline; it must name one.

    Raises:
        SpecError: no spec has that name.
    """
    assert model.spec.baseline is not None
    name = model.spec.baseline.name
    file = model.file.other(name.text)
    if file is None:
        hint = did_you_mean(name.text, model.file.others(), "the name of a spec, as 'symflops list' shows them")
        raise SpecError([Diagnostic("unknown-spec", f"there is no spec '{name}'", name.span, hint)])
    return load(file)


def misnamed(own: Side, base: Model, spec: BaselineSpec) -> None:
    """Check that the fields and streams of ``base`` and the lengths of ``own`` that ``spec`` names exist.

    Raises:
        SpecError: lists every unknown name.
    """
    lengths = [name for stream in own.program.streams for name in stream.variables]
    keys = [key for size in base.spec.sizes for key in size.keys]
    streams = [stream.name.text for stream in base.spec.streams]
    found = []
    for given, names, what, code in (
        (spec.config, keys, "field", "unknown-size"),
        (spec.batch, streams, "stream", "unknown-stream"),
        (spec.lengths, lengths, "length", "unknown-stream"),
    ):
        whose = "this spec" if what == "length" else f"'{base.spec.name}'"
        for name, _ in given:
            if name.text not in names:
                hint = did_you_mean(name.text, names, f"it has {', '.join(names)}")
                found.append(Diagnostic(code, f"{whose} has no {what} '{name}'", name.span, hint))
    if found:
        raise SpecError(found)
