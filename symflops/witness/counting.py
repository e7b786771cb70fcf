"""PyTorch's FLOP counter as live verification uses it."""

from __future__ import annotations

from typing import Any

from symflops.witness.tensors import needed


class _Nowhere:
    """What tells PyTorch's counter that every operation is outside of all modules."""

    parents = frozenset(("Global",))

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def counter(modules: bool = True) -> Any:
    """PyTorch's counter, with the weight gradient of a grouped convolution corrected: it counts ``groups`` times too much.

    Without ``modules`` it puts no hooks on them, which fail on views inside a reentrant checkpoint.
    """
    torch, counting = needed("torch"), needed("torch.utils.flop_counter")

    def convolution_backward(*given: Any, out_val: Any = None, **_: Any) -> int:
        *shared, groups, mask = given

        def count(*wanted: bool) -> int:
            return int(counting.conv_backward_flop(*shared, groups, list(wanted), out_val=out_val))

        return count(mask[0], False, False) + count(False, mask[1], False) // int(groups)

    convolution_backward._get_raw = True  # type: ignore[attr-defined]  # how the counter is told to pass tensors, not shapes
    mapping = {torch.ops.aten.convolution_backward: convolution_backward}
    mode = counting.FlopCounterMode(depth=None, display=False, custom_mapping=mapping)
    if not modules:
        mode.mod_tracker = _Nowhere()
    return mode


def plain_attention() -> Any:
    """Attention as two products, as the meta device always has it: the counter does not see the CPU's own."""
    kernels = needed("torch.nn.attention")
    return kernels.sdpa_kernel(kernels.SDPBackend.MATH)
