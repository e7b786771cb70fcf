"""Evaluates formulas at the default sizes and typical lengths, and assigns letters to lengths inside a model.

The tokens of a stream with two axes are the product of its inner axes, such as patches. In a model that halves its input,
``h_1`` is half of ``h``, and ``h_2`` half of that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

from symflops.evaluate.length_polynomials import Assumption, Unknown, holds
from symflops.evaluate.typical import as_batch, typical_lengths as lengths_of
from symflops.formula.formula import Apply, Formula, Power, Prod, Sum, Sym, evaluate, operators, parts, symbols, walk
from symflops.formula.sparse import Factor, Monomial, Poly
from symflops.formula.table import ConfigError
from symflops.formula.terms import Rewriting
from symflops.ir.batch import StreamInfo
from symflops.ir.program import Program

FEWEST = 3
"""The fewest level lengths that get letters; fewer are written out."""
ROUNDED = ("floordiv", "ceildiv")


@dataclass(frozen=True, slots=True)
class LevelLength:
    """The length inside a model at one resolution level, such as ``h_1``, half of the input length ``h``.

    Attributes:
        letter: the letter that stands for the length in formulas.
        length: the input length from which it is computed.
        number: the level, from 1.
        formula: the length as a function of ``length``, in the letters of earlier levels where they occur.
    """

    letter: str
    length: str
    number: int
    formula: Formula


class LevelLengths:
    """Letters for the lengths at each resolution level (:class:`LevelLength`) in the moments of a program."""

    def __init__(self, program: Program) -> None:
        lengths = {name for stream in program.streams for name in stream.variables}
        found = dict.fromkeys(
            part
            for moment in program.moments
            for part in walk(moment.formula)
            if isinstance(part, Apply) and part.function in ROUNDED and len(set(symbols(part)) & lengths) == 1
        )
        levels = [part for part in found if set(symbols(part)) <= lengths]
        self.letters: dict[Formula, Sym] = {}
        self.rows: list[LevelLength] = []
        for part in sorted(levels, key=operators) if len(levels) >= FEWEST else ():
            (length,) = set(symbols(part))
            number = 1 + sum(row.length == length for row in self.rows)
            row = LevelLength(f"{length}@{number}", length, number, self.short(part))
            self.rows.append(row)
            self.letters[part] = Sym(row.letter)

    def short(self, node: Any) -> Any:
        """Replace level lengths by their letters in a formula or in a tree of formulas."""
        return Rewriting(self.letters.get)(node) if self.letters else node

    def latex(self, known: Mapping[str, str]) -> dict[str, str]:
        """Map each level letter to its LaTeX; ``known`` maps each input length to its LaTeX."""
        return {row.letter: f"{known[row.length]}_{{{row.number}}}" for row in self.rows}


def product_of(program: Program, stream: StreamInfo) -> Unknown | None:
    """The tokens of a stream as the product of one function per axis, such as ``h // 2`` times ``w // 2``.

    None for a stream with one axis, or if the moments contain an axis in two functions or in none.
    """
    axes: dict[str, set[Formula]] = {name: set() for name in stream.variables}
    for moment in program.moments:
        for atom in outermost(moment.formula, axes.keys()):
            for name in axes.keys() & set(symbols(atom)):
                axes[name].add(atom)
    atoms = tuple(atom for found in axes.values() for atom in found)
    if len(axes) < 2 or any(len(found) != 1 for found in axes.values()) or len(set(atoms)) < len(atoms):
        return None
    return Unknown(stream.items, "tokens", (stream.name,), stream.variables, f"tokens@{stream.name}", atoms)


def outermost(formula: Formula, names: Collection[str]) -> Iterator[Formula]:
    """Iterate over the largest parts with one of ``names``, other than sums, products and powers."""
    if isinstance(formula, (Sum, Prod, Power)):
        for part in parts(formula):
            yield from outermost(part, names)
    elif any(name in names for name in symbols(formula)):
        yield formula


def in_tokens(total: Poly, axes: Sequence[Formula], letter: Sym) -> Poly:
    """Substitute ``letter`` for the product of ``axes`` in a polynomial.

    The polynomial is returned unchanged if one of its terms contains the axes at different powers.
    """
    found: dict[Monomial, Factor] = {}
    for monomial, factor in total.terms.items():
        powers = {dict(monomial).get(axis, 0) for axis in axes}
        if len(powers) > 1:
            return total
        power = powers.pop()
        kept = frozenset(pair for pair in monomial if pair[0] not in axes)
        key = kept | {(letter, power)} if power else kept
        found[key] = found.get(key, 0) + factor
    return Poly(found)


class TypicalValues:
    """Evaluates formulas at default sizes and typical lengths.

    Attributes:
        known: the value of each size, each length and each product of axes (:func:`product_of`), by letter; None if a size has
            no default, and then no formula has a value.
    """

    def __init__(self, sizes: Mapping[str, Any] | None, lengths: Mapping[str, int], products: Sequence[Unknown]) -> None:
        self.known = None if sizes is None else {**sizes, **lengths}
        if self.known is not None:
            self.known |= {product.letter: self.product(product.axes) for product in products}

    def of(self, formula: Formula, more: Mapping[str, Any] | None = None) -> Fraction | None:
        """Evaluate a formula; values in ``more``, by letter, win over the known ones. None if it has no value."""
        if self.known is None:
            return None
        try:
            return Fraction(evaluate(formula, {**self.known, **(more or {})}))
        except (ArithmeticError, LookupError, TypeError, ValueError):
            return None

    def product(self, axes: Sequence[Formula]) -> int | None:
        """The product of the values of ``axes``; None if one has no value."""
        values = [self.of(axis) for axis in axes]
        return None if None in values else int(prod(value or 0 for value in values))

    def is_null(self, formula: Formula) -> bool:
        """Whether a size in ``formula``, a bound on a length, is null, so that the bound does not exist."""
        return any((self.known or {}).get(name, 0) is None for name in symbols(formula))

    def hold(self, assumed: Sequence[Assumption], here: Mapping[str, int]) -> bool:
        """Whether all bounds in ``assumed`` hold at the lengths ``here``, a value per letter.

        False if a bound cannot be evaluated. Divisibility (``multiple``) is not checked.
        """
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
        """The first length of ``unknown``, from ``first`` on, where ``assumed`` holds; None if there is none."""
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
    """A batch that gives each stream one item of typical length."""
    return as_batch(program.streams, typical_lengths(program))


def typical_lengths(program: Program) -> dict[str, int]:
    """Map each axis to a typical length that the model with default sizes accepts."""
    sizes = default_sizes(program) if program.inner else None
    inner = [] if sizes is None else [(frozenset(symbols(one.formula)), rest_of(one.formula, sizes)) for one in program.inner]
    return lengths_of(program.streams, inner, {} if sizes is None else lengths_taken(program, sizes))


def lengths_taken(program: Program, sizes: Mapping[str, Any]) -> dict[str, int]:
    """Map each axis that a condition of the program limits to the length that the condition names."""
    found: dict[str, int] = {}
    for one in program.inner:
        values = [int(evaluate(value, sizes)) for value in one.values]
        axes = [axis for stream in program.streams for axis in stream.variables if axis in set(symbols(one.formula))]
        found |= zip(axes, values * len(axes), strict=False)
    return found


def rest_of(formula: Formula, sizes: Mapping[str, Any]) -> Callable[[Mapping[str, int]], Any]:
    """Compile a formula to a function of lengths, which raises ConfigError if the formula has no value."""

    def rest(lengths: Mapping[str, int]) -> Any:
        try:
            return evaluate(formula, {**sizes, **lengths})
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise ConfigError(f"the config does not fit the model: {error}") from None

    return rest


def default_sizes(program: Program) -> dict[str, Any] | None:
    """Map every letter to the value that the structure fixes, else its default; None if one has neither."""
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
    except (LookupError, ArithmeticError):  # the structure's config has longer lists than the defaults
        return None
    return found
