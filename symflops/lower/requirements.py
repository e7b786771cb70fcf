"""Constraints of a program: on the lengths of each item, and on the sizes of the model.

Of an item: operators leave enough rows, divisions leave no remainder, and declared conditions hold. Of sizes: a stack is popped
as often as it is pushed to, and operators fit each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sympy import Add, Expr, Integer, Mul, Symbol, fraction, together

from symflops.derive.decode import positions
from symflops.derive.iterations import all_iterations
from symflops.formula import formula
from symflops.formula.functions import AtLeast, CeilDiv, Excess, FloorDiv, Least, Modulo, Whole, is_index
from symflops.formula.polynomial import Polynomial
from symflops.formula.state import has_state
from symflops.formula.truth import YES, Truth
from symflops.formula.words import said
from symflops.ir.batch import InnerLength, Requirement
from symflops.ir.graph import Graph, Length
from symflops.ir.index_sets import ONCE
from symflops.ir.nodes import Loop, Need, Node, Operator, Pop, Push
from symflops.ir.program import Field
from symflops.lower.formulas import Formulas
from symflops.lower.inputs import Inputs
from symflops.support.findings import Diagnostic, Span, SpecError

Measures = Mapping[Symbol, tuple[Length, ...]]
Key = tuple[Truth, Expr]


def inner_lengths(graph: Graph, formulas: Formulas, measures: Measures) -> tuple[InnerLength, ...]:
    """The conditions on items of a batch that a program stores: functions of their lengths, at least 1.

    Conditions that follow from others are left out. ``measures`` has the batch variables of each length.
    """
    variables = {group[0].symbol: group[0] for group in measures.values() if len(group) == 1}
    found = _Needs(graph, variables)
    for items, guard, need in found.of_batch():
        found.add(items, guard, need)
    infos = [
        InnerLength(items, formulas.of(value if guard is YES else 1 + guard.expr * (value - 1)))
        for (guard, _), (items, value) in found.needed()
    ]
    infos += [
        InnerLength(items, formulas.of(1 - guard.expr * rest))
        for items, guard, rest in remainders(graph)
        if not rest.free_symbols.isdisjoint(variables)
    ]
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

    def of_batch(self) -> Iterator[tuple[str, Truth, Need]]:
        """Yield (index set, condition of the operator, need) for each need that depends on a batch.

        Those of a single iteration are left out.
        """
        for operator in self.graph.operators():
            for need in operator.needs:
                read = need.length.free_symbols | operator.guard.expr.free_symbols
                if has_state(need.length, operator.guard.expr):
                    continue  # no call that a regime describes lacks tokens
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


def requirements(graph: Graph, formulas: Formulas) -> tuple[Requirement, ...]:
    """The conditions on sizes that a program stores; a config that violates one is refused.

    Raises:
        SpecError: the lengths of a batch decide how many values are left on a stack of loops.
    """
    lengths = {length.symbol for length in graph.lengths}
    found = []
    for name, changes in _changes(graph).items():
        number = Polynomial.of(Add(*(change for change, _ in changes)))
        if number.expr.free_symbols & lengths:
            message = f"the lengths of a batch decide how many values are left on the stack '{name}'"
            hint = "the repeat that takes them must run as often as the one that puts them there"
            raise SpecError([Diagnostic("stack-left", message, changes[-1][1], hint)])
        if number:
            text = f"it does not take as many values from the stack '{name}' as it puts there"
            found.append(Requirement(formulas.plain(number), text))
    found += [Requirement(formulas.plain(number), text + _read(graph, number)) for number, text in _fits(graph)]
    return tuple(dict.fromkeys(found))


def least(fields: Iterable[Field], census: Mapping[str, Any]) -> Iterator[Requirement]:
    """Yield a lower bound for each size whose default is computed from others and whose class needs one.

    Below that value, the class runs differently.

    Args:
        fields: The sizes of a program.
        census: Class -> facts about its config fields, the ``least`` value among them.
    """
    for field in fields:
        guards = (entry.get("guarded", {}).get(key, {}) for entry in census.values() for key in field.keys)
        bounds = [guard["least"] for guard in guards if "least" in guard]
        computed = isinstance(field.default, formula.Formula) and not isinstance(field.default, formula.Num)
        if bounds and computed and not field.nullable:
            bound = max(bounds)
            below = formula.Prod((formula.MINUS, formula.Sym(field.letter)))
            lacking = formula.Apply("excess", (formula.Sum((formula.number(bound), below)),))
            yield Requirement(lacking, f"'{field.keys[0]}' would be below {bound}, with which the model runs otherwise")


def _fits(graph: Graph) -> Iterator[tuple[Polynomial, str]]:
    """Yield (polynomial in sizes that must be 0, message if it is not) for the whole graph."""
    varies = {length.symbol for length in graph.lengths}
    for number, text in graph.fits:
        demanded = Polynomial.of(number)
        if demanded and demanded.expr.free_symbols.isdisjoint(varies):
            yield demanded, text
    for _, guard, rest in remainders(graph):
        demanded = Polynomial.of(rest.xreplace(dict(graph.definitions)) * guard.expr)
        if demanded and demanded.expr.free_symbols.isdisjoint(varies):
            top, below = rest.args if isinstance(rest, Modulo) else (rest, Integer(1))
            yield demanded, f"the length {said(top)} does not divide by {said(below)}"
    for operator in graph.operators():
        for need in operator.needs:
            if number := _missing(graph, operator, need):
                yield number, f"'{operator.path}' leaves too few rows, {said(need.length)}"
        for number, text in operator.fits:
            demanded = Polynomial.of(number * operator.guard.expr)
            if demanded:
                yield demanded, text


def _missing(graph: Graph, operator: Operator, need: Need) -> Polynomial | None:
    """The number of rows that are missing for ``need``, as a polynomial in sizes; 0 if none.

    None if lengths or the iteration of a loop decide it.
    """
    formulas = dict(graph.definitions)
    symbols = need.length.free_symbols | need.of.free_symbols | operator.guard.expr.free_symbols
    varies = {length.symbol for length in graph.lengths}
    if not symbols.isdisjoint(varies) or any(is_index(symbol.name) for symbol in symbols) or need.length.has(Whole):
        return None
    length = need.length.xreplace(formulas)
    lacking = Excess(need.least - length) * AtLeast(need.of, Integer(1)) + Excess(-length)  # 0 rows may become 0 rows
    return Polynomial.of(lacking * operator.guard.expr)


def _read(graph: Graph, number: Polynomial) -> str:
    """The config keys on which ``number`` depends, as text in parentheses; empty if there are none."""
    formulas, keys = dict(graph.definitions), {size.name.text: size.keys[:1] for size in graph.spec.sizes}
    symbols, found = list(number.expr.free_symbols), set[str]()
    while symbols:
        symbol = symbols.pop()
        symbols += formulas[symbol].free_symbols if symbol in formulas else ()
        found.update(keys.get(symbol.name.removeprefix("?"), ()))
    return f" ({', '.join(sorted(found))})" if found else ""


def _changes(graph: Graph) -> dict[str, list[tuple[Expr, Span | None]]]:
    """Stack name -> (number of values, place) for each push, and with a negative number for each pop."""
    found: dict[str, list[tuple[Expr, Span | None]]] = {}
    regions: list[tuple[tuple[Node, ...], Expr]] = [(graph.body, Integer(1))]
    for nodes, times in regions:
        for node in nodes:
            if isinstance(node, (Push, Pop)):
                change = times * node.guard.expr if isinstance(node, Push) else -times * node.guard.expr
                found.setdefault(node.sequence, []).append((change, node.span))
            elif isinstance(node, Loop):
                regions += [(body, times * all_iterations(node, bracket)) for bracket, body in node.classes]
    return found
