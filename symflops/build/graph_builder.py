"""The graph under construction: values, node numbers, loop indices, chosen iterations, and parameters by path."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sympy import Expr, Symbol

from symflops.build.scopes import Binding, Frame, Journaled
from symflops.formula.definitions import Definitions
from symflops.formula.functions import Excess, Reading, is_index, size_symbol
from symflops.formula.truth import NO, YES, Truth
from symflops.formula.words import said
from symflops.ir.graph import Limit
from symflops.ir.index_sets import ONCE
from symflops.ir.nodes import Parameter, Part, Stream, Value
from symflops.ir.patterns import Path, selectors
from symflops.ir.spec import Entry, Name, Repeat, SizeSpec
from symflops.ops.kind import Call
from symflops.read.definition_order import assigned, named_results
from symflops.support.findings import Label


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
        """Demand that a number is not negative where ``guard`` holds; ``text`` is the error if it is.

        A number that depends on a loop index or on an item of a list is not checked.
        """
        if not count.is_nonnegative and not (count.has(Reading) or any(is_index(one.name) for one in count.free_symbols)):
            self.fits.setdefault(Excess(-count) * guard.expr, text)

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


Claims = tuple[tuple[Parameter, bool], ...]
"""(parameter, whether the spec gives its path) for each shape of the parameters at one path."""


class ParameterTable:
    """The parameters of the graph under construction, checked when an operator claims them.

    A path has one shape under one condition, and two operators use it only if the spec says that they share it.

    Attributes:
        claims: Path -> the parameters claimed so far, with different shapes.
        sharing: The number of entries around the current one that reuse parameters (``shared: true``).
        turns: The repeats around the current entry, each with the index of its iteration.
    """

    def __init__(self, definitions: Definitions) -> None:
        self.definitions = definitions
        self.claims: Journaled[Path, Claims] = Journaled()
        self.sharing = 0
        self.turns: list[tuple[Repeat, Expr]] = []

    def claim(self, call: Call, frame: Frame, tied: bool, shared: bool) -> None:
        """Add the parameters that an operator declares to the table; ``call`` then has those of the table.

        ``tied``: whether the spec gives their paths. ``shared``: whether the operator reuses parameters.
        """
        for position, parameter in enumerate(call.parameters):
            lists = tuple(entry for entry in frame.lists if entry[0] in parameter.path.indices)
            exists = parameter.exists & frame.guard
            if frame.copies or lists or exists is not parameter.exists:
                leading = frame.copies if parameter.stacked else ()
                parameter = replace(parameter, shape=(*leading, *parameter.shape), exists=exists, lists=lists)
            call.parameters[position] = parameter
            known = self.claims.get(parameter.path, ())
            same = next((item for item in known if self._alike(item[0].shape, parameter.shape)), None)
            if same is None:
                self._check_shapes(parameter, known, call)
                if not (shared or self.sharing or tied):
                    self._check_turns(parameter, call)
                self.claims[parameter.path] = (*known, (parameter, tied))
                continue
            call.parameters[position] = replace(parameter, shape=same[0].shape)
            repeated = shared or self.sharing or tied or same[1]
            if not repeated and same[0].exists & parameter.exists is not NO:
                hint = self._without_path() or "if the model calls this module twice, write 'shared: true'"
                message = f"parameter '{parameter.path}' is claimed twice"
                call.fail("parameter-twice", message, "", hint, also=_claimed_at(same[0]))

    def _check_turns(self, parameter: Parameter, call: Call) -> None:
        """Refuse a parameter shared by all iterations of a repeat because its path lacks the index."""
        for entry, index in self.turns:
            used = parameter.path.indices
            if entry.count is not None and index.free_symbols and index.free_symbols.isdisjoint(used):
                hint = self._without_path() or "if all iterations use one module, write 'shared: true'"
                call.fail("parameter-twice", f"all iterations of a repeat have one parameter '{parameter.path}'", "", hint)

    def _without_path(self) -> str:
        """The hint to write an index in paths, if the surrounding repeat has no path; else empty.

        Repeats whose iterations share their parameters are skipped.
        """
        entry = next((entry for entry, _ in reversed(self.turns) if not entry.shared), None)
        if entry is None or entry.path.text != "_":
            return ""
        index = entry.index.text if entry.index else "j"
        named = "" if entry.index else f" and 'index: {index}'"
        told = f"the repeat has no path: begin the paths in it with its index, as '{{{index}}}.name'{named}"
        return f"{told}; if all iterations use one module, write 'shared: true' at the repeat"

    def _alike(self, one: tuple[Expr, ...], other: tuple[Expr, ...]) -> bool:
        """Whether two shapes are equal for all sizes."""
        return len(one) == len(other) and all(self.definitions.equal(a, b) for a, b in zip(one, other, strict=True))

    def _check_shapes(self, parameter: Parameter, known: Claims, call: Call) -> None:
        """Refuse ``parameter`` if its path has another shape in ``known`` and both can exist at once."""
        for other, _ in known:
            if other.exists & parameter.exists is not NO:
                message = f"parameter '{parameter.path}' has two shapes, {_shape(other)} and {_shape(parameter)}"
                hint = "a parameter has one shape: is one of the two paths, or widths, another?"
                call.fail("parameter-shape", message, "", hint, also=_claimed_at(other))


def _claimed_at(parameter: Parameter) -> tuple[Label, ...]:
    """Where ``parameter`` was first claimed, as a further label of a finding; empty if unknown."""
    return (Label(parameter.span, f"first claimed here, with shape {_shape(parameter)}"),) if parameter.span else ()


def _shape(parameter: Parameter) -> str:
    return f"[{', '.join(map(said, parameter.shape))}]"
