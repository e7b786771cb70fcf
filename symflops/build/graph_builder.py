"""The graph under construction: its values, the numbers of its nodes, its loop indices, and its choices of iterations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sympy import Expr, Symbol

from symflops.build.scopes import Binding, Frame
from symflops.formula.functions import Excess, Reading, is_index, size_symbol
from symflops.formula.truth import NO, YES, Truth
from symflops.ir.graph import Limit
from symflops.ir.index_sets import ONCE
from symflops.ir.nodes import Part, Stream, Value
from symflops.ir.patterns import Path, selectors
from symflops.ir.spec import Entry, Name, SizeSpec
from symflops.read.bound_names import assigned, named_results


class GraphBuilder:
    """Creates the values, node numbers and loop indices of one graph.

    Attributes:
        counts: Numbers of iterations of the loops around the entry that is now added, outermost first.
        chosen: Index of a loop's iterations -> the regime's selectors (``:8`` of ``blocks.:8.*``) that choose them.
        listed: (module list, index) of an unrolled iteration -> the regime's selectors that choose it.
        lists: The module lists at whose index a selector would have an effect.
        returned: Ids of the values that an unrolled iteration passes to the next.
        poisoned: Ids of the values that stand for the results of faulty entries.
        left_out: Sizes of parts that the regime does not run, if a repeat without iterations reads them.
        fits: Expression of sizes that must be 0 -> the error text if it is not.
        limits: Conditions on the lengths of an item.
    """

    def __init__(self, apart: Iterable[SizeSpec] = (), patterns: tuple[str, ...] = ()) -> None:
        self.patterns = patterns
        self.lists: dict[Path, None] = {}
        self.apart = {size.name.text for size in apart}
        self.left_out: dict[str, None] = {}
        self.values: list[Value] = []
        self.nodes = 0
        self.counts: list[Expr] = []
        self.indices: dict[tuple[Any, ...], Symbol] = {}
        self.chosen: dict[Expr, frozenset[str]] = {}
        self.listed: dict[tuple[Path, int], frozenset[str]] = {}
        self.returned: dict[int, None] = {}
        self.poisoned: set[int] = set()
        self.fits: dict[Expr, str] = {}
        self.limits: list[Limit] = []

    def demand_count(self, count: Expr, guard: Truth, text: str) -> None:
        """Demand that a repeat's count is not negative where ``guard`` holds.

        A count that depends on a loop index or on an item of a list is not checked. ``text`` is the count as written.
        """
        if not count.is_nonnegative and not (count.has(Reading) or any(is_index(one.name) for one in count.free_symbols)):
            self.fits.setdefault(Excess(-count) * guard.expr, f"'repeat: {text}' is negative")

    def demand(self, condition: Truth, text: str) -> None:
        """Demand that a condition on sizes holds; ``text`` is the error if it does not."""
        if condition is not YES:
            self.fits.setdefault((~condition).expr, text)

    def leave_out(self, letters: Iterable[str]) -> None:
        """Record which of ``letters``, read by a repeat without iterations, are sizes of optional parts."""
        self.left_out |= {letter: None for letter in letters if letter in self.apart}

    def selectors(self, module_list: Path) -> tuple[str, ...]:
        """The parts of the regime's patterns that select by the index of ``module_list``, such as ``:8``."""
        self.lists[module_list] = None
        return selectors(self.patterns, module_list)

    def number(self) -> int:
        """Return a fresh node number."""
        self.nodes += 1
        return self.nodes

    def index(self, path: Path, *key: Any) -> Symbol:
        """The index symbol of a loop over the module list ``path``.

        Loops with the same ``key`` (bounds, and the index's name last) share the symbol, since they share parameters.
        """
        known = (path, len(self.counts), *key)
        name = key[-1].text if isinstance(key[-1], Name) else "i"
        return self.indices.setdefault(known, size_symbol(f"{name}@{len(self.indices) + 1}_"))

    def value(self, name: str, stream: Stream, width: Expr | None, span: Any = None) -> Value:
        """Create a value with the next id."""
        value = Value(len(self.values), name, stream, width, span)
        self.values.append(value)
        return value

    def truncate(self, values: int, returned: int) -> None:
        """Keep only the first ``values`` values and the first ``returned`` entries of :attr:`returned`."""
        del self.values[values:]
        while len(self.returned) > returned:
            self.returned.popitem()

    def poison(self, names: Iterable[str], frame: Frame) -> None:
        """Bind ``names`` to stand-ins for the results of a faulty entry.

        Entries that read a stand-in are not reported, so that one faulty entry causes one finding.
        """
        for name in names:
            value = self.value(name, Stream(ONCE, (Part(()),)), None)
            self.poisoned.add(value.id)
            frame.values[name] = Binding(value, NO)

    def abandon(self, entry: Entry, frame: Frame) -> None:
        """Bind the results of a faulty entry to stand-ins, as :meth:`poison` does."""
        self.poison((named_results(entry) & frame.values.keys()) | (assigned([entry]) - frame.values.keys()), frame)

    def is_poisoned(self, binding: Binding) -> bool:
        """Whether the bound value stands in for the result of a faulty entry."""
        return binding.value is not None and binding.value.id in self.poisoned
