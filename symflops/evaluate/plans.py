"""Compiles sums over many items, and costs per item, to a short list of numpy operations that run block by block.

Blocks are small enough for intermediate columns to stay in the processor's cache. Bounds on lengths determine the type of each
column: 32 bits need half the memory, and floats have the fastest inner products, exact below 2**53.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from symflops.evaluate.columnwise import LIMIT
from symflops.evaluate.exact import Column, Costs, Monomial, leaves, product_of, wide_sum

ROW = 8192  # a longer inner product would take several threads
SUMMED, PRICED = 6 * ROW, 8 * ROW  # items per block
EXACT, NARROW = 2**53, 2**31
NOT_DIVIDED = "a length of the batch does not divide as the model divides it"
_add = np.add.reduce
_vecdot: Any = getattr(np, "vecdot", None)  # numpy 2
Array = np.ndarray[Any, Any]
Terms = Callable[..., tuple[Any, ...]]
MEMORY: list[Array] = []
Parts = list[tuple[int, tuple[Column, ...]]]


class TooWide(ValueError):  # noqa: N818 - no error of a user
    """A value of a plan could overflow 64 bits."""


class Plan:
    """List of numpy operations to run on each block of items.

    Each operation reads two slots and writes one. A slot is an entry of a list of columns and numbers, known by its index.

    Args:
        inputs: the number of columns of lengths, which have the first slots; the next slot is for the caller's results.
        block: the number of items per block.
        narrow: whether columns have 32 bits where these suffice.
    """

    def __init__(self, inputs: int, block: int, narrow: bool) -> None:
        self.inputs, self.block, self.narrow = inputs, block, narrow
        self.slots: list[Any] = [None] * (inputs + 1)  # a number, a type to allocate, or (value, type) of a constant column
        self.steps: list[tuple[Callable[..., Any], int, int, int]] = []
        self.made: dict[Any, int] = {}
        self.kinds: dict[int, Any] = {}
        self.rests: list[int] = []

    def new(self, content: Any) -> int:
        """Append a slot and return its index; ``content`` is a number, a type of column, or (value, type)."""
        self.slots.append(content)
        return len(self.slots) - 1

    def step(self, function: Callable[..., Any], one: int, two: int, out: int) -> int:
        """Append an operation on the slots ``one`` and ``two``, and return ``out``, the slot of the result."""
        self.steps.append((function, one, two, out))
        return out

    def kind(self, column: Column) -> Any:
        """The numpy type that a column needs by its bound, int32 or int64 (cached).

        Raises:
            TooWide: an entry could overflow 64 bits.
        """
        if column.place not in self.kinds:
            sides = column.operands if column.function else ()
            most = max([column.bound, *(abs(side) for side in sides if type(side) is int)])
            if most >= LIMIT:
                raise TooWide
            wide = most >= NARROW or any(self.kind(side) is np.int64 for side in sides if isinstance(side, Column))
            self.kinds[column.place] = np.int64 if wide or not self.narrow else np.int32
        return self.kinds[column.place]

    def column(self, column: Column, kind: Any = None) -> int:
        """The index of a column's slot, converted to the numpy type ``kind`` if given; adds the operations once."""
        own = self.kind(column)
        kind = kind or own
        key = column.place, kind
        if key not in self.made:
            self.made[key] = (
                self._made(column, own) if kind is own else self.step(_copy, self.column(column), 0, self.new(kind))
            )
        return self.made[key]

    def _made(self, column: Column, kind: Any) -> int:
        if column.function is None:
            return column.place if kind is np.int64 else self.step(_copy, column.place, 0, self.new(kind))
        full = column.function in (np.minimum, np.maximum)  # two columns are twice as fast as a column and a number
        sides = [
            self.column(side, kind) if isinstance(side, Column) else self.new((side, kind) if full else side)
            for side in column.operands
        ]
        return self.step(column.function, sides[0], sides[1], self.new(kind))

    def started(self, count: int, memory: Array) -> list[Any]:
        """List the contents of all slots, with columns of ``count`` items allocated as views of ``memory``."""
        slots, first = list(self.slots), 0
        for place, one in enumerate(self.slots):
            if type(one) in (type, tuple):
                kind = np.dtype(one if type(one) is type else one[1])
                slots[place] = memory[first : first + count * kind.itemsize].view(kind)
                first += self.block * 8
                if type(one) is tuple:
                    slots[place].fill(one[0])
        return slots

    def blocks(self, columns: Sequence[Array], out: Array | None = None) -> Iterator[list[Any]]:
        """Run the operations block by block, and yield the contents of all slots after each block.

        Args:
            columns: one column of lengths per input.
            out: an array for the results of all items, if an operation writes the caller's slot.

        Raises:
            ValueError: a division of a length leaves a remainder.
        """
        count = len(columns[0])
        needed = self.block * 8 * len(self.slots)
        memory = MEMORY.pop() if MEMORY else np.empty(needed, np.uint8)
        if len(memory) < needed:
            memory = np.empty(needed, np.uint8)
        slots = self.started(min(count, self.block), memory)
        for start in range(0, count, self.block):
            if start and start + self.block > count:
                slots = [one[: count - start] if isinstance(one, np.ndarray) else one for one in slots]
            slots[: self.inputs] = [column[start : start + self.block] for column in columns]
            if out is not None:
                slots[self.inputs] = out[start : start + self.block]
            for function, one, two, to in self.steps:
                function(slots[one], slots[two], out=slots[to])
            for rest in self.rests:
                if slots[rest].any():
                    raise ValueError(NOT_DIVIDED)
            yield slots
        MEMORY.append(memory)


def _of(inputs: Sequence[int | None], rests: Terms, block: int, narrow: bool) -> tuple[Plan, list[Any]]:
    """Create a plan that checks remainders; returns it with symbolic columns of lengths (0 for no bits).

    Raises:
        ValueError: the divisions of sizes leave a remainder.
    """
    columns = leaves(inputs)
    plan = Plan(sum(bit is not None for bit in inputs), block, narrow)
    for rest in rests(*columns):
        if isinstance(rest, Monomial):
            plan.rests.append(plan.column(rest.column()))
        elif rest:
            raise ValueError(NOT_DIVIDED)
    return plan, columns


class Sums:
    """Compiled plan that sums each term, a function of lengths, over the items of one index set.

    Args:
        mine: for each term, whether it is a sum over this index set.
        bits: for each column, the bit length of its maximum; None for a column of another index set.

    Raises:
        TooWide: a value could overflow 64 bits.
    """

    def __init__(self, terms: Terms, rests: Terms, mine: Sequence[bool], bits: Sequence[int | None]) -> None:
        self.plan, columns = _of(bits, rests, SUMMED, True)
        self.found = [self._reduced(term) if own else None for term, own in zip(terms(*columns), mine, strict=True)]

    def _reduced(self, term: Any) -> tuple[int, Callable[..., int], int, int]:
        """Compile the sum of a term to (number, function, slot, slot): number times function of two slots."""
        if not isinstance(term, Monomial) or not term.factors:
            return (term.number if isinstance(term, Monomial) else int(term)), _counted, 0, 0
        plan, made = self.plan, term.made
        if len(term.factors) > 1:
            sides = [product_of(factors, made) for factors in (term.factors[::2], term.factors[1::2])]
            if prod([side.bound for side in sides]) * plan.block < EXACT and _vecdot is not None:
                one, two = [plan.column(side, np.float64) for side in sides]
                return term.number, _inner, one, two
        column = product_of(term.factors, made)
        slot, most = plan.column(column), column.bound * plan.block
        if plan.kind(column) is np.int32 and most < NARROW:
            return term.number, _narrow_sum, slot, 0
        return term.number, _sum if most < LIMIT else _wide_sum, slot, 0

    def of(self, columns: Sequence[Array]) -> list[int]:
        """Compute the sum of each term, 0 for terms of other index sets.

        Raises:
            ValueError: a division of a length leaves a remainder.
        """
        totals = [0] * len(self.found)
        rows = [(place, *row) for place, row in enumerate(self.found) if row is not None]
        for slots in self.plan.blocks(columns):
            for place, number, function, one, two in rows:
                totals[place] += number * function(slots[one], slots[two])
        return totals


class Prices:
    """Compiled plan that computes the cost of each item of one index set.

    Args:
        costs: for each term, its cost per unit, 0 for terms of other index sets.
        bits: as for :class:`Sums`.

    Raises:
        TooWide: a cost could overflow 64 bits.
    """

    def __init__(self, terms: Terms, rests: Terms, costs: Sequence[int], bits: Sequence[int | None]) -> None:
        self.plan, columns = _of(bits, rests, PRICED, False)
        parts: Parts = []
        constant = self.most = 0
        if any(type(cost) is not int for cost in costs):
            raise TooWide  # fractions of a FLOP
        for term, cost in zip(terms(*columns), costs, strict=True):
            if cost and isinstance(term, Monomial) and term.factors:
                self.most += term.size() * abs(cost)
                parts.append((term.number * cost, term.factors))
            elif cost:
                constant += cost * (term.number if isinstance(term, Monomial) else int(term))
        self.most += abs(constant)
        if max([self.most, *[abs(number) for number, _ in parts]]) >= LIMIT:
            raise TooWide  # intermediate sums may wrap around, because they wrap back
        self._horner(parts, constant, self.plan.inputs)

    def of(self, columns: Sequence[Array]) -> Array:
        """Compute the cost of each item: an int64 array, as :class:`Costs` if its sum could overflow.

        Raises:
            ValueError: a division of a length leaves a remainder.
        """
        out = np.empty(len(columns[0]), np.int64)
        for _ in self.plan.blocks(columns, out):
            pass
        return out.view(Costs) if self.most * len(out) >= LIMIT else out

    def _horner(self, parts: Parts, constant: int, out: int) -> None:
        """Compile ``constant`` plus the sum of ``parts`` (number, columns) by Horner's scheme to slot ``out``."""
        plan = self.plan
        if not parts:
            plan.step(_fill, plan.new(constant), 0, out)
            return
        columns = [column for _, factors in parts for column in dict.fromkeys(factors)]
        common = max(columns, key=columns.count)
        inner = [(number, _without(factors, common)) for number, factors in parts if common in factors]
        factor = sum([number for number, factors in inner if not factors])
        more = [part for part in inner if part[1]]
        if more:
            self._horner(more, factor, out)
            plan.step(np.multiply, out, plan.column(common), out)
        else:
            plan.step(np.multiply, plan.column(common), plan.new(factor), out)
        if constant:
            plan.step(np.add, out, plan.new(constant), out)
        rest = [part for part in parts if common not in part[1]]
        if rest:
            other = plan.new(np.int64)
            self._horner(rest, 0, other)
            plan.step(np.add, out, other, out)


def _fill(number: int, _: Any, out: Array) -> None:
    out[:] = number


def _counted(column: Array, _: Any) -> int:
    return len(column)


def _sum(column: Array, _: Any) -> int:
    return int(_add(column, dtype=np.int64))


def _narrow_sum(column: Array, _: Any) -> int:
    return int(_add(column, dtype=np.int32))


def _wide_sum(column: Array, _: Any) -> int:
    return wide_sum(column.astype(np.int64, copy=False))


def _inner(one: Array, two: Array) -> int:
    """Exact inner product of float columns that hold integers."""
    head = len(one) // ROW * ROW
    if head == len(one):
        return int(_add(_vecdot(one.reshape(-1, ROW), two.reshape(-1, ROW))))
    return int(one[head:].dot(two[head:])) + (_inner(one[:head], two[:head]) if head else 0)


def _without(factors: tuple[Column, ...], column: Column) -> tuple[Column, ...]:
    place = factors.index(column)
    return factors[:place] + factors[place + 1 :]


def _copy(source: Array, _: Any, out: Array) -> None:
    np.copyto(out, source, casting="unsafe")
