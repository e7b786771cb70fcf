"""What a graph under construction holds, and the way back when a repeat is built anew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sympy import Expr, Symbol

from symflops.algebra.functions import size_symbol
from symflops.algebra.truth import NO, YES
from symflops.build.expressions import Meaning
from symflops.build.limits import MAX_OPERATORS, Oversized
from symflops.build.scopes import Binding, Frame
from symflops.build.streams import Streams
from symflops.diagnostics.findings import Diagnostic, Label, Reporter, SpecError
from symflops.model.nodes import Parameter, Stream, Value
from symflops.model.path import Path
from symflops.model.spec import Entry, Name, OperatorEntry, Repeat
from symflops.ops.kind import Call, Definitions
from symflops.ops.stacks import Stacks


class Mark(NamedTuple):
    """A point to come back to."""

    values: int
    parameters: dict[Path, tuple[tuple[Parameter, bool], ...]]
    diagnostics: list[Diagnostic]
    nodes: int
    bindings: dict[str, Binding]
    stacks: dict[str, list[Any]]
    placed: int


class Registry(Meaning):
    """Values, parameters and indices, each made once."""

    def __init__(self, report: Reporter, definitions: Definitions, streams: Streams, patterns: Sequence[str] = ()) -> None:
        super().__init__()
        self.report = report
        self.definitions = definitions
        self.streams = streams
        self.values: list[Value] = []
        self.count = 0
        self.placed = 0
        self.written: list[tuple[Repeat, int]] = []  # the repeats around that are written out, with their iterations
        self.parameters: dict[Path, tuple[tuple[Parameter, bool], ...]] = {}
        self.indices: dict[tuple[Any, ...], Symbol] = {}
        self.patterns = tuple(patterns)
        self.chosen: dict[Expr, frozenset[str]] = {}
        self.listed: dict[tuple[Path, int], frozenset[str]] = {}
        self.returned: set[int] = set()
        self.sharing = 0
        self.depth = 0
        self.stacks = Stacks()
        self.poisoned: set[int] = set()  # values that stand for what a faulty entry would have made
        self.keys: Mapping[str, str] = {}  # fields of a config, and the size that is read from each
        self.calls: list[Label] = []
        self.ahead: list[Sequence[Entry]] = []

    def index(self, path: Path, *key: Any) -> Symbol:
        """The index of a loop: the same for the same run of the same module list, which has the same parameters."""
        known = (path, self.depth, *key)
        name = key[-1].text if isinstance(key[-1], Name) else "i"
        return self.indices.setdefault(known, size_symbol(f"{name}@{len(self.indices) + 1}_"))

    def mark(self, frame: Frame) -> Mark:
        """Where the graph stands, to come back to when a repeat is built anew."""
        here = (len(frame.nodes), dict(frame.values), self.stacks.copy(), self.placed)
        return Mark(len(self.values), dict(self.parameters), list(self.report.diagnostics), *here)

    def reset(self, mark: Mark, frame: Frame) -> None:
        """Forget what was placed since ``mark``."""
        del self.values[mark.values :]
        self.placed = mark.placed
        self.returned = {value for value in self.returned if value < mark.values}
        del frame.nodes[mark.nodes :]
        self.parameters = dict(mark.parameters)
        self.report.restore(mark.diagnostics)
        frame.values.clear()
        frame.values.update(mark.bindings)
        self.stacks.lists = {name: list(entries) for name, entries in mark.stacks.items()}

    def new_value(self, name: str, stream: Stream, width: Expr | None, span: Any = None) -> Value:
        """One more value."""
        value = Value(len(self.values), name, stream, width, span)
        self.values.append(value)
        return value

    def poison(self, names: Iterable[str], frame: Frame) -> None:
        """Bind ``names`` to nothing in particular, so that no second finding follows from the one about what makes them."""
        for name in names:
            value = self.new_value(name, self.streams.declared["once"], None)
            self.poisoned.add(value.id)
            frame.values[name] = Binding(value, NO)

    def refuse_poison(self, bindings: Iterable[Binding]) -> None:
        """Refuse what rests on a faulty entry, without a word: that one's own finding is enough."""
        if any(binding.value is not None and binding.value.id in self.poisoned for binding in bindings):
            raise SpecError([])

    def number(self) -> int:
        """A fresh number for a node."""
        self.count += 1
        return self.count

    def grow(self, operators: int = 1) -> None:
        """Count operators that are about to be placed.

        Raises:
            Oversized: they are too many.
        """
        self.placed += operators
        if self.placed > MAX_OPERATORS:
            raise Oversized(self.written, self.calls)

    def declare(self, entry: OperatorEntry, frame: Frame, call: Call) -> None:
        """Enter the parameters: a path has one shape at a time, and is used twice only where the spec says so."""
        tied = {name for name in ("weight", "bias_name") if entry.fields.get(name)}
        shared = self.sharing or self.shares(entry.fields, frame)
        for position, parameter in enumerate(call.parameters):
            shape = (*frame.copies, *parameter.shape)
            lists = tuple(entry for entry in frame.lists if entry[0] in parameter.path.indices)
            exists = parameter.exists & frame.guard
            if frame.copies or lists or exists is not parameter.exists:
                parameter = replace(parameter, shape=shape, exists=exists, lists=lists)
            call.parameters[position] = parameter
            known = self.parameters.get(parameter.path, ())
            same = next((item for item in known if self.alike(item[0].shape, parameter.shape)), None)
            if same is None:
                self.another_shape(parameter, known, call)
                self.parameters[parameter.path] = (*known, (parameter, bool(tied)))
                continue
            call.parameters[position] = replace(parameter, shape=same[0].shape)
            if not shared and not tied and not same[1] and same[0].exists & parameter.exists is not NO:
                hint = "if the model calls this module twice, write 'shared: true'"
                also = claimed(same[0])
                call.fail("parameter-twice", f"parameter '{parameter.path}' is claimed twice", "", hint, also=also)

    def shares(self, fields: Any, frame: Frame) -> bool:
        """Whether an entry says that it uses parameters a second time."""
        return fields.get("shared") is not None and self.condition(fields["shared"], frame) is YES

    def alike(self, one: tuple[Expr, ...], other: tuple[Expr, ...]) -> bool:
        """Whether two shapes are the same for all sizes."""
        return len(one) == len(other) and all(self.definitions.equal(a, b) for a, b in zip(one, other, strict=True))

    def another_shape(self, parameter: Parameter, known: tuple[tuple[Parameter, bool], ...], call: Call) -> None:
        """Refuse a second shape where the parameter may have the first one at the same time."""
        for other, _ in known:
            if other.exists & parameter.exists is not NO:
                shapes = f"{list(other.shape)} and {list(parameter.shape)}"
                hint = "a parameter has one shape: is one of the two paths, or widths, another?"
                call.fail(
                    "parameter-shape", f"parameter '{parameter.path}' has two shapes, {shapes}", "", hint, also=claimed(other)
                )


def claimed(parameter: Parameter) -> tuple[Label, ...]:
    """Where a parameter was claimed, as a further place of a finding."""
    shape = ", ".join(str(size) for size in parameter.shape)
    return (Label(parameter.span, f"first claimed here, with shape [{shape}]"),) if parameter.span else ()
