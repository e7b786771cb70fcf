"""Megatron-Bridge and Megatron-LM: FLOPs of the global batch from their own sums of lengths.

Both sum the squares of the lengths on the device and reduce them once a step. These sums suffice for models whose work is a
polynomial of the lengths. Other models (sliding windows) are refused at registration, not in the first step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, prod
from typing import Any

from symflops.evaluate.units import in_flops
from symflops.ir.index_sets import padded_name

TEXT = ("n", "x", "xx")
CROSS = (*TEXT, "y", "xy")
PADDED = ("x_padded", "xx_padded")


def whole(value: Any) -> int:
    """Round an int, a float or a one-element tensor to an int."""
    return int(round(value.item() if hasattr(value, "item") else value))  # noqa: RUF046


class RuntimeStatsMixin:
    """Mixin for Megatron-Bridge model providers, which Bridge asks for the FLOPs of each step.

    Set ``symflops_estimator``; a subclass is checked when it is defined. For an existing provider use :func:`provide`.
    """

    symflops_estimator: Any = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.symflops_estimator is not None:
            by_sums(cls.symflops_estimator).check(CROSS)

    def _get_num_floating_point_operations_with_runtime_stats(
        self,
        *,
        batch_size: int,
        seqlen_sum: int | None = None,
        seqlen_squared_sum: int | None = None,
        cross_seqlen_sum: int | None = None,
        cross_seqlen_product_sum: int | None = None,
    ) -> int:
        """FLOPs of the global batch, forward and backward.

        Bridge sums padded lengths, and squares and products of real lengths. A convention that counts padding uses each sum as
        it is; one that counts only real lengths also uses the padded sum for linear terms. Without sums, every sequence has the
        provider's ``seq_length``. Images are not counted: Bridge adds them.

        Raises:
            ValueError: a required sum is missing, or the model needs sums that Bridge does not have.
        """
        sums = (seqlen_sum, seqlen_squared_sum, cross_seqlen_sum, cross_seqlen_product_sum)
        return flops_of_step(by_sums(self.symflops_estimator), batch_size, *sums, getattr(self, "seq_length", None))


def flops_of_step(
    model: BySums, batch_size: int, tokens: Any, squares: Any, others: Any, products: Any, seq_length: int | None = None
) -> int:
    """FLOPs of a step from Megatron-Bridge's sums, any of which may be None.

    Args:
        model: The model.
        batch_size: Number of sequences.
        tokens: Sum of padded lengths.
        squares: Sum of squared lengths.
        others: Sum of the lengths of the second stream.
        products: Sum of products of the two streams' lengths.
        seq_length: Length of every sequence, if there are no sums.

    Raises:
        ValueError: a required sum is missing.
    """
    if batch_size <= 0:
        return 0
    if tokens is None and squares is None and seq_length is not None:
        tokens, squares = batch_size * seq_length, batch_size * seq_length**2
    given = {"x": tokens, "xx": squares, "y": others, "x_padded": tokens, "y_padded": others, "xy": products}
    return model.flops({"n": batch_size, **{name: whole(value) for name, value in given.items() if value is not None}})


def provide(provider: Any, estimator: Any) -> None:
    """Make a Megatron-Bridge provider (object or class) count FLOPs with an estimator.

    Bridge does not call a provider when it trains LoRA; :func:`patch_bridge` covers LoRA as well.

    Raises:
        ValueError: the model needs more than Bridge's sums.
    """
    model = by_sums(estimator)
    model.check(CROSS)

    def count(
        *, batch_size: int, seqlen_sum: Any = None, seqlen_squared_sum: Any = None,
        cross_seqlen_sum: Any = None, cross_seqlen_product_sum: Any = None,
    ) -> int:  # fmt: skip
        sums = (seqlen_sum, seqlen_squared_sum, cross_seqlen_sum, cross_seqlen_product_sum)
        return flops_of_step(model, batch_size, *sums, getattr(provider, "seq_length", None))

    name = RuntimeStatsMixin._get_num_floating_point_operations_with_runtime_stats.__name__
    setattr(provider, name, staticmethod(count) if isinstance(provider, type) else count)


def patch_bridge(flop_utils: Any, estimator: Any) -> None:
    """Replace the FLOP functions that Megatron-Bridge's ``train`` calls, LoRA included.

    ``flop_utils`` is the module ``megatron.bridge.training.utils.flop_utils``.
    If Bridge's patch statistics determine the work on images, the estimator counts it; otherwise Bridge does.

    Raises:
        AttributeError: the module lacks the function.
        ValueError: the model needs more than Bridge's sums.
    """
    check_function(flop_utils, "num_floating_point_operations")
    model = by_sums(estimator)
    model.check(CROSS)
    try:
        images: BySums | None = images_by_sums(estimator)
        if images is not None:
            images.check(("p", "pp"))
    except ValueError:
        images = None
    vit = getattr(flop_utils, "vit_flops", None)

    def count(
        cfg: Any, batch_size: int = 1, seqlen_sum: Any = None, seqlen_squared_sum: Any = None, num_vision_patches: Any = 0,
        cross_seqlen_sum: Any = None, cross_seqlen_product_sum: Any = None,
    ) -> int:  # fmt: skip
        sums = (seqlen_sum, seqlen_squared_sum, cross_seqlen_sum, cross_seqlen_product_sum)
        found = flops_of_step(model, batch_size, *sums, getattr(cfg.model, "seq_length", None))
        each = whole(num_vision_patches) // batch_size if batch_size > 0 else 0  # Bridge itself knows only the average
        if each and images is not None:
            found += images.flops({"p": batch_size * each, "pp": batch_size * each**2})
        elif each and vit is not None:
            found += int(vit(cfg, batch_size, each))
        return found

    flop_utils.num_floating_point_operations = count
    if images is not None and hasattr(flop_utils, "vit_flops_from_patch_stats"):
        flop_utils.vit_flops_from_patch_stats = vision(images)


def vision(images: BySums) -> Callable[..., int]:
    """Build a replacement for Bridge's ``vit_flops_from_patch_stats`` that counts by ``images``."""

    def count(cfg: Any, *, patch_sum: Any, patch_squared_sum: Any, merged_token_sum: Any = 0) -> int:
        return images.flops({"p": whole(patch_sum), "pp": whole(patch_squared_sum)})

    return count


def num_floating_point_operations(estimator: Any) -> Any:
    """Build a replacement for ``megatron.training.training.num_floating_point_operations``.

    Without sums of variable lengths, real and padded sequences have length ``args.seq_length``. The sums cover the
    data-parallel ranks; Megatron-LM has already divided them by its model-parallel size.

    Raises:
        ValueError: the model needs more than Megatron-LM's sums.
    """
    model = by_sums(estimator)
    model.check((*TEXT, *PADDED))

    def count(
        args: Any,
        batch_size: int,
        seqlen_squared_sum_in_batch: float | None = None,
        total_real_tokens_in_batch: float | None = None,
    ) -> int:
        length = int(args.seq_length)
        padded: Mapping[str, int] = {"x_padded": batch_size * length, "xx_padded": batch_size * length**2}
        tokens = padded["x_padded"] if total_real_tokens_in_batch is None else whole(total_real_tokens_in_batch)
        squares = padded["xx_padded"] if seqlen_squared_sum_in_batch is None else whole(seqlen_squared_sum_in_batch)
        return model.flops({"n": batch_size, "x": tokens, "xx": squares, **padded})

    return count


def patch(training: Any, estimator: Any) -> None:
    """Replace ``num_floating_point_operations`` in the module ``megatron.training.training``.

    Raises:
        AttributeError: the module lacks the function.
        ValueError: the model needs more than Megatron-LM's sums.
    """
    check_function(training, "num_floating_point_operations")
    training.num_floating_point_operations = num_floating_point_operations(estimator)


def check_function(module: Any, name: str) -> None:
    """Refuse a module that lacks the function ``name``.

    Raises:
        AttributeError: the function is missing.
    """
    if not hasattr(module, name):
        raise AttributeError(f"{getattr(module, '__name__', module)} has no {name}")


# lengths below and above any window: the values of a moment here identify it
POINTS = ((1, 1), (2, 3), (5, 7), (1009, 2003), (10**6 + 3, 10**5 + 3), (10**15 + 37, 10**14 + 31))
# grid sides in multiples of the patch size: below and above any window, and not multiples of one
SIDES = ((1, 1, 1), (3, 5, 7), (2, 11, 13), (1, 101, 103), (7, 1009, 1013), (5, 10**6 + 3, 10**6 + 33))
UNITS = range(1, 65)
NO_FUNCTION = "this model's work is not a function of sums of lengths: give the lengths themselves"
Values = tuple[int, ...]
"""The values of a moment or sum in each test batch."""
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
        """FLOPs of a batch, from its ``sums`` of lengths: name -> sum.

        The names are ``n`` for the number of sequences; ``x`` and ``xx`` for the lengths of the first stream and their squares;
        ``y`` and ``yy`` for those of a second stream; ``xy`` for their products; ``p`` and ``pp`` for patches of images.
        ``x_padded`` and so on are sums of padded lengths; if they are missing, the lengths are not padded.

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


def by_sums(estimator: Any) -> BySums:
    """Express a model's work by the sums ``n``, ``x``, ``xx``, ``y``, ``yy`` and ``xy`` of :meth:`BySums.flops`.

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
    xs = tuple(x for x, _ in POINTS) if len(axes) == 1 else _tokens(estimator, items, values, mine)
    bases = {"n": ones, "x": xs, "xx": _times(xs, xs), "y": ys, "yy": _times(ys, ys), "xy": _times(xs, ys)}
    return BySums(estimator, _rows(estimator, items, values, bases))


def images_by_sums(estimator: Any) -> BySums:
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
    return BySums(estimator, _rows(estimator, items, values, {"p": patches, "pp": squares}))


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


def _tokens(estimator: Any, items: str, values: Sequence[Values], mine: Sequence[Values]) -> Values:
    """The tokens of a multi-axis stream in each test batch: the root of a moment that is a square.

    ``items`` is the index set of the stream, ``values`` has the values of all moments, ``mine`` those of this set.

    Raises:
        ValueError: no attention covers all tokens of the stream.
    """
    pairs = zip(estimator.moment_sets.values(), estimator.coefficients["total"], values, strict=True)
    for square in (v for group, c, v in pairs if c and group == items):
        root = tuple(isqrt(value) for value in square)
        if _times(root, root) == square and root in mine and len(set(root)) > 1:
            return root
    raise ValueError(NO_FUNCTION)


def _rows(estimator: Any, items: str, values: Sequence[Values], bases: Mapping[str, Values]) -> Rows:
    """Build the rows of :class:`BySums` for the moments of the index set ``items``.

    ``values`` has the values of each moment in the test batches, ``bases`` those of each sum.
    """
    found = []
    moments = zip(estimator.moment_sets.items(), estimator.coefficients["total"], values, strict=True)
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
