"""Writes streams: axes of convolutions, one length for other rows, own streams for rows per batch."""

from __future__ import annotations

import re
from typing import Any

from symflops.draft.fit.axes import Axes
from symflops.draft.fit.formula import Vector
from symflops.draft.fit.symbols import fresh
from symflops.draft.write.dimensions import Dimensions

AXES = {1: ("steps",), 2: ("rows", "columns"), 3: ("frames", "rows", "columns")}
WORD = re.compile(r"[A-Za-z_]\w*")


class Streams:
    """The streams of a draft.

    Attributes:
        axes: Formulas of the axes of convolutions.
        grids: Rows per item -> identity (tag) and axes of the stream of a convolution with that many rows.
        of_inputs: Input -> its axes, if a convolution reads it.
        once: Name of a stream that exists once per batch -> its declaration.
    """

    def __init__(self, dims: Dimensions) -> None:
        self.dims = dims
        self.axes = Axes(dims.fitter)
        self.grids: dict[Vector, tuple[Any, dict[str, str]]] = {}
        self.of_inputs: dict[str, dict[str, str]] = {}
        self.once: dict[str, Any] = {}

    def tag(self, rows: Vector, once: bool) -> Any:
        """Identity of the stream of values with these rows; values with equal tags are in one stream.

        It is that of a convolution with as many rows, or else made of the rows. With ``once``, rows are per batch, else per
        item.
        """
        return self.grids[rows][0] if not once and rows in self.grids else ("rows", once, rows)

    def of(self, rows: Vector, once: bool) -> Any:
        """``stream`` field of an entry with these rows: a name if ``once`` (rows per batch), else axes."""
        return self.per_batch(rows) if once else self.per_item(rows)

    def per_item(self, rows: Vector) -> dict[str, str]:
        """Axes of a value: those of a convolution with that many rows, else a single axis ``m``."""
        if rows in self.grids:
            return dict(self.grids[rows][1])
        text = self.dims.text(rows, "rows")
        return {"m": text} if text != "1" else {}

    def per_batch(self, rows: Vector) -> str:
        """Name of a stream that exists once per batch and has ``rows`` rows, added if it is new.

        It is ``once`` for a single row. In the number of rows, the longest item of the batch takes the place of lengths of
        one item.
        """
        text = self.dims.text(rows, "rows")
        if text == "1":
            return "once"
        names = self.dims.names
        text = WORD.sub(lambda word: f"longest({word[0]})" if word[0] in names.lengths else word[0], text)
        known = {stream["axes"]["m"]: name for name, stream in self.once.items()}
        name = known.get(text) or fresh("positions", {*self.once, *names.sizes, *names.lengths})
        self.once.setdefault(name, {"over": "once", "axes": {"m": text}})
        return name

    def named_axes(self, sizes: list[Vector]) -> dict[str, str]:
        """Name of each axis of a convolution -> text of its length.

        ``sizes`` are the lengths, one vector (values in all samples) per axis.
        """
        return {label: self.dims.text(size, "axes") for label, size in zip(AXES[len(sizes)], sizes, strict=True)}

    def remember(self, items: Vector, sizes: list[Vector]) -> None:
        """Store the axes of a convolution as those of all values with as many rows.

        Not if its batch is not the model's, or if its only axis is an input length. ``items`` is its batch, ``sizes`` its axes.
        """
        if items == self.dims.names.batch and (len(sizes) > 1 or sizes[0] not in self.dims.fitter.symbols.values()):
            named = self.named_axes(sizes)
            self.grids.setdefault(self.dims.times(*sizes), (grid_tag(items, sizes), named))


def grid_tag(items: Vector, sizes: list[Vector]) -> Any:
    """Identity of the stream with ``items`` as their batch and the axes ``sizes`` of a convolution."""
    return ("axes", (items,), tuple(sizes))
