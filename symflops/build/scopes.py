"""Scopes of entries: values, names and their expressions, the calls and repeats around them, and a limit on their number.

Assignments to the values of a scope can be undone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from sympy import Expr, Symbol

from symflops.formula.domain import Setting
from symflops.formula.evaluate import evaluate
from symflops.formula.expression import Expression, is_constant, names
from symflops.formula.functions import is_index
from symflops.formula.state import WITHOUT, State
from symflops.formula.truth import NO, YES, Truth, UnknownSizeError
from symflops.formula.words import said
from symflops.ir.convention import ROLES
from symflops.ir.nodes import Node, Value
from symflops.ir.patterns import Path, Visit
from symflops.ir.spec import Entry, Repeat, Spec, Template
from symflops.ops.kind import cases
from symflops.read.definition_order import early_value
from symflops.support.findings import Diagnostic, Label, SpecError, did_you_mean

K = TypeVar("K")
V = TypeVar("V")


class Journaled(dict[K, V]):
    """A dictionary that remembers the value before each assignment; keys are assigned and never deleted.

    >>> known = Journaled({"a": 1})
    >>> mark = known.mark
    >>> known["a"], known["b"] = 2, 3
    >>> known.undo(mark), known
    ({'a': 2, 'b': 3}, {'a': 1})
    """

    def __init__(self, items: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        super().__init__(items)
        self._before: list[tuple[K, tuple[V] | tuple[()]]] = []

    def __setitem__(self, key: K, value: V) -> None:
        self._before.append((key, (self[key],) if key in self else ()))
        super().__setitem__(key, value)

    def update(self, items: Any = (), /, **more: V) -> None:
        """Assign several items."""
        for key, value in dict(items, **more).items():
            self[key] = value

    @property
    def mark(self) -> int:
        """The number of assignments so far, which :meth:`undo` takes to restore this state."""
        return len(self._before)

    def assigned_by(self, action: Callable[[], object]) -> dict[K, V]:
        """Run ``action``, undo its assignments, and return them as key -> assigned value."""
        mark = self.mark
        try:
            action()
        finally:
            assigned = self.undo(mark)
        return assigned

    def undo(self, mark: int) -> dict[K, V]:
        """Undo all but the first ``mark`` assignments.

        Returns key -> undone value, in order of first assignment.
        """
        assigned = {key: self[key] for key, _ in self._before[mark:]}
        while len(self._before) > mark:
            key, before = self._before.pop()
            if before:
                super().__setitem__(key, before[0])
            else:
                del self[key]
        return assigned


def as_it_is(value: Any) -> Any:
    """Return ``value`` unchanged: outside of repeats no condition depends on an index."""
    return value


def is_indexed(value: Any, own: Collection[Expr] = ()) -> bool:
    """Whether ``value``, or an item of it, depends on a loop index that is not in ``own``."""
    if isinstance(value, tuple):
        return any(is_indexed(item, own) for item in value)
    return isinstance(value, Expr) and any(is_index(symbol.name) for symbol in value.free_symbols.difference(own))


def without_index(value: Any, expression: Expression, decide: Callable[[Any], Any], own: Collection[Expr] = ()) -> Any:
    """Resolve conditions on loop indices in ``value``; ``own`` are indices that ``expression`` introduces.

    Raises:
        UndecidedError: a segment does not decide a condition.
        UnknownSizeError: the value differs between iterations.
    """
    value = decide(value)
    if is_indexed(value, own):
        message = f"'{expression.text}' is another number in each iteration"
        hint = "the repeat must be over a known list"
        raise UnknownSizeError("", Diagnostic("structural-size", message, expression.span, hint))
    return value


@dataclass(frozen=True, slots=True)
class Binding:
    """The value of a name and the condition under which it is present; :data:`ABSENT` has no value."""

    value: Value | None
    present: Truth = YES


ABSENT = Binding(None, NO)


@dataclass
class Frame:
    """One scope: a document, a block call, the body of a loop, or a branch.

    Attributes:
        path: The module path that relative paths extend.
        names: Values of the names in expressions: sizes, parameters of a block, indices.
        values: Bindings of value names; conditional scopes and iterations share the dictionary and undo their changes.
        nodes: The list to which nodes are added: the graph's body, or a loop's.
        guard: The condition under which the scope runs.
        no_grad: Whether it runs without gradients.
        copies: Leading dimensions of its parameters, one per group of experts around it.
        regions: Regions of the surrounding entries.
        role: The role of linears and convolutions, from the innermost surrounding entry that has one.
        lists: (index, length) of each module list that no repeat iterates over, as of experts.
        sizes: The spec's sizes by name; expressions of the spec's own blocks may use them, too.
        decide: Function that resolves conditions on loop indices in an evaluated expression.
        visits: Surrounding calls that reuse a module from elsewhere in the module tree.
        turns: Surrounding calls that reuse a module: its path and the number of the call.
        state: What the call keeps and continues, by the words of the language.
    """

    path: Path
    names: dict[str, Any]
    values: Journaled[str, Binding]
    nodes: list[Node]
    guard: Truth = YES
    no_grad: bool = False
    copies: tuple[Expr, ...] = ()
    regions: tuple[str, ...] = ()
    role: str = ""
    lists: tuple[tuple[Symbol, Expr], ...] = ()
    sizes: dict[str, Any] = field(default_factory=dict)
    decide: Callable[[Any], Any] = as_it_is
    visits: tuple[Visit, ...] = ()
    turns: tuple[tuple[Path, int], ...] = ()
    state: State = WITHOUT

    def inside(self, **changes: Any) -> Frame:
        """A copy of this scope with other values in the fields ``changes``; ``nodes`` is the same list."""
        found = copy(self)
        found.__dict__.update(changes)
        return found

    def as_a(self, role: str) -> Frame:
        """Copy this scope and add ``role`` as a region, or set it as the role of linears and convolutions."""
        if not role:
            return self
        return self.inside(regions=(*self.regions, role)) if ROLES[role].group == "region" else self.inside(role=role)

    def calling(self, template: Template, path: Path, again: int) -> Frame:
        """The scope of the inside of an entry that calls a module: this scope, if it is the entry's own.

        For a module of another entry, the result is a copy of the scope with the call in ``turns``, and also in ``visits``
        if the path is from the model's root.

        Args:
            template: The path of the module as the spec writes it.
            path: The path of the module.
            again: The number of the call; 0 if the module is the entry's own.
        """
        if not again:
            return self
        visits = (*self.visits, Visit(self.path, path)) if template.text.startswith("/") else self.visits
        return self.inside(visits=visits, turns=(*self.turns, (path, again)))


MAX_CALLS = 4


class Ahead(NamedTuple):
    """The entries of a body (``region``) from ``position`` on."""

    region: Sequence[Entry]
    position: int


class Surroundings:
    """Calls and groups around the entry that is being added to the graph, outermost first, for findings.

    Attributes:
        calls: The block calls around the entry.
        unrolled: (repeat, number of iterations) of the unrolled repeats around the entry.
        ahead: The entries that follow it, and those that follow each entry around it in the same document or block.
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.calls: list[Label] = []
        self.unrolled: list[tuple[Repeat, int]] = []
        self.ahead: list[Ahead] = []
        self._sizes = {key: size.name.text for size in spec.sizes for key in size.keys}

    def explained(self, found: Diagnostic, entry: Entry, frame: Frame) -> Diagnostic:
        """Extend a finding about ``entry``.

        The finding then tells the later entry that binds an unknown value, the size behind an unknown field of the config, and
        the block calls around ``entry``.
        """
        if found.code == "unknown-value":
            found = early_value(found, entry, frame.values, [region[position:] for region, position in self.ahead[::-1]])
        if found.code == "unknown-size" and found.span is not None and found.span.text in self._sizes:
            hint = f"the config's '{found.span.text}' is the size '{self._sizes[found.span.text]}' here"
            found = replace(found, hint=hint)
        return replace(found, also=(*found.also, *self.calls[:-MAX_CALLS:-1])) if self.calls else found

    def too_large(self, message: str) -> Diagnostic:
        """The finding about too many operators, located at the longest unrolled repeat or the outermost call."""
        if not self.unrolled:
            place = self.calls[0].span if self.calls else None
            hint = "a block is written out wherever it is called: one that calls another twice doubles it"
            return Diagnostic("structure-too-large", message, place, hint, also=tuple(self.calls[1:4]))
        repeat, count = max(self.unrolled, key=lambda item: item[1])
        place, fields = repeat.span, []
        if repeat.count is not None:
            place = repeat.count.span
            fields = [f"'{field}'" for field in fields_read(self.spec, repeat.count)]
        source = f"the config says how often with {' and '.join(fields)}; " if fields else ""
        hint = f"{source}no published structure has a quarter of that"
        message = f"{message}: this is written out, and repeats {said(count)} times"
        return Diagnostic("structure-too-large", message, place, hint)


def fields_read(spec: Spec, expression: Expression) -> list[str]:
    """Config fields that an expression depends on, directly or through derived sizes."""
    formulas = {name.text: formula for name, formula in spec.derived}
    keys = {size.name.text: size.keys[0] for size in spec.sizes}
    found: dict[str, None] = {}
    waiting = [name for name, _ in names(expression)]
    while waiting:
        name = waiting.pop(0)
        if name in keys:
            found[keys[name]] = None
        elif name in formulas:
            waiting += [inner for inner, _ in names(formulas.pop(name))]
    return list(found)


MAX_UNROLLED = 512
MAX_OPERATORS = 6_000
"""Four times the largest published structure (checked by a test); a structure of this size is derived within seconds."""


class OperatorLimit:
    """Counts the operators of a graph; no entry is added to a graph with more than ``MAX_OPERATORS``."""

    def __init__(self, surroundings: Surroundings) -> None:
        self.surroundings = surroundings
        self.operators = 0
        self.exceeded: Diagnostic | None = None

    def grow(self, operators: int = 1) -> None:
        """Add ``operators`` to the count; call this before adding them to the graph.

        Raises:
            SpecError: the count exceeds ``MAX_OPERATORS``.
        """
        self.operators += operators
        if self.operators > MAX_OPERATORS:
            message = f"the structure has more than {MAX_OPERATORS:,} operators"
            self.exceeded = self.exceeded or self.surroundings.too_large(message)
            raise SpecError([self.exceeded])


class Evaluator:
    """Evaluates expressions and path templates.

    ``renamed`` are (old, new) prefixes of paths from the root: the spec's, and those of the class of the model.
    """

    def __init__(self, is_poisoned: Callable[[Binding], bool], renamed: tuple[tuple[str, str], ...] = ()) -> None:
        self.is_poisoned = is_poisoned
        self.renamed = renamed
        self._constants: dict[Expression, Any] = {}

    def value(self, expression: Expression, frame: Frame) -> Any:
        """Evaluate ``expression`` and resolve conditions on loop indices."""
        if expression in self._constants:
            return self._constants[expression]
        result = evaluate(expression, frame.names, {"width": partial(self.width, frame)})
        result = without_index(result, expression, frame.decide)
        if isinstance(result, Setting) and result.kind == "number" and not result.nullable:
            result = result.symbol
        if is_constant(expression):
            self._constants[expression] = result
        return result

    def argument(self, expression: Expression, frame: Frame) -> Any:
        """Evaluate an argument of a block; the result may depend on a loop index."""
        result = evaluate(expression, frame.names, {"width": partial(self.width, frame)})
        return result if is_indexed(result) and is_indexed(frame.decide(result)) else self.value(expression, frame)

    def width(self, frame: Frame, walker: Any, node: Any) -> Expr:
        """Evaluate ``width(v)``: the inferred width of a value.

        ``node`` is the call, in an expression that ``walker`` evaluates.
        """
        name = getattr(node.args[0], "id", "") if len(node.args) == 1 else ""
        binding = frame.values.get(name, ABSENT)
        if self.is_poisoned(binding):
            raise SpecError([])  # its cause was reported
        if binding.value is not None and binding.value.width is not None:
            return binding.value.width
        others = [other for other in frame.values if other != name]
        message = f"there is no value '{name}' with a width"
        raise SpecError([Diagnostic("unknown-value", message, walker.expression.place(node), did_you_mean(name, others))])

    def condition(self, expression: Expression | None, frame: Frame) -> Truth:
        """Evaluate a condition; an absent one, ``None``, always holds."""
        if expression is None:
            return YES
        value = self.value(expression, frame)
        if not isinstance(value, Truth):
            message = f"'{expression.text}' is no condition"
            raise SpecError([Diagnostic("bad-condition", message, expression.span, "compare it")])
        return value

    def is_shared(self, fields: Any, frame: Frame) -> bool:
        """Whether the entry has ``shared: true``: it reuses parameters that exist already."""
        return fields.get("shared") is not None and self.condition(fields["shared"], frame) is YES

    def path(self, template: Template, frame: Frame) -> Path:
        """The module path that ``template`` gives an entry; if it depends on conditions, the first."""
        return self.paths(template, frame, frame.path)[0][1]

    def paths(self, template: Template, frame: Frame, base: Path) -> list[tuple[Truth, Path]]:
        """List the paths that a template can be, as (condition, path); relative paths extend ``base``."""
        if template.text == "_":
            return [(YES, base)]
        found: list[tuple[Truth, tuple[str | Expr, ...]]] = [(YES, ())]
        for piece in template.pieces:
            options = self._options(piece, template, frame)
            found = [
                (known & truth, (*parts, _part(option, template)))
                for known, parts in found
                for truth, option in options
                if known & truth is not NO
            ]
        return [(truth, self._joined(parts, base)) for truth, parts in found]

    def _options(self, piece: str | Expression, template: Template, frame: Frame) -> tuple[tuple[Truth, Any], ...]:
        """Evaluate a text or an expression of ``template`` into (condition, value) pairs.

        Each value is the path's part under its condition; a text has one pair.
        """
        value = piece if isinstance(piece, str) else frame.decide(evaluate(piece, frame.names))
        value = value.symbol if isinstance(value, Setting) and value.kind == "number" else value
        if isinstance(value, Setting):
            message = f"'{value.name}' is part of a path"
            raise UnknownSizeError(value.name, Diagnostic("structural-size", message, template.span))
        return cases(value)

    def _joined(self, parts: tuple[str | Expr, ...], base: Path) -> Path:
        if parts and isinstance(parts[0], str) and parts[0].startswith("/"):
            base, parts = Path(()), (parts[0][1:], *parts[1:])
        if self.renamed and not base.parts and parts and isinstance(parts[0], str):
            parts = (self._renamed(parts[0]), *parts[1:])
        return base.extend(parts) if any(part != "" for part in parts) else Path(())

    def _renamed(self, text: str) -> str:
        """Replace the prefix of ``text``, the beginning of a path from the root, as ``renamed`` says."""
        for old, new in self.renamed:
            if text == old or text.startswith(f"{old}."):
                return (new + text.removeprefix(old)).removeprefix(".")
        return text


def _part(piece: Any, template: Template) -> str | Expr:
    if isinstance(piece, Expr):
        return str(piece) if piece.is_Integer else piece
    if isinstance(piece, str):
        return piece
    message = f"a path cannot hold {str(piece)[:40]!r}: it is made of texts and whole numbers"
    raise SpecError([Diagnostic("bad-path", message, template.span, "the config gives another kind of value here")])
