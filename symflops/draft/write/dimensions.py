"""Writes rows, widths and axes over all samples as formulas, and rows as streams.

A stream has the axes of a convolution, one length for other rows, or rows per batch. The length of a convolved axis is
derived from an earlier axis, in the form that the operator derives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from symflops.draft.fit.fit import Fitter
from symflops.draft.fit.formula import Formula, Monomial, Vector, bracket, product, ratio, symbol, words
from symflops.draft.fit.symbols import Names, fresh
from symflops.draft.sample.samples import Family
from symflops.draft.trace.steps import Step

NEAREST = 16
MOST_ADDED = 8
DIVISORS = (2, 3, 4, 5, 8)


class Axes:
    """Finds formulas of axis lengths, each derived from an axis seen before where possible.

    A vector has the length of an axis in each sample (run with another config).

    Attributes:
        fitter: Finds and stores the formulas.
        seen: The vectors of the axes so far, the latest last.
        derived: Convolutions of one axis whose result has the formula that the operator derives: (length before, length
            after, kernel, stride, padding, dilation).
    """

    def __init__(self, fitter: Fitter) -> None:
        self.fitter = fitter
        self.seen: dict[Vector, None] = {}
        self.derived: set[tuple[Vector, ...]] = set()

    def formula(self, vector: Vector) -> Formula | None:
        """Formula of an axis: derived from a recent axis if one simple operation does it, else any fit."""
        if self.unknown(vector):
            found = next(self.near(vector), None)
            if found is not None:
                self.store(vector, found)
        self.seen.pop(vector, None)
        self.seen[vector] = None
        return self.fitter.formula(vector)

    def unknown(self, vector: Vector) -> bool:
        """Whether an axis has different lengths in the samples, and no formula or symbol yet."""
        return vector not in self.fitter.known and vector not in self.fitter.symbols.values() and len(set(vector)) > 1

    def near(self, vector: Vector) -> Iterator[Formula]:
        """Formulas of axis ``vector`` as one of the latest axes, repeated, padded or pooled."""
        latest = [one for one in reversed(self.seen) if len(set(one)) > 1][:NEAREST]
        for way in (self.one_step, self.pooled):
            for axis in latest:
                known = self.fitter.known.get(axis) or self.fitter.formula(axis)
                if known is not None:
                    yield from way(vector, axis, known)

    def one_step(self, vector: Vector, axis: Vector, known: Formula) -> Iterator[Formula]:
        """Formulas of axis ``vector`` as a multiple of ``axis``, or ``axis`` plus a constant or a parity bit.

        ``known`` is the formula of ``axis``. The bit is 1 if a size is even: a kernel that pads half its size adds it.
        """
        factor = ratio(vector, [axis], [])
        if factor is not None and factor.denominator == 1:
            yield Formula(tuple((monomial, part * factor) for monomial, part in known.terms))
        differences = tuple(b - a for a, b in zip(axis, vector, strict=True))
        if len(set(differences)) == 1 and abs(differences[0]) <= MOST_ADDED:
            yield total([(known, 1)], differences[0])
        if set(differences) == {0, 1}:
            for name, values in self.fitter.symbols.items():
                if all(gap == 1 - value % 2 for gap, value in zip(differences, values, strict=True)):
                    yield total([(known, 1), (symbol(f"({name}//2)"), 2), (symbol(name), -1)], 1)

    def pooled(self, vector: Vector, axis: Vector, known: Formula) -> Iterator[Formula]:
        """Formulas of axis ``vector`` as ``axis`` plus a constant, divided by a small number, rounded down.

        ``known`` is the formula of ``axis``.
        """
        for divisor in DIVISORS:
            for border in range(-2 * divisor, 2 * divisor + 1):
                if all((a + border) // divisor == b for a, b in zip(axis, vector, strict=True)):
                    yield self.quotient(known, border, divisor)
                    break

    def quotient(self, length: Formula, border: int, divisor: int) -> Formula:
        """Formula ``(length + border) // divisor``; ``border`` is taken out of the quotient if divisible."""
        if border % divisor == 0:
            return total([(self.divided(length, divisor), 1)], border // divisor)
        return symbol(f"({bracket(total([(length, 1)], border).text)}//{divisor})")

    @staticmethod
    def divided(length: Formula, divisor: int) -> Formula:
        """Formula ``length // divisor``, without rounding if every coefficient is divisible."""
        parts = [(monomial, factor / divisor) for monomial, factor in length.terms]
        if all(part.denominator == 1 for _, part in parts):
            return Formula(tuple(parts))
        return symbol(f"({bracket(length.text)}//{divisor})")

    def convolved(
        self, before: Vector, after: Vector, kernel: Vector, stride: Vector, padding: Vector, dilation: Vector
    ) -> None:
        """Find and store the formula of an axis after a convolution: ``(n + 2p - d(k-1) - 1) // s + 1``.

        The arguments are the vectors of the axis's length before and after it, and of its options on this axis. If the axis
        gets that formula, the convolution is added to ``derived``.
        """
        self.formula(before)
        rows = zip(before, kernel, stride, padding, dilation, strict=True)
        if after != tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in rows):
            self.formula(after)
            return
        found = self.length(before, kernel, stride, padding, dilation)
        if found is not None and self.unknown(after):
            self.store(after, found)
        known = self.formula(after)
        if found is not None and known is not None and set(found.terms) == set(known.terms):
            self.derived.add((before, after, kernel, stride, padding, dilation))

    def length(self, before: Vector, kernel: Vector, stride: Vector, padding: Vector, dilation: Vector) -> Formula | None:
        """Formula of the length after a convolution, from the length ``before`` and the options.

        None if one of these has no formula, or if the dilation varies.
        """
        if len(set(dilation)) > 1:
            return None
        found = [self.fitter.formula(one) for one in (before, kernel, stride, padding)]
        if any(one is None for one in found):
            return None
        n, k, s, p = (one for one in found if one is not None)
        step = dilation[0]
        border = total([(p, 2), (k, -step)], step - 1)
        numbers = tuple(2 * b - step * (a - 1) - 1 for a, b in zip(kernel, padding, strict=True))
        if len(set(stride)) == 1 and len(set(numbers)) == 1:
            return self.quotient(n, numbers[0] + stride[0], stride[0])
        if len(set(stride)) == 1 and stride[0] == 1:
            return total([(n, 1), (border, 1)], 1)
        whole = ratio(numbers, [stride], []) if any(numbers) else Fraction(0)
        if whole is not None and whole.denominator == 1:
            return total([(symbol(f"({bracket(n.text)}//{bracket(s.text)})"), 1)], int(whole) + 1)
        return symbol(f"({bracket(total([(n, 1), (border, 1), (s, 1)], 0).text)}//{bracket(s.text)})")

    def store(self, vector: Vector, found: Formula) -> None:
        """Store ``found`` as the formula of axis ``vector``; a quotient may be a factor of later formulas."""
        self.fitter.known[vector] = found
        if len(found.terms) == 1 and any(len(one) > 2 for one in found.atoms):
            self.fitter.quotients.setdefault(f"({found.text})", vector)


def total(parts: Sequence[tuple[Formula, int]], added: int) -> Formula:
    """Formula of the sum of ``parts``, formulas with integer factors, plus the constant ``added``."""
    terms: dict[Monomial, Fraction] = {}
    for formula, times in parts:
        own = symbol(f"({formula.text})").terms if formula.rounds else formula.terms
        for monomial, part in own:
            terms[monomial] = terms.get(monomial, Fraction(0)) + times * part
    terms[()] = terms.get((), Fraction(0)) + added
    return Formula(tuple((monomial, part) for monomial, part in terms.items() if part))


AXES = {1: ("steps",), 2: ("rows", "columns"), 3: ("frames", "rows", "columns")}
WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Unsolved:
    """A dimension without a formula.

    ``place`` says in words where it is in the graph; ``values`` has its value in each sample.
    """

    place: str
    values: Vector


def constant(vector: Vector, value: int) -> bool:
    """Whether a dimension equals ``value`` in all samples."""
    return set(vector) == {value}


def quotient(total: Vector, parts: Vector) -> Vector | None:
    """``total / parts`` in each sample; None if a sample leaves a remainder."""
    divides = all(part and size % part == 0 for size, part in zip(total, parts, strict=True))
    return tuple(size // part for size, part in zip(total, parts, strict=True)) if divides else None


class Dimensions:
    """Reads the dimensions of steps as vectors (their values in all samples), and finds formulas for them.

    Attributes:
        one: The vector of a dimension that is 1.
        unsolved: The dimensions without a formula so far.
    """

    def __init__(self, family: Family, names: Names, fitter: Fitter) -> None:
        self.family, self.names, self.fitter = family, names, fitter
        self.one: Vector = (1,) * len(family.samples)
        self.unsolved: list[Unsolved] = []

    def of(self, step: Step, place: int) -> Vector:
        """Vector of the number at position ``place`` in a step's ``numbers``."""
        return self.family.numbers(step, lambda one: one.numbers[place])

    def slice(self, step: Step, start: int, count: int) -> list[Vector]:
        """Vectors of ``count`` consecutive numbers of a step, from position ``start`` on."""
        return [self.of(step, start + place) for place in range(count)]

    def result(self, step: Step) -> list[Vector]:
        """Shape of a step's result: a vector for each dimension."""
        ranks = next((word for word in reversed(step.words) if isinstance(word, tuple)), (0,))
        options = 4 * step.words[1] + 1 if step.kind == "conv" and step.parameters else 0
        return self.slice(step, len(step.numbers) - options - ranks[-1], ranks[-1])

    def turns(self, step: Step) -> Vector:
        """Vector of how many times a step runs."""
        return self.family.numbers(step, lambda one: one.times)

    def times(self, *vectors: Vector) -> Vector:
        """Product of vectors, sample by sample; the fitter may use the formulas of the factors for it."""
        found = product(vectors) if vectors else self.one
        self.fitter.factors.setdefault(found, vectors)
        return found

    def formula(self, vector: Vector) -> Formula | None:
        """Formula of a dimension, given by its values in all samples; None if none fits."""
        return self.fitter.formula(vector)

    def text(self, vector: Vector, place: str) -> str:
        """Formula of a dimension as text; without one, its value in the first sample.

        A dimension without a formula is added to ``unsolved`` with its ``place`` in the graph.
        """
        found = self.formula(vector)
        if found is not None:
            return found.text
        if all(one.values != vector for one in self.unsolved):
            self.unsolved.append(Unsolved(place, vector))
        return str(vector[0])

    def listed(self, vectors: Sequence[Vector], place: str) -> str:
        """Formulas of several dimensions as the text of a list."""
        return f"[{', '.join(self.text(vector, place) for vector in vectors)}]"

    def rows(self, total: Vector) -> tuple[Vector, bool]:
        """Rows of a value that has ``total`` rows in a batch, and whether they exist once per batch.

        Returns:
            (Rows per item, False), or (``total``, True) if these have no formula per item.
        """
        batch = self.names.batch
        per_item = quotient(total, batch)
        if per_item is None:
            return total, True
        factors = list(self.fitter.factors.get(total, ()))
        if batch in factors:
            factors.remove(batch)
            self.fitter.factors.setdefault(per_item, tuple(factors))
        if len(set(batch)) == 1 or len(set(per_item)) == 1 or self.formula(per_item) is not None or self.formula(total) is None:
            return per_item, False
        return total, True

    def has_length(self, vector: Vector) -> bool:
        """Whether the formula of a dimension has a length, as a width must not."""
        found = self.formula(vector)
        return found is not None and bool(set(words(" ".join(found.atoms))) & set(self.names.lengths))

    def is_size(self, vector: Vector) -> bool:
        """Whether a dimension has a formula without lengths."""
        return not self.has_length(vector) and self.formula(vector) is not None

    def shaped(self, rows: Vector, width: Vector) -> tuple[Vector, Vector]:
        """(Rows, width) as given; if the width depends on a length, all elements become rows of width 1."""
        return (self.times(rows, width), self.one) if self.has_length(width) else (rows, width)


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
        """Axis -> text of its length, for a value with ``rows`` rows per item.

        They are the axes of a convolution with as many rows, else a single axis ``m``, or none for a single row.
        """
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
