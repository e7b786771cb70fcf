"""The values of a draft: maps references of a plan to named values in the shapes that operators read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from symflops.draft.fit.fit import Fitter
from symflops.draft.fit.formula import Vector
from symflops.draft.fit.symbols import Names, numbered
from symflops.draft.sample.family import Family
from symflops.draft.trace.steps import Ref, Step
from symflops.draft.write.dimensions import Dimensions
from symflops.draft.write.names import Paths, identifier, shortened
from symflops.draft.write.scopes import Fields, Scope, Val
from symflops.draft.write.streams import Streams

OUTSIDE = ("input", "constant")  # references without a value until an operator reads them in some shape


class Values:
    """The values of a draft with their dimensions, streams and paths; shared by all writers.

    Attributes:
        plan: The steps of the first sample, which is written.
        dims: Formulas of rows and widths.
        streams: The streams of the draft.
        paths: Paths of modules and parameters.
        made: Id of a step or choice -> its value.
        carried: Id of the step that computes a loop-carried value -> the value.
        inputs: Argument of the module that an entry reads -> its value.
        parts: Name of a reshaped value (view) -> the value.
        taken: The names of all values.
    """

    def __init__(self, family: Family, names: Names, fitter: Fitter) -> None:
        self.plan, self.dims = family.samples[0].plan, Dimensions(family, names, fitter)
        self.streams, self.paths = Streams(self.dims), Paths(self.dims)
        self.taken: set[str] = set()
        self.made: dict[int, Val] = {}
        self.carried: dict[int, Val] = {}
        self.inputs: dict[str, Val] = {}
        self.parts: dict[str, Val] = {}

    @property
    def by_name(self) -> dict[str, Val]:
        """Name -> value, for the values of all steps and all reshaped ones (views)."""
        return {**{value.name: value for value in self.made.values()}, **self.parts}

    def fresh(self, base: str) -> str:
        """New unique name derived from the last word of the path ``base``."""
        found = numbered(shortened(base), self.taken)
        self.taken.add(found)
        return found

    # reading

    def read(self, ref: Ref, scope: Scope) -> Val | None:
        """Value of a reference to a step, loop-carried value or parameter; None for an input or constant."""
        if ref.kind == "step":
            return self.made[ref.id]
        if ref.kind == "carried":
            return self.carried[ref.id]
        return self.parameter(ref.name, scope) if ref.kind == "parameter" else None

    def read_all(self, refs: Sequence[Ref], scope: Scope) -> list[Val]:
        """Values of references, skipping inputs and constants."""
        return [value for ref in refs if (value := self.read(ref, scope)) is not None]

    def parameter(self, name: str, scope: Scope) -> Val:
        """Parameter as a value, declared in the scope that reads it first."""
        for around in scope.outwards:
            if name in around.parameters:
                return around.parameters[name]
        shape = self.dims.family.shape(name)
        found = self.fresh(name)
        fields: Fields = {"op": "parameter", "shape": self.dims.listed(shape, name), "to": found}
        if name in self.paths.used:
            fields["shared"] = "true"
        scope.add(fields, self.paths.relative(name, scope))
        self.paths.used.add(name)
        scope.parameters[name] = Val(found, self.dims.one, shape[-1] if shape else self.dims.one, True, ("once",))
        return scope.parameters[name]

    def operand(self, ref: Ref, rows: Vector, width: Vector, scope: Scope, once: bool = False) -> Val:
        """Value of a reference, with the given rows (per batch if ``once``) and width; zeros for a constant."""
        rows, width = self.dims.shaped(rows, width)
        if ref.kind in OUTSIDE and ref.name in self.plan.inputs and not once:
            found: Val | None = self.input(ref.name, rows, width)
        else:
            found = self.read(ref, scope)
        return self.zeros(rows, width, scope, once) if found is None else self.fitted(found, rows, width, scope, once)

    def source(self, ref: Ref, shape: Sequence[Vector], scope: Scope) -> Val:
        """Value of a reference in the shape in which it was computed; an input or constant has ``shape``."""
        found = self.read(ref, scope)
        return self.in_shape(ref, shape, scope) if found is None else found

    def in_shape(self, ref: Ref, shape: Sequence[Vector], scope: Scope) -> Val:
        """Value of a reference in ``shape``: the last dimension is the width, the others' product the rows."""
        rows, once = self.dims.rows(self.dims.times(*shape[:-1]))
        return self.operand(ref, rows, shape[-1] if shape else self.dims.one, scope, once)

    def input(self, name: str, rows: Vector, width: Vector) -> Val:
        """Value of an input, declared in the shape in which it is first read."""
        if name not in self.inputs:
            value = Val(identifier(name), rows, width, False, self.streams.tag(rows, False))
            self.inputs[name] = value
            self.taken.add(value.name)
        return self.inputs[name]

    # shapes

    def fitted(self, value: Val, rows: Vector, width: Vector, scope: Scope, once: bool) -> Val:
        """Value with the given rows (per batch if ``once``) and width: itself, a cached view, or a new one."""
        key = (value.name, rows, width, once)
        for around in scope.outwards:
            if key in around.views:
                return around.views[key]
        found = self.reshaped(value, rows, width, scope, once)
        if found is not value:
            scope.views[key] = found
        return found

    def reshaped(self, value: Val, rows: Vector, width: Vector, scope: Scope, once: bool) -> Val:
        """New view (expand, select, map or broadcast) of ``value`` in the given shape; itself if it has it."""
        if value.once and not once:
            blank = self.zeros(rows, width, scope, False)
            return self.derived(value, {"op": "mul", "from": [blank.name, value.name]}, scope, blank)
        if value.rows == rows:
            return value if value.width == width else self.widened(value, width, scope)
        name = self.fresh(value.name)
        larger = rows[0] * width[0] > value.rows[0] * value.width[0]
        fields: Fields = {"op": "expand" if larger else "select", "from": value.name}
        fields["stream"] = self.streams.of(rows, value.once)
        if width != value.width:
            fields["width"] = self.dims.text(width, name)
        scope.add({**fields, "to": name})
        self.parts[name] = Val(name, rows, width, value.once, self.streams.tag(rows, value.once))
        return self.parts[name]

    def widened(self, value: Val, width: Vector, scope: Scope) -> Val:
        """Append a ``map`` that changes a value's width, and return its result."""
        name = self.fresh(value.name)
        scope.add({"op": "map", "from": value.name, "width": self.dims.text(width, name), "to": name})
        return replace(value, name=name, width=width)

    def zeros(self, rows: Vector, width: Vector, scope: Scope, once: bool, base: str = "constant") -> Val:
        """Append a ``zeros`` entry of the given shape, and return its value."""
        name = self.fresh(base)
        scope.add({"op": "zeros", "stream": self.streams.of(rows, once), "width": self.dims.text(width, name), "to": name})
        return Val(name, rows, width, once, self.streams.tag(rows, once))

    def derived(self, value: Val, fields: Fields, scope: Scope, shape: Val | None = None) -> Val:
        """Append an entry without a path that derives a value from ``value``, and return its result.

        The result has the rows, width and stream of ``shape``, by default those of ``value``.
        """
        name = self.fresh(value.name)
        scope.add({**fields, "to": name})
        return replace(shape or value, name=name)

    def copied(self, value: Val, scope: Scope) -> Val:
        """Append a copy of a value under a new name, and return the copy."""
        return self.derived(value, {"op": "add", "from": value.name}, scope)

    def selected(self, value: Val, stream: Any, tag: Any, scope: Scope) -> Val:
        """Append a ``select`` that moves a value to another stream, and return its result.

        ``stream`` is the field of the entry (a name, or axes), ``tag`` the identity of the stream.
        """
        shape = replace(value, tag=tag)
        return self.derived(value, {"op": "select", "from": value.name, "stream": stream}, scope, shape)

    # results

    def put(self, step: Step, like: Val, key: str, fields: Fields, scope: Scope, parameters: tuple[str, ...] = ()) -> Val:
        """Append the entry of ``step``, and store and return its value.

        Args:
            step: The step; one without gradients is put in a group with ``no_grad``.
            like: The value whose shape and stream the result has, and from whose name the new name is made.
            key: The path of the entry.
            fields: The fields of the entry, except for ``to``.
            scope: The list of entries to append to.
            parameters: The names of the parameters that the entry uses.
        """
        made = self.made[step.id] = replace(like, name=self.fresh(like.name))
        fields = {**fields, "to": made.name}
        if parameters:
            self.paths.use(key, fields, scope, parameters)
        if step.quiet:
            scope.add({"no_grad": "true", "graph": [(key, fields)]})
        else:
            scope.add(fields, key)
        return made
