"""Formulas as a fit finds them: sums of monomials over sizes, lengths and rounded quotients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

Vector = tuple[int, ...]
Monomial = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Formula:
    """A sum of monomials over atoms: the name of a size or a length, or a rounded quotient in brackets."""

    terms: tuple[tuple[Monomial, Fraction], ...]

    @property
    def text(self) -> str:
        """The formula in the language of specs."""
        if len(self.terms) == 1 and self.rounds:
            monomial, factor = self.terms[0]
            above = piece(tuple((atom, power) for atom, power in monomial if power > 0), factor.numerator)
            below = piece(tuple((atom, -power) for atom, power in monomial if power < 0), factor.denominator)
            return f"{above}//{bracket(below)}"
        denominator = lcm(*(factor.denominator for _, factor in self.terms))
        pieces = [piece(monomial, int(factor * denominator)) for monomial, factor in self.terms] or ["0"]
        text = pieces[0] + "".join(f" - {one[1:]}" if one.startswith("-") else f" + {one}" for one in pieces[1:])
        return f"({text})//{denominator}" if self.rounds else text

    @property
    def divides(self) -> bool:
        """Whether it divides by an atom."""
        return any(power < 0 for monomial, _ in self.terms for _, power in monomial)

    @property
    def rounds(self) -> bool:
        """Whether it divides, by an atom or by a number: its text is a rounded quotient."""
        return self.divides or any(factor.denominator > 1 for _, factor in self.terms)

    @property
    def atoms(self) -> set[str]:
        """The atoms."""
        return {atom for monomial, _ in self.terms for atom, _ in monomial}


def number(value: int) -> Formula:
    """A number as a formula."""
    return Formula((((), Fraction(value)),) if value else ())


def symbol(name: str) -> Formula:
    """An atom as a formula."""
    return Formula(((((name, 1),), Fraction(1)),))


def sum_of(terms: Iterable[tuple[Monomial, Fraction]]) -> Formula:
    """A sum with the terms of the highest degree first."""
    return Formula(tuple(sorted(terms, key=degree_of)))


def bracket(text: str) -> str:
    """A text as one factor, in brackets unless it is a name or a number."""
    plain = text.translate({ord(letter): "" for letter in "_[]"})
    return text if plain.isalnum() else f"({text})"


def piece(monomial: Monomial, factor: int) -> str:
    """The text of one term."""
    words = [atom if power == 1 else f"{atom}**{power}" for atom, power in monomial]
    if not words:
        return str(factor)
    if factor in (1, -1):
        return ("-" if factor < 0 else "") + "*".join(words)
    return "*".join([str(factor), *words])


def words(text: str) -> list[str]:
    """The names in a text."""
    return "".join(letter if letter.isalnum() or letter in "_[]" else " " for letter in text).split()


def powers(above: Sequence[str], below: Sequence[str]) -> Monomial:
    """The monomial of names in the numerator and in the denominator."""
    found: dict[str, int] = {}
    for name in above:
        found[name] = found.get(name, 0) + 1
    for name in below:
        found[name] = found.get(name, 0) - 1
    return tuple((name, power) for name, power in found.items() if power)


def merge(a: Monomial, b: Monomial) -> Monomial:
    """The product of two monomials."""
    found = dict(a)
    for name, power in b:
        found[name] = found.get(name, 0) + power
    return tuple((name, power) for name, power in found.items() if power)


def degree_of(term: tuple[Monomial, Fraction]) -> int:
    """The negative degree of a term."""
    return -sum(power for _, power in term[0])
