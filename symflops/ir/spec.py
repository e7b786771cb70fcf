"""A spec as parsed, with source places: the result of ``read``, before ``build`` resolves names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from symflops.formula.expression import Expression
from symflops.ir.batch import Layout
from symflops.support.findings import Source, Span


@dataclass(frozen=True, slots=True)
class Name:
    """A name and its place in the source."""

    text: str
    span: Span = field(compare=False, repr=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Template:
    """A path with ``{expression}`` parts, relative to the enclosing path unless it starts with ``/``."""

    pieces: tuple[str | Expression, ...]
    text: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Tie:
    """A tied weight: the path of the other parameter from the root, and the condition (None: always)."""

    to: Template
    when: Expression | None


@dataclass(frozen=True, slots=True)
class SizeSpec:
    """One entry of ``sizes``: the config fields that it is read from, its type and its default.

    A size without config fields is decided by the class.
    ``evaluation`` overrides a flag for a model in evaluation mode; None keeps the config's value.
    ``null`` is the value if the config has null; ``items`` is the kind of a list's items, empty for any.
    A size of a ``part`` is 0 under a regime that does not run that part.
    """

    name: Name
    keys: tuple[str, ...]
    kind: str
    default: Expression | None
    optional: bool
    doc: str
    latex: str
    evaluation: bool | None = None
    null: Expression | None = None
    items: str = ""
    part: str = ""


@dataclass(frozen=True, slots=True)
class VariantSpec:
    """A published structure: size letter -> value, with lists as tuples."""

    name: Name
    sizes: tuple[tuple[Name, Any], ...]


@dataclass(frozen=True, slots=True)
class ClassSpec:
    """A class that a spec describes, and how it differs from the first one.

    Attributes:
        name: The reference, ``package.Class``.
        values: Values of sizes that the class decides, by letter.
        renamed: (prefix of a path in the spec, prefix in this class); an empty text removes the prefix.
    """

    name: str
    values: tuple[tuple[Name, Any], ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PartSpec:
    """Axes of one part of a stream, in order: axis name -> length."""

    axes: tuple[tuple[Name, Expression], ...]


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """A declared stream: the index set of its items, its parts, and an optional ``default`` length."""

    name: Name
    over: str
    parts: tuple[PartSpec, ...]
    default: int | None = None


@dataclass(frozen=True, slots=True)
class BaselineSpec:
    """The spec that pages compare this spec with, for equal configs and batches.

    ``config`` has fields of its config as formulas of this spec's sizes, ``batch`` entries of its streams as formulas of this
    one's lengths, ``lengths`` batch variables of this spec that grow with the first one.
    """

    name: Name
    config: tuple[tuple[Name, Expression], ...] = ()
    batch: tuple[tuple[Name, Expression], ...] = ()
    lengths: tuple[tuple[Name, Expression], ...] = ()


@dataclass(frozen=True, slots=True)
class InputSpec:
    """One argument of the model: a value with a stream and a width, or a tensor that only holds lengths.

    If ``needed``, the model cannot run without it while ``when`` holds.
    """

    name: Name
    stream: Name | None
    width: Expression | None
    when: Expression | None
    layout: Layout | None
    over: str = ""
    needed: bool = False


@dataclass(frozen=True, slots=True)
class OperatorEntry:
    """An operator as parsed: its path, its kind, and the fields that the kind declares."""

    path: Template
    kind: Name
    fields: Mapping[str, Any]
    places: Mapping[str, Span] = field(compare=False, repr=False)
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class BlockCall:
    """A call of a block: values by position, parameters by name."""

    path: Template
    block: Block
    arguments: tuple[tuple[Name, ...], ...]
    parameters: Mapping[str, Expression]
    common: Mapping[str, Any]
    span: Span = field(compare=False, repr=False)

    @property
    def role(self) -> str:
        """The region that the call gives its operators; empty if none."""
        return str(self.common.get("role") or "")


@dataclass(frozen=True, slots=True)
class Repeat:
    """A loop: ``count`` times, per item of a config list, or along an ``axis`` of a stream or value."""

    path: Template
    count: Expression | None
    axis: Name | None
    of: Name | None
    body: tuple[Entry, ...]
    index: Name | None
    item: Name | None
    start: Expression | None
    shared: bool
    when: Expression | None
    span: Span = field(compare=False, repr=False)
    role: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Entries under one path, optionally conditional, without gradients, or run as routed experts.

    ``listed`` experts are modules of a list; others are stacked in one tensor.
    """

    path: Template
    body: tuple[Entry, ...]
    when: Expression | None
    no_grad: Expression | None
    experts: Expression | None
    listed: bool
    choose: Expression | None
    routed: Expression | None
    arguments: tuple[Name, ...]
    weights: Name | None
    to: tuple[Name, ...]
    span: Span = field(compare=False, repr=False)
    role: str = ""


@dataclass(frozen=True, slots=True)
class Faulty:
    """An invalid entry; it keeps the names that it would define, so that one mistake causes no others."""

    path: Template
    names: tuple[str, ...]
    span: Span = field(compare=False, repr=False)


Entry = OperatorEntry | BlockCall | Repeat | Group | Faulty


@dataclass(frozen=True, slots=True)
class Block:
    """A reusable subgraph with parameters; a ``local`` block can also read the sizes of its spec."""

    name: str
    parameters: tuple[tuple[Name, Expression | None], ...]
    inputs: tuple[Name, ...]
    optional: tuple[Name, ...]
    outputs: tuple[Name, ...]
    body: tuple[Entry, ...]
    local: bool
    source: Source


@dataclass(frozen=True, slots=True)
class Spec:
    """A whole spec as parsed: sizes, streams, inputs, graph and the classes that it describes.

    ``sources`` are the files that it was read from, its own first. ``classes`` has a row for each of the ``references``;
    ``decided`` are the sizes that a class decides. ``constants`` are the values of these sizes and ``renamed`` the path
    prefixes for the class of this view, ``alike`` are all classes with the same view (:func:`symflops.read.classes.view`).
    ``baseline`` is the spec that pages compare this one with. ``requires`` are conditions on sizes and lengths, ``expected``
    are conditions under which the work is an expectation. ``apart`` are the sizes of parts that a regime does not run
    (:mod:`symflops.read.parts`). ``reading`` holds facts on how the classes read a config (:mod:`symflops.evaluate.config`).
    """

    name: str
    title: str
    references: tuple[str, ...]
    model_types: tuple[str, ...]
    pipelines: tuple[str, ...]
    sizes: tuple[SizeSpec, ...]
    derived: tuple[tuple[Name, Expression], ...]
    streams: tuple[StreamSpec, ...]
    inputs: tuple[InputSpec, ...]
    graph: tuple[Entry, ...]
    outputs: tuple[Name, ...]
    sources: tuple[Source, ...]
    variants: tuple[VariantSpec, ...] = ()
    classes: tuple[ClassSpec, ...] = ()
    decided: tuple[SizeSpec, ...] = ()
    alike: tuple[str, ...] = ()
    constants: tuple[tuple[str, Any], ...] = ()
    apart: tuple[SizeSpec, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    baseline: BaselineSpec | None = None
    requires: tuple[tuple[Name, Expression], ...] = ()
    expected: tuple[tuple[Name, Expression], ...] = ()
    reading: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def called(self) -> tuple[str, ...]:
        """Class names of this view, without packages."""
        return tuple(name.replace(":", ".").rpartition(".")[2] for name in self.alike or self.references)

    def __repr__(self) -> str:
        return f"Spec('{self.name}', sizes={len(self.sizes)}, classes={len(self.references)})"
