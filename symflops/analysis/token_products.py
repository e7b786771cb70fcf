"""The tokens of a stream with several axes: the product of what the axes become in the model, such as patches."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from symflops.algebra.sparse import Factor, Monomial, Poly
from symflops.analysis.length_polynomials import Unknown
from symflops.model.formula import Formula, Power, Prod, Sum, Sym, parts, symbols
from symflops.model.program import Program
from symflops.model.sums import StreamInfo


def product_of(program: Program, stream: StreamInfo) -> Unknown | None:
    """The product of the axes of a stream, if each axis appears as one function in all moments; else None.

    None also for a stream with one axis.
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
    """The outermost atoms of a formula that contain one of ``names``."""
    if isinstance(formula, (Sum, Prod, Power)):
        for part in parts(formula):
            yield from outermost(part, names)
    elif any(name in names for name in symbols(formula)):
        yield formula


def in_tokens(total: Poly, axes: Sequence[Formula], letter: Sym) -> Poly:
    """``total`` with ``letter`` for the product of all axes; unchanged if a term has them at different powers."""
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
