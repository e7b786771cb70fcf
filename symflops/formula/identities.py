"""Shortens polynomials by identities of counting functions.

Examples: ``max(0, a - b) + min(a, b) = a``; the iterations of the parts of a split loop add up to those of the loop. Each
identity is a polynomial that is 0 for all sizes. Multiples are added to a sum while the sum becomes shorter.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from sympy import Add, Expr, Integer, Mul

from symflops.formula.functions import AtLeast, Excess, FloorDiv, Least, Modulo, Most, Tally, is_bracket
from symflops.formula.polynomial import Polynomial, sorted_atoms
from symflops.formula.sparse import Factor, Monomial, reduced
from symflops.formula.truth import join

ROUNDS = 4
MOST_REMAINDERS = 16


def fewest_terms(polynomial: Polynomial) -> Polynomial:
    """Return an equal polynomial with fewer or simpler terms, by identities of the atoms."""
    polynomial = _possible(_in_one_spelling(polynomial))
    for _ in range(ROUNDS):
        before = polynomial
        for identity in identities(polynomial):
            polynomial = reduced(polynomial, identity, _weight)
        if polynomial == before:
            break
    return polynomial


def _in_one_spelling(polynomial: Polynomial) -> Polynomial:
    """Replace atoms of ``polynomial`` by simpler equal ones (:func:`_spelled`)."""
    same = {atom: spelled for monomial in polynomial.terms for atom, _ in monomial if (spelled := _spelled(atom)) != atom}
    if not same:
        return polynomial
    parts = polynomial.split(lambda atom: atom in same)
    return Polynomial.total(
        part * Polynomial.of(Mul(*(same[atom] ** exponent for atom, exponent in chosen))) for chosen, part in parts.items()
    )


def _possible(polynomial: Polynomial) -> Polynomial:
    """Drop terms of ``polynomial`` whose conditions exclude each other, such as ``[s = 'x']*[s = 'y']``."""
    terms: dict[Monomial, Factor] = {}
    for monomial, factor in polynomial.terms.items():
        conditions = frozenset(atom for atom, _ in monomial if is_bracket(atom))
        joined = join(conditions, frozenset()) if len(conditions) > 1 else conditions
        if joined is not None:
            kept = frozenset((atom, 1) for atom in joined) | frozenset(pair for pair in monomial if pair[0] not in conditions)
            terms[kept] = terms.get(kept, 0) + factor
    return Polynomial(terms)


def _spelled(atom: Expr) -> Expr:
    """Rewrite ``min(a, 1)`` as a bracket and ``max(0, min(a, b))`` as ``min(max(0, a), max(0, b))``."""
    if isinstance(atom, Excess) and isinstance(atom.args[0], Least):
        return _spelled(Least(*(Excess(side) for side in atom.args[0].args)))
    return _least(*atom.args) if isinstance(atom, Least) else atom


def identities(polynomial: Polynomial) -> Iterator[Polynomial]:
    """Yield polynomials over atoms of ``polynomial`` that are 0 for all sizes."""
    atoms = [atom for atom, _ in sorted_atoms({(atom, 1) for monomial in polynomial.terms for atom, _ in monomial})]
    for atom in atoms:
        if isinstance(atom, (Excess, Least, Most)):
            yield from _bounds(atom)
        elif isinstance(atom, FloorDiv):
            yield from _remainders(atom, atoms)
    tallies = [atom for atom in atoms if isinstance(atom, Tally)]
    for first, second in permutations(tallies, 2):
        yield from _joined(first, second)
    for tally in tallies:
        yield from _ends(tally)


def _bounds(atom: Expr) -> Iterator[Polynomial]:
    """Yield ``max(0, a - b) + min(a, b) - a`` or ``max(a, b) - b - max(0, a - b)``, which are 0."""
    if isinstance(atom, Excess):
        terms = Add.make_args(atom.args[0])
        over = Add(*(term for term in terms if not term.could_extract_minus_sign()))
        under = over - atom.args[0]
        yield _sum(atom, _least(over, under), -over)
    elif isinstance(atom, Least):
        pairs = [(one, other) for one, other in permutations(atom.args) if (other - one).is_nonnegative is not True]
        yield from (_sum(Excess(one - other), atom, -one) for one, other in pairs)
    else:
        one, other = atom.args
        yield _sum(atom, -other, -Excess(one - other))


def _least(one: Expr, other: Expr) -> Expr:
    """``min(one, other)``; ``min(count, 1)`` becomes the bracket ``[count >= 1]``."""
    for count, bound in permutations((one, other)):
        if bound == 1 and count.is_integer and count.is_nonnegative:
            return AtLeast(count, Integer(1))
    return Least(one, other)


def _remainders(atom: FloorDiv, atoms: list[Expr]) -> Iterator[Polynomial]:
    """Yield ``m*(a//m) + [a % m >= 1] + ... + [a % m >= m - 1] - a``, which is 0, for ``a//m``."""
    over, by = atom.args
    if by.is_Integer and 1 < by <= MOST_REMAINDERS:
        rest = [AtLeast(Modulo(over, by), Integer(least)) for least in range(1, int(by))]
        if any(one in atoms for one in rest):
            yield _sum(by * atom, *rest, -over)


def _joined(first: Tally, second: Tally) -> Iterator[Polynomial]:
    """Yield the tallies over ``range(a, b)`` and ``range(b, c)`` minus that over ``range(a, c)``, if 0."""
    index, low, middle, condition = first.args
    other, start, high, same = second.args
    if same.xreplace({other: index}) == condition and _meet(low, middle, start, high):
        yield _sum(first, second, -Tally(index, low, _end(start, high), condition))


def _meet(low: Expr, middle: Expr, start: Expr, high: Expr) -> bool:
    """Whether ``range(low, middle)`` and ``range(start, high)`` are the parts of a range cut at ``start``."""
    end = _end(start, high)
    return low == 0 and end.is_nonnegative is True and middle in (Least(end, start), Least(start, end), _least(end, start))


def _end(start: Expr, high: Expr) -> Expr:
    """Return ``a`` if ``high`` has the form ``start + max(0, a - start)``, else ``high``."""
    run = high - start
    return run.args[0] + start if isinstance(run, Excess) else high


def _ends(tally: Tally) -> Iterator[Polynomial]:
    """Yield a tally without its first or last index, plus its term there, minus the whole tally."""
    index, low, high, condition = tally.args
    if low == 0 and isinstance(high, Excess) and (high.args[0] + 1).is_nonnegative:
        whole = high.args[0] + 1
        last = AtLeast(whole, Integer(1)) * condition.xreplace({index: high})
        yield _sum(tally, last, -Tally(index, low, whole, condition))
    if low == 1:
        whole = _end(low, high)
        if whole.is_nonnegative:
            first = AtLeast(whole, Integer(1)) * condition.xreplace({index: Integer(0)})
            yield _sum(tally, first, -Tally(index, Integer(0), whole, condition))


def _sum(*terms: Expr) -> Polynomial:
    return Polynomial.of(Add(*terms))


def _weight(monomial: Monomial) -> int:
    """How hard a monomial is to read: functions add more than letters, letters more than numbers."""
    return 2 + sum(1 if atom.is_Symbol else 2 if is_bracket(atom) else 3 + len(atom.free_symbols) for atom, _ in monomial)
