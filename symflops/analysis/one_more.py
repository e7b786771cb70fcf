"""What one more layer or expert costs: the exact difference of the closed forms, at the default sizes and as a formula."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from symflops.algebra.sparse import Poly
from symflops.analysis.parts import EXPERTS, part_of
from symflops.analysis.step import Step
from symflops.diagnostics.errors import SymflopsError
from symflops.model.formula import ZERO, Apply, Bracket, Formula, Sym, TallyOf, evaluate, symbols
from symflops.model.polynomials import Writer, expanded
from symflops.model.program import Field, Program
from symflops.model.terms import plus, times

BRANCHES = ("excess", "min", "max")
"""Functions that are one of their arguments, or 0."""


@dataclass(frozen=True, slots=True)
class OneMore:
    """The size, its value, and what one more of it costs; ``work`` is the forward work, zero if it has no formula."""

    field: Field
    now: int
    parameters: int
    forward: int
    backward: int
    work: Formula = ZERO


def one_more(here: Step) -> Iterator[OneMore]:
    """What one more of each size that counts layers or experts costs in a step."""
    program, sizes, case = here.program, here.sizes, here.case
    for field in counting(program):
        if type(sizes[field.letter]) is not int:
            continue
        try:
            there = here.at(moved(program, sizes, field.letter))
            forward, backward = (
                int(there.value(case, terms) - here.value(case, terms)) for terms in (case.forward, case.backward)
            )
            parameters = int(evaluate(program.parameters, there.sizes) - evaluate(program.parameters, sizes))
            if forward or backward or parameters:
                change = _Change(program, field.letter, sizes, there.sizes)
                work = change.work(case.convention, case.forward)
                yield OneMore(field, sizes[field.letter], parameters, forward, backward, work)
        except (SymflopsError, ArithmeticError, LookupError):
            continue  # another number needs other values beside it, such as an entry of a list


def counting(program: Program) -> Iterable[Field]:
    """The fields that count layers, routed experts, and the experts of a token."""
    lines = [line for line in program.regimes[0].lines if part_of(line) == EXPERTS]
    owners = {line.module for line in lines}
    found = {field.letter for field in program.fields if field.kind == "count"}
    found |= {
        tensor.shape[0].name
        for tensor in program.tensors
        if tensor.name.rpartition(".")[0] in owners and tensor.shape and isinstance(tensor.shape[0], Sym)
    }
    found |= {name for line in lines for _, part in line.amount.useful for name in symbols(part)}
    fixed = dict(program.fixed)
    return sorted(
        (field for field in program.fields if field.letter in found and field.letter not in fixed),
        key=lambda field: field.kind != "count",
    )


def moved(program: Program, sizes: Mapping[str, Any], letter: str) -> dict[str, Any]:
    """The sizes with one more of one, and what is derived from it."""
    found = {**sizes, letter: sizes[letter] + 1}
    for one in program.definitions:
        found[one.letter] = evaluate(one.formula, found)
    return found


class _Change:
    """Formulas with one more of a size; conditions are as they are at the default sizes."""

    def __init__(self, program: Program, letter: str, sizes: Mapping[str, Any], more: Mapping[str, Any]) -> None:
        self.program, self.letter, self.sizes, self.more = program, letter, sizes, more
        self.inner = {one.letter: one.formula for one in program.definitions if sizes[one.letter] != more[one.letter]}

    def work(self, convention: str, terms: Iterable[tuple[int, Formula]]) -> Formula:
        """The difference of a closed form, times its moments; zero if these have the size in them."""
        parts = []
        for place, formula in terms:
            if self.letter in self.program.moments[place].sizes:
                return ZERO
            change = expanded(formula, self.rule(1)) - expanded(formula, self.rule(0))
            writer = Writer(list(symbols(formula)))
            unit = self.program.moments[place].constant
            parts.append(times(writer.shortest(change), *(() if unit else (Sym(self.program.sum_key(place, convention)),))))
        return plus(parts)

    def rule(self, step: int) -> Any:
        """What parts of a formula are with ``step`` more."""

        def rule(formula: Formula) -> Poly | None:
            match formula:
                case Sym(name) if name == self.letter:
                    return Poly.atom(formula) + Poly.constant(step)
                case Sym(name) if name in self.inner:
                    return expanded(self.inner[name], rule)
                case Bracket():
                    return Poly.constant(evaluate(formula, self.more if step else self.sizes))
                case Apply(function, arguments) if function in BRANCHES:
                    value = evaluate(formula, self.sizes)
                    values = [evaluate(argument, self.sizes) for argument in arguments]
                    kept = expanded(arguments[values.index(value)], rule) if value in values else Poly({})
                    lost = evaluate(formula, self.more) - self.branch(formula, arguments, values, value) if step else 0
                    return kept + Poly.constant(lost)
                case Sym():
                    return None
            names = set(symbols(formula))
            if not isinstance(formula, (Apply, TallyOf)) or not names & {self.letter, *self.inner}:
                return None
            change = Fraction(evaluate(formula, self.more)) - Fraction(evaluate(formula, self.sizes)) if step else 0
            return Poly.atom(formula) + Poly.constant(change)

        return rule

    def branch(self, formula: Apply, arguments: tuple[Formula, ...], values: list[Any], value: Any) -> Any:
        """The value with one more of the argument that the function is at the default sizes."""
        return evaluate(arguments[values.index(value)], self.more) if value in values else 0
