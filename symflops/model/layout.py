"""How a real tensor is laid out."""

# Annotations are types here, not strings: serialisation reads them, and never evaluates text.
from dataclasses import dataclass, field

from symflops.diagnostics.findings import Span


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
