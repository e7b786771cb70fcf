"""Finds a program's inputs that a trainer of diffusion models supplies: latents, and inputs that a config enables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from symflops.evaluate.latents import PIPELINE_NAMES
from symflops.evaluate.layouts import implied_streams
from symflops.formula.formula import ONE, Apply, Formula, Power, Prod, Sym, symbols
from symflops.ir.batch import InputInfo
from symflops.ir.program import Program


@dataclass(frozen=True)
class Switched:
    """An optional input of a diffusion model that a config field switches on.

    Attributes:
        stream: the stream whose lengths the input has.
        field: the config field.
        when: a formula of sizes that is not 0 if the input is on.
        names: the names under which a trainer's batch may hold the input.
        layout: the axes of the tensor, separated by spaces.
        axes: the batch variables of the stream.
    """

    stream: str
    field: str
    when: Formula
    names: tuple[str, ...]
    layout: str
    axes: tuple[str, ...]


@dataclass(frozen=True)
class LatentInputs:
    """The latents that a diffusion model takes, as a trainer must know them to read their lengths.

    Attributes:
        stream: the stream of the latents.
        axes: the batch variables of the stream.
        layout: the axes of the tensor, separated by spaces.
        width: the number of channels as a formula of sizes; None if the program has none.
        others: further inputs that a config field switches on.
        units: the sides of one patch as formulas; empty if the work depends on more than the number of patches.
    """

    stream: str
    axes: tuple[str, ...]
    layout: str
    width: Formula | None
    others: tuple[Switched, ...]
    units: tuple[Formula, ...]


def latent_inputs(program: Program) -> LatentInputs:
    """Describe the latent input of a program: the stream ``latent``, else the first stream."""
    given = [stream for stream in program.streams if stream.given]
    stream = next((stream for stream in given if stream.name == "latent"), given[0])
    row = next((one for one in program.inputs if one.stream == stream.name and one.layout), None)
    layout = layout_of(row) if row else " ".join(("b", *stream.variables, "w"))
    others = tuple(switched(program, stream.items)) if len(stream.variables) > 0 else ()
    units = units_of(program, stream.variables) if len(stream.variables) > 1 else ()
    return LatentInputs(stream.name, stream.variables, layout, row.width if row else None, others, units)


def layout_of(info: InputInfo) -> str:
    """The layout of an input as space-separated axes; empty without a layout."""
    return " ".join(info.layout.axes) if info.layout else ""


def switched(program: Program, items: str) -> Iterator[Switched]:
    """Yield the optional inputs with lengths in the index set ``items`` that a config field switches on."""
    fields = {one.letter: one.keys[0] for one in program.fields}
    implied = {name for name, _ in implied_streams(program)}
    for stream in program.streams:
        info = next((one for one in program.inputs if one.stream == stream.name and one.layout), None)
        if stream.name not in implied or stream.items != items or not stream.variables or info is None:
            continue
        field = next((fields[letter] for letter in symbols(info.when) if letter in fields), "") if info.when else ""
        if field and info.when is not None:
            names = tuple(name for name in (PIPELINE_NAMES.get(info.name), info.name) if name)
            yield Switched(stream.name, field, info.when, names, layout_of(info), stream.variables)


def units_of(program: Program, axes: tuple[str, ...]) -> tuple[Formula, ...]:
    """The sides of one patch, one per axis; empty if a moment depends on more than the number of patches."""
    found: dict[str, Formula] = {}
    for formula in (*(one.formula for one in program.moments), *(one.formula for one in program.statistics)):
        powers = dict.fromkeys(axes, 0)
        for base, exponent in factors_of(formula).items():
            if isinstance(base, Apply) and base.function == "floordiv" and isinstance(base.arguments[0], Sym):
                axis, unit = base.arguments[0].name, base.arguments[1]
            elif isinstance(base, Sym):
                axis, unit = base.name, ONE
            else:
                axis, unit = "", base
            if axis in powers and found.setdefault(axis, unit) == unit:
                powers[axis] += exponent
            elif {axis, *symbols(unit)} & powers.keys():
                return ()
        if len({*powers.values()}) > 1:
            return ()
    known = found.keys() == {*axes} and any(unit != ONE for unit in found.values())  # else coefficients may hold the patch size
    return tuple(found[axis] for axis in axes) if known else ()


def factors_of(formula: Formula) -> dict[Formula, int]:
    """Map the factors of a product to their exponents."""
    found: dict[Formula, int] = {}
    for factor in formula.factors if isinstance(formula, Prod) else (formula,):
        base, exponent = (factor.base, factor.exponent) if isinstance(factor, Power) else (factor, 1)
        found[base] = found.get(base, 0) + exponent
    return {base: exponent for base, exponent in found.items() if exponent and base != ONE}
