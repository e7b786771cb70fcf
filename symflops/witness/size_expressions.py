"""Expresses the shape of a parameter in a spec's sizes.

A dimension becomes the simplest expression with its value in every given case. If several equally simple expressions fit, the
dimension stays a number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, combinations, combinations_with_replacement, product
from math import prod

from symflops.runtime.parameters import Shape

Sizes = Mapping[str, int]
Row = tuple[int, Sizes]
FACTORS = (2, 3, 4, 5, 6, 8, 9, 12, 16)
SMALL = 16  # numbers up to this one fit too many expressions: only a single size is tried


def shape_in_letters(rows: Sequence[tuple[Shape, Sizes]]) -> str:
    """The shape of a parameter with its dimensions in letters if possible; ``rows`` are its shapes in several cases."""
    first, _ = rows[0]
    same = [(shape, sizes) for shape, sizes in rows if len(shape) == len(first)]
    dimensions = ([(shape[axis], sizes) for shape, sizes in same] for axis in range(len(first)))
    return f"[{', '.join(in_letters(dimension) for dimension in dimensions)}]"


def in_letters(rows: Sequence[Row]) -> str:
    """The one simplest expression with the right value in every row, else the number of the first row."""
    number = rows[0][0]
    names = sorted(set.intersection(*({*sizes} for _, sizes in rows)))
    names = [name for name in names if all(sizes[name] > 1 for _, sizes in rows)]
    further = ((products(1, FACTORS), products(2, (1,))), (total,), (products(2, FACTORS),), (packed,))
    levels = ((products(1, (1,)),), *(() if number <= SMALL else further))
    for level in levels if number > 1 else ():
        kinds = chain.from_iterable(kind(names) for kind in level)
        found = [text for text, value in kinds if all(value(sizes) == dimension for dimension, sizes in rows)]
        if found:
            return found[0] if len(found) == 1 else str(number)
    return str(number)


Expressions = Iterator[tuple[str, Callable[[Sizes], int]]]


def products(count: int, factors: Sequence[int]) -> Callable[[Sequence[str]], Expressions]:
    """Products of ``count`` sizes and one of ``factors``: ``D``, ``4*D``, ``H*d``, ``2*H*d``."""

    def found(names: Sequence[str]) -> Expressions:
        for factor, chosen in product(factors, combinations_with_replacement(names, count)):
            powers = (name if times == 1 else f"{name}**2" for name, times in Counter(chosen).items())
            words = [str(factor)] * (factor > 1) + list(powers)
            yield "*".join(words), lambda sizes, factor=factor, chosen=chosen: factor * prod(sizes[name] for name in chosen)  # type: ignore[misc]

    return found


def total(names: Sequence[str]) -> Expressions:
    """``D + F``."""
    for a, b in combinations(names, 2):
        yield f"{a} + {b}", lambda sizes, a=a, b=b: sizes[a] + sizes[b]  # type: ignore[misc]


def packed(names: Sequence[str]) -> Expressions:
    """``(H + 2*G)*d``: packed queries, keys and values."""
    for factor in (1, 2):
        for a in names:
            for b in (name for name in names if name != a):
                for c in names:
                    text = f"({a} + {b})*{c}" if factor == 1 else f"({a} + 2*{b})*{c}"
                    if factor == 1 and a > b:
                        continue
                    yield text, lambda sizes, a=a, b=b, c=c, f=factor: (sizes[a] + f * sizes[b]) * sizes[c]  # type: ignore[misc]
