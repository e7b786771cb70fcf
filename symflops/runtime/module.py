"""What generated modules have in common: they hold the model, and import the machinery from here.

A module states its sizes, moments, work and parameters; the classes here read configs and batches, add moments and evaluate.
``symflops generate --standalone`` prints modules that hold this text, for projects without symflops.
"""

from __future__ import annotations

import sys

from symflops.runtime.module_batch import exact, largest, least, most, numbers, vectors_here
from symflops.runtime.module_estimator import BoundEstimator
from symflops.runtime.module_moments import Flops, ModelMoments
from symflops.runtime.module_sizes import ModelSizes, NullList, OtherStructure, each, total_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeVar

    from symflops.runtime.module_batch import Columns

    S = TypeVar("S")
    M = TypeVar("M", bound=ModelMoments)
else:
    S = M = None

__all__ = [
    "Flops", "ModelEstimator", "ModelMoments", "ModelSizes", "NullList", "OtherStructure", "each", "exact", "largest", "least",
    "most", "numbers",
]  # fmt: skip

# ---- what modules that stand alone hold, too


class ModelEstimator(BoundEstimator[S, M]):
    """Parameters and FLOPs of one model under a regime and a convention; everything that does not vary is bound once.

    ``parameters`` and ``trainable_parameters`` are counts of elements. Methods take the moments of a batch and return FLOPs.
    ``coefficients`` are FLOPs per moment, in the order of ``moment_sets``; ``padded`` says whether the convention counts padded
    lengths.

    Raises:
        ValueError: no such regime or convention.
        OtherStructure: sizes that decide the structure are not those of the module.
    """

    __slots__ = ()

    def _not_whole(self) -> None:
        if self.whole:
            raise ValueError(f"moments of one batch as a whole are not sums over items ({', '.join(self.whole)})")

    def terms(self, *columns: Any) -> tuple[Any, ...]:
        """What items add to each moment: whole columns of lengths at once, one per axis, ints or integer arrays.

        Raises:
            ValueError: some moments are of a batch as a whole.
        """
        self._not_whole()
        return self._terms(self.sizes, *columns)

    def rests(self, *columns: Any) -> tuple[Any, ...]:
        """The remainders of the model's divisions of lengths; all must be 0.

        Raises:
            ValueError: as ``terms``.
        """
        self._not_whole()
        return self._rests(self.sizes, *columns)

    def inner_lengths(self, *columns: Any) -> tuple[tuple[str, Any], ...]:
        """What the model leaves of items, which must be at least 1: index set, and column of lengths."""
        return tuple(zip(self._inner_sets, self._inner(self.sizes, *columns), strict=True))

    @property
    def taken(self) -> dict[str, int]:
        """A length that conditions of the spec name, for each axis that they limit."""
        return self._taken(self.sizes)

    @property
    def implied(self) -> tuple[str, ...]:
        """The streams that a batch may leave out although the model has them."""
        return tuple(name for name, has in self._implied(self.sizes).items() if has)

    def inputs(self) -> dict[str, tuple[str, str, int | None]]:
        """Per argument of the model that tells lengths: stream or index set, layout, width."""
        return self._inputs(self.sizes)

    def _costs(self, batch: dict[str, Any]) -> dict[str, Any]:
        """FLOPs of each item, per index set: lists of ints, or integer arrays for arrays."""
        self._not_whole()
        real, padded = self._read(self.sizes, batch)
        found = self._costs_by_side(real, padded)
        if any(hasattr(column, "dtype") for column in (*real, *padded)):
            return found
        return {
            items: costs.tolist() if hasattr(costs, "dtype") else list(map(total_of, costs)) for items, costs in found.items()
        }

    def _costs_by_side(self, real: Columns, padded: Columns) -> dict[str, Any]:
        """FLOPs of each item: of real lengths, of padded ones, or of both."""
        if not self.padded_sums or self.padded:
            return self._costs_on(padded if self.padded else real, self._total, padded)
        always = [name in self.padded_sums for name in self.moment_sets]
        sides = (real, [not side for side in always]), (padded, always)
        one, two = (
            self._costs_on(columns, [c * mine for c, mine in zip(self._total, kept, strict=True)], padded)
            for columns, kept in sides
        )
        return {items: added(costs, two[items]) for items, costs in one.items()}

    def _costs_on(self, columns: Columns, total: Sequence[int], padded: Columns) -> dict[str, Any]:
        """FLOPs of each item, as ``total`` says per moment."""
        if self._inner_sets or self._demanding:
            self._check(self.sizes, columns, padded)
        many = any(hasattr(column, "dtype") or len(column) > 99 for column in columns)
        found = vectors_here() if many and "numpy" in sys.modules else None
        if found is not None:
            of = self._terms, self._rests, self.sizes, self.sets, self.moment_sets
            return dict(found.per_item(*of, columns, total))
        costs: dict[str, Any] = {}
        first = 0
        for items, streams in self.sets.items():
            width = sum(len(axes) or 1 for _, axes, _ in streams)
            before, after = [0] * first, [0] * (len(columns) - first - width)
            rows = zip(*columns[first : first + width], strict=True)
            costs[items] = [self._cost(total, items, [*before, *row, *after]) for row in rows]
            first += width
        if "once" in self.moment_sets.values():
            costs["once"] = [self._cost(total, "once", [0] * len(columns))]
        return costs

    def _cost(self, total: Sequence[int], items: str, lengths: Sequence[int]) -> int:
        """FLOPs of the moments of one index set, for one item."""
        if items != "once" and any(self._rests(self.sizes, *lengths)):
            raise ValueError("a length of the batch does not divide as the model divides it")
        terms = self._terms(self.sizes, *lengths)
        return sum([c * term for c, term, of in zip(total, terms, self.moment_sets.values(), strict=True) if of == items])

    def per_item(self, *_: Any, **batch: Any) -> dict[str, Any]:
        """FLOPs of each item, forward and backward, per index set; they sum to ``total``.

        Lists give lists of ints, and arrays integer arrays.

        Raises:
            ValueError: as ``moments``; or what an item costs depends on the others.
        """
        return self._costs(batch)

    def per_sample(self, **streams: Any) -> Any:
        """FLOPs of each sample, forward and backward; they sum to ``total``.

        Raises:
            ValueError: as ``moments``; or part of the work is of items of another index set, of which ``per_item`` tells.
        """
        costs = self.per_item(**streams)
        others = [items for items in costs if items != "samples" and len(costs[items])]
        if others:
            raise ValueError(f"this batch has costs per {', '.join(others)} beside those per sample: use per_item")
        return costs["samples"]

    def forward(self, m: M) -> int:
        """FLOPs of the forward pass."""
        return self._apply(self.coefficients["forward"], m)

    def backward(self, m: M) -> int:
        """FLOPs of the backward pass, recomputation apart."""
        return self._apply(self.coefficients["backward"], m)

    def recomputed(self, m: M) -> int:
        """FLOPs of forward work that the backward pass repeats."""
        return self._apply(self.coefficients["recomputed"], m)

    def total(self, m: M) -> int:
        """Forward and backward."""
        if self.padded and m.padded is not None:
            m = m.padded
        found = self._dot(self._total, m if m.lengths is None else self._settled(m))
        return found if type(found) is int and found >= 0 else total_of(found)

    def tensors(self) -> dict[str, int]:
        """Elements per parameter, all copies together."""
        return dict(self._elements)

    def by_module(self, m: M) -> dict[str, Flops]:
        """FLOPs per module that does work; ``*`` stands for the index of a repeat, summed over."""
        found: dict[str, Flops] = {}
        m = self._settled(m)
        for module, amount, unit, forward, gradients, again in self._lines:
            size = self._apply(amount, m) * unit
            flops = found.setdefault(module, Flops(0, 0, 0))
            flops.forward += size * forward
            flops.backward += size * sum(gradients)
            flops.recomputed += size * again
        return found

    def _apply(self, c: tuple[int, ...], m: M) -> int:
        if self.padded and m.padded is not None:
            m = m.padded
        found = self._dot(c, m if m.lengths is None else self._settled(m))
        return found if type(found) is int and found >= 0 else total_of(found)

    def _settled(self, m: Any) -> Any:
        """The sums, with those that waited for sizes."""
        padded = None if m.padded is None else self._settled(m.padded)
        if m.lengths is None:
            return m
        if self._inner_sets or self._demanding:
            self._check(self.sizes, m.lengths, m.padded and m.padded.lengths)
        found = self._sums(self.sizes, *m.lengths)
        if not self.whole:
            found += self._moments(*m._as_sums())
        return found._with(padded)

    def _repr_markdown_(self) -> str:
        """What notebooks show."""
        trained = "all" if self.trainable_parameters == self.parameters else f"{self.trainable_parameters:,}"
        kinds = ("forward", "backward", "recomputed")
        head = f"**{self.name}**, regime `{self.regime}`, convention `{self.convention}`: {self.parameters:,} parameters"
        lines = [f"{head}, of which {trained} train.", ""]
        unit = "MACs" if self.unit == "macs" else "FLOPs"
        lines += [f"| Moment | Forward {unit} | Backward {unit} | Recomputed |", "|:--|--:|--:|--:|"]
        for name, *costs in zip(self.moment_sets, *(self.coefficients[kind] for kind in kinds), strict=True):
            lines.append(f"| `{name}` | {' | '.join(f'{cost:,}' for cost in costs)} |")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Estimator of '{self.name}': {self.regime}, {self.convention}, {self.parameters:,} parameters>"


def added(one: Any, two: Any) -> Any:
    """The sums of two lists or arrays, entry by entry; Python's integers, since a sum may be too wide for others."""
    if hasattr(one, "dtype") and hasattr(two, "dtype"):
        return one.astype(object) + two
    return [int(left) + int(right) for left, right in zip(one, two, strict=True)]
