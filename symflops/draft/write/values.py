"""The values of a draft: named, in the shapes that operators read, and the lists of entries that produce them.

Entries name modules and parameters by paths relative to the list that they are in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from symflops.draft.fit.fit import Fitter
from symflops.draft.fit.formula import Vector
from symflops.draft.fit.symbols import Names, numbered
from symflops.draft.sample.samples import Family
from symflops.draft.trace.steps import Loop, Ref, Step
from symflops.draft.write.dimensions import Dimensions, Streams

Fields = dict[str, Any]
Entry = tuple[str, Fields]
AFFIXES = ("to_", "_proj", "proj_")
# words that are reserved in YAML or in specs
NO_NAMES = ("y", "n", "on", "off", "no", "yes", "true", "false", "null", "once", "_")
FIELDS = {"weight": "weight", "bias": "bias_name"}  # default parameter name -> field that overrides it
OUTSIDE = ("input", "constant")  # references without a value until an operator reads them in some shape


@dataclass(frozen=True, slots=True)
class Val:
    """A value in the graph of the draft; numbers are vectors with the values in all samples.

    Attributes:
        name: Its name in entries.
        rows: Rows per item of the batch, or per batch if ``once``.
        width: Elements per row; empty for token ids.
        once: Whether the value exists once per batch, not once per item.
        tag: Identifies the stream: values with equal rows may still have different axes.
    """

    name: str
    rows: Vector
    width: Vector
    once: bool = False
    tag: Any = None


@dataclass
class Scope:
    """A list of entries under construction: the graph or the body of a loop or branch.

    Attributes:
        prefix: The module that paths in this list are relative to.
        parent: The list that this one is nested in.
        loop: The loop whose body this is.
        index: The letter of the loop's index.
        count: The loop's number of items, as a formula.
        indexed: Paths of the loop's first item -> the same path with the index, if the loop runs several lists.
        entries: The entries so far.
        parameters: Parameters declared as values in this list.
        views: Cache of reshaped values: (name, rows, width, once) -> value.
    """

    prefix: str
    parent: Scope | None = None
    loop: Loop | None = None
    index: str = ""
    count: str = ""
    indexed: dict[str, str] = field(default_factory=dict)
    entries: list[Any] = field(default_factory=list)
    parameters: dict[str, Val] = field(default_factory=dict)
    views: dict[Any, Val] = field(default_factory=dict)

    @property
    def outwards(self) -> Iterator[Scope]:
        """This scope, followed by its enclosing scopes."""
        yield self
        if self.parent is not None:
            yield from self.parent.outwards

    def add(self, fields: Fields, key: str = "_") -> None:
        """Append an entry; ``key`` is its path, ``_`` for an operator without parameters."""
        self.entries.append((key, fields))


def shortened(path: str) -> str:
    """Last word of a path as a lowercase identifier, without affixes such as ``_proj``."""
    words = [word for word in path.split(".") if word and not word.isdigit()]
    text = (words[-1] if words else "v").lower()
    for affix in AFFIXES:
        text = text.replace(affix, "") or text
    text = identifier(text, "").strip("_") or "v"
    return f"v_{text}" if text[0].isdigit() or text in NO_NAMES else text


def identifier(name: str, other: str = "_") -> str:
    """``name`` with all characters but letters, digits and underscores replaced by ``other``."""
    return "".join(letter if letter.isalnum() or letter == "_" else other for letter in name)


class Paths:
    """Writes paths of modules as paths of entries, and knows which paths and parameters are in use."""

    def __init__(self, dims: Dimensions) -> None:
        self.dims = dims
        self.moving = dims.family.items()
        self.used: set[str] = set()

    def relative(self, path: str, scope: Scope) -> str:
        """Path relative to the module of a scope; a path outside of the module starts with ``/``.

        If the loop of the scope runs items of several lists, the path has the index of the loop.
        """
        for item, template in scope.indexed.items():
            if path == item or path.startswith(f"{item}."):
                return template + path[len(item) :]
        if path == scope.prefix or not path:
            return "_"
        within = bool(scope.prefix) and path.startswith(f"{scope.prefix}.")
        known = scope.prefix.count(".") + 1 if within else 0
        words = path.split(".")
        found = [self.index(words, place) for place in range(known, len(words))]
        return ".".join(found) if within or not scope.prefix else f"/{'.'.join(found)}"

    def index(self, words: list[str], place: int) -> str:
        """Word ``place`` of a path whose ``words`` are given, as it is written in the path of an entry.

        If it is an index of a module list that differs between samples, it becomes a formula in braces.
        """
        item = ".".join(words[: place + 1])
        moving = words[place].isdigit() and item in self.moving
        return f"{{{self.dims.text(self.moving[item], item)}}}" if moving else words[place]

    def label(self, path: str, scope: Scope) -> str:
        """Path of the module at ``path`` as an entry in ``scope`` has it; ``_`` for one outside the scope."""
        key = self.relative(path, scope)
        return "_" if key.startswith("/") else key

    def parameter(self, name: str, key: str, scope: Scope, usual: str) -> str | None:
        """Name to write for a parameter in the entry at ``key``; None if it need not be written.

        ``name`` is its full name. It is not written if it is ``usual``, such as ``weight``, in the module of the entry.
        """
        here = self.relative(name, scope)
        if key == "_":
            return here if here != usual else None
        if here == f"{key}.{usual}":
            return None
        parent = key.rpartition(".")[0]
        if here.startswith("/") or not parent:
            return here
        return here[len(parent) + 1 :] if here.startswith(f"{parent}.") else f"/{name}" if not scope.prefix else None

    def parameters(self, names: tuple[str, ...], key: str, scope: Scope) -> Fields:
        """Fields for non-default weight and bias names; a shared weight is written as ``tie``."""
        found: Fields = {}
        for (usual, other), name in zip(FIELDS.items(), names, strict=False):
            text = self.parameter(name, key, scope, usual)
            if text is not None and usual == "weight" and self.is_tied(name, key, scope):
                words = name.split(".")
                found["tie"] = ".".join(self.index(words, place) for place in range(len(words)))
            elif text is not None:
                found[other] = text
        return found

    def is_tied(self, name: str, key: str, scope: Scope) -> bool:
        """Whether parameter ``name`` is also the parameter ``weight`` of the module at ``key``."""
        also = [other for other, first in self.dims.family.samples[0].plan.tied.items() if first == name]
        return any(self.relative(other, scope) == f"{key}.weight" for other in also)

    def use(self, key: str, fields: Fields, scope: Scope, names: tuple[str, ...]) -> None:
        """Store the path ``key`` of an entry, and its parameters ``names``, as used.

        If one of them was used before, ``fields``, those of the entry, get ``shared``.
        """
        path = f"{scope.prefix}.{key}"
        if key != "_" and not self.used.isdisjoint((path, *names)):
            fields["shared"] = "true"
        self.used.update((path, *names))


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
