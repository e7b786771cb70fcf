"""Writes convolutions with a parameter, and derives the lengths of their axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from symflops.draft.fit.formula import Vector
from symflops.draft.trace.steps import Step, steps_in
from symflops.draft.write.dimensions import Dimensions, constant, grid_tag
from symflops.draft.write.products import write_product
from symflops.draft.write.values import Fields, Scope, Val, Values


@dataclass(frozen=True, slots=True)
class Convolution:
    """Sizes and options of a convolution: lists by axis, of vectors with the values in all samples.

    A convolution of two values, without a kernel parameter, has empty lists of options.

    Attributes:
        items: Batch items of its input.
        channels: Channels of its input.
        before: Lengths of its input.
        after: Lengths of its result.
        kernel: Lengths of its kernel.
        stride: Strides of the kernel.
        padding: Border on each side.
        dilation: Distances between the kernel's elements.
        output_padding: Extra length of a transposed convolution's result on one side.
    """

    items: Vector
    channels: Vector
    before: list[Vector]
    after: list[Vector]
    kernel: list[Vector]
    stride: list[Vector]
    padding: list[Vector]
    dilation: list[Vector]
    output_padding: list[Vector]

    @property
    def moves(self) -> list[tuple[Vector, ...]]:
        """For each axis: (length before, length after, kernel, stride, padding, dilation)."""
        return list(zip(self.before, self.after, self.kernel, self.stride, self.padding, self.dilation, strict=True))

    @property
    def keeps_axes(self) -> bool:
        """Whether the result's lengths are the input's, with stride 1 and the same options in all samples."""
        fixed = all(len(set(vector)) == 1 for vector in (*self.kernel, *self.padding, *self.dilation))
        return fixed and all(constant(vector, 1) for vector in self.stride) and self.after == self.before


def convolution_of(step: Step, dims: Dimensions) -> Convolution:
    """Sizes and options of a convolution step; the options only if its kernel is a parameter."""
    ranks: tuple[int, ...] = step.words[3] if step.parameters else step.words[1]
    rank = ranks[0] - 2
    first, last = 3 + 2 * rank, 3 + 2 * rank + sum(ranks)
    items, channels, *before = dims.slice(step, first, ranks[0])
    options = [dims.slice(step, last + place * rank, rank) if step.parameters else [] for place in range(4)]
    return Convolution(items, channels, before, dims.slice(step, last - rank, rank), dims.slice(step, 3, rank), *options)


def find_axes(entries: Sequence[Any], values: Values, grids: bool) -> None:
    """Find formulas for the lengths of the axes of all convolutions among ``entries``.

    They are stored in the streams of ``values``. With ``grids``, also store the axes of each convolution's input and
    result, as those of all values with as many rows.
    """
    streams = values.streams
    for step in steps_in(entries):
        if step.kind != "conv":
            continue
        conv = convolution_of(step, values.dims)
        if step.parameters and not step.words[0]:
            for move in conv.moves:
                streams.axes.convolved(*move)
        else:
            for axis in chain(*zip(conv.before, conv.after, strict=True)):
                streams.axes.formula(axis)
        for axes in (conv.before, conv.after) if grids else ():
            streams.remember(conv.items, axes)


def write_conv(step: Step, scope: Scope, values: Values) -> None:
    """Write a convolution entry; a convolution of two values becomes a matmul."""
    dims, paths = values.dims, values.paths
    if not step.parameters:
        write_product(step, scope, values)
        return
    conv, transposed = convolution_of(step, dims), step.words[0]
    groups = dims.of(step, len(step.numbers) - 1)
    outer = dims.times(dims.of(step, 2), groups) if transposed else dims.of(step, 1)
    value = read_axes(step, conv, scope, values)
    key = paths.label(step.path, scope)
    fields: Fields = {"op": "conv", "from": value.name, "width": dims.text(outer, f"{step.path}: width")}
    fields |= options_of(conv, step.path, dims)
    if not constant(groups, 1):
        fields["groups"] = dims.text(groups, step.path)
    if not step.words[2]:
        fields["bias"] = "false"
    if transposed:
        fields["transposed"] = "true"
    fields |= paths.parameters(step.parameters, key, scope)
    name = step.parameters[0].rpartition(".")[0] or step.path
    write_result(step, conv, replace(value, name=name, width=outer), key, fields, scope, values)


def read_axes(step: Step, conv: Convolution, scope: Scope, values: Values) -> Val:
    """Operand of a convolution, in a stream with the convolution's axes; moved by a ``select`` if necessary."""
    dims = values.dims
    rows, once = dims.rows(dims.times(conv.items, *conv.before))
    items, _ = dims.rows(conv.items)
    axes = {} if constant(items, 1) else {"n": dims.text(items, "items of a convolution")}
    value = values.operand(step.operands[0], rows, conv.channels, scope, once)
    axes |= values.streams.named_axes(conv.before)
    tag = grid_tag(conv.items, conv.before)
    if value.tag == tag or has_axes(value, axes, tag, values):
        return value
    return values.selected(value, axes, tag, scope)


def has_axes(value: Val, axes: dict[str, str], tag: Any, values: Values) -> bool:
    """Whether ``value`` is in the stream with the identity ``tag``, whose axes are ``axes``.

    An input of the model that has no axes of a convolution yet takes these, and then is.
    """
    for name, known in values.inputs.items():
        if known.name == value.name and name not in values.streams.of_inputs:
            values.streams.of_inputs[name] = axes
            values.inputs[name] = replace(known, tag=tag)
            return True
    return bool(value.tag) and value.tag[:3] == tag


def write_result(step: Step, conv: Convolution, like: Val, key: str, fields: Fields, scope: Scope, values: Values) -> None:
    """Append a convolution's entry, and a ``select`` if its axes are written otherwise elsewhere."""
    streams = values.streams
    rows, _ = values.dims.rows(values.dims.times(conv.items, *conv.after))
    tag = grid_tag(conv.items, conv.after)
    usual = not like.once and streams.tag(rows, False) == tag
    derived = conv.keeps_axes or (usual and all(move in streams.axes.derived for move in conv.moves))
    like = replace(like, rows=rows, tag=tag if derived else (*tag, key))
    result = values.put(step, like, key, fields, scope, step.parameters)
    if usual and not derived:
        values.made[step.id] = values.selected(result, streams.per_item(rows), tag, scope)


def options_of(conv: Convolution, path: str, dims: Dimensions) -> Fields:
    """Fields for the kernel and all non-default options of a convolution.

    Each is the text of a list with one formula per axis; for options, a single formula if all axes are equal.
    """
    fields: Fields = {"kernel": dims.listed(conv.kernel, path)}
    for word, usual in (("stride", 1), ("padding", 0), ("dilation", 1), ("output_padding", 0)):
        vectors: list[Vector] = getattr(conv, word)
        if not all(constant(vector, usual) for vector in vectors):
            fields[word] = dims.listed(vectors, path) if len(set(vectors)) > 1 else dims.text(vectors[0], path)
    return fields
