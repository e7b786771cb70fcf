"""Fits the lengths of convolved axes, each from earlier axes, in the form that the operator derives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from symflops.draft.fit.fit import Fitter
from symflops.draft.fit.formula import Formula, Monomial, Vector, bracket, ratio, symbol

NEAREST = 16
MOST_ADDED = 8
DIVISORS = (2, 3, 4, 5, 8)


class Axes:
    """Finds formulas of axis lengths, each derived from an axis seen before where possible.

    A vector has the length of an axis in each sample (run with another config).
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
                self.name(vector, found)
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
        """Fit an axis after a convolution: ``(n + 2p - d(k-1) - 1) // s + 1``."""
        self.formula(before)
        rows = zip(before, kernel, stride, padding, dilation, strict=True)
        if after != tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in rows):
            self.formula(after)
            return
        found = self.length(before, kernel, stride, padding, dilation)
        if found is not None and self.unknown(after):
            self.name(after, found)
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

    def name(self, vector: Vector, found: Formula) -> None:
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
