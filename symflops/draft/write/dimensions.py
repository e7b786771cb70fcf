"""Writes dimensions: the rows and widths of all samples as one formula."""

from __future__ import annotations

from collections.abc import Sequence

from symflops.draft.fit.fit import Fitter
from symflops.draft.fit.formula import Formula, Vector, product, words
from symflops.draft.fit.symbols import Names
from symflops.draft.sample.family import Family
from symflops.draft.trace.steps import Step
from symflops.draft.write.scopes import Unsolved


def constant(vector: Vector, value: int) -> bool:
    """Whether a dimension has one given value in all samples."""
    return set(vector) == {value}


def quotient(total: Vector, parts: Vector) -> Vector | None:
    """One dimension divided by another; None if a sample leaves a remainder."""
    divides = all(part and size % part == 0 for size, part in zip(total, parts, strict=True))
    return tuple(size // part for size, part in zip(total, parts, strict=True)) if divides else None


class Dimensions:
    """Formulas of dimensions, and a list of those that have none."""

    def __init__(self, family: Family, names: Names, fitter: Fitter) -> None:
        self.family, self.names, self.fitter = family, names, fitter
        self.one: Vector = (1,) * len(family.samples)
        self.unsolved: list[Unsolved] = []

    def of(self, step: Step, place: int) -> Vector:
        """A number of a step over all samples."""
        return self.family.numbers(step, lambda one: one.numbers[place])

    def slice(self, step: Step, start: int, count: int) -> list[Vector]:
        """Numbers of a step in a row."""
        return [self.of(step, start + place) for place in range(count)]

    def result(self, step: Step) -> list[Vector]:
        """The shape of what a step makes: the last shape among its numbers, which options of a convolution may follow."""
        ranks = next((word for word in reversed(step.words) if isinstance(word, tuple)), (0,))
        options = 4 * step.words[1] + 1 if step.kind == "conv" and step.parameters else 0
        return self.slice(step, len(step.numbers) - options - ranks[-1], ranks[-1])

    def turns(self, step: Step) -> Vector:
        """How often a step runs."""
        return self.family.numbers(step, lambda one: one.times)

    def times(self, *vectors: Vector) -> Vector:
        """A product; the fitter may use the factors' formulas for it."""
        found = product(vectors) if vectors else self.one
        self.fitter.factors.setdefault(found, vectors)
        return found

    def formula(self, vector: Vector) -> Formula | None:
        """The formula of a dimension; None if there is none."""
        return self.fitter.formula(vector)

    def text(self, vector: Vector, place: str) -> str:
        """The formula of a dimension as text; without one the first sample's value, noted as unsolved at ``place``."""
        found = self.formula(vector)
        if found is not None:
            return found.text
        if all(one.values != vector for one in self.unsolved):
            self.unsolved.append(Unsolved(place, vector))
        return str(vector[0])

    def listed(self, vectors: Sequence[Vector], place: str) -> str:
        """Dimensions as a list."""
        return f"[{', '.join(self.text(vector, place) for vector in vectors)}]"

    def rows(self, total: Vector) -> tuple[Vector, bool]:
        """Rows per item of all rows of a batch, and False; all rows, and True, if they exist once per batch."""
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
        """Whether a dimension depends on lengths, which a width cannot."""
        found = self.formula(vector)
        return found is not None and bool(set(words(" ".join(found.atoms))) & set(self.names.lengths))

    def is_size(self, vector: Vector) -> bool:
        """Whether a dimension has a formula without lengths."""
        return not self.has_length(vector) and self.formula(vector) is not None

    def shaped(self, rows: Vector, width: Vector) -> tuple[Vector, Vector]:
        """Rows and a width without lengths: a width with one becomes rows."""
        return (self.times(rows, width), self.one) if self.has_length(width) else (rows, width)
