"""The batch part of a program: streams with their lengths, inputs and layouts that carry them, and moments over items."""

from dataclasses import dataclass, field

from symflops.formula.formula import Formula, Num
from symflops.ir.index_sets import ONCE
from symflops.support.findings import Span


@dataclass(frozen=True, slots=True)
class Layout:
    """The dimensions of a real tensor, or the lengths that its values hold.

    ``axes`` are the dimensions (``"b c f h w"``), each a name or an expression; ``b`` is the number of items. ``values`` names
    the columns of a tensor with one row per item. ``counts`` names the stream whose length is the sum of each row.
    """

    axes: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    counts: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """A declared stream: index set, batch variables (the axes of a batch entry), and rows per item.

    A batch may omit an ``optional`` stream, whose inputs are all conditional. If no stream of an index set has batch variables,
    one stream ``counts``: a batch gives the number of its items. An omitted stream has the length ``absent``, which a layout
    may set to 1.
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
        """Whether a batch has an entry for this stream."""
        return bool(self.variables) or self.counts


@dataclass(frozen=True, slots=True)
class InputInfo:
    """An argument of the model whose shape or values carry lengths.

    ``width`` is None for a carrier of indices; ``when`` is 1 if the model has the argument, else 0.
    """

    name: str
    stream: str
    layout: Layout | None
    over: str = ""
    width: Formula | None = None
    when: Formula | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """A sum over the items of an index set, of a function of one item's lengths.

    ``sizes`` are the letters that the function reads in addition to lengths. ``side`` is ``padded`` if the moment always uses
    padded lengths; otherwise the convention decides. ``only`` are the conventions that use it; empty means all.
    """

    name: str
    items: str
    formula: Formula
    sizes: tuple[str, ...] = ()
    side: str = ""
    only: tuple[str, ...] = ()

    @property
    def constant(self) -> bool:
        """Whether the moment is 1 for every batch."""
        return self.items == ONCE and isinstance(self.formula, Num)


@dataclass(frozen=True, slots=True)
class Statistic:
    """A quantity of a whole batch: the ``sum`` or ``max`` (its ``kind``) of ``formula`` over an index set.

    Moments read it as a letter, by its name. Such moments belong to one batch and cannot be added over batches.
    """

    name: str
    kind: str
    items: str
    formula: Formula


@dataclass(frozen=True, slots=True)
class BatchCondition:
    """A function of a batch as a whole that must be at least 1, or the class refuses the batch.

    It reads ``statistics`` by name, and is skipped if one has no items. ``text`` describes the batches that the class accepts,
    with ``values`` for ``{0}``, ``{1}``, ...
    """

    formula: Formula
    statistics: tuple[Statistic, ...]
    text: str
    values: tuple[Formula, ...] = ()


@dataclass(frozen=True, slots=True)
class InnerLength:
    """A function of one item's lengths that must be at least 1, or the model cannot run the item.

    It is the length of an inner value, or 1 minus the remainder of a division, or a condition of the spec. For a condition,
    ``text`` describes the items that the class accepts, with ``values`` for ``{0}``, ``{1}``, ...
    """

    items: str
    formula: Formula
    text: str = ""
    values: tuple[Formula, ...] = ()


@dataclass(frozen=True, slots=True)
class Requirement:
    """A formula of sizes that must be 0; ``text`` describes a violation (an expectation: what 0 means)."""

    formula: Formula
    text: str
