"""Declared streams and batch variables, and the streams that operators derive from them."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sympy import Add, Expr, Integer, Symbol
from sympy.core.symbol import Str

from symflops.build.scopes import Frame, as_it_is, without_index
from symflops.formula.evaluate import evaluate
from symflops.formula.expression import Expression, names
from symflops.formula.functions import Longest, Together, size_symbol
from symflops.formula.polynomial import Polynomial
from symflops.formula.state import PREDICTED
from symflops.ir.graph import Length
from symflops.ir.index_sets import ONCE, SAMPLES
from symflops.ir.nodes import Part, Stream
from symflops.ir.spec import Name, PartSpec, Spec, StreamSpec
from symflops.ops.kind import Call
from symflops.support.findings import Diagnostic, Reporter, SpecError, did_you_mean

Function = Callable[[Any, Any], Expr]
RENAMED = "{op: reshape, from: b, stream: {m: tokens}} gives the rows of a value b the name m"
LENGTH = "a length is a batch variable, a size, or arithmetic over these"


class Streams:
    """The declared streams, and the batch variables in their lengths."""

    def __init__(self, spec: Spec, sizes: MutableMapping[str, Any], report: Reporter) -> None:
        self.declared: dict[str, Stream] = {"once": Stream(ONCE, (Part(()),))}
        self.lengths: dict[str, Length] = {}
        self.variables: dict[str, Symbol] = {}
        self.sizes = sizes
        self.report = report
        self.introduced: set[tuple[str, Expr]] = set()  # axes that share a batch variable's name but have another length
        self.owners: dict[
            tuple[str, str], tuple[StreamSpec, str, str]
        ] = {}  # (index set, length) -> (stream, stream name, axis)
        for stream in spec.streams:
            for axis, length in (pair for part in stream.parts for pair in part.axes):
                self.owners.setdefault((stream.over, length.text), (stream, stream.name.text, axis.text))
        for stream in spec.streams:
            with report.collecting():
                self.declared[stream.name.text] = self.declare(stream)

    def declare(self, spec: StreamSpec) -> Stream:
        """Make the stream that ``spec`` declares; names in its lengths that are not sizes are batch variables."""
        self.introduce_lengths(spec)
        parts = []
        for part in spec.parts:
            axes = []
            for axis, expression in part.axes:
                axes.append((axis.text, self.length(expression, {})))
                self.introduce(*axes[-1])
                if spec.over == ONCE and self.of_items(axes[-1][1]):
                    message = f"'{expression.text}' is of one item, and stream '{spec.name}' is there once per batch"
                    raise _error("length-of-items", message, expression.span, "longest(...) is that of the longest item")
            parts.append(Part(tuple(axes)))
        return Stream(spec.over, tuple(parts))

    def declare_head(self) -> None:
        """Declare the stream ``head``, in which a batch gives the number of tokens on which the head of each sample runs."""
        name = PREDICTED.name
        self.declared["head"] = Stream(SAMPLES, (Part(((name, PREDICTED),)),))
        self.variables[name], self.lengths[name] = PREDICTED, Length(PREDICTED, SAMPLES, "head", name)

    def introduce_lengths(self, spec: StreamSpec, around: tuple[StreamSpec, ...] = ()) -> None:
        """Add the batch variables in the lengths of a stream to ``lengths``.

        A variable belongs to the axis, of any stream, that has just this variable as its length. The stream with that axis is
        treated first; ``around`` are the streams that wait for it.
        """
        for axis, expression in (pair for part in spec.parts for pair in part.axes):
            for name, span in names(expression):
                if name in self.sizes:
                    continue
                owner, *named = self.owners.get((spec.over, name), (spec, spec.name.text, axis.text))
                if name not in self.lengths and owner not in (spec, *around) and expression.text != name:
                    self.introduce_lengths(owner, (spec, *around))
                known = self.lengths.get(name)
                if spec.over == ONCE and not known:
                    raise _error("unknown-size", f"'{name}' is no size, and stream '{spec.name}' has no items to measure", span)
                if known and spec.over not in (ONCE, known.items):
                    message = f"'{name}' measures items of '{known.items}' already"
                    raise _error("length-reused", message, span, "give each index set its own batch variables")
                if not known:
                    self.variables[name] = size_symbol(name)
                    self.lengths[name] = Length(self.variables[name], spec.over, *named)

    def of_items(self, length: Expr) -> bool:
        """Whether a length differs between the items of a batch."""
        of_all = length.replace(Longest, lambda _: Integer(0)).replace(Together, lambda *_: Integer(0))
        return any(map(self.measures, of_all.free_symbols))

    def introduce(self, axis: str, length: Expr, before: Expr | None = None) -> None:
        """Record an axis that shadows a batch variable of the same name but another length.

        An axis that already existed with length ``before`` and is resized (``h: h//2``) keeps meaning its current length,
        unless it shadows a batch variable already, or the new length is made of other batch variables.
        """
        own = self.variables.get(axis)
        if own is None or length == own:
            return
        other = own not in length.free_symbols and self.of_items(length)
        if before is None or other or (axis, before) in self.introduced or self.is_product(length):
            self.introduced.add((axis, length))

    def is_product(self, length: Expr) -> bool:
        """Whether a term of the length multiplies several batch variables."""
        return any(
            sum(exponent for atom, exponent in term if any(map(self.measures, atom.free_symbols))) > 1
            for term in Polynomial.of(length).terms
        )

    def measures(self, symbol: Symbol) -> bool:
        """Whether ``symbol`` is a batch variable of these streams."""
        return bool(self.variables.get(symbol.name) == symbol)

    def longest(self, length: Expr) -> Expr:
        """The maximum of ``length`` over the batch; a length that is equal for all items stays unchanged."""
        return Longest(Polynomial.of(length).expr) if self.of_items(length) else length

    def evaluate_longest(self, walker: Any, node: Any) -> Expr:
        """Evaluate ``longest(x)``: the maximum of a length over all items.

        ``node`` is the call, in an expression that ``walker`` evaluates.
        """
        return self.longest(self._of_one_set(walker, node, "longest")[0])

    def evaluate_together(self, walker: Any, node: Any) -> Expr:
        """Evaluate ``together(x)``: the sum of a length over all items; arguments as of :meth:`evaluate_longest`."""
        length, sets = self._of_one_set(walker, node, "together")
        if not sets:
            walker.fail("bad-expression", "together takes a length of items", node)
        return Together(Str(sets[0]), Polynomial.of(length).expr)

    def _of_one_set(self, walker: Any, node: Any, function: str) -> tuple[Expr, list[str]]:
        """Evaluate the only argument of a call of ``function``, a length.

        Returns the length, and a list with the index set whose items it measures. The list is empty if the length has no
        batch variable.
        """
        if len(node.args) != 1:
            walker.fail("bad-expression", f"{function} takes one length", node)
        length: Expr = walker.number(walker.visit(node.args[0]), node)
        sets = sorted({self.lengths[symbol.name].items for symbol in length.free_symbols if self.measures(symbol)})
        if len(sets) > 1:
            walker.fail("index-set-mismatch", f"these are lengths of {' and '.join(sets)}", node)
        return length, sets

    def length(
        self,
        expression: Expression,
        axes: Mapping[str, Expr],
        sizes: MutableMapping[str, Any] | None = None,
        axis: str = "",
        decide: Callable[[Any], Any] = as_it_is,
        calls: Mapping[str, Function] | None = None,
    ) -> Expr:
        """Evaluate the length of ``axis`` in terms of sizes, batch variables and ``axes``.

        Args:
            expression: The length.
            axes: Axis -> length of the axes that the expression may name.
            sizes: Values of further names, by default those of the spec's sizes.
            axis: The axis; its own name may stand for the batch variable that it shadows.
            decide: Function that resolves conditions on loop indices.
            calls: Further functions of expressions, by name.
        """
        scope = ChainMap[str, Any]({**axes}, self.variables, self.sizes if sizes is None else sizes)
        for name, span in names(expression):
            if name != axis and (name, axes.get(name)) in self.introduced:
                message = f"'{name}' is the axis here, of length {axes[name]}, and not the '{name}' of the batch"
                self.report.error("shadowed-length", message, span, "give the axis another name", severity="warning")
        functions = {"longest": self.evaluate_longest, **(calls or {})}
        value = without_index(evaluate(expression, scope, functions), expression, decide)
        if not isinstance(value, Expr):
            raise _error("bad-length", f"'{expression.text}' is not a length", expression.span, LENGTH)
        return value


def declared_as(name: str) -> str:
    """The hint that explains how to declare a stream."""
    return f"declare it under 'streams': '{name}: [x]', or '{name}: []' for one row per sample"


class StreamScope:
    """Finds the streams that one operator names, and makes those that it derives from its operands.

    ``width`` is the function that evaluates ``width(v)`` in expressions.
    """

    def __init__(self, streams: Streams, frame: Frame, width: Function) -> None:
        self.streams, self.sizes, self.decide, self.calls = streams, frame.names, frame.decide, {"width": width}

    def named(self, name: str, call: Call) -> Stream:
        """Look up the declared stream ``name``; fails with a hint if unknown."""
        if name not in self.streams.declared:
            hint = did_you_mean(name, self.streams.declared, declared_as(name))
            call.fail("unknown-stream", f"there is no stream '{name}'", "stream", hint)
        return self.streams.declared[name]

    def resolve(self, field: Name | tuple[PartSpec, ...], old: Stream, call: Call, others: Iterable[Stream] = ()) -> Stream:
        """Look up a stream by its name, or make one with the given axes for the items of ``old``.

        The lengths may name axes of ``old`` and, where these lack the name, of ``others``.
        """
        if isinstance(field, Name):
            return self.named(field.text, call)
        further = {name: length for name, length in axes_of(*others).items() if name not in self.sizes}
        scope = {**further, **axes_of(old), "tokens": old.rows}
        parts = tuple(self.part(part, scope, old.items) for part in field)
        for name, length in (axis for part in parts for axis in part.axes):
            self.streams.introduce(name, length, axes_of(old).get(name))
        return Stream(old.items, parts)

    def declared(self, expression: Expression) -> Stream | None:
        """The declared stream that an expression names, unless a size or a batch variable has its name."""
        name = expression.text
        return None if name in self.sizes or name in self.streams.variables else self.streams.declared.get(name)

    def value(self, expression: Expression, stream: Stream, **more: Expr) -> Any:
        """Evaluate an expression that may name the axes of ``stream``, ``tokens`` (its rows), and ``more``.

        Names in ``more`` are indices of loops: the result may depend on them.
        """
        own = {**axes_of(stream), "tokens": stream.rows, **more}
        value = evaluate(expression, ChainMap[str, Any](own, self.streams.variables, self.sizes), self.calls)
        return self.fitting(without_index(value, expression, self.decide, tuple(more.values())), stream.items, expression)

    def lengths(self, expression: Expression, named: Sequence[Stream], others: Iterable[Stream] = ()) -> tuple[Expr, ...]:
        """Evaluate a list of lengths.

        Its names are axes of the streams ``named``, ``tokens`` (the rows of the first), batch variables, sizes, and last axes
        of the streams ``others``. A batch variable that hides an axis of ``others`` is a warning.
        """
        own = {**axes_of(*reversed(named)), "tokens": named[0].rows}
        for name, span in names(expression):
            seen = named if name in self.streams.variables else (*named, *others)
            if len({axes_of(stream)[name] for stream in seen if name in axes_of(stream)}) > 1:
                raise _error("shadowed-length", f"'{name}' is an axis of two values here, of different lengths", span, RENAMED)
            hidden = [length for stream in others for axis, length in axes_of(stream).items() if axis == name]
            meant = self.streams.variables.get(name)
            if name not in own and meant is not None and hidden and meant not in hidden:
                message = f"'{name}' is the '{name}' of the batch here, and not the axis of length {hidden[0]}"
                hint = "'axes_of' names the values whose axes are meant; or give the axis another name"
                self.streams.report.error("shadowed-length", message, span, hint, severity="warning")
        scope = ChainMap[str, Any](own, self.streams.variables, self.sizes, axes_of(*others))
        with naming_axes([*own, *axes_of(*others)]):
            value = without_index(evaluate(expression, scope, self.calls), expression, self.decide)
        found = value if isinstance(value, tuple) else (value,)
        if not all(isinstance(item, Expr) for item in found):
            raise _error("bad-length", f"'{expression.text}' is not a list of lengths", expression.span, LENGTH)
        return tuple(self.fitting(item, named[0].items, expression) for item in found)

    def fitting(self, length: Any, items: str, expression: Expression) -> Any:
        """Return ``length``, the value of ``expression``.

        Refuse it if it differs between the items of a batch while the index set ``items`` is ``once``.
        """
        if items == ONCE and isinstance(length, Expr) and self.streams.of_items(length):
            message = f"'{expression.text}' has the length {length} of one item, and here all items of the batch are together"
            raise _error("length-of-items", message, expression.span, f"'tokens' are all rows of the first value; {RENAMED}")
        return length

    def replace(self, field: Name | tuple[PartSpec, ...], old: Stream, call: Call) -> Stream:
        """Replace the lengths of some axes of ``old``; each of its parts must have these axes."""
        if isinstance(field, Name):
            call.fail("bad-field", f"'{field}' is no axis with a length", "axes", "such as {h: h//2, w: w//2}")
        parts = []
        for part in old.parts:
            axes = dict(part.axes)
            for name, expression in field[0].axes:
                if name.text not in axes:
                    known = ", ".join(axes)
                    call.fail("unknown-axis", f"the stream has no axis '{name}'", "axes", f"it has {known}")
                axes[name.text] = self._length(expression, dict(part.axes), name.text, old.items)
                self.streams.introduce(name.text, axes[name.text], dict(part.axes)[name.text])
            parts.append(Part(tuple(axes.items())))
        return Stream(old.items, tuple(parts))

    def resized(self, axis: str, length: Expr, before: Expr) -> tuple[str, Expr]:
        """Return (axis, new length) of an axis that was ``before`` long, after noting whether it shadows a batch variable."""
        self.streams.introduce(axis, length, before)
        return axis, length

    def padded(self, stream: Stream) -> Stream:
        """Pad each item of ``stream`` along each axis to the longest of the batch.

        A stream of several parts becomes one part with the single axis ``tokens``.
        """
        axes = stream.parts[0].axes if len(stream.parts) == 1 else (("tokens", stream.rows),)
        return Stream(stream.items, (Part(tuple((name, self.streams.longest(length)) for name, length in axes)),))

    def together(self, stream: Stream) -> Stream:
        """The stream flattened over the batch: one axis with the rows of all items, named after the index set."""
        items, measures = Str(stream.items), self.streams.measures
        parts = Polynomial.of(stream.rows).split(lambda atom: any(map(measures, atom.free_symbols)))
        sums = (part.expr * Together(items, Polynomial({rows: Fraction(1)}).expr) for rows, part in parts.items())
        return Stream(ONCE, (Part(((stream.items, Add(*sums)),)),))

    def part(self, spec: PartSpec, scope: Mapping[str, Expr], items: str) -> Part:
        """Make the part that ``spec`` describes; ``scope`` has the values of names in its lengths."""
        return Part(tuple((name.text, self._length(value, scope, name.text, items)) for name, value in spec.axes))

    def _length(self, expression: Expression, axes: Mapping[str, Expr], axis: str, items: str) -> Expr:
        with naming_axes(axes):
            found = self.streams.length(expression, axes, self.sizes, axis, self.decide, self.calls)
        length: Expr = self.fitting(found, items, expression)
        return length


def axes_of(*streams: Stream) -> dict[str, Expr]:
    """Map axes of the single-part ``streams`` to lengths; of two equal names, the last stream's is taken."""
    return {name: length for stream in streams if len(stream.parts) == 1 for name, length in stream.parts[0].axes}


@contextmanager
def naming_axes(axes: Iterable[str]) -> Iterator[None]:
    """Context in which findings about an unknown name list the known axes."""
    try:
        yield
    except SpecError as error:
        known = ", ".join(f"'{name}'" for name in dict.fromkeys(axes))
        hint = f"the axes here are {known}; or " if known else ""
        found = (replace(one, hint=hint + one.hint) if one.code == "unknown-size" else one for one in error.diagnostics)
        raise SpecError(found) from None


def _error(code: str, message: str, span: Any, hint: str = "") -> SpecError:
    return SpecError([Diagnostic(code, message, span, hint)])
