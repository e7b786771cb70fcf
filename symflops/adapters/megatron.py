"""Megatron-Bridge and Megatron-LM: FLOPs of the global batch from the sums of lengths that they gather themselves.

Both sum the squares of the lengths on the device and reduce them once a step. These sums suffice for models whose work is a
polynomial of the lengths. A model with a window needs more and is refused, as Bridge refuses Wan without its sums.
"""

from __future__ import annotations

from typing import Any

from symflops.adapters.sums import flops_of_sums


class RuntimeStatsMixin:
    """For a model provider of Megatron-Bridge: set ``symflops_estimator``; Bridge calls the method with the sums of a step."""

    symflops_estimator: Any = None

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

        Bridge sums padded lengths, and squares and products of real ones. A convention that counts both takes each as it is;
        the sums of one that counts real lengths alone are those of the padded ones.

        Raises:
            ValueError: a sum that the model needs is not given, or the model needs others.
        """
        sums = {
            "n": batch_size,
            "x": seqlen_sum,
            "xx": seqlen_squared_sum,
            "y": cross_seqlen_sum,
            "x_padded": seqlen_sum,
            "y_padded": cross_seqlen_sum,
            "xy": cross_seqlen_product_sum,
        }
        return flops_of_sums(self.symflops_estimator, {name: value for name, value in sums.items() if value is not None})


def num_floating_point_operations(estimator: Any) -> Any:
    """A replacement for ``megatron.training.training.num_floating_point_operations``.

    Without sums of variable lengths every sequence counts as ``args.seq_length``, and so does every padded one. The sums are
    those of the data-parallel ranks, already divided by Megatron-LM by its model-parallel size.
    """

    def count(
        args: Any,
        batch_size: int,
        seqlen_squared_sum_in_batch: float | None = None,
        total_real_tokens_in_batch: float | None = None,
    ) -> int:
        length = int(args.seq_length)
        tokens = batch_size * length if total_real_tokens_in_batch is None else round(total_real_tokens_in_batch)
        squares = batch_size * length**2 if seqlen_squared_sum_in_batch is None else round(seqlen_squared_sum_in_batch)
        padded = {"x_padded": batch_size * length, "xx_padded": batch_size * length**2}
        return flops_of_sums(estimator, {"n": batch_size, "x": tokens, "xx": squares, **padded})

    return count


def patch(training: Any, estimator: Any) -> None:
    """Replace the function in the module ``megatron.training.training``.

    Raises:
        AttributeError: the module has no such function.
    """
    if not hasattr(training, "num_floating_point_operations"):
        raise AttributeError("megatron.training.training has no num_floating_point_operations")
    training.num_floating_point_operations = num_floating_point_operations(estimator)
