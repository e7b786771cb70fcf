"""An estimator that reads a program instead of being generated from it: for specs without a generated module.

It has the interface of the generated ones and gives the same integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from symflops.diagnostics.findings import SymflopsError
from symflops.model.index_sets import ONCE
from symflops.model.program import Line, Program
from symflops.runtime.batch import BatchError, items_of, moments_of
from symflops.runtime.columnwise import Columnwise
from symflops.runtime.layouts import inputs_of, sets_of
from symflops.runtime.sizes import settled, sizes_of


@dataclass(frozen=True)
class Moments:
    """Sums over the items of a batch; those of two batches add, unless some (``whole``) are of one batch as a whole.

    Raises:
        BatchError: a sum of moments that do not add.
    """

    names: tuple[str, ...]
    values: tuple[int, ...]
    padded: tuple[int, ...]
    whole: tuple[str, ...] = ()

    def __add__(self, other: Moments) -> Moments:
        if self.whole:
            told = "take the moments of all items together, or add the FLOPs of each batch"
            raise BatchError(f"moments of one batch as a whole do not add ({', '.join(self.whole)}): {told}")
        pairs = ((self.values, other.values), (self.padded, other.padded))
        values, padded = (tuple(a + b for a, b in zip(one, two, strict=True)) for one, two in pairs)
        return Moments(self.names, values, padded)

    def as_dict(self) -> dict[str, int]:
        """The moments by name."""
        return dict(zip(self.names, self.values, strict=True))


@dataclass(frozen=True)
class Flops:
    """FLOPs of one module in one step."""

    forward: int
    backward: int
    recomputed: int

    @property
    def total(self) -> int:
        """Forward and backward."""
        return self.forward + self.backward


class InterpretedEstimator:
    """Parameters and FLOPs of one model under a regime and a convention of its program.

    Raises:
        SymflopsError: no such regime or convention, or a config that does not fit.
    """

    def __init__(
        self, program: Program, config: Mapping[str, Any], *, regime: str = "full", convention: str = "symflops"
    ) -> None:
        for kind, name, known in (
            ("regime", regime, [item.name for item in program.regimes]),
            ("convention", convention, program.conventions),
        ):
            if name not in known:
                raise SymflopsError(f"no {kind} '{name}'; there is {', '.join(known)}")
        self.program = program
        self.regime = regime
        self.convention = convention
        self.sizes = sizes_of(program, config)
        for letter, value in program.fixed:
            if as_tuple(self.sizes[letter]) != value:
                raise SymflopsError(f"this derivation is of models whose '{letter}' is {value!r}, not {self.sizes[letter]!r}")
        chosen = program.regime(regime)
        self._lines = [(line, settled(line.unit, self.sizes)) for line in chosen.lines]
        self._side = dict(program.lengths)[convention]
        self._pairs = dict(program.pairs)[convention]
        self._unseen = dict(program.unseen)[convention]
        self._vectors = {id(line): self._vector(line) for line, _ in self._lines}
        self.padded = self._side == "padded"
        self.streams = {stream.name: stream.optional for stream in program.streams if stream.given}
        self.sets = sets_of(program)
        self.whole = program.whole
        self.moment_sets = {moment.name: moment.items for moment in program.moments}
        self.parameters: int = settled(chosen.parameters, self.sizes)
        self.trainable_parameters: int = settled(chosen.trainable, self.sizes)

    @cached_property
    def coefficients(self) -> dict[str, tuple[Any, ...]]:
        """FLOPs per moment of the forward pass, the backward pass, both, and of what is recomputed.

        Raises:
            SymflopsError: the convention counts real lengths in some work and padded ones in other.
        """
        if any(line.side not in ("", self._side) for line, _ in self._lines):
            raise SymflopsError(
                f"the convention '{self.convention}' counts real and padded lengths: it has no FLOPs per moment"
            )
        found = {kind: [0] * len(self.moment_sets) for kind in ("forward", "backward", "recomputed", "total")}
        for line, unit in self._lines:
            forward, backward = settled(line.forward, self.sizes), self._gradients(line)
            counts = (forward, backward, settled(line.recomputed, self.sizes), forward + backward)
            for position, part in self._vectors[id(line)]:
                for kind, count in zip(found.values(), counts, strict=True):
                    kind[position] += unit * part * count
        return {kind: tuple(values) for kind, values in found.items()}

    def _not_whole(self) -> None:
        if self.whole:
            raise BatchError(f"moments of one batch as a whole are not sums over items ({', '.join(self.whole)})")

    def _over(self, columns: tuple[Any, ...]) -> Columnwise:
        names = [name for streams in self.sets.values() for _, axes, _ in streams for name in axes or ("",)]
        return Columnwise(dict(zip(names, columns, strict=True)), self.sizes)

    def terms(self, *columns: Any) -> tuple[Any, ...]:
        """What items add to each moment: whole columns of lengths at once, one per axis, ints or integer arrays."""
        self._not_whole()
        over = self._over(columns)
        return tuple(over.value(moment.formula) for moment in self.program.moments)

    def rests(self, *columns: Any) -> tuple[Any, ...]:
        """What is left over where the model divides lengths, which must be 0."""
        self._not_whole()
        over = self._over(columns)
        for moment in self.program.moments:
            over.value(moment.formula)
        return tuple(over.rests)

    def inputs(self) -> dict[str, tuple[str, str, int | None]]:
        """Per argument of the model that tells lengths: stream or index set, layout, width."""
        return {
            name: (to, layout, None if width is None else settled(width, self.sizes))
            for name, to, layout, width in inputs_of(self.program)
        }

    def _vector(self, line: Line) -> tuple[tuple[int, Any], ...]:
        if not (line.seen or self._unseen):
            return ()
        return tuple((position, settled(formula, self.sizes)) for position, formula in line.amount.under(self._pairs))

    def moments(self, **batch: Any) -> Moments:
        """The moments of a batch: per stream a list or integer array with one entry per item."""
        batch = {name: _listed(given) for name, given in batch.items()}
        names = tuple(moment.name for moment in self.program.moments)
        values, padded = (moments_of(self.program, batch, self.sizes, side) for side in ("lengths", "padded"))
        return Moments(names, values, padded, self.program.whole)

    def per_item(self, **batch: Any) -> dict[str, list[int]]:
        """FLOPs of each item, forward and backward, per index set; they sum to ``total``.

        Raises:
            BatchError: as ``moments``; or what an item costs depends on the others.
        """
        self._not_whole()
        sets = items_of(self.program, {name: _listed(given) for name, given in batch.items()}, self._side)
        costs: dict[str, list[Any]] = {items: [0] * len(found) for items, found in sets.items()}
        for moment, cost in zip(self.program.moments, self.coefficients["total"], strict=True):
            if moment.items == ONCE:
                costs[ONCE] = [costs.get(ONCE, [0])[0] + cost * settled(moment.formula, self.sizes)]
            for place, item in enumerate(sets.get(moment.items, ())):
                costs[moment.items][place] += cost * _whole(settled(moment.formula, {**self.sizes, **item}))
        return {items: [_whole(cost) for cost in found] for items, found in costs.items()}

    def per_sample(self, **batch: Any) -> list[int]:
        """FLOPs of each sample, forward and backward; they sum to ``total``.

        Raises:
            BatchError: as ``moments``; or part of the work is of items of another index set, of which ``per_item`` tells.
        """
        costs = self.per_item(**batch)
        others = [items for items, found in costs.items() if items != "samples" and found]
        if others:
            raise BatchError(f"this batch has costs per {', '.join(others)} beside those per sample: use per_item")
        return costs["samples"]

    def _size(self, line: Line, unit: Any, m: Moments) -> Any:
        values = m.padded if (line.side or self._side) == "padded" else m.values
        return unit * sum(part * values[position] for position, part in self._vectors[id(line)])

    def forward(self, m: Moments) -> int:
        """FLOPs of the forward pass."""
        return _whole(sum(self._size(line, unit, m) * settled(line.forward, self.sizes) for line, unit in self._lines))

    def backward(self, m: Moments) -> int:
        """FLOPs of the backward pass, recomputation apart."""
        return _whole(sum(self._size(line, unit, m) * self._gradients(line) for line, unit in self._lines))

    def recomputed(self, m: Moments) -> int:
        """FLOPs of forward work that the backward pass repeats."""
        return _whole(sum(self._size(line, unit, m) * settled(line.recomputed, self.sizes) for line, unit in self._lines))

    def total(self, m: Moments) -> int:
        """Forward and backward."""
        return self.forward(m) + self.backward(m)

    def _gradients(self, line: Line) -> Any:
        return sum(settled(count, self.sizes) for count in line.backward)

    def by_module(self, m: Moments) -> dict[str, Flops]:
        """FLOPs per module that does work; ``*`` stands for the index of a repeat, summed over."""
        found: dict[str, list[Any]] = {}
        for line, unit in self._lines:
            size = self._size(line, unit, m)
            counts = (settled(line.forward, self.sizes), self._gradients(line), settled(line.recomputed, self.sizes))
            sums = found.setdefault(line.module, [0, 0, 0])
            for position, count in enumerate(counts):
                sums[position] += size * count
        return {module: Flops(*(_whole(value) for value in sums)) for module, sums in found.items()}

    def running(self, m: Moments) -> dict[tuple[str, ...], int]:
        """FLOPs of the forward pass by the modules that run at once, outermost first."""
        found: dict[tuple[str, ...], Any] = {}
        for line, unit in self._lines:
            work = self._size(line, unit, m) * settled(line.forward, self.sizes)
            found[line.within] = found.get(line.within, 0) + work
        return {modules: _whole(work) for modules, work in found.items()}

    def _repr_markdown_(self) -> str:
        """What notebooks show; no table where the convention has no FLOPs per moment."""
        trained = "all" if self.trainable_parameters == self.parameters else f"{self.trainable_parameters:,}"
        head = (
            f"**{self.program.name}**, regime `{self.regime}`, convention `{self.convention}`: {self.parameters:,} parameters"
        )
        lines = [f"{head}, of which {trained} train.", ""]
        try:
            kinds = [self.coefficients[kind] for kind in ("forward", "backward", "recomputed")]
        except SymflopsError:
            return lines[0]
        lines += ["| Moment | Forward FLOPs | Backward FLOPs | Recomputed |", "|:--|--:|--:|--:|"]
        for name, *costs in zip(self.moment_sets, *kinds, strict=True):
            lines.append(f"| `{name}` | {' | '.join(f'{cost:,}' for cost in costs)} |")
        return "\n".join(lines)

    def tensors(self) -> dict[str, int]:
        """Elements per parameter, all copies together, of those that are there."""
        found: dict[str, int] = {}
        for tensor in self.program.regime(self.regime).tensors:
            found[tensor.name] = found.get(tensor.name, 0) + settled(tensor.count, self.sizes)
        return found


def _listed(given: Any) -> Any:
    """Arrays and tensors as lists."""
    if isinstance(given, dict):
        return {side: _listed(values) for side, values in given.items()}
    return given.tolist() if hasattr(given, "tolist") else given


def as_tuple(value: Any) -> Any:
    """A value of a config with tuples in the place of lists."""
    return tuple(as_tuple(item) for item in value) if isinstance(value, (list, tuple)) else value


def _whole(value: Any) -> int:
    if isinstance(value, Fraction):
        if value.denominator != 1:
            raise SymflopsError("a length of the batch does not divide as the model divides it")
        return value.numerator
    return int(value)
