"""Parameters and forward work by module, as rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction

from symflops.emit.grouping import grouped
from symflops.emit.page.types import ModuleRow
from symflops.evaluate.number_ranges import blocks, merged_names, shared
from symflops.formula.formula import Formula, Num, Prod, number, symbols
from symflops.formula.terms import plus, times
from symflops.ir.program import Line, Program, Tensor, in_moments

MANY = 24
"""Number of rows above which modules of equal work share one row, whatever their names are."""


def located(path: str) -> tuple[str, str]:
    """Split a path into (repeated or numbered block, name within it).

    >>> located("layers.*.mlp.up"), located("down.{0-2}.resnets.1.conv")
    (('layers.*', 'mlp.up'), ('down.{0-2}', 'resnets.1.conv'))
    """
    return blocks([path])[0]


def term(lines: Iterable[Line], program: Program, pairs: str, write: Callable[[Formula], Formula]) -> Formula:
    """Return the forward work of the contractions ``lines`` in total, as a formula in moments.

    ``pairs`` says which pairs of attention count, ``useful`` or ``executed``, and ``write`` rewrites coefficients.
    """
    found = grouped((in_moments(line.amount.under(pairs), program), times(line.forward, line.unit)) for line in lines)
    return plus([times(write(plus(some)), amount) for amount, some in found.items()])


def work_of(counts: Mapping[tuple[Formula, Formula], Sequence[Formula]]) -> Formula:
    """Return the sum of count times unit times amount; ``counts`` has the counts by (unit, amount)."""
    return plus([times(plus(some), unit, amount) for (unit, amount), some in counts.items()])


def owner(tensor: Tensor) -> str:
    """Return the name of the module that has a tensor as its parameter."""
    return tensor.name.rpartition(".")[0]


def elements(tensor: Tensor) -> Formula:
    """Return the number of elements of one copy of a tensor, as a product.

    Its factors are ordered as in the number of all copies' elements.
    """
    rank = {name: place for place, name in enumerate(dict.fromkeys(symbols(tensor.count)))}
    factors = [factor for size in tensor.shape for factor in (size.factors if isinstance(size, Prod) else (size,))]
    return times(tensor.exists, *sorted(factors, key=lambda part: min([rank.get(name, 0) for name in symbols(part)] or [0])))


def module_rows(program: Program, write: Callable[[Formula], Formula]) -> Iterable[ModuleRow]:
    """Yield a row per module with contractions, with its work in the first regime as the first convention counts it.

    ``write`` rewrites numbers of parameters and coefficients of work.
    """
    lines, first = program.regimes[0].lines, program.rows[0]
    for module in dict.fromkeys(line.module for line in lines):
        counted = [line for line in lines if line.module == module and (first.unseen or line.seen)]
        own = [tensor for tensor in program.tensors if owner(tensor) == module]
        work = times(Num(Fraction(1, first.shares)), term(counted, program, first.pairs, write))
        yield ModuleRow(*located(module), write(all_elements(own)), work)


def all_elements(tensors: Iterable[Tensor]) -> Formula:
    """Return the number of elements of all copies of ``tensors``, with common factors factored out."""
    copies = grouped(((tensor.name, elements(tensor)), tensor.copies) for tensor in tensors)
    sizes = grouped((plus(counts), size) for (_, size), counts in copies.items())
    return plus([times(count, plus(each)) for count, each in sizes.items()])


def merged_modules(program: Program, write: Callable[[Formula], Formula]) -> Iterable[ModuleRow]:
    """Yield the rows of :func:`module_rows`; modules whose names differ only in numbers share one."""
    rows = list(module_rows(program, write))
    alike = [(row.parameters, row.term) for row in rows]
    merged = merged_names([".".join(filter(None, (row.group, row.module))) for row in rows], alike)
    merged = shared(merged, alike) if len(merged) > MANY else merged
    for (_, places), (group, name) in zip(merged, blocks([name for name, _ in merged]), strict=True):
        count, row = number(len(places)), rows[places[0]]
        yield ModuleRow(group, name, times(count, row.parameters), times(count, row.term))
