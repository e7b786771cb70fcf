"""Cases of the brackets of a condition: which of them can hold at once.

``[P = 0]`` and ``[P >= 1]`` exclude each other, and one of them always holds. Brackets that compare one expression with
numbers, or one setting with texts, are decided together by its value; any other bracket holds or not by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import product
from math import inf, prod
from typing import NamedTuple

from sympy import Expr
from sympy.core.symbol import Str

from symflops.formula.functions import AtLeast, Equal, Given
from symflops.formula.written import text_of

MOST_CASES = 2_048
Case = dict[Expr, bool]


class Range(NamedTuple):
    """The condition ``low <= of <= high`` on an integer."""

    of: Expr
    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Whether the condition holds if the integer is ``value``."""
        return self.low <= value <= self.high


def range_of(atom: Expr) -> Range | None:
    """The bracket ``atom`` as a range of one integer; None if it is no comparison with an integer."""
    if not (isinstance(atom, (AtLeast, Equal)) and all(isinstance(arg, Expr) and arg.is_integer for arg in atom.args)):
        return None
    shift, of = (atom.args[0] - atom.args[1]).as_coeff_Add()
    if not shift.is_Integer or not of.free_symbols:
        return None
    low, high = float(-shift), float(-shift) if isinstance(atom, Equal) else inf
    return Range(-of, -high, -low) if of.could_extract_minus_sign() else Range(of, low, high)


def exclude(one: Expr, other: Expr) -> bool:
    """Whether two brackets never hold at once, as ranges of one integer."""
    first, second = range_of(one), range_of(other)
    return (
        first is not None
        and second is not None
        and first.of == second.of
        and max(first.low, second.low) > min(first.high, second.high)
    )


def never(terms: Mapping[frozenset[Expr], int]) -> bool:
    """Whether a polynomial over brackets is 0 in all cases; False if there are too many cases."""
    choices = [_cases_of(atoms) for atoms in _together(frozenset().union(*terms)).values()]
    if prod(map(len, choices)) > MOST_CASES:
        return False
    for chosen in product(*choices):
        holds = {atom for case in chosen for atom, true in case.items() if true}
        if sum(factor for atoms, factor in terms.items() if atoms <= holds):
            return False
    return True


def _together(atoms: Iterable[Expr]) -> dict[object, list[Expr]]:
    """Group brackets that one value decides."""
    groups: dict[object, list[Expr]] = defaultdict(list)
    for atom in sorted(atoms, key=text_of):
        known = range_of(atom)
        textual = isinstance(atom, Given) or (isinstance(atom, Equal) and isinstance(atom.args[1], Str))
        groups[known.of if known else ("text", atom.args[0]) if textual else atom].append(atom)
    return groups


def _cases_of(atoms: list[Expr]) -> list[Case]:
    """The combinations of truths that ``atoms``, which one value decides, can have."""
    ranges = [known for atom in atoms if (known := range_of(atom))]
    if ranges:
        ends = {0.0} | {end + step for one in ranges for end in (one.low, one.high) if abs(end) != inf for step in (-1, 0, 1)}
        least = 0 if ranges[0].of.is_nonnegative else -inf
        found = [{atom: one.holds(value) for atom, one in zip(atoms, ranges, strict=True)} for value in ends if value >= least]
    elif isinstance(atoms[0], Given) or (isinstance(atoms[0], Equal) and isinstance(atoms[0].args[1], Str)):
        texts = [None, "", *(atom.args[1] for atom in atoms if isinstance(atom, Equal))]  # null, another text, each of these
        found = [
            {atom: atom.args[1] == text if isinstance(atom, Equal) else text is not None for atom in atoms} for text in texts
        ]
    else:
        found = [{atom: True} for atom in atoms] + [{atom: False} for atom in atoms]
    return list({frozenset(case.items()): case for case in found}.values())
