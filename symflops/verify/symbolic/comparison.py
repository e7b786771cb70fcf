"""A spec minus the closed forms of its class: both in the names of the class's own fields, subtracted figure by figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from operator import mul
from typing import Any

import sympy

from symflops.formula.evaluate import evaluate as evaluate_expression
from symflops.formula.expression import parse_expression
from symflops.formula.formula import Apply, Bracket, Formula, Num, Power, Prod, Sum, Sym, evaluate, symbols
from symflops.ir.index_sets import SAMPLES
from symflops.ir.program import Program
from symflops.support.findings import Source, Span, SymflopsError
from symflops.training.introspect.tree import starred
from symflops.verify.cases import LiveCase
from symflops.verify.running import NAMES
from symflops.verify.symbolic.traced import FIGURES, Traced, compiled, divided, symbol, text_of

FUNCTIONS = {
    "floordiv": lambda a, b: sympy.floor(a / b),
    "ceildiv": lambda a, b: sympy.ceiling(a / b),
    "mod": sympy.Mod,
    "min": sympy.Min,
    "max": sympy.Max,
    "excess": lambda a: sympy.Max(0, a),
}


class OpaqueError(SymflopsError):
    """A formula of a spec has no polynomial: a tally, or a function of a list."""


@dataclass
class Identity:
    """A spec's formulas minus those of its class.

    Attributes:
        case: File and line of the case whose config was traced.
        traced: What the class tells.
        gaps: Figure or module path -> difference that is not zero.
        assumed: Conditions of the spec that hold at the case, and under which the identity does.
        numbers: Letters of the spec that are numbers in the trace, with the reason.
        failed: Why nothing was compared; else empty.
        points: Random sizes at which figures were compared in place of expressions; 0 if expressions were.
        reference: The class.
        held: Letter -> value of the sizes that are neither symbols nor without effect; of a list, None for each item that is.
        lacking: Conditions of the class outside of which the spec answers.
    """

    case: str
    traced: Traced | None = None
    gaps: dict[str, sympy.Expr] = field(default_factory=dict)
    assumed: list[str] = field(default_factory=list)
    numbers: dict[str, str] = field(default_factory=dict)
    failed: str = ""
    points: int = 0
    reference: str = ""
    held: dict[str, Any] = field(default_factory=dict)
    lacking: list[str] = field(default_factory=list)

    @property
    def where(self) -> list[str]:
        """The conditions under which the difference is zero, in the names of fields and lengths."""
        if self.traced is None:
            return []
        own = self.traced.fields
        tied = [f"{name} == {text_of(one)}" for name, one in self.traced.equations.items() if own[name].kind == "derived"]
        return list(dict.fromkeys([*map(text_of, self.traced.domain), *tied, *self.assumed]))

    @property
    def grade(self) -> str:
        """``identity``, ``in part`` if letters are numbers or the trace is not proven, ``differs`` or ``not traced``."""
        if self.failed:
            return "not traced"
        if self.gaps and self.traced and self.traced.proven:
            return "differs"
        return "in part" if self.numbers or self.gaps or (self.traced and not self.traced.proven) else "identity"

    @property
    def why(self) -> str:
        """Why it is no identity, in one line; empty if it is one."""
        gaps = [f"{name} differs" for name in self.gaps]
        numbers = [f"{name} is a number: {why}" for name, why in self.numbers.items()]
        unproven = [self.traced.unproven] if self.traced and self.traced.unproven else []
        return "; ".join([self.failed] if self.failed else [*unproven, *numbers, *gaps[:1]])

    def as_json(self) -> dict[str, Any]:
        """The comparison as JSON data; expressions are Python code."""
        return {
            "case": self.case,
            "reference": self.reference,
            "grade": self.grade,
            "why": self.why,
            "failed": self.failed,
            "domain": [text_of(one) for one in self.traced.domain] if self.traced else [],
            "assumed": self.assumed,
            "symbols": self.traced.symbols() if self.traced else [],
            "numbers": self.numbers,
            "unproven": self.traced.unproven if self.traced else "",
            "gaps": {name: text_of(gap) for name, gap in self.gaps.items()},
            "where": self.where,
            "held": self.held,
            "points": self.points,
            "lacking": self.lacking,
        }

    def __str__(self) -> str:
        if self.failed or self.traced is None:
            return f"{self.case}: not traced: {self.failed}"
        lines = [f"{self.case}: {self.grade}, {len(self.traced.modules)} modules; " + ", ".join(self.traced.symbols())]
        lines += [f"  where {text_of(one)}" for one in self.traced.domain] + [f"  where {one}" for one in self.assumed]
        lines += [f"  by comparison at {self.points} points of random sizes"] if self.points else []
        lines += [f"  {name} is a number: {why}" for name, why in self.numbers.items()]
        lines += [f"  {name}: the spec has {text_of(gap)} more" for name, gap in list(self.gaps.items())[:5]]
        lines += [f"  the class needs {one}" for one in self.lacking]
        return "\n".join(lines if self.traced.proven else [*lines, f"  unproven: {self.traced.unproven}"])


class Comparison:
    """Translates the formulas of a spec into the names of a trace, and subtracts.

    Args:
        found: Where differences are kept.
        traced: The forms of the class.
        program: The spec's program under ``full`` and ``torch``.
        sizes: Values of the spec's sizes at the case.
        case: The case.
        inputs: The arguments with which the class was traced.
    """

    def __init__(
        self,
        found: Identity,
        traced: Traced,
        program: Program,
        sizes: Mapping[str, Any],
        case: LiveCase,
        inputs: Mapping[str, Any],
    ) -> None:
        self.found, self.traced, self.program, self.sizes, self.case, self.inputs = found, traced, program, sizes, case, inputs
        self.tied: dict[sympy.Symbol, sympy.Expr] = {}
        self.known: dict[str, sympy.Expr] = {}
        self.fields = {one.letter: one for one in program.fields}
        self.definitions = {one.letter: one.formula for one in program.definitions}
        self.tie_lengths()
        self.depths = {}
        read = {name for line in program.regimes[0].lines for name in symbols(line.forward)}
        for letter, value in program.fixed:
            for key in self.fields[letter].keys if letter in self.fields and letter not in read else ():
                if key in traced.depths and isinstance(value, int):  # layers that the spec's structure writes out
                    self.depths[symbol(key)] = sympy.Integer(value)
                    found.assumed.append(f"{key} == {value}")

    def held(self) -> dict[str, Any]:
        """The sizes of the spec that are no symbols of the trace; of a list, None for each item that is one."""

        def free(key: str) -> bool:
            known = self.traced.fields.get(key)
            return key in self.traced.depths or (known is not None and known.kind in ("symbolic", "unused", "derived"))

        found: dict[str, Any] = {}
        for one in self.program.fields:
            value = self.sizes[one.letter]
            value = str(value) if isinstance(value, Fraction) else value
            if isinstance(value, (list, tuple)):
                items = [None if any(free(f"{key}.{place}") for key in one.keys) else item for place, item in enumerate(value)]
                found[one.letter] = items
            elif not any(map(free, one.keys)):
                found[one.letter] = value
        return found

    def tie_lengths(self) -> None:
        """Map the letters of lengths, and ``b`` for the number of samples, to expressions, by the layouts of inputs.

        Raises:
            OpaqueError: items of a stream differ in length.
        """
        for items in self.case.batch.values():
            if isinstance(items, list) and any(item != items[0] for item in items):
                raise OpaqueError("the items of the case differ in length")
        origins = {one.origin: name for name, one in self.traced.lengths.items()}
        letters = {"b", *(letter for stream in self.program.streams for letter in stream.variables)}
        streams = {stream.name: stream.items for stream in self.program.streams}
        found: dict[str, sympy.Expr] = {}
        sides: list[tuple[sympy.Expr, str]] = []
        for info in self.program.inputs:
            shape = getattr(self.inputs.get(info.name), "shape", ())
            items = info.over or streams.get(info.stream, SAMPLES)
            for place, (axis, side) in enumerate(zip(info.layout.axes if info.layout else (), shape, strict=False)):
                name = origins.get(f"{info.name}[{place}]")
                known = sympy.Integer(side) if name is None else self.traced.value(name)
                if axis not in letters:  # a side that follows from sizes in the spec
                    sides += [(known, axis)] * (known.is_Symbol and not axis.isidentifier())
                    continue
                if name is not None and self.traced.fields[name].kind == "specialised":
                    self.found.numbers[axis] = f"{info.name}[{place}] is specialised, {self.traced.fields[name].note}"
                before = found.setdefault(items if axis == "b" and items != SAMPLES else axis, known)
                if before != known and known.is_Symbol:  # two inputs of one stream, or a picture that is square in the spec
                    self.tied[known] = before
        for stream in self.program.streams:
            if stream.name not in self.case.batch:
                found |= {axis: sympy.S.Zero for axis in stream.variables if axis not in found}
        self.known = found
        for known, axis in sides:
            parsed = parse_expression(axis, Span(Source("layout", axis), 1, 1, len(axis) + 1))
            self.tied[known] = evaluate_expression(parsed, {name: self.letter(name) for name in NAMES.findall(axis)})
        self.found.assumed += [f"{one} == {text_of(other)}" for one, other in self.tied.items()]

    def batch_at(self, point: Mapping[str, int]) -> dict[str, Any]:
        """The batch of the case with the lengths of a point, as far as inputs show them."""
        numbers = {symbol(name): sympy.Integer(value) for name, value in point.items()}
        whole = {axis: side.xreplace(numbers) for axis, side in self.known.items()}
        values = {axis: int(side) for axis, side in whole.items() if side.is_Integer}
        found = dict(self.case.batch)
        for stream in self.program.streams:
            items = found.get(stream.name)
            if not isinstance(items, list) or not items:
                continue
            one = items[0] if isinstance(items[0], list) else items[:1]
            sides = [values.get(axis, side) for axis, side in zip(stream.variables, one, strict=False)]
            number = values.get("b" if stream.items == SAMPLES else stream.items, len(items))
            found[stream.name] = [sides if isinstance(items[0], list) else sides[0]] * number
        return found

    def tie(self, point: Mapping[str, int]) -> dict[str, int]:
        """A point with equal lengths of the inputs that the spec has as one stream."""
        numbers = {symbol(name): sympy.Integer(value) for name, value in point.items()}
        return {**point, **{one.name: int(length.xreplace(numbers)) for one, length in self.tied.items()}}

    def run(self) -> None:
        """Subtract all figures and modules."""
        regime = self.program.regimes[0]
        figures = {"parameters": self.expression(regime.parameters)}
        work = [(line, self.summed(line.amount.executed) * self.expression(line.unit)) for line in regime.lines if line.seen]
        figures["forward"] = sum((each * self.expression(line.forward) for line, each in work), sympy.S.Zero)
        figures["backward"] = sum(
            (each * self.expression(count) for line, each in work for count in (*line.backward, line.recomputed)), sympy.S.Zero
        )
        for name in FIGURES:
            self.subtract(name, figures[name], getattr(self.traced, name))
        modules: Counter[str] = Counter()
        for line, each in work:
            for path in {starred(one) for one in line.within}:
                modules[path] += each * self.expression(line.forward)
        traced = {path.partition(".")[2]: form for path, form in self.traced.modules.items() if path != "Global"}
        for path in sorted(modules.keys() & traced.keys()):
            self.subtract(path, modules[path], traced[path])

    def subtract(self, name: str, spec: sympy.Expr, real: sympy.Expr) -> None:
        """Keep the difference of two expressions unless it is zero on the domain, with the depth of the spec's structure."""
        gap = sympy.expand(divided(sympy.expand(spec - real.xreplace({**self.depths, **self.tied})), self.traced.domain))
        if gap != 0 and not self.vanishes(gap):
            self.found.gaps[name] = gap

    def vanishes(self, gap: sympy.Expr) -> bool:
        """Whether a difference of floors and remainders is zero at points of the domain around the example."""
        ties = any(isinstance(one, sympy.Eq) and not one.has(sympy.Mod) for one in self.traced.domain)
        if not ties and not gap.has(sympy.floor, sympy.ceiling, sympy.Mod, sympy.Max, sympy.Min):
            return False
        names = list(self.traced.fields)
        evaluate_gap = compiled([symbol(name) for name in names], gap)
        return all(evaluate_gap(*(point[name] for name in names)) == 0 for point in self.traced.points())

    def summed(self, pairs: tuple[tuple[int, Formula], ...]) -> sympy.Expr:
        """Runs of a contraction in a batch of equal items."""
        found = sympy.S.Zero
        for position, coefficient in pairs:
            moment = self.program.moments[position]
            samples = sympy.S.One if moment.items == "once" else self.samples(moment.items)
            found += samples * self.expression(moment.formula) * self.expression(coefficient)
        return found

    def samples(self, items: str) -> sympy.Expr:
        """The number of items of an index set, as an expression.

        Raises:
            OpaqueError: no axis of an input shows it.
        """
        axis = "b" if items == SAMPLES else items
        if axis in self.known:
            return self.known[axis]
        raise OpaqueError(f"no input shows the number of {items}")

    def expression(self, formula: Formula) -> sympy.Expr:
        """A formula in the names of the trace.

        Raises:
            OpaqueError: it has no polynomial.
        """
        match formula:
            case Num(value):
                return sympy.Rational(value.numerator, value.denominator)
            case Sym(name):
                return self.letter(name)
            case Sum(terms):
                return sum(map(self.expression, terms), sympy.S.Zero)
            case Prod(factors):
                return reduce(mul, map(self.expression, factors), sympy.S.One)
            case Power(base, exponent):
                return self.expression(base) ** exponent
            case Apply(function, arguments) if function in FUNCTIONS:
                return FUNCTIONS[function](*map(self.expression, arguments))
            case Bracket(kind, arguments):
                return self.bracket(formula, kind, arguments)
        raise OpaqueError(f"the spec has a formula that is no polynomial: {type(formula).__name__}")

    def bracket(self, formula: Formula, kind: str, arguments: tuple[Formula, ...]) -> sympy.Expr:
        """1 or 0: a condition of the spec as it is at the case, which is kept as an assumption."""
        value = evaluate(formula, self.sizes)
        if kind in ("at_least", "equal"):
            left, right = (self.expression(one) for one in (*arguments, Num(Fraction(0)))[:2])
            condition = sympy.Ge(left, right) if kind == "at_least" else sympy.Eq(left, right)
            told = text_of(condition if value else sympy.Not(condition))
            if condition not in (sympy.true, sympy.false) and told not in self.found.assumed:
                self.found.assumed.append(told)
        return sympy.Integer(int(value))

    def letter(self, name: str) -> sympy.Expr:
        """The expression of a size, a derived size or a length."""
        if name not in self.known:
            self.known[name] = self.sized(name)
        return self.known[name]

    def sized(self, name: str) -> sympy.Expr:
        if name in self.definitions:
            return self.expression(self.definitions[name])
        value, info = self.sizes.get(name), self.fields.get(name)
        for key in info.keys if info else ():
            known = self.traced.fields.get(key)
            value = known.value if known is not None and isinstance(value, int) else value  # of the forms
            if known is not None and known.kind in ("symbolic", "unused", "derived"):
                return self.traced.value(key)
            if known is not None and isinstance(value, int) and value > 1:
                self.found.numbers[name] = f"{key} is {known.kind}" + (f", {known.note}" if known.note else "")
        for default in (info.default, info.null) if info else ():
            if isinstance(default, (Sym, Sum, Prod, Power, Apply)) and evaluate(default, self.sizes) == value:
                return self.expression(default)
        if not isinstance(value, int):
            raise OpaqueError(f"the spec's '{name}' is no number")
        return sympy.Integer(value)
