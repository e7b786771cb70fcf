"""The batch part of a program: streams with their lengths, inputs and layouts that carry them, and moments."""

# Annotations are types here, not strings: serialisation reads them, and never evaluates text.
from dataclasses import dataclass, field

from symflops.formula.formula import Formula, Num
from symflops.ir.index_sets import ONCE
from symflops.support.findings import Span


@dataclass(frozen=True, slots=True)
class Layout:
    """How a real input tensor carries the lengths of streams: by its shape, or by its values.

    Attributes:
        axes: Its dimensions, such as those of ``"b c f h w"``, each a name or an expression; ``b`` is the number of items.
        values: For a tensor with one row per item: the length that each column contains.
        counts: The stream whose length is the sum of a row; empty if none.
        span: The place in the spec.
    """

    axes: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    counts: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """A declared stream of a program.

    Attributes:
        name: The name of the stream.
        items: The index set.
        variables: The lengths that a batch gives for each item, in order.
        rows: Rows per item as a formula of these lengths.
        optional: Whether a batch may omit the stream.
        counts: Whether a batch gives a number of items here, because no stream of the index set has lengths.
        absent: The length of an omitted stream: 0, or a default.
    """

    name: str
    items: str
    variables: tuple[str, ...]
    rows: Formula
    optional: bool = False
    counts: bool = False
    absent: int = 0

    @property
    def given(self) -> bool:
        """Whether batches have an entry for this stream: lengths, or a number of items."""
        return bool(self.variables) or self.counts


@dataclass(frozen=True, slots=True)
class InputInfo:
    """An argument of the model's forward method whose shape or values carry lengths.

    Attributes:
        name: The argument.
        stream: The stream of its rows; empty if it only carries lengths.
        layout: How it carries lengths; None if not declared.
        over: The index set of its items, if it has no stream.
        width: Its width; None for indices or lengths.
        when: 1 if the model has the argument, else 0, as a formula of sizes; None: always 1.
    """

    name: str
    stream: str
    layout: Layout | None
    over: str = ""
    width: Formula | None = None
    when: Formula | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """A sum over the items of an index set, of a function (``formula``) of the lengths of each item.

    Attributes:
        name: The name in code and pages.
        items: The index set.
        formula: The function.
        sizes: Letters of sizes and statistics that the function reads in addition to lengths.
        side: ``padded`` if lengths are always padded ones; empty if the convention decides.
        only: The conventions that use this moment; empty means all.
    """

    name: str
    items: str
    formula: Formula
    sizes: tuple[str, ...] = ()
    side: str = ""
    only: tuple[str, ...] = ()

    @property
    def constant(self) -> bool:
        """Whether the moment is the number 1 for every batch: a constant, once per batch."""
        return self.items == ONCE and isinstance(self.formula, Num)


@dataclass(frozen=True, slots=True)
class Statistic:
    """A number for a whole batch: the ``sum`` or ``max`` (its ``kind``) of ``formula`` over an index set.

    Formulas of moments read it under its ``name``. Such a moment is only valid for its own batch: it cannot be added to that
    of another batch.
    """

    name: str
    kind: str
    items: str
    formula: Formula


@dataclass(frozen=True, slots=True)
class BatchCondition:
    """A condition on a whole batch: ``formula``, of statistics of the batch, must be at least 1.

    Attributes:
        formula: The function; it reads the statistics by name.
        statistics: The statistics. If one of them has no items, the condition is not checked.
        text: The batches that the class accepts, in words.
        values: Formulas whose values replace ``{0}``, ``{1}``, ... in ``text``.
    """

    formula: Formula
    statistics: tuple[Statistic, ...]
    text: str
    values: tuple[Formula, ...] = ()


@dataclass(frozen=True, slots=True)
class InnerLength:
    """A condition on each item: ``formula``, of the item's lengths, must be at least 1.

    The formula is the length of a value inside the model, or 1 minus the remainder of a division that must be exact, or 1 where
    a condition of the spec holds and 0 elsewhere. Only in the last case ``text`` says which items the class accepts, with
    ``values`` for ``{0}``, ``{1}``, ...
    """

    items: str
    formula: Formula
    text: str = ""
    values: tuple[Formula, ...] = ()


@dataclass(frozen=True, slots=True)
class Requirement:
    """A formula of sizes that must be 0, or a config is refused with the message ``text``.

    Among ``Program.expected`` a formula of 0 instead means that the work is an expectation, and ``text`` says of what.
    """

    formula: Formula
    text: str
