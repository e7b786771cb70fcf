"""The axes that convolutions move along: what each is in those before it, in the form in which the operator derives it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from symflops.draft.fit.fit import Fitter
from symflops.draft.fit.formula import Formula, Monomial, Vector, bracket, ratio

NEAREST = 16
MOST_ADDED = 8
DIVISORS = (2, 3, 4, 5, 8)


class Axes:
    """Formulas of axes, each found from those that were there before it."""

    def __init__(self, fitter: Fitter) -> None:
        self.fitter = fitter
        self.seen: dict[Vector, None] = {}
        self.derived: set[tuple[Vector, ...]] = set()

    def formula(self, vector: Vector) -> Formula | None:
        """The formula of an axis: of an earlier one where a short step leads there, else any."""
        if vector not in self.fitter.known and vector not in self.fitter.symbols.values() and len(set(vector)) > 1:
            found = next(self.near(vector), None)
            if found is not None:
                self.fitter.known[vector] = found
                self.named(vector, found)
        self.seen.pop(vector, None)
        self.seen[vector] = None
        return self.fitter.formula(vector)

    def near(self, vector: Vector) -> Iterator[Formula]:
        """What a repetition, a border, or a pool makes of one of the last axes."""
        latest = [one for one in reversed(self.seen) if len(set(one)) > 1][:NEAREST]
        for axis in latest:
            factor = ratio(vector, [axis], [])
            known = self.fitter.known.get(axis) or self.fitter.formula(axis)
            if known is None:
                continue
            if factor is not None and factor.denominator == 1:
                yield Formula(tuple((monomial, part * factor) for monomial, part in known.terms))
            added = vector[0] - axis[0]
            if abs(added) <= MOST_ADDED and all(b - a == added for a, b in zip(axis, vector, strict=True)):
                yield total([(known, 1)], added)
            differences = tuple(b - a for a, b in zip(axis, vector, strict=True))
            for name, values in self.fitter.symbols.items() if set(differences) == {0, 1} else ():
                if all(gap == 1 - value % 2 for gap, value in zip(differences, values, strict=True)):
                    half = atom(f"{name}//2")
                    yield total([(known, 1), (half, 2), (Formula(((((name, 1),), Fraction(1)),)), -1)], 1)
        for axis in latest:
            known = self.fitter.known.get(axis) or self.fitter.formula(axis)
            for divisor in DIVISORS if known is not None else ():
                assert known is not None
                for border in range(-2 * divisor, 2 * divisor + 1):
                    if all((a + border) // divisor == b for a, b in zip(axis, vector, strict=True)):
                        yield self.quotient(known, border, divisor)
                        break

    def quotient(self, length: Formula, border: int, divisor: int) -> Formula:
        """``(n + border) // divisor``: whole multiples of the divisor are taken out of it."""
        if border % divisor == 0:
            return total([(self.divided(length, divisor), 1)], border // divisor)
        return atom(f"{bracket(total([(length, 1)], border).text)}//{divisor}")

    @staticmethod
    def divided(length: Formula, divisor: int) -> Formula:
        """``n // divisor``."""
        parts = [(monomial, factor / divisor) for monomial, factor in length.terms]
        if all(part.denominator == 1 for _, part in parts):
            return Formula(tuple(parts))
        return atom(f"{bracket(length.text)}//{divisor}")

    def convolved(
        self, before: Vector, after: Vector, kernel: Vector, stride: Vector, padding: Vector, dilation: Vector
    ) -> None:
        """Find what a convolution makes of an axis: ``(n + 2p - d(k-1) - 1) // s + 1``."""
        self.formula(before)
        rows = zip(before, kernel, stride, padding, dilation, strict=True)
        if after != tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in rows):
            self.formula(after)
            return
        found = self.length(before, kernel, stride, padding, dilation)
        fresh = after not in self.fitter.known and after not in self.fitter.symbols.values() and len(set(after)) > 1
        if found is not None and fresh:
            self.fitter.known[after] = found
            self.named(after, found)
        known = self.formula(after)
        if found is not None and known is not None and set(found.terms) == set(known.terms):
            self.derived.add((before, after, kernel, stride, padding, dilation))

    def length(self, before: Vector, kernel: Vector, stride: Vector, padding: Vector, dilation: Vector) -> Formula | None:
        """The formula of the length after a convolution; None where a number of it has none."""
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
            return total([(atom(f"{bracket(n.text)}//{bracket(s.text)}"), 1)], int(whole) + 1)
        return atom(f"{bracket(total([(n, 1), (border, 1), (s, 1)], 0).text)}//{bracket(s.text)}")

    def named(self, vector: Vector, found: Formula) -> None:
        """Let later formulas have this one as a factor."""
        if len(found.terms) == 1 and any(len(one) > 2 for one in found.atoms):
            self.fitter.quotients.setdefault(f"({found.text})", vector)


def atom(text: str) -> Formula:
    """A rounded quotient as a formula."""
    return Formula(((((f"({text})", 1),), Fraction(1)),))


def total(parts: Sequence[tuple[Formula, int]], added: int) -> Formula:
    """A sum of formulas, each some times, and a number."""
    terms: dict[Monomial, Fraction] = {}
    for formula, times in parts:
        own = formula.terms
        if any(power < 0 or part.denominator > 1 for monomial, part in own for _, power in (*monomial, ("", 1))):
            own = atom(formula.text).terms
        for monomial, part in own:
            terms[monomial] = terms.get(monomial, Fraction(0)) + times * part
    terms[()] = terms.get((), Fraction(0)) + added
    return Formula(tuple((monomial, part) for monomial, part in terms.items() if part))
