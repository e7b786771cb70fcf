"""FLOPs from sums that a framework already has: the number of sequences, the tokens, and squares and products of lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, prod
from typing import Any

from symflops.evaluate.units import in_flops
from symflops.ir.index_sets import padded_name

# lengths below and above any window: a moment is identified by its values at these
POINTS = ((1, 1), (2, 3), (5, 7), (1009, 2003), (10**6 + 3, 10**5 + 3), (10**15 + 37, 10**14 + 31))
# sides of grids, in units that the patches of a model divide: below, above and beside multiples of any window
SIDES = ((1, 1, 1), (3, 5, 7), (2, 11, 13), (1, 101, 103), (7, 1009, 1013), (5, 10**6 + 3, 10**6 + 33))
UNITS = range(1, 65)
NO_FUNCTION = "this model's work is not a function of sums of lengths: give the lengths themselves"
Values = tuple[int, ...]
Rows = tuple[tuple[int, str, str, Fraction, bool], ...]


@dataclass(frozen=True)
class BySums:
    """A model whose every moment is a sum that a framework gathers, times a number.

    Each row has a coefficient, the moment, the name of the sum (empty if none), the number, and whether padding counts.
    """

    estimator: Any
    rows: Rows

    def check(self, given: Sequence[str]) -> None:
        """Refuse a model that needs another sum than the ``given`` ones.

        Raises:
            ValueError: it does.
        """
        self.flops(dict.fromkeys(given, 1))

    def flops(self, sums: Mapping[str, int]) -> int:
        """FLOPs of a batch.

        Raises:
            ValueError: a sum that the model needs is missing.
        """
        total = Fraction(0)
        for coefficient, moment, name, ratio, padded in self.rows:
            known = sums.get(padded_name(name), sums.get(name)) if padded else sums.get(name)
            if known is None or not name:
                raise ValueError(f"this model needs the sum '{moment}' of the lengths, which is not given")
            total += coefficient * ratio * int(known)
        return in_flops(self.estimator, int(total))


def by_sums(estimator: Any, kind: str = "total") -> BySums:
    """The model of an estimator by ``n``, ``x``, ``xx``, ``y``, ``yy`` and ``xy``; images beside texts are left out.

    ``x`` are the tokens of the first stream, ``y`` those of the second. A stream with several axes has as many tokens as its
    attention has; streams that a batch may lack are absent.

    Raises:
        ValueError: the model's work is no function of sums of lengths.
    """
    items, members = next(iter(estimator.sets.items()))
    given = [stream for stream in members if stream[1] and not estimator.streams.get(stream[0], True)]
    implied = [name for name, _, _ in members if name in getattr(estimator, "implied", ())]
    if not 1 <= len(given) <= 2 or (len(given) == 2 and len(given[1][1]) > 1) or estimator.whole or implied:
        raise ValueError(NO_FUNCTION)
    name, axes, _ = given[0]
    shapes = [(x,) for x, _ in POINTS] if len(axes) == 1 else _grids(estimator, name, len(axes))
    second = [stream for stream, _, _ in given[1:]]
    at = [
        _columns(estimator, {name: shape, **dict.fromkeys(second, (y,))}) for shape, (_, y) in zip(shapes, POINTS, strict=True)
    ]
    values = _values(estimator, at)
    ones, ys = tuple(1 for _ in POINTS), tuple(y for _, y in POINTS)
    mine = [v for (_, group), v in zip(estimator.moment_sets.items(), values, strict=True) if group == items]
    xs = tuple(x for x, _ in POINTS) if len(axes) == 1 else _tokens(estimator, kind, items, values, mine)
    bases = {"n": ones, "x": xs, "xx": _times(xs, xs), "y": ys, "yy": _times(ys, ys), "xy": _times(xs, ys)}
    return BySums(estimator, _rows(estimator, kind, items, values, bases))


def images_by_sums(estimator: Any, kind: str = "total") -> BySums:
    """The encoder of images by ``p``, the patches, and ``pp``, the sum of each frame's patches squared.

    Raises:
        ValueError: the model has no images, or its work on them is no function of these sums.
    """
    items, members = next(((items, members) for items, members in list(estimator.sets.items())[1:] if members), ("", ()))
    if not members:
        raise ValueError("the model has no images")
    name, axes, _ = members[0]
    shapes = _grids(estimator, name, len(axes))
    values = _values(estimator, [_columns(estimator, {name: shape}) for shape in shapes])
    patches = tuple(prod(shape) for shape in shapes)
    frames = tuple(shape[0] if len(shape) > 2 else 1 for shape in shapes)
    squares = tuple(p * p // t for p, t in zip(patches, frames, strict=True))
    return BySums(estimator, _rows(estimator, kind, items, values, {"p": patches, "pp": squares}))


def _columns(estimator: Any, own: Mapping[str, Sequence[int]]) -> list[int]:
    """The lengths of one item of every stream: ``own`` ones, else those of an absent stream."""
    streams = [stream for members in estimator.sets.values() for stream in members]
    return [value for name, axes, absent in streams for value in own.get(name, (absent,) * (len(axes) or 1))]


def _grids(estimator: Any, name: str, axes: int) -> list[tuple[int, ...]]:
    """Lengths of a stream with some axes that the model's patches divide.

    Raises:
        ValueError: no small patch divides as the model does.
    """
    for unit in UNITS:
        found = [tuple(unit * side for side in sides[-axes:]) for sides in SIDES]
        columns = [_columns(estimator, {name: shape}) for shape in found]
        short = getattr(estimator, "inner_lengths", lambda *_: ())
        if not any(any(estimator.rests(*one)) or any(left < 1 for _, left in short(*one)) for one in columns):
            return found
    raise ValueError(NO_FUNCTION)


def _values(estimator: Any, at: Sequence[Sequence[int]]) -> list[Values]:
    """The values of each moment at some lengths."""
    return [tuple(int(value) for value in row) for row in zip(*(estimator.terms(*columns) for columns in at), strict=True)]


def _times(one: Values, two: Values) -> Values:
    return tuple(a * b for a, b in zip(one, two, strict=True))


def _tokens(estimator: Any, kind: str, items: str, values: Sequence[Values], mine: Sequence[Values]) -> Values:
    """The tokens of a stream with several axes: what its attention squares.

    Raises:
        ValueError: it has no attention over all of its tokens.
    """
    pairs = zip(estimator.moment_sets.values(), estimator.coefficients[kind], values, strict=True)
    for square in (v for group, c, v in pairs if c and group == items):
        root = tuple(isqrt(value) for value in square)
        if _times(root, root) == square and root in mine and len(set(root)) > 1:
            return root
    raise ValueError(NO_FUNCTION)


def _rows(estimator: Any, kind: str, items: str, values: Sequence[Values], bases: Mapping[str, Values]) -> Rows:
    """The rows of the moments of one index set."""
    found = []
    moments = zip(estimator.moment_sets.items(), estimator.coefficients[kind], values, strict=True)
    for (moment, group), coefficient, row in moments:
        if not coefficient or group != items or not any(row):
            continue
        ratios = ((name, Fraction(row[0], base[0]), base) for name, base in bases.items())
        name, ratio = next(
            ((n, r) for n, r, base in ratios if all(v == r * b for v, b in zip(row, base, strict=True))), ("", 1)
        )
        padded = bool(estimator.padded) or moment in getattr(estimator, "padded_sums", ())
        found.append((coefficient, moment, name, Fraction(ratio), padded))
    return tuple(found)


def flops_of_sums(estimator: Any, sums: Mapping[str, int], kind: str = "total") -> int:
    """FLOPs of a model whose every moment is one of ``sums``.

    Args:
        estimator: The estimator of the model.
        sums: ``n`` sequences; ``x`` and ``xx`` the sums of the first stream's lengths and of their squares; ``y``, ``yy`` those
            of a second stream; ``xy`` the sum of products. ``x_padded`` and so on are those of padded lengths; without one,
            the lengths are not padded, and it is ``x``.
        kind: The coefficients: ``total``, ``forward``, ...

    Raises:
        ValueError: the model has other moments (windows, patches), or a sum that it needs is missing.
    """
    return by_sums(estimator, kind).flops(sums)
