"""Computes the moments of batches for a stored program, and checks that its class accepts them."""

from __future__ import annotations

import sys
from operator import mul

from symflops.evaluate.batch import LONGEST, MANY, BatchError, Columns, Side, columns_of, listed, numbers, ordered
from symflops.evaluate.columnwise import Columnwise
from symflops.evaluate.layouts import sets_of
from symflops.evaluate.typical import described, taken, too_short, untaken
from symflops.formula.table import ConfigError
from symflops.ir.index_sets import ONCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from symflops.evaluate.stored import Stored

    Column = Callable[[Sequence[Any]], Any]

INT = frozenset((int,))
NO_DIVISION = "a length of the batch does not divide as the model divides it"


class Batches:
    """Reads batches and computes their moments; each formula is compiled once, to a function of columns.

    Args:
        program: a stored program.
        sizes: the value of each size, by letter; if None, conditions that depend on sizes are not checked.
        places: the positions of the moments to compute; all by default.
        longest: the largest length that is accepted.
        any_length: whether lengths are accepted on which the model class itself would fail.
    """

    def __init__(
        self,
        program: Stored,
        sizes: Mapping[str, Any] | None,
        places: Sequence[int] | None = None,
        longest: int = LONGEST,
        any_length: bool = False,
    ) -> None:
        self.program, self.sizes, self.longest = program, sizes, longest
        self.sets, self.streams = sets_of(program), ordered(program)
        self.rows = [program.moments[place] for place in (range(len(program.moments)) if places is None else places)]
        self.moment_sets = {row["name"]: row["items"] for row in self.rows}
        self.axes = [(stream.items, axis) for stream in self.streams for axis in stream.variables or ("",)]
        self.spans = {items: [place for place, (of, _) in enumerate(self.axes) if of == items] for items in self.sets}
        names = [axis for _, axis in self.axes] + [row["name"] for row in program.statistics]
        self.places = {name: place for place, name in enumerate(names) if name}
        self.divided = Columnwise(program.formulas, self.places, sizes or {})
        own = {row["name"] for row in program.statistics}
        self.whole = any(not own.isdisjoint(program.formulas.letters(row["formula"])) for row in self.rows)
        read = [(row["name"], program.formulas.letters(row["formula"])) for row in (*self.rows, *program.statistics)]
        self.sized = [name for name, letters in read if not letters <= self.places.keys()]
        ready = sizes is not None or not self.sized
        self.functions = [self.divided.of(row["formula"]) for row in self.rows] if ready else []
        self.sums = [self.summing(row, function) for row, function in zip(self.rows, self.functions, strict=False)]
        self.statistics = [self.statistic(row, self.divided) for row in program.statistics] if ready else []
        self.inner = [row for row in program.inner if self.asked(row) and not (any_length and "text" in row)]
        self.left = [Columnwise(program.formulas, self.places, sizes or {}).of(row["formula"]) for row in self.inner]
        self.conditions = [
            self.condition(row)
            for row in program.conditions
            if not any_length and self.asked(row) and all(self.spans.get(one["items"]) for one in row["statistics"])
        ]
        self.terms, self.rests, self.inner_terms = (self.over(some) for some in (self.functions, self.divided.rests, self.left))
        self.always = [place for place, row in enumerate(self.rows) if row.get("side")]
        plain = len(self.sets) == 1 and all(not one.optional and len(one.variables) == 1 for one in self.streams)
        self.plain = [one.name for one in self.streams] if plain and ready else []

    def asked(self, row: Mapping[str, Any]) -> bool:
        """Whether a condition (a row of the stored program) can be checked.

        True if its index sets have streams, and the sizes that it reads are known.
        """
        figures = row.get("statistics", ())
        if not {one["items"] for one in figures or (row,)} <= self.sets.keys():
            return False
        own = {one["name"] for one in figures}
        formulas = (row["formula"], *row.get("values", ()), *(one["formula"] for one in figures))
        letters = frozenset().union(*map(self.program.formulas.letters, formulas))
        return self.sizes is not None or letters <= self.places.keys() | own

    @staticmethod
    def over(functions: Sequence[Column]) -> Callable[..., tuple[Any, ...]]:
        """Combine functions of a list of columns into one of the columns as arguments, which returns a tuple of results."""

        def of(*columns: Any) -> tuple[Any, ...]:
            return tuple([function(columns) for function in functions])

        return of

    def summing(self, row: Mapping[str, Any], function: Column) -> Callable[[Sequence[Any], Sequence[Any]], Any]:
        """Compile a moment (a stored row) to a function of columns and statistics.

        Sums of a length, of its square or of a product of two need no loop over items.
        """
        span, nodes = self.spans.get(row["items"], ()), self.program.formulas.nodes
        read = {self.places[name] for name in self.program.formulas.letters(row["formula"]) if name in self.places}
        if any(place not in span for place in read if place < len(self.axes)):
            raise KeyError(f"'{row['name']}' is over {row['items']}, and reads lengths of others")
        if row["items"] == ONCE:
            return lambda columns, figures: function([*([0] * len(self.axes)), *figures])
        if not span:
            return lambda columns, figures: 0
        first, node = span[0], nodes[row["formula"]]
        if self.divided.constant(row["formula"]):
            number = function(())
            return lambda columns, figures: len(columns[first]) * number
        match node:
            case ["^", base, 2]:
                factors = [nodes[base], nodes[base]]
            case ["*", one, two]:
                factors = [nodes[one], nodes[two]]
            case _:
                factors = [node]
        none = len(self.axes)
        places = [self.places.get(factor, none) if type(factor) is str else none for factor in factors]
        if max(places) >= none:
            return lambda columns, figures: self.each(row["items"], function, columns, figures)
        first, last = places[0], places[-1]
        if len(places) == 1:
            return lambda columns, figures: sum(columns[first])
        return lambda columns, figures: sum(map(mul, columns[first], columns[last]))

    def statistic(self, row: Mapping[str, Any], made: Columnwise) -> Callable[[Sequence[Any], Sequence[Any]], int]:
        """Compile a statistic (a sum or maximum over items) to a function of columns and previous statistics."""
        formula, items, largest = row["formula"], row["items"], row["kind"] == "max"
        node, combined = self.program.formulas.nodes[formula], max if largest else sum
        place = self.places.get(node) if type(node) is str else None
        if place is not None and place < len(self.axes):
            of = place
            if largest:
                return lambda columns, figures: columns.largest(of)  # type: ignore[attr-defined]
            return lambda columns, figures: sum(listed(columns[of]))
        function = made.of(formula)

        def value(columns: Sequence[Any], figures: Sequence[Any]) -> int:
            found = [function(one) for one in self.items(items, columns, figures)]
            return int(combined(found, default=0) if largest else sum(found))  # type: ignore[call-overload]

        return value

    def condition(self, row: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[int], list[Any], Column]:
        """Compile a condition on a whole batch.

        Returns:
            The stored row, the first column of each index set, functions that compute the statistics of the condition from
            columns, and a function of these statistics that is at least 1 if the condition holds.
        """
        names = {one["name"]: place for place, one in enumerate(row["statistics"])}
        own = Columnwise(self.program.formulas, self.places, self.sizes or {})
        firsts = [self.spans[items][0] for items in {one["items"]: 1 for one in row["statistics"]}]
        figures = [self.statistic(one, own) for one in row["statistics"]]
        return row, firsts, figures, Columnwise(self.program.formulas, names, self.sizes or {}).of(row["formula"])

    def items(self, items: str, columns: Sequence[Any], figures: Sequence[Any] = ()) -> Iterator[list[Any]]:
        """Yield each item of an index set as arguments: its lengths, 0 for other axes, then the statistics."""
        span = self.spans.get(items, ())
        before, after = ([0] * span[0], [0] * (len(self.axes) - span[-1] - 1)) if span else ([], [])
        for row in zip(*[listed(columns[place]) for place in span], strict=True):
            yield [*before, *row, *after, *figures]

    def read(self, batch: Mapping[str, Any]) -> Columns:
        """Read a batch into columns.

        Raises:
            FormError: as :func:`symflops.evaluate.batch.columns_of`.
        """
        plain = self.listed(batch) if self.plain else None
        if plain is not None:
            return Columns(plain, plain, dict.fromkeys(self.sets, len(plain[0])))
        return columns_of(self.program, batch, self.longest)

    def moments(self, batch: Mapping[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Compute the moments of a batch, as (over real lengths, over padded lengths).

        Moments that are defined over padded lengths (``always``) are so in both.

        Raises:
            BatchError: the batch has another form, the class does not accept it, or a division leaves a remainder.
        """
        plain = self.listed(batch) if self.plain else None
        if plain is not None:
            values = tuple(self.summed(plain, plain))
            return values, values
        return self.sides(columns_of(self.program, batch, self.longest))

    def listed(self, batch: Mapping[str, Any]) -> Side | None:
        """Read a batch of int lists or int64 arrays into columns without conversion; None for any other batch."""
        columns = Side()
        for name in self.plain:
            given: Any = batch.get(name)
            if type(given) is not list:
                plain = (
                    type(given).__name__ == "ndarray"
                    and given.ndim == 1
                    and (given.dtype.kind, given.dtype.itemsize) == ("i", 8)
                )
                if not plain or len(given) < MANY:
                    return None
            elif len(given) >= MANY:
                given = numbers(given, self.longest) if type(given[0]) is int else None
                if given is None:
                    return None
            elif not INT.issuperset(map(type, given)) or (given and (min(given) < 0 or sum(given) > self.longest < max(given))):
                return None
            columns.append(given)
        return columns if len(columns) == len(batch) and len(set(map(len, columns))) == 1 else None

    def sides(self, found: Columns) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Compute the moments of columns, as (over real lengths, over padded lengths); see :meth:`moments`."""
        real = padded = self.summed(found.real, found.padded)
        if found.padded is not found.real:
            padded = self.summed(found.padded, found.padded)
            real = [padded[place] if place in self.always else value for place, value in enumerate(real)]
        return tuple(real), tuple(padded)

    def summed(self, columns: Sequence[Any], padded: Sequence[Any]) -> list[int]:
        """Check ``columns``, the real or the padded lengths of a batch, and compute their moments, in the order of ``rows``."""
        if self.inner or self.conditions:
            self.check(columns, padded)
        if not self.whole and columns and len(columns[0]) >= MANY and "numpy" in sys.modules:
            try:
                from symflops.evaluate import vectors

                return list(vectors.sums(self.terms, self.rests, self.sets, self.moment_sets, columns))
            except ConfigError:
                pass  # a divisor is 0: raised below if an item uses it
            except ValueError as error:
                raise BatchError(str(error)) from None
        columns = Side([listed(column) for column in columns])
        figures: list[int] = []
        for one in self.statistics:
            figures.append(one(columns, figures))
        return [moment(columns, figures) for moment in self.sums]

    def each(self, items: str, function: Column, columns: Sequence[Any], figures: Sequence[Any]) -> int:
        """Sum ``function`` over the items of an index set, one by one."""
        if self.divided.rests:
            self.check_divisions(items, columns, figures)
        return sum([function(item) for item in self.items(items, columns, figures)])

    def check_divisions(self, items: str, columns: Sequence[Any], figures: Sequence[Any]) -> None:
        """Refuse lengths for which a division of the model leaves a remainder.

        Raises:
            BatchError: a length does not divide; the message names the first such item.
        """
        for item in self.items(items, columns, figures):
            if any(rest(item) for rest in self.divided.rests):
                known = {axis: item[place] for place, (of, axis) in enumerate(self.axes) if of == items and axis}
                raise BatchError(f"{NO_DIVISION}: {described(known, self.owners(items))}")

    def check(self, columns: Sequence[Any], padded: Sequence[Any]) -> None:
        """Refuse a batch or an item that the model cannot run.

        A condition that fails is checked again with padded lengths in place of columns of zeros.

        Raises:
            BatchError: the message names the stream, the item, its length, and the minimum length or the accepted lengths.
        """
        for row, firsts, figures, holds in self.conditions:
            if 0 not in [len(columns[first]) for first in firsts] and not self.holds(figures, holds, columns):
                used = Side([one if any(listed(one)) else two for one, two in zip(columns, padded, strict=True)])
                if not self.holds(figures, holds, used):
                    values = [function(used, ()) for function in figures]
                    names = dict(zip([one["name"] for one in row["statistics"]], values, strict=True))
                    told = taken(self.program, row, {**(self.sizes or {}), **names})
                    raise BatchError(f"the batch does not fit the model: the class takes {told}")
        if self.inner and not self.all_left(columns):
            self.refuse(columns)

    @staticmethod
    def holds(figures: Sequence[Any], holds: Column, columns: Sequence[Any]) -> bool:
        """Whether a condition holds; ``figures`` compute its statistics from columns, ``holds`` reads them."""
        return bool(holds([function(columns, ()) for function in figures]) >= 1)

    def all_left(self, columns: Sequence[Any]) -> bool:
        """Whether every length inside the model (such as a length after pooling) is at least 1 for every item."""
        if columns and max(map(len, columns)) >= MANY and "numpy" in sys.modules:
            from symflops.evaluate import vectors

            return bool(vectors.all_left(self.inner_terms, columns))
        pairs = zip(self.inner, self.left, strict=True)
        return all(left(item) >= 1 for row, left in pairs for item in self.items(row["items"], columns))

    def refuse(self, columns: Sequence[Any]) -> None:
        """Raise an error that names the first item for which a length inside the model is less than 1.

        Raises:
            BatchError: an item is too short, or the class does not accept it.
        """
        for row, left in zip(self.inner, self.left, strict=True):
            owners = self.owners(row["items"])
            axes = [(place, axis) for place, (of, axis) in enumerate(self.axes) if of == row["items"] and axis]

            def of(item: Mapping[str, int], left: Column = left) -> int:
                return int(left([item.get(axis, 0) for _, axis in self.axes]))

            for place, item in enumerate(self.items(row["items"], columns)):
                if left(item) < 1:
                    known = {axis: item[at] for at, axis in axes}
                    if "text" not in row:
                        raise BatchError(too_short(place, known, owners, of))
                    read = self.program.formulas.letters(row["formula"])
                    told = {axis: owner for axis, owner in owners.items() if axis in read}
                    raise BatchError(untaken(place, known, told, taken(self.program, row, self.sizes or {})))

    def owners(self, items: str) -> dict[str, tuple[str, int]]:
        """Map each axis of an index set to (name of its stream, number of axes of this stream)."""
        streams = [stream for stream in self.program.streams if stream.items == items]
        return {axis: (stream.name, len(stream.variables)) for stream in streams for axis in stream.variables}


def sides_of(
    program: Stored, batch: Mapping[str, Any], sizes: Mapping[str, Any], places: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Compute the moments at positions ``places``, as (over real lengths, over padded lengths).

    Raises:
        BatchError: the batch has another form, or the class does not accept it.
    """
    return Batches(program, sizes, places).moments(batch)
