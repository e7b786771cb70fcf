"""Closed forms of a class from several traces, and the classification of its integer fields."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import sympy

from symflops.training.introspect.tree import starred
from symflops.verify.symbolic.explore import said
from symflops.verify.symbolic.passes import Counts
from symflops.verify.symbolic.target import Place, dotted
from symflops.verify.symbolic.traced import FIGURES, replaced, symbol
from symflops.verify.symbolic.tracer import Example, Trace, Tracing, blamed

ATTEMPTS = 14
KINDS = "it chooses the kinds of layers"
DEEPER = 4
"""Steps of each number of layers beyond the example at which a field is seen to change no figure."""
HUGE = 1000
"""Factor at which a field, which may be a bound of sizes, is seen to change no figure."""


@dataclass
class Forms:
    """The closed forms that traces of a class tell, before they are proven.

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
        layers: Conditions on numbers of layers under which the forms are linear in them.
        masks: Conditions on positions of a query ``q`` and a key ``k`` under which they attend.
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
    layers: list[sympy.Basic] = field(default_factory=list)
    masks: list[sympy.Basic] = field(default_factory=list)

    @property
    def symbols(self) -> list[sympy.Symbol]:
        """All symbols of the figures, sorted by name."""
        found = set().union(*(getattr(self, name).free_symbols for name in FIGURES))
        return sorted(found, key=str)

    def put(self, values: Mapping[sympy.Symbol, sympy.Expr]) -> None:
        """Put expressions in place of symbols, which are derived from now on."""
        for name in FIGURES:
            setattr(self, name, getattr(self, name).xreplace(values))
        self.modules = {path: one.xreplace(values) for path, one in self.modules.items()}
        self.shapes = {path: tuple(side.xreplace(values) for side in shape) for path, shape in self.shapes.items()}
        self.guards = [(guard.xreplace(values), line) for guard, line in self.guards]
        self.derived = {one: expression.xreplace(values) for one, expression in self.derived.items()} | dict(values)


def forms_of(example: Example, seconds: float, careful: bool = False) -> Forms:
    """Trace a class: with every field a symbol, without those that fail, and once more for each depth.

    Args:
        example: What is traced.
        seconds: CPU seconds.
        careful: Whether all fields in conditions of further layers are numbers, as they may choose kinds of layers.

    Raises:
        Exception: whatever the class raises while no field is a symbol.
    """
    until = time.process_time() + seconds
    fields, dropped = list(example.fields), dict[Place, str]()
    trace = attempt(example, fields, dropped, until)
    fixed = {place for place in fields if is_number(trace.derived, symbol(dotted(place)))}
    fixed |= dropped.keys()
    if any(
        example.fields[place] != example.own.get(place) for place in fixed
    ):  # numbers of layers, say, that were made distinct
        example.fields |= {place: example.own[place] for place in fixed}
        trace = attempt(example, fields, dropped, until)
    for place in list(dropped):  # another chance, one at a time
        if time.process_time() > until - seconds / 2:
            break
        try:
            trace = Tracing(example, [*fields, place]).run()
        except Exception:
            continue
        fields.append(place)
        del dropped[place]
    deeper, failed = deeper_traces(example, fields, until - seconds / 4)
    if kinds := fields_of_kinds(example, trace, deeper, careful):
        for place in kinds:
            fields.remove(place)
            dropped[place] = KINDS
        example.fields |= {place: example.own[place] for place in kinds}
        trace = Tracing(example, fields).run()
        deeper, failed = deeper_traces(example, fields, until - seconds / 8)
    found = layered(example, trace, deeper, fields)
    found.dropped = {dotted(place): why for place, why in (dropped | failed).items()}
    for name, side in example.lengths.items():
        if trace.derived.get(symbol(name)) == side and time.process_time() < until - seconds / 2:
            with suppress(Exception):  # it stays a number
                lengthen(found, fields, name, until)
                break
    return found


def released(forms: Forms, until: float) -> Forms:
    """Forms with symbols for the fields that are numbers and change no figure of the real class, such as a scale.

    At small, near, larger and huge values each of them has the same figures, with more layers than those of the example, as a
    period of layers shows only then; the proof moves it further. The same forms if there is no such field.
    """
    few, found = (
        forms.example,
        replace(forms, derived=dict(forms.derived), dropped=dict(forms.dropped), places=dict(forms.places)),
    )
    example = replace(few, depths={place: number + DEEPER * few.steps.get(place, 0) for place, number in few.depths.items()})

    def figures(changes: Mapping[Place, int]) -> Any:
        return example.real({**example.fields, **changes}, example.lengths).figures

    for place, value in example.fields.items():
        name = dotted(place)
        fixed = name in forms.dropped or is_number(forms.derived, symbol(name))
        if not fixed or forms.dropped.get(name) == KINDS or time.process_time() > until:
            continue
        others = sorted({2, 3, value // 2, value + 1, 2 * value, HUGE * value} - {0, 1, value})
        with suppress(Exception):  # the class fails with another value
            base = figures({})
            if all(figures({place: other}) == base for other in others):
                found.derived.pop(symbol(name), None)
                found.dropped.pop(name, None)
                found.places[name] = place
    return found if found.places != forms.places or found.derived != forms.derived else forms


def layered(example: Example, trace: Trace, deeper: Mapping[Place, Trace], fields: Sequence[Place]) -> Forms:
    """Closed forms of a trace, with the numbers of layers as symbols of which there are deeper traces."""
    counts = trace.counts
    found = Forms(
        example, counts.parameters, counts.forward, counts.backward, by_kind(counts), trace.derived, list(trace.guards),
        trace.places, {}, counts.missed, first_of_kind(counts.shapes), {}, trace.lines, masks=trace.masks,
    )  # fmt: skip
    for place, other in deeper.items():
        deepen(found, counts, other.counts, place)
        add_conditions(found, other)
    for first, second in itertools.combinations(deeper, 2):
        if not separate(example, first, second):
            deepen_together(found, fields, {place: deeper[place].counts for place in (first, second)}, counts)
    return found


def lengthen(found: Forms, fields: Sequence[Place], name: str, until: float) -> None:
    """Make a length a symbol that the class fixes, such as a number of steps: the forms are quadratic in it.

    Raises:
        Exception: another length does not run, or the forms are not quadratic in it.
    """
    example, side = found.example, found.example.lengths[name]

    def at(step: int) -> Forms:
        other = replace(example, lengths={**example.lengths, name: side + step})
        return layered(other, Tracing(other, fields).run(), deeper_traces(other, fields, until)[0], fields)

    one, two = at(1), at(2)
    length = symbol(name)
    more = length - side

    def through(first: Any, second: Any, third: Any) -> Any:
        return first + sympy.expand(more * (second - first) + more * (more - 1) / 2 * (third - 2 * second + first))

    figures = {figure: through(*(getattr(forms, figure) for forms in (found, one, two))) for figure in FIGURES}
    real = replace(example, lengths={**example.lengths, name: side + 5}).real(
        example.fields, {**example.lengths, name: side + 5}
    )
    values = {symbol(dotted(place)): number for place, number in (example.fields | example.depths).items()}
    values |= {symbol(other): number for other, number in example.lengths.items()} | {length: side + 5}
    if any(figures[figure].xreplace(values) != getattr(real, figure) for figure in FIGURES):
        raise ValueError(f"the forms are not quadratic in {name}")
    for figure, form in figures.items():
        setattr(found, figure, form)
    kinds = (found.modules, one.modules, two.modules)
    found.modules = {path: through(*(kind.get(path, sympy.S.Zero) for kind in kinds)) for path in set().union(*kinds)}
    shapes = (found.shapes, one.shapes, two.shapes)
    found.shapes = {
        path: tuple(through(*sides) for sides in zip(*(each[path] for each in shapes), strict=True)) for path in found.shapes
    }
    for other, expression in list(found.derived.items()):
        if expression.is_number:  # what the class ties to this length
            found.derived[other] = through(*(forms.derived[other] for forms in (found, one, two)))
    del found.derived[length]


def deeper_traces(example: Example, fields: Sequence[Place], until: float) -> tuple[dict[Place, Trace], dict[Place, str]]:
    """A trace with one step more of each number of layers, and why there is none of others."""
    found, failed = dict[Place, Trace](), dict[Place, str]()
    for place, number in example.depths.items():
        if place not in example.steps:
            failed[place] = "the figures are not linear in it"
        elif time.process_time() > until:
            failed[place] = "no time was left to trace another number of layers"
        else:
            more = replace(example, depths={**example.depths, place: number + example.steps[place]})
            try:
                found[place] = Tracing(more, fields).run()
            except Exception as error:
                failed[place] = said(error)
    return found, failed


def separate(example: Example, one: Place, other: Place) -> bool:
    """Whether the cost of a layer counted by ``one`` is the same for another number of layers counted by ``other``."""

    def forward(*deeper: Place) -> int:
        depths = {**example.depths, **{place: example.depths[place] + example.steps[place] for place in deeper}}
        found = replace(example, depths=depths).real(example.fields, example.lengths)
        return int(found.forward + found.backward + found.parameters)

    try:
        return forward(one, other) - forward(one) == forward(other) - forward()
    except Exception:
        return True  # which the proof finds out


def deepen_together(found: Forms, fields: Sequence[Place], single: Mapping[Place, Counts], base: Counts) -> None:
    """Add what two numbers of layers cost together beyond what each costs alone."""
    example, more, depths = found.example, sympy.S.One, dict(found.example.depths)
    for place in single:
        more *= (symbol(dotted(place)) - example.depths[place]) / sympy.Integer(example.steps[place])
        depths[place] += example.steps[place]
    both = Tracing(replace(example, depths=depths), fields).run().counts
    one, other = single.values()
    for figure in FIGURES:
        each = sum(
            sign * getattr(counts, figure) for sign, counts in zip((1, -1, -1, 1), (both, one, other, base), strict=True)
        )
        setattr(found, figure, getattr(found, figure) + more * sympy.expand(each))
    kinds = [by_kind(counts) for counts in (both, one, other, base)]
    for path in set().union(*kinds):
        values = [kind.get(path, sympy.S.Zero) for kind in kinds]
        each = sympy.expand(values[0] - values[1] - values[2] + values[3])
        found.modules[path] = found.modules.get(path, sympy.S.Zero) + more * each


def fields_of_kinds(example: Example, base: Trace, deeper: Mapping[Place, Trace], careful: bool = False) -> list[Place]:
    """Fields that are compared with the index of each layer or the number of layers: they choose kinds of layers.

    ``careful`` takes all fields in conditions of further layers, as an index may be shifted: ``(index - first) % period == 0``.
    """
    known = {guard for guard, _ in base.guards}
    names = set()
    for place, trace in deeper.items():
        number = example.depths[place]
        names |= {one.name for one in trace.derived if is_number(trace.derived, one) and not is_number(base.derived, one)}
        indices = {sympy.Integer(index) for index in range(number, number + example.steps[place] + 1)}
        for guard, _ in trace.guards:
            if guard not in known and (careful or (len(guard.free_symbols) == 1 and numbers_in(guard) & indices)):
                names |= {one.name for one in guard.free_symbols}
    return [place for name, place in base.places.items() if name in names]


def is_number(derived: Mapping[sympy.Symbol, sympy.Expr], one: sympy.Symbol) -> bool:
    """Whether a symbol is tied to a number."""
    return one in derived and bool(derived[one].is_number)


def numbers_in(guard: Any) -> set[Any]:
    """The integers that a relation compares its symbol with, or divides; not those that are added to both sides."""
    if not isinstance(guard, sympy.core.relational.Relational):
        return set(guard.atoms(sympy.Integer))
    constant, rest = (guard.lhs - guard.rhs).as_coeff_Add()
    return {abs(constant)} if rest.is_Symbol or (-rest).is_Symbol else set(rest.atoms(sympy.Integer))


def attempt(example: Example, fields: list[Place], dropped: dict[Place, str], until: float) -> Trace:
    """Trace with as many fields as symbols as the class runs with; those that fail are moved to ``dropped``."""
    for _ in range(ATTEMPTS):
        tracing = Tracing(example, fields)
        try:
            return tracing.run()
        except Exception as error:
            found, line = blamed(error, tracing)
            if not fields or time.process_time() > until:
                raise
            for place in found or set(fields):
                fields.remove(place)
                dropped[place] = f"{said(error)} ({line})" if line else said(error)
    return Tracing(example, []).run()


def deepen(found: Forms, base: Counts, deeper: Counts, place: Place) -> None:
    """Make a number of layers a symbol: the figures grow with it by the difference of two traces."""
    example, name = found.example, dotted(place)
    number, step = example.depths[place], example.steps[place]
    more = (symbol(name) - number) / sympy.Integer(step)
    if example.least[place] > 1:
        found.layers.append(symbol(name) >= example.least[place])
    if place in example.most:
        found.layers.append(symbol(name) <= example.most[place])
    if step > 1:
        found.layers.append(sympy.Eq(sympy.Mod(symbol(name), step), number % step))
    for figure in FIGURES:
        each = getattr(deeper, figure) - getattr(base, figure)
        setattr(found, figure, getattr(found, figure) + more * sympy.expand(each))
    before, after = by_kind(base), by_kind(deeper)
    for path in before.keys() | after.keys():
        each = sympy.expand(after.get(path, sympy.S.Zero) - before.get(path, sympy.S.Zero))
        found.modules[path] = found.modules.get(path, sympy.S.Zero) + more * each
    found.places[name] = place
    found.depths[name] = number


def add_conditions(found: Forms, deeper: Trace) -> None:
    """Add what a trace with more layers asks for and ties, as a kind of layer may be among its further layers alone."""
    known, lengths = {guard for guard, _ in found.guards}, found.example.lengths
    new = {one: expression for one, expression in deeper.derived.items() if one not in found.derived}
    found.put(new)
    for guard, line in deeper.guards:
        if guard not in known:
            found.guards.append((guard, line))
            if isinstance(guard, sympy.Eq) and guard.lhs.is_Symbol and guard.rhs.is_Symbol:
                field, other = (guard.rhs, guard.lhs) if guard.lhs.name in lengths else guard.args
                found.put({other: field})
    found.lines = deeper.lines | found.lines


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
        value = replaced(expression, {of: sympy.Integer(found[of.name]) for of in expression.free_symbols if of.name in found})
        if not value.is_Integer or value <= 0:
            return None
        found[one.name] = int(value)
    return found
