"""Constraints on an item's lengths: operators leave enough rows, divisions no remainder, and declared conditions hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sympy import Add, Expr, Integer, Mul, Symbol, fraction, together

from symflops.derive.decode import positions
from symflops.formula.functions import CeilDiv, FloorDiv, Least, Modulo, Whole, is_index
from symflops.formula.truth import YES, Truth
from symflops.ir.batch import InnerLength
from symflops.ir.graph import Graph, Length
from symflops.ir.index_sets import ONCE
from symflops.ir.nodes import Need
from symflops.lower.formulas import Formulas
from symflops.lower.inputs import Inputs

Measures = Mapping[Symbol, tuple[Length, ...]]
Key = tuple[Truth, Expr]


def inner_lengths(graph: Graph, formulas: Formulas, measures: Measures) -> tuple[InnerLength, ...]:
    """The conditions on items of a batch that a program stores: functions of their lengths, at least 1.

    Conditions that follow from others are left out. ``measures`` has the batch variables of each length.
    """
    variables = {group[0].symbol: group[0] for group in measures.values() if len(group) == 1}
    found = _Needs(graph, variables)
    for items, guard, need in found.listed():
        found.add(items, guard, need)
    infos = []
    for (guard, _), (items, value) in found.needed():
        whole = value if guard is YES else 1 + guard.expr * (value - 1)
        infos.append(InnerLength(items, formulas.of(whole)))
    for items, guard, rest in remainders(graph):
        if not rest.free_symbols.isdisjoint(variables):
            infos.append(InnerLength(items, formulas.of(1 - guard.expr * rest)))
    taken = {symbol: positions(group) for symbol, group in measures.items()}
    infos += [
        InnerLength(
            limit.items, formulas.of(limit.condition.expr.xreplace(taken)), limit.text, tuple(map(formulas.of, limit.values))
        )
        for limit in graph.limits
        if limit.items != ONCE
    ]
    return tuple(dict.fromkeys(infos))


def remainders(graph: Graph) -> Iterator[tuple[str, Truth, Expr]]:
    """Yield (index set, condition, remainder) for each division in a stream length.

    The remainder must be 0 where the condition holds. Streams of a single iteration or of a whole batch are left out.
    """
    made = [(operator.guard, graph.values[result].stream) for operator in graph.operators() for result in operator.results]
    for guard, stream in dict.fromkeys([*((YES, stream) for _, stream in graph.streams), *made]):
        lengths = [length for part in stream.parts for _, length in part.axes if not length.is_integer]
        for top, below in map(fraction, map(together, lengths)):
            read = top.free_symbols | below.free_symbols | guard.expr.free_symbols
            if below != 1 and stream.items != ONCE and not any(is_index(one.name) for one in read) and not top.has(Whole):
                yield stream.items, guard, Modulo(top, below)


class _Needs:
    """Collects lower bounds of lengths, in the order of the forward pass, without those that others imply."""

    def __init__(self, graph: Graph, variables: Mapping[Symbol, Length]) -> None:
        self.graph = graph
        self.inputs = Inputs(graph)
        self.variables = variables
        self.streams = {value.id: value.stream for value in graph.values}
        self.least: dict[Key, int] = {}  # lower bounds of lengths
        self.roots: dict[Expr, Expr] = {}  # lengths that are at least 1 exactly if another one is
        self.kept: dict[Key, tuple[str, Expr]] = {}

    def listed(self) -> Iterator[tuple[str, Truth, Need]]:
        """Yield (index set, condition of the operator, need) for each need that depends on a batch.

        Those of a single iteration are left out.
        """
        for operator in self.graph.operators():
            for need in operator.needs:
                read = need.length.free_symbols | operator.guard.expr.free_symbols
                single = any(is_index(symbol.name) for symbol in read) or need.length.has(Whole)
                items = self.streams[operator.results[0]].items if operator.results else ONCE
                if items != ONCE and not single and not read.isdisjoint(self.variables):
                    yield items, operator.guard, need

    def add(self, items: str, guard: Truth, need: Need) -> None:
        """Add a need of an operator that exists under ``guard``, unless it follows from those added before."""
        length, of = need.length, self.roots.get(need.of, need.of)
        if need.keeps or as_many(need):
            self.roots[length] = length = of
            if need.least == 0 or not self.required(of):
                return
        if self.known(length, guard, need.least):
            return
        if need.least == 0:
            self.kept[guard, length] = (items, length + 1)
        elif self.required(of) or self.known(of, guard, 1):
            if need.implied:
                self.kept.pop((guard, of), None)
                self.least[guard, of] = 1
            self.kept[guard, length] = (items, length)
        else:
            self.kept[guard, length] = (items, length + 1 - Least(1, of))  # 0 rows may become 0 rows
        self.least[guard, length] = need.least

    def needed(self) -> Iterator[tuple[Key, tuple[str, Expr]]]:
        """Yield ((condition, length), (index set, function)) for each need that follows from no other.

        The function of lengths must be at least 1 where the condition holds.
        """
        every = list(self.kept.items())
        for place, (key, (items, value)) in enumerate(every):
            others = ((of, value) for at, ((truth, _), of) in enumerate(every) if at != place and truth in (YES, key[0]))
            stronger = (other for (_, other), _ in others if follows(value, other))
            if all(follows(other, value) and other != value for other in stronger):
                yield key, (items, value)

    def required(self, length: Expr) -> bool:
        """Whether ``length`` is a length of a batch that is always given, or has a positive default."""
        known = self.variables.get(length)
        if known is None:
            return False
        absent, optional = self.inputs.when_absent(known.stream, (known.symbol.name,))
        return not optional or absent > 0

    def known(self, length: Expr, guard: Truth, least: int) -> bool:
        """Whether it is certain that ``length`` is at least ``least`` wherever ``guard`` holds."""
        if any(self.least.get((truth, length), -1) >= least for truth in (YES, guard)):
            return True
        if length.is_positive or (least == 0 and length.is_nonnegative):
            return True
        if isinstance(length, (FloorDiv, CeilDiv)):
            return (least == 0 or isinstance(length, CeilDiv)) and self.known(length.args[0], guard, least)
        if isinstance(length, Add):
            none = all(self.known(term, guard, 0) for term in length.args)
            return none and (least == 0 or any(self.known(term, guard, 1) for term in length.args))
        return isinstance(length, Mul) and all(self.known(factor, guard, least) for factor in length.args)


def as_many(need: Need) -> bool:
    """Whether the length of ``need`` is a quotient rounded up, so at least 1 exactly if the dividend is."""
    if not isinstance(need.length, FloorDiv):
        return isinstance(need.length, CeilDiv) and need.length.args[0] == need.of
    above, below = need.length.args
    return bool((above - need.of - below + 1) == 0)


def follows(one: Expr, other: Expr) -> bool:
    """Whether it is certain that ``one`` is at least 1 if ``other`` is; False if undecided."""
    if (one - other).is_nonnegative:
        return True
    above, below = other.args if isinstance(other, FloorDiv) else (other, Integer(1))
    mine, divisor = one.args if isinstance(one, FloorDiv) else (one, Integer(1))
    return above == mine and bool((below - divisor).is_nonnegative)
