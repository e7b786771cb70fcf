"""Parts of a live model that run by themselves, such as the encoder of an autoencoder: their lengths and their share of work.

The lengths are those of the model's streams. They come from the arguments of the part, if they have the names and the layout of
the model's own; else from its result, if it has the layout of the model's input, as that of a decoder has; else from the part
before, whose result it gets, or the part behind, which gets its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from inspect import signature
from typing import Any

from symflops.evaluate.lengths import Lengths
from symflops.training.meter.arguments import tensors_of
from symflops.training.meter.batches import of_channels, read, streams_of


def shares(estimator: Any, part: str, without: str) -> dict[str, tuple[Any, ...]]:
    """Map each kind of work to its FLOPs per unit of each moment, inside of ``part`` and outside of ``without``.

    Both are paths of modules; empty for the whole model, and for no module.
    """
    if not part and not without:
        return dict(estimator.coefficients)
    kinds = ("forward", "backward", "recomputed")
    found = {kind: [0] * len(estimator.moment_sets) for kind in kinds}
    for line in estimator._lines:
        if is_within(line.within, part) and not (without and is_within(line.within, without)):
            for position, amount in line.vector:
                for kind in kinds:
                    found[kind][position] += line.unit * amount * getattr(line, kind)
    return {kind: tuple(values) for kind, values in found.items()}


def is_within(stack: Iterable[str], part: str) -> bool:
    """Whether one of the running modules is ``part`` or lies inside it."""
    return not part or any(one == part or one.startswith(f"{part}.") for one in stack)


class Part:
    """A call of a part of a model, until its lengths are known.

    Args:
        name: The path of the part.
        module: The part.
        args: Its positional arguments.
        named: Its arguments by keyword.
    """

    def __init__(self, name: str, module: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        names = [one for one in signature(module.forward).parameters if one not in named]
        self.name = name
        self.arguments: dict[str, Any] = {**dict(zip(names, args, strict=False)), **named}
        self.given = shape_of(self.arguments)
        self.made: tuple[int, ...] | None = None
        self.streams: dict[str, Lengths] | None = None

    def ended(self, reader: Any, output: Any, before: Part | None) -> None:
        """Find the lengths, if arguments, result or the part before tell them."""
        self.made = shape_of(output)
        self.streams = self._named(reader) or of_layout(reader, output)
        if self.streams is None and before is not None and self.given is not None and self.given == before.made:
            self.streams = before.streams
        self.arguments = {}

    def settled(self, behind: Part, receive: Callable[[dict[str, Lengths]], None]) -> bool:
        """Hand the lengths to ``receive`` if they are known, perhaps from the part ``behind``; whether they are."""
        if self.streams is None and self.made is not None and self.made == behind.given:
            self.streams = behind.streams
        if self.streams is not None:
            receive(self.streams)
        return self.streams is not None

    def _named(self, reader: Any) -> dict[str, Lengths] | None:
        """The lengths of the streams that the part's arguments tell."""
        known = {name: value for name, value in self.arguments.items() if fits(reader, name, value)}
        if not known.keys() & reader.inputs().keys():
            return None
        rest = {name: value for name, value in self.arguments.items() if name not in reader.inputs()}
        try:
            return dict(streams_of(reader, {**rest, **known}))
        except Exception:  # they are arguments of another kind
            return None


def fits(reader: Any, name: str, value: Any) -> bool:
    """Whether an argument has the layout of the model's argument of that name."""
    row = reader.inputs().get(name)
    shape = getattr(value, "shape", None)
    if row is None or shape is None:
        return row is not None and value is not None
    words, width = row[1].split(), row[2]
    axes = [axis for members in reader.sets.values() for stream, axes, _ in members if stream == row[0] for axis in axes]
    channels = of_channels(words, axes)
    return len(shape) == len(words) and (not channels or width is None or int(shape[words.index(channels)]) == width)


def of_layout(reader: Any, output: Any) -> dict[str, Lengths] | None:
    """The lengths that a part's result tells, if it has the layout of the only stream of a model without tokens."""
    tensor = next((tensor for _, tensor in tensors_of(output)), None)
    rows = [(name, row) for name, row in reader.inputs().items() if fits(reader, name, tensor)]
    if tensor is None or len(reader.streams) != 1 or not rows:
        return None
    name, row = rows[0]
    axes = next(axes for members in reader.sets.values() for stream, axes, _ in members if stream == row[0])
    return {row[0]: read(name, row, axes, tensor)} if of_channels(row[1].split(), axes) else None


def shape_of(value: Any) -> tuple[int, ...] | None:
    """The shape of the first tensor in arguments or a result."""
    return next((tuple(map(int, tensor.shape)) for _, tensor in tensors_of(value)), None)
