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
    """A name in a spec, with its place there for messages."""

    text: str
    span: Span = field(compare=False, repr=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Template:
    """A module path with ``{expression}`` in places; from the model's root if it starts with ``/``.

    Other paths are relative to the path of the entry around them. ``pieces`` are the texts and expressions in order.
    """

    pieces: tuple[str | Expression, ...]
    text: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Tie:
    """A tied weight: another parameter, at the path ``to`` from the root, is used if ``when`` holds."""

    to: Template
    when: Expression | None


@dataclass(frozen=True, slots=True)
class SizeSpec:
    """One entry of ``sizes``.

    Attributes:
        name: Its letter.
        keys: The config fields that it is read from; empty if the class decides its value.
        kind: Its type.
        default: The value if a config has none of the fields; None: it has no default.
        optional: Whether null is a value of its own.
        doc: What it is.
        latex: Its LaTeX symbol; empty for that of its letter.
        evaluation: For a flag: its value for a model in evaluation mode; None: that of the config.
        null: The value to take in place of null; None: no replacement.
        items: For a list: the type of its items; empty for any.
        part: The part of the model it belongs to; under a regime that does not run this part, it is 0. Else empty.
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
    """A published structure: its name, and (letter, value) pairs of the sizes that make it."""

    name: Name
    sizes: tuple[tuple[Name, Any], ...]


@dataclass(frozen=True, slots=True)
class Expectation:
    """Figures that a source states for one size of the model.

    Attributes:
        model: The sizes that differ from the defaults, under the name of a published size or of the defaults.
        figures: (name, text) pairs of the stated figures; the place of the name is that of the text.
        rules: The regime, and the convention, by which FLOPs are stated.
        batch: The batch of FLOPs, stream -> items; None: one item per stream, of typical lengths.
    """

    model: VariantSpec
    figures: tuple[tuple[Name, str], ...]
    rules: tuple[str, str]
    batch: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class ClassSpec:
    """A class that a spec describes, and its differences from the first class of the spec.

    Attributes:
        name: The class as ``package.Class``.
        values: (letter, value) pairs of the sizes whose values the class decides.
        renamed: (beginning of a path in the spec, its replacement in this class); an empty text removes it.
    """

    name: str
    values: tuple[tuple[Name, Any], ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PartSpec:
    """One part of a declared stream: (axis, length) pairs in order."""

    axes: tuple[tuple[Name, Expression], ...]


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """A declared stream.

    Attributes:
        name: Its name.
        over: The index set of its items.
        parts: Its parts, which are concatenated.
        default: The length to assume if a batch omits the stream; None: it must have it.
    """

    name: Name
    over: str
    parts: tuple[PartSpec, ...]
    default: int | None = None


@dataclass(frozen=True, slots=True)
class BaselineSpec:
    """Another spec, which pages compare with this one for equal configs and batches.

    Attributes:
        name: The other spec.
        config: (field of its config, formula of this spec's sizes) pairs.
        batch: (entry of its batches, formula of this spec's lengths) pairs.
        lengths: (length of this spec, formula) pairs for lengths that grow with the first one.
    """

    name: Name
    config: tuple[tuple[Name, Expression], ...] = ()
    batch: tuple[tuple[Name, Expression], ...] = ()
    lengths: tuple[tuple[Name, Expression], ...] = ()


@dataclass(frozen=True, slots=True)
class InputSpec:
    """One argument of the model's forward method.

    Attributes:
        name: The argument.
        stream: The stream of the rows that it has as a value; None if it only carries lengths.
        width: The width of these rows; None for indices.
        when: The condition under which the class has the argument; None: always.
        layout: How the real tensor carries lengths; None if not declared.
        over: The index set of the items in a tensor without a stream.
        needed: Whether the model cannot run without the argument while ``when`` holds.
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
    """An operator as parsed.

    Attributes:
        path: Its module path.
        kind: Its kind.
        fields: The parsed fields by name.
        places: The place of each field.
        span: The place of the entry.
    """

    path: Template
    kind: Name
    fields: Mapping[str, Any]
    places: Mapping[str, Span] = field(compare=False, repr=False)
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class BlockCall:
    """A call of a block.

    Attributes:
        path: The module path of what the block contains.
        block: The block.
        arguments: For each input of the block: the values passed to it.
        parameters: Expressions for the block's parameters, by name.
        common: Parsed fields that any entry may have, by name.
        span: The place of the entry.
    """

    path: Template
    block: Block
    arguments: tuple[tuple[Name, ...], ...]
    parameters: Mapping[str, Expression]
    common: Mapping[str, Any]
    span: Span = field(compare=False, repr=False)

    @property
    def role(self) -> str:
        """The role or region that the call gives to the block's operators; empty if none."""
        return str(self.common.get("role") or "")


@dataclass(frozen=True, slots=True)
class Repeat:
    """A body that runs ``count`` times, once per item of a config list, or once per row along an axis.

    Attributes:
        path: The module path of one iteration.
        count: The number of iterations, or a list with one item each; None with ``axis``.
        axis: The axis whose rows are the iterations; None otherwise.
        of: The stream or value that has the axis.
        body: The entries of one iteration.
        index: The name of the index in expressions; None: none.
        item: The name of the list's item in expressions; None: none.
        start: The first index in module paths; None: 0.
        shared: Whether all iterations run the same module.
        when: The condition under which the repeat exists; None: always.
        span: The place of the entry.
        role: A role or region for its operators; empty if none.
    """

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
    """Entries under one module path, or routed experts if ``experts`` is given.

    Attributes:
        path: The module path.
        body: The entries.
        when: The condition under which the group exists; None: always.
        no_grad: The condition under which no gradient passes through it; None: never.
        experts: The number of experts, each with its own copy of every parameter; None: no experts.
        listed: Whether the experts are modules of a list; else their parameters are stacked in one tensor.
        choose: The number of experts that each row runs through; None: all.
        routed: The number of experts that each row is routed to, if it runs through more; None: as many as ``choose``.
        arguments: The value that the experts read, in a tuple.
        weights: The value that multiplies their results; None: none.
        to: The name of their result, in a tuple.
        span: The place of the entry.
        role: A role or region for its operators; empty if none.
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
    """An entry with a mistake; uses of the values ``names`` that it would make are not reported."""

    path: Template
    names: tuple[str, ...]
    span: Span = field(compare=False, repr=False)


Entry = OperatorEntry | BlockCall | Repeat | Group | Faulty


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of graph that a spec calls like a function.

    Attributes:
        name: Its name.
        parameters: (name, default) pairs; the default is None for a parameter that a call must give.
        inputs: Names of the values that a call passes to it.
        optional: Names of those inputs that a call may leave out.
        outputs: Names of the values that it returns.
        body: Its entries.
        local: Whether it is defined in a spec, whose sizes it can read.
        source: The file that defines it.
    """

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
    """A whole spec as parsed, in the view (:func:`symflops.read.variants.view`) for some of its classes.

    Attributes:
        name: Its name.
        title: One line about the model.
        references: All classes that it describes, each as ``package.Class``.
        model_types: The ``model_type`` of their configs.
        pipelines: Classes of pipelines that contain one of them.
        sizes: The sizes that a config sets.
        derived: (letter, formula) pairs of sizes that follow from others.
        streams: The declared streams.
        inputs: The arguments of the model.
        graph: The entries.
        outputs: Names of the values that the model returns.
        sources: The files that it was read from, its own first.
        variants: Published structures.
        classes: What is special about each of ``references``.
        decided: The sizes that a class, not a config, sets.
        alike: The classes to which this view applies.
        constants: (letter, value) pairs of ``decided`` for these classes.
        apart: Sizes of parts that a regime does not run (:mod:`symflops.read.variants`).
        renamed: (beginning of a path, replacement) pairs for these classes.
        baseline: Another spec to compare with on pages; None: none.
        requires: (message, condition) pairs that sizes and lengths must fulfil.
        expect: Figures that sources state, for ``symflops check``.
        expected: (text, condition) pairs; where a condition holds the work is an expectation, and estimates say the text.
        reading: How the classes read a config (:mod:`symflops.evaluate.config`).
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
    expect: tuple[Expectation, ...] = ()
    reading: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def called(self) -> tuple[str, ...]:
        """Names, without packages, of the classes that this view of the spec describes."""
        return tuple(name.replace(":", ".").rpartition(".")[2] for name in self.alike or self.references)

    def __repr__(self) -> str:
        return f"Spec('{self.name}', sizes={len(self.sizes)}, classes={len(self.references)})"
