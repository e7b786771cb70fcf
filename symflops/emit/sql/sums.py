"""What a query sums up: formulas of columns over the rows that a model can run, and how their sums are read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from symflops.diagnostics.errors import SymflopsError
from symflops.emit.sql.engines import ENGINES, ROW_BITS, WIDE_BITS
from symflops.emit.sql.printer import SqlPrinter
from symflops.model.evaluate import Formulas
from symflops.model.formula import Bracket, Formula, Num, Table, symbols
from symflops.runtime.columnwise import Bound, Columnwise
from symflops.system.digests import digest

LONGEST = 2**30 - 1
LENGTH = 12


@dataclass(frozen=True)
class Items:
    """The items of an index set that a model can run: all columns are lengths in range, and the conditions hold."""

    columns: tuple[str, ...]
    conditions: tuple[Bracket, ...] = ()

    @cached_property
    def text(self) -> str:
        """What identifies them."""
        return "; ".join((", ".join(self.columns), *map(told, self.conditions)))


@dataclass(frozen=True)
class Rows:
    """The rows of a table that a model can run: each has an item of each index set.

    If there are several sets, a row without any length of a set has no such item; it needs one of another set. The conditions
    are on rows with an item of each set.
    """

    sets: tuple[Items, ...]
    conditions: tuple[Bracket, ...] = ()

    @cached_property
    def text(self) -> str:
        """What identifies them."""
        return " | ".join((*(items.text for items in self.sets), *map(told, self.conditions)))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of all sets."""
        return tuple(dict.fromkeys(name for items in self.sets for name in items.columns))

    @property
    def count(self) -> str:
        """The name of their number in a result."""
        return f"n_{digest(self.text)[:LENGTH]}"

    def counts(self, items: Items) -> str:
        """The name of the number of items of a set in a result."""
        return self.count if len(self.sets) == 1 else f"n_{digest(f'{items.text} of {self.text}')[:LENGTH]}"


@dataclass(frozen=True)
class Total:
    """The sum of a formula over the items of a set."""

    rows: Rows
    items: Items
    formula: Formula

    @cached_property
    def name(self) -> str:
        """Its name in a result, which says what is summed over which columns and rows."""
        return f"s_{digest(f'{told(self.formula)} over {self.items.text} of {self.rows.text}')[:LENGTH]}"


def told(formula: Formula) -> str:
    """A formula of columns in one line."""
    text = SqlPrinter(ENGINES["duckdb"], {name: name for name in symbols(formula)}).text(formula)
    return " ".join(text.split())


def bounds(formula: Formula, longest: Mapping[str, int]) -> Bound:
    """What bounds a formula, if columns are at most as long as ``longest`` says."""
    table = Table()
    position = table.add(formula)
    places = {name: place for place, name in enumerate(dict.fromkeys(symbols(formula)))}
    found = Columnwise(Formulas(table.rows), places, {}).of(position)([Bound(longest[name]) for name in places])
    return found if isinstance(found, Bound) else Bound(abs(int(found)))


def lengths_up_to(totals: Sequence[Total], most: int = LONGEST) -> dict[str, int]:
    """The longest length of each column so that no sum leaves the wide type."""
    longest = {name: most for total in totals for name in total.rows.columns}
    pairs = [(total.formula, WIDE_BITS - ROW_BITS) for total in totals]
    rows = [total.rows for total in totals]
    limits = [*(some.conditions for some in rows), *(items.conditions for some in rows for items in some.sets)]
    pairs += [(part, WIDE_BITS) for some in limits for one in some for part in one.arguments]
    for formula, bits in dict.fromkeys(pairs):
        while bounds(formula, longest).most >= 2**bits:
            names = set(symbols(formula))
            largest = max(longest[name] for name in names)
            if largest < 2:
                raise SymflopsError("a table of lengths is not priced: a sum of the model has more than 38 digits")
            longest |= {name: longest[name] // 2 for name in names if longest[name] == largest}
    return longest


def whole(value: object) -> int | None:
    """A number of a result as an int; None for one that is not whole, such as a float that has lost digits."""
    if value is None:
        return 0
    if isinstance(value, str) and value.lstrip("-").isdecimal():
        return int(value)
    if isinstance(value, (bool, float)) or not isinstance(value, int):
        exact = getattr(value, "as_integer_ratio", None)
        top, bottom = exact() if exact and not isinstance(value, (bool, float)) else (0, 0)
        return int(top) if bottom == 1 else None
    return value


def sum_in(row: Mapping[str, object], total: Total) -> Fraction | int | None:
    """The sum that a row of a result has; None if it has none, or not as a whole number."""
    if isinstance(total.formula, Num):
        name = total.rows.counts(total.items)
        count = whole(row[name]) if name in row else None
        return None if count is None else total.formula.value * count
    if total.name in row:
        return whole(row[total.name])
    halves = [whole(row[f"{total.name}{half}"]) if f"{total.name}{half}" in row else None for half in ("_hi", "_lo")]
    return None if None in halves else (halves[0] << 32) + halves[1]  # type: ignore[operator]
