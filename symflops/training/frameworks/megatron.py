"""Megatron-Bridge and Megatron-LM: FLOPs of the global batch from their own sums of lengths.

Both sum the squares of the lengths on the device and reduce them once a step. These sums suffice for models whose work is a
polynomial of the lengths. Other models (sliding windows) are refused at registration, not in the first step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from symflops.training.frameworks.given_sums import BySums, by_sums, images_by_sums

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
