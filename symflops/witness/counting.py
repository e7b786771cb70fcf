"""PyTorch's FLOP counter, configured for live verification, and what watches a run beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from symflops.witness.tensors import needed


class _NoModules:
    """A module tracker for PyTorch's counter that reports every operation as outside of all modules."""

    parents = frozenset(("Global",))

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def counter(modules: bool = True) -> Any:
    """PyTorch's counter, corrected for grouped convolutions, whose weight gradient it counts ``groups`` times.

    With ``modules=False`` it sets no hooks on modules; hooks fail on views inside a reentrant checkpoint.
    """
    torch, counting = needed("torch"), needed("torch.utils.flop_counter")

    def convolution_backward(*given: Any, out_val: Any = None, **_: Any) -> int:
        *shared, groups, mask = given

        def count(*wanted: bool) -> int:
            return int(counting.conv_backward_flop(*shared, groups, list(wanted), out_val=out_val))

        return count(mask[0], False, False) + count(False, mask[1], False) // int(groups)

    convolution_backward._get_raw = True  # type: ignore[attr-defined]  # makes the counter pass tensors, not shapes
    mapping = {torch.ops.aten.convolution_backward: convolution_backward}
    mode = counting.FlopCounterMode(depth=None, display=False, custom_mapping=mapping)
    if not modules:
        mode.mod_tracker = _NoModules()
    return mode


def plain_attention() -> Any:
    """Attention as two products, as on the meta device; the counter does not see the CPU's fused kernel."""
    kernels = needed("torch.nn.attention")
    return kernels.sdpa_kernel(kernels.SDPBackend.MATH)


def dispatching(call: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]) -> Any:
    """A dispatch mode that has ``call(operator, args, kwargs)`` return the result of every operator."""
    base = needed("torch.utils._python_dispatch").TorchDispatchMode

    class Mode(base):  # type: ignore[misc, valid-type]
        """Passes every operator on."""

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return call(func, args, kwargs or {})

    return Mode()


@contextmanager
def following(model: Any, paths: list[str]) -> Iterator[None]:
    """Keep the path of the module that runs on top of ``paths``."""
    handles: list[Any] = []
    try:
        for name, module in list(model.named_modules())[1:]:  # after the model itself

            def enter(_: Any, __: Any, name: str = name) -> None:
                paths.append(name)

            def leave(_: Any, __: Any, ___: Any) -> None:
                paths.pop()

            handles += [module.register_forward_pre_hook(enter), module.register_forward_hook(leave, always_call=True)]
        yield
    finally:
        for handle in handles:
            handle.remove()
