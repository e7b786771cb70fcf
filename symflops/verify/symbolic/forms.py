"""Closed forms of a class from several traces, and the classification of its integer fields."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import sympy

from symflops.training.introspect.tree import starred
from symflops.verify.symbolic.explore import said
from symflops.verify.symbolic.expressions import symbol
from symflops.verify.symbolic.passes import Counts
from symflops.verify.symbolic.target import Place, dotted
from symflops.verify.symbolic.traced import FIGURES
from symflops.verify.symbolic.tracer import Example, Trace, Tracing, blamed

ATTEMPTS = 14


@dataclass
class Forms:
    """What traces of a class say, before it is proven.

    Attributes:
        example: What was traced.
        parameters: Number of parameter elements, in the names of fields.
        forward: FLOPs of the forward pass, in the names of fields and lengths.
        backward: FLOPs of the backward pass.
        modules: Forward FLOPs by module path, with ``*`` for indices.
        derived: Fields that the class ties to others, with their expressions; those that it fixes, with their number.
        guards: (condition, source line) under which the class ran as it did.
        places: Field name -> place in the config, of the fields and depths that are symbols.
        dropped: Field name -> why it is a number in the forms.
        missed: (operator, times) that may do counted work and have no rule.
        shapes: Output shape by module path.
        depths: Number of layers of the example, by the name of its field, of those that are symbols.
        lines: Field name -> source line that ties it to others, or fixes it.
    """

    example: Example
    parameters: sympy.Expr
    forward: sympy.Expr
    backward: sympy.Expr
    modules: dict[str, sympy.Expr]
    derived: dict[sympy.Symbol, sympy.Expr]
    guards: list[tuple[sympy.Basic, str]]
    places: dict[str, Place]
    dropped: dict[str, str] = field(default_factory=dict)
    missed: dict[str, int] = field(default_factory=dict)
    shapes: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    depths: dict[str, int] = field(default_factory=dict)
    lines: dict[str, str] = field(default_factory=dict)

    @property
    def symbols(self) -> list[sympy.Symbol]:
        """All symbols of the figures, sorted by name."""
        found = set().union(*(getattr(self, name).free_symbols for name in FIGURES))
        return sorted(found, key=str)


def forms_of(example: Example, seconds: float) -> Forms:
    """Trace a class: with every field a symbol, without those that fail, and once more for each depth.

    Raises:
        Exception: whatever the class raises while no field is a symbol.
    """
    until = time.monotonic() + seconds
    fields, dropped = list(example.fields), dict[Place, str]()
    trace = attempt(example, fields, dropped, until)
    fixed = {place for place in fields if getattr(trace.derived.get(symbol(dotted(place))), "is_number", False)}
    if any(
        example.fields[place] != example.own.get(place) for place in fixed
    ):  # numbers of layers, say, that were made distinct
        example.fields |= {place: example.own[place] for place in fixed}
        trace = attempt(example, fields, dropped, until)
    for place in list(dropped):  # another chance, one at a time
        if time.monotonic() > until - seconds / 2:
            break
        try:
            trace = Tracing(example, [*fields, place]).run()
        except Exception:
            continue
        fields.append(place)
        del dropped[place]
    counts = trace.counts
    found = Forms(
        example, counts.parameters, counts.forward, counts.backward, by_kind(counts), trace.derived, trace.guards, trace.places,
        {dotted(place): why for place, why in dropped.items()}, counts.missed, first_of_kind(counts.shapes), {}, trace.lines,
    )  # fmt: skip
    for place in list(example.depths):
        if time.monotonic() > until - seconds / 4:
            found.dropped[dotted(place)] = "no time was left to trace another number of layers"
            continue
        deepen(found, trace, fields, place)
    return found


def attempt(example: Example, fields: list[Place], dropped: dict[Place, str], until: float) -> Trace:
    """Trace with as many fields as symbols as the class runs with; those that fail are moved to ``dropped``."""
    for _ in range(ATTEMPTS):
        tracing = Tracing(example, fields)
        try:
            return tracing.run()
        except Exception as error:
            found, line = blamed(error, tracing)
            if not fields or time.monotonic() > until:
                raise
            for place in found or set(fields):
                fields.remove(place)
                dropped[place] = f"{said(error)} ({line})" if line else said(error)
    return Tracing(example, []).run()


def deepen(found: Forms, base: Trace, fields: Sequence[Place], place: Place) -> None:
    """Make a number of layers a symbol: the figures grow with it by the difference of two traces."""
    example, name = found.example, dotted(place)
    number = example.depths[place]
    deeper = replace(example, depths={**example.depths, place: number + 1})
    try:
        trace = Tracing(deeper, fields).run()
    except Exception as error:
        found.dropped[name] = said(error)
        return
    more = symbol(name) - number
    for figure in FIGURES:
        step = getattr(trace.counts, figure) - getattr(base.counts, figure)
        setattr(found, figure, getattr(found, figure) + more * sympy.expand(step))
    before, after = by_kind(base.counts), by_kind(trace.counts)
    for path in before.keys() | after.keys():
        step = sympy.expand(after.get(path, sympy.S.Zero) - before.get(path, sympy.S.Zero))
        found.modules[path] = found.modules.get(path, sympy.S.Zero) + more * step
    found.places[name] = place
    found.depths[name] = number


def by_kind(counts: Counts) -> dict[str, Any]:
    """Forward FLOPs by module path with ``*`` for indices."""
    found: Counter[str] = Counter()
    for path, flops in counts.modules.items():
        found[starred(path)] += flops
    return dict(found)


def first_of_kind(shapes: Mapping[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    """Shapes by module path with ``*`` for indices: that of the first module of its kind."""
    found: dict[str, tuple[Any, ...]] = {}
    for path, shape in shapes.items():
        found.setdefault(starred(path), shape)
    return found


def numbers_at(values: Mapping[str, int], derived: Mapping[sympy.Symbol, sympy.Expr]) -> dict[str, int] | None:
    """Complete ``values`` by the fields that equations give; None if one would be no positive integer."""
    found = dict(values)
    for one, expression in derived.items():
        value = expression.xreplace({of: sympy.Integer(found[of.name]) for of in expression.free_symbols if of.name in found})
        if not value.is_Integer or value <= 0:
            return None
        found[one.name] = int(value)
    return found
