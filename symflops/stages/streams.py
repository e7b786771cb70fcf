"""Streams by name and by axes: what a declared stream is, and what views make of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Expr

from symflops.algebra.evaluate import evaluate
from symflops.algebra.functions import Longest, size_symbol
from symflops.algebra.polynomial import Polynomial
from symflops.ground.diagnostics import Reporter, SpecError, did_you_mean
from symflops.ground.expression import Expression, names
from symflops.model.graph import ONCE, Length, Part, Stream
from symflops.model.spec import Name, PartSpec, Spec, StreamSpec
from symflops.ops.kind import Call


class Streams:
    """The declared streams and the batch variables that they are made of."""

    def __init__(self, spec: Spec, sizes: Mapping[str, Any], report: Reporter) -> None:
        self.declared: dict[str, Stream] = {"once": Stream(ONCE, (Part(()),))}
        self.lengths: dict[str, Length] = {}
        self.sizes = sizes
        for stream in spec.streams:
            try:
                self.declared[stream.name.text] = self.declare(stream)
            except SpecError as error:
                for diagnostic in error.diagnostics:
                    report.add(diagnostic)

    def declare(self, spec: StreamSpec) -> Stream:
        """A declared stream; a name in an axis that is no size is a batch variable of its index set."""
        parts = []
        for part in spec.parts:
            axes = []
            for axis, expression in part.axes:
                for name, span in names(expression):
                    if name in self.sizes:
                        continue
                    known = self.lengths.get(name)
                    if spec.over == ONCE:
                        raise _error(
                            "unknown-size", f"'{name}' is no size, and stream '{spec.name}' has no items to measure", span
                        )
                    if known and known.items != spec.over:
                        message = f"'{name}' measures items of '{known.items}' already"
                        raise _error("length-reused", message, span, "give each index set its own batch variables")
                    if not known:
                        self.lengths[name] = Length(size_symbol(name), spec.over, spec.name.text, axis.text)
                axes.append((axis.text, self.length(expression, {})))
            parts.append(Part(tuple(axes)))
        return Stream(spec.over, tuple(parts))

    def length(self, expression: Expression, axes: Mapping[str, Expr], sizes: Mapping[str, Any] | None = None) -> Expr:
        """A length as an expression of sizes, batch variables and the axes in scope."""
        lengths = {name: length.symbol for name, length in self.lengths.items()}
        scope = {**(self.sizes if sizes is None else sizes), **lengths, **axes}
        value = evaluate(expression, scope)
        if not isinstance(value, Expr):
            raise _error("bad-length", f"'{expression.text}' is not a length", expression.span)
        return value


class StreamScope:
    """Streams as an operator sees them, with the names of its frame."""

    def __init__(self, streams: Streams, sizes: Mapping[str, Any]) -> None:
        self.streams = streams
        self.sizes = sizes

    def named(self, name: str, call: Call) -> Stream:
        """The declared stream ``name``."""
        if name not in self.streams.declared:
            hint = did_you_mean(name, self.streams.declared, "declare it under 'streams'")
            call.fail("unknown-stream", f"there is no stream '{name}'", "stream", hint)
        return self.streams.declared[name]

    def resolve(self, field: Name | tuple[PartSpec, ...], old: Stream, call: Call) -> Stream:
        """A stream by name, or by axes of the index set of ``old``."""
        if isinstance(field, Name):
            return self.named(field.text, call)
        scope = {**(dict(old.parts[0].axes) if len(old.parts) == 1 else {}), "tokens": old.rows}
        return Stream(old.items, tuple(self.part(part, scope) for part in field))

    def lengths(self, expression: Expression, stream: Stream) -> tuple[Expr, ...]:
        """A list of sizes in which the axes of a stream have their lengths, and ``tokens`` is their product."""
        axes = dict(stream.parts[0].axes) if len(stream.parts) == 1 else {}
        variables = {name: length.symbol for name, length in self.streams.lengths.items()}
        value = evaluate(expression, {**self.sizes, **variables, **axes, "tokens": stream.rows})
        found = value if isinstance(value, tuple) else (value,)
        if not all(isinstance(item, Expr) for item in found):
            raise _error("bad-length", f"'{expression.text}' is not a list of lengths", expression.span)
        return found

    def replace(self, field: tuple[PartSpec, ...], old: Stream, call: Call) -> Stream:
        """``old`` with some axes changed, in every part that has them."""
        parts = []
        for part in old.parts:
            axes = dict(part.axes)
            for name, expression in field[0].axes:
                if name.text not in axes:
                    known = ", ".join(axes)
                    call.fail("unknown-axis", f"the stream has no axis '{name}'", "axes", f"it has {known}")
                axes[name.text] = self.streams.length(expression, dict(part.axes), self.sizes)
            parts.append(Part(tuple(axes.items())))
        return Stream(old.items, tuple(parts))

    def padded(self, stream: Stream) -> Stream:
        """``stream`` with every item as long as the longest, along each axis; parts one after another become one."""
        axes = stream.parts[0].axes if len(stream.parts) == 1 else (("tokens", stream.rows),)
        return Stream(stream.items, (Part(tuple((name, self.longest(length)) for name, length in axes)),))

    def longest(self, length: Expr) -> Expr:
        """The longest of a batch; what does not vary with the items of one is as long as it is."""
        variables = {variable.symbol for variable in self.streams.lengths.values()}
        return Longest(Polynomial.of(length).expr) if length.free_symbols & variables else length

    def part(self, spec: PartSpec, scope: Mapping[str, Expr]) -> Part:
        """One part from its axes."""
        return Part(tuple((name.text, self.streams.length(value, scope, self.sizes)) for name, value in spec.axes))


def _error(code: str, message: str, span: Any, hint: str = "") -> SpecError:
    from symflops.ground.diagnostics import Diagnostic

    return SpecError([Diagnostic(code, message, span, hint)])
