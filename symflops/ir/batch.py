"""What a program says of batches: streams with their lengths, inputs and layouts that carry them, and sums over items."""

from dataclasses import dataclass, field

from symflops.formula.formula import Formula, Num
from symflops.ir.index_sets import ONCE
from symflops.support.findings import Span


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a real tensor: one word per dimension, ``b`` for the items; or the lengths that its values hold.

    ``axes`` are the dimensions (``"b c f h w"``), each a name or an expression. ``values`` names the columns of a tensor with
    one row per item. ``counts`` names the stream whose length is the sum of each row.
    """

    axes: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    counts: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """A declared stream: its index set, its batch variables (the axes of a batch entry), and its rows per item.

    An ``optional`` one carries only inputs that a condition may leave out: a batch may leave it out, too. Where no stream of an
    index set has batch variables, one of them ``counts``: a batch gives the number of its items. A stream that is left out has
    the length ``absent``, which a layout may set to 1.
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
        """Whether a batch gives it."""
        return bool(self.variables) or self.counts


@dataclass(frozen=True, slots=True)
class InputInfo:
    """How an argument of the model carries lengths.

    ``width`` is None for a carrier of indices; ``when`` says, as 0 or 1, whether the model has the argument at all.
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

    ``sizes`` are the letters that the function needs beside the lengths; where there are none, moments need no sizes.
    ``side`` is ``padded`` if it is always of padded lengths; else a convention says whose. ``only`` are the conventions that
    have it; empty means all.
    """

    name: str
    items: str
    formula: Formula
    sizes: tuple[str, ...] = ()
    side: str = ""
    only: tuple[str, ...] = ()

    @property
    def constant(self) -> bool:
        """Whether it is 1, whatever the batch is."""
        return self.items == ONCE and isinstance(self.formula, Num)


@dataclass(frozen=True, slots=True)
class Statistic:
    """What belongs to a batch as a whole: the ``sum`` or the ``max`` (its ``kind``) of ``formula`` over an index set.

    Moments read it by its name, as a letter. Those that do are of one batch, and do not add.
    """

    name: str
    kind: str
    items: str
    formula: Formula


@dataclass(frozen=True, slots=True)
class BatchCondition:
    """A function of a batch as a whole that must be at least 1, or the class refuses the batch.

    It reads ``statistics`` by their names, and is not asked if one has no items. ``text`` says what the class takes, with
    ``values`` in the place of ``{0}``, ``{1}``, ...
    """

    formula: Formula
    statistics: tuple[Statistic, ...]
    text: str
    values: tuple[Formula, ...] = ()


@dataclass(frozen=True, slots=True)
class InnerLength:
    """A function of one item's lengths that must be at least 1, or the model cannot run the item.

    It is what the model leaves of the item, or 1 less the remainder of a division, or a condition of the spec. The latter says
    what the class takes: ``text``, with ``values`` in the place of ``{0}``, ``{1}``, ...
    """

    items: str
    formula: Formula
    text: str = ""
    values: tuple[Formula, ...] = ()


@dataclass(frozen=True, slots=True)
class Requirement:
    """A formula of sizes that must be 0; ``text`` says what is so if it is not (or, of an expectation, if it is)."""

    formula: Formula
    text: str
