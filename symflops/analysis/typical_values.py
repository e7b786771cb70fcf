"""Values of formulas at the default sizes and typical lengths, and whether assumptions about lengths hold there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import Any

from symflops.analysis.length_polynomials import Assumption, Unknown, holds
from symflops.model.evaluate import ConfigError
from symflops.model.formula import Formula, Sym, evaluate, symbols
from symflops.model.program import Program
from symflops.runtime.typical import as_batch
from symflops.runtime.typical import typical_lengths as lengths_of


class TypicalValues:
    """Evaluates formulas; ``known`` has the value of each letter, and is None for a program without default sizes."""

    def __init__(self, sizes: Mapping[str, Any] | None, lengths: Mapping[str, int], products: Sequence[Unknown]) -> None:
        self.known = None if sizes is None else {**sizes, **lengths}
        if self.known is not None:
            self.known |= {product.letter: self.product(product.axes) for product in products}

    def of(self, formula: Formula, more: Mapping[str, Any] | None = None) -> Fraction | None:
        """The value of a formula, with ``more`` letters; None if it has none."""
        if self.known is None:
            return None
        try:
            return Fraction(evaluate(formula, {**self.known, **(more or {})}))
        except (ArithmeticError, LookupError, TypeError, ValueError):
            return None

    def product(self, axes: Sequence[Formula]) -> int | None:
        """The product of axes."""
        values = [self.of(axis) for axis in axes]
        return None if None in values else int(prod(value or 0 for value in values))

    def is_null(self, formula: Formula) -> bool:
        """Whether a size in a formula is null, so that there is no such bound."""
        return any((self.known or {}).get(name, 0) is None for name in symbols(formula))

    def hold(self, assumed: Sequence[Assumption], here: Mapping[str, int]) -> bool:
        """Whether the bounds in ``assumed`` hold at some lengths."""
        for one in assumed:
            if self.is_null(one.right):
                if one.relation == "at_least":
                    return False
            elif one.relation != "multiple":
                left, right = (self.of(side, here) for side in (one.left, one.right))
                if left is None or right is None or not holds(one, left, right):
                    return False
        return True

    def first_within(self, first: int | None, unknown: Unknown, assumed: Sequence[Assumption]) -> int | None:
        """The first length from ``first`` on at which ``assumed`` holds; None if there is none."""
        for one in assumed:
            if first is None:
                break
            if self.is_null(one.right):
                first = None if one.relation == "at_least" else first
                continue
            left, right = (self.of(side, {unknown.letter: first}) for side in (one.left, one.right))
            if one.relation not in ("at_least", "at_most") or left is None or right is None:
                continue
            if not holds(one, left, right):
                begins = one.relation == "at_least" and one.left == Sym(unknown.letter)
                return -(-right.numerator // right.denominator) if begins else None
        return first


def typical_batch(program: Program) -> dict[str, list[Any]]:
    """One item per stream, of typical lengths."""
    return as_batch(program.streams, typical_lengths(program))


def typical_lengths(program: Program) -> dict[str, int]:
    """The lengths of :mod:`symflops.runtime.typical`, long enough for the model of the default sizes."""
    sizes = default_sizes(program) if program.inner else None
    inner = [] if sizes is None else [(frozenset(symbols(one.formula)), rest_of(one.formula, sizes)) for one in program.inner]
    return lengths_of(program.streams, inner, {} if sizes is None else lengths_taken(program, sizes))


def lengths_taken(program: Program, sizes: Mapping[str, Any]) -> dict[str, int]:
    """A length that conditions name, for each axis that they limit."""
    found: dict[str, int] = {}
    for one in program.inner:
        values = [int(evaluate(value, sizes)) for value in one.values]
        axes = [axis for stream in program.streams for axis in stream.variables if axis in set(symbols(one.formula))]
        found |= zip(axes, values * len(axes), strict=False)
    return found


def rest_of(formula: Formula, sizes: Mapping[str, Any]) -> Callable[[Mapping[str, int]], Any]:
    """The value of a formula by the lengths, at some sizes, which a length may not fit."""

    def rest(lengths: Mapping[str, int]) -> Any:
        try:
            return evaluate(formula, {**sizes, **lengths})
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise ConfigError(f"the config does not fit the model: {error}") from None

    return rest


def default_sizes(program: Program) -> dict[str, Any] | None:
    """The value of every letter: its default, or the size that the structure was built for; None if one has no default."""
    found: dict[str, Any] = {}
    fixed = dict(program.fixed)
    try:
        for field in program.fields:
            if field.letter in fixed:
                found[field.letter] = fixed[field.letter]
            elif field.required:
                return None
            else:
                plain = field.default is None or isinstance(field.default, (bool, str, tuple))
                found[field.letter] = field.default if plain else evaluate(field.default, found)  # type: ignore[arg-type]
        for definition in program.definitions:
            found[definition.letter] = evaluate(definition.formula, found)
    except (LookupError, ArithmeticError):  # the structure was built for a config whose lists are longer than the defaults
        return None
    return found
