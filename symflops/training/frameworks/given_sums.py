"""FLOPs from a framework's own sums: sequences, tokens, and squares and products of lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, prod
from typing import Any

from symflops.evaluate.units import in_flops
from symflops.ir.index_sets import padded_name

# lengths below and above any window: the values of a moment here identify it
POINTS = ((1, 1), (2, 3), (5, 7), (1009, 2003), (10**6 + 3, 10**5 + 3), (10**15 + 37, 10**14 + 31))
# grid sides in multiples of the patch size: below and above any window, and not multiples of one
SIDES = ((1, 1, 1), (3, 5, 7), (2, 11, 13), (1, 101, 103), (7, 1009, 1013), (5, 10**6 + 3, 10**6 + 33))
UNITS = range(1, 65)
NO_FUNCTION = "this model's work is not a function of sums of lengths: give the lengths themselves"
Values = tuple[int, ...]
Rows = tuple[tuple[int, str, str, Fraction, bool], ...]


@dataclass(frozen=True)
class BySums:
    """A model whose FLOPs follow from sums of lengths that a framework gathers.

    Each of ``rows`` is (FLOPs per moment, name of the moment, name of the sum, factor, whether padding counts). The moment is
    the factor times the sum; the name of the sum is empty if no sum fits.
    """

    estimator: Any
    rows: Rows

    def check(self, given: Sequence[str]) -> None:
        """Refuse a model that needs sums other than those named in ``given``.

        Raises:
            ValueError: a required sum is missing.
        """
        self.flops(dict.fromkeys(given, 1))

    def flops(self, sums: Mapping[str, int]) -> int:
        """FLOPs of a batch, from its sums of lengths by name.

        Raises:
            ValueError: a required sum is missing.
        """
        total = Fraction(0)
        for coefficient, moment, name, ratio, padded in self.rows:
            known = sums.get(padded_name(name), sums.get(name)) if padded else sums.get(name)
            if known is None or not name:
                raise ValueError(f"this model needs the sum '{moment}' of the lengths, which is not given")
            total += coefficient * ratio * int(known)
        return in_flops(self.estimator, int(total))


def by_sums(estimator: Any, kind: str = "total") -> BySums:
    """Express a model's work by the sums ``n``, ``x``, ``xx``, ``y``, ``yy`` and ``xy``, without images.

    ``x`` are the tokens of the first stream, ``y`` those of the second. Attention determines the number of tokens of
    a stream with several axes; optional streams are absent.

    Raises:
        ValueError: the model's work is not a function of sums of lengths.
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
    """Express an image encoder's work by ``p`` (patches) and ``pp`` (squared patches, summed over frames).

    Raises:
        ValueError: the model has no images, or its work on them is not a function of these sums.
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
    """Lengths of an item of every stream, one after another: from ``own``, else those of an absent stream."""
    streams = [stream for members in estimator.sets.values() for stream in members]
    return [value for name, axes, absent in streams for value in own.get(name, (absent,) * (len(axes) or 1))]


def _grids(estimator: Any, name: str, axes: int) -> list[tuple[int, ...]]:
    """Shapes for tests of the stream ``name`` with ``axes`` axes, scaled until the model accepts them.

    Raises:
        ValueError: no scale up to 64 works.
    """
    for unit in UNITS:
        found = [tuple(unit * side for side in sides[-axes:]) for sides in SIDES]
        columns = [_columns(estimator, {name: shape}) for shape in found]
        short = getattr(estimator, "inner_lengths", lambda *_: ())
        if not any(any(estimator.rests(*one)) or any(left < 1 for _, left in short(*one)) for one in columns):
            return found
    raise ValueError(NO_FUNCTION)


def _values(estimator: Any, at: Sequence[Sequence[int]]) -> list[Values]:
    """Evaluate each moment at each batch in ``at`` (lengths of all streams): a tuple of values per moment."""
    return [tuple(int(value) for value in row) for row in zip(*(estimator.terms(*columns) for columns in at), strict=True)]


def _times(one: Values, two: Values) -> Values:
    return tuple(a * b for a, b in zip(one, two, strict=True))


def _tokens(estimator: Any, kind: str, items: str, values: Sequence[Values], mine: Sequence[Values]) -> Values:
    """The tokens of a multi-axis stream in each test batch: the root of a moment that is a square.

    ``items`` is the index set of the stream, ``values`` has the values of all moments, ``mine`` those of this set.

    Raises:
        ValueError: no attention covers all tokens of the stream.
    """
    pairs = zip(estimator.moment_sets.values(), estimator.coefficients[kind], values, strict=True)
    for square in (v for group, c, v in pairs if c and group == items):
        root = tuple(isqrt(value) for value in square)
        if _times(root, root) == square and root in mine and len(set(root)) > 1:
            return root
    raise ValueError(NO_FUNCTION)


def _rows(estimator: Any, kind: str, items: str, values: Sequence[Values], bases: Mapping[str, Values]) -> Rows:
    """Build the rows of :class:`BySums` for the moments of the index set ``items``.

    ``values`` has the values of each moment in the test batches, ``bases`` those of each sum.
    """
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
    """FLOPs of a model from a framework's sums of lengths.

    Args:
        estimator: The estimator of the model.
        sums: ``n`` sequences; ``x`` and ``xx`` the sums of the first stream's lengths and of their squares; ``y``, ``yy`` those
            of a second stream; ``xy`` the sum of products. ``x_padded`` and so on are sums of padded lengths; by
            default the lengths are not padded, and ``x`` is used.
        kind: The coefficients: ``total``, ``forward``, ...

    Raises:
        ValueError: the model has other moments (windows, patches), or a required sum is missing.
    """
    return by_sums(estimator, kind).flops(sums)
