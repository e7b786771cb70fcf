"""Moments of a batch from a project's data: lists of lengths, one common length, or sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from math import prod

from symflops.emit.code.batches import columns
from symflops.emit.code.infix import UNARY
from symflops.emit.python.batch_sums import of_lists
from symflops.emit.python.printer import ModulePrinter
from symflops.emit.vendor.targets import Feeds
from symflops.evaluate.latent_inputs import factors_of
from symflops.formula.formula import Formula, Num, Power, Prod, Sym
from symflops.ir.batch import Moment, Statistic
from symflops.ir.program import Program
from symflops.support.errors import SymflopsError

PRINT = ModulePrinter()
SUMS = {
    "1": "batch_size",
    "x": "seqlen_sum",
    "xx": "seqlen_squared_sum",
    "y": "cross_seqlen_sum",
    "xy": "cross_seqlen_product_sum",
}


def statements(program: Program, feeds: Feeds) -> Iterator[str]:
    """Yield the statements that compute the moments and statistics of a batch."""
    if feeds == "sums":
        yield from (f"sum_{one.name} = {of_sums(one, program)}" for one in used(program))
        return
    sum_of = of_one if feeds in ("one", "video") else partial(of_lists, program=program, printer=PRINT, strict=True)
    yield from (f"{one.name} = {sum_of(one)}" for one in program.statistics)
    yield from (f"sum_{one.name} = {sum_of(one)}" for one in used(program))


def of_one(what: Moment | Statistic) -> str:
    """Print a moment or statistic of a batch of one sequence, whose length has the name of its axis."""
    return PRINT.text(what.formula)


def used(program: Program) -> list[Moment]:
    """Return the moments in the closed forms."""
    (case,) = program.cases
    places = {place for form in (case.forward, case.backward) for place, _ in form}
    return [moment for place, moment in enumerate(program.moments) if place in places]


def of_sums(moment: Moment, program: Program) -> str:
    """Print a moment as a multiple of one of the sums that Megatron-Bridge collects.

    Raises:
        SymflopsError: the moment is no multiple of these sums.
    """
    known = dict(tokens_of(program))
    for formula, name in known.items():
        ratio = multiple(moment.formula, formula)
        if ratio is not None:
            return SUMS[name] if ratio == Num(Fraction(1)) else f"{PRINT.inside(ratio, UNARY)}*{SUMS[name]}"
    told = "the project hands over sums of lengths, of their squares and products"
    raise SymflopsError(f"{told}, and none of {PRINT.text(moment.formula)}")


def tokens_of(program: Program) -> Iterator[tuple[Formula, str]]:
    """Yield (formula in the lengths of a sample, key in ``SUMS``) for each sum that the project collects.

    With several axes, the tokens are the product whose square is also a moment.
    """
    streams = [stream for stream in program.streams if stream.variables and not stream.optional]
    names = columns(program)
    first, second = streams[0], streams[1:2]
    formulas = [moment.formula for moment in program.moments]
    tokens: Formula | None = Sym(names[0])
    if len(first.variables) > 1:
        tokens = next((one for one in formulas if factors_of(one) and product(one, one) in map(product, formulas)), None)
    yield Num(Fraction(1)), "1"
    if tokens is not None:
        yield tokens, "x"
        yield product(tokens, tokens), "xx"
    if second and len(second[0].variables) == 1:
        other = Sym(second[0].variables[0])
        yield other, "y"
        if tokens is not None:
            yield product(tokens, other), "xy"


def multiple(formula: Formula, of: Formula) -> Formula | None:
    """Return the quotient of two formulas if it is an integer, else None."""
    one, other = factors_of(formula), factors_of(of)
    numbers = [base for base in one if isinstance(base, Num)]
    number = prod((base.value ** one.pop(base) for base in numbers), start=Fraction(1))
    return Num(number) if one == other and number.denominator == 1 else None


def product(*formulas: Formula) -> Formula:
    """Multiply formulas, with equal factors merged into powers."""
    found = Counter[Formula]()
    for formula in formulas:
        found.update(factors_of(formula))
    parts = tuple(base if exponent == 1 else Power(base, exponent) for base, exponent in sorted(found.items(), key=repr))
    return parts[0] if len(parts) == 1 else Prod(parts) if parts else Num(Fraction(1))
