"""Counts one call of a module: parameters, and FLOPs of both passes, in total and by module; sizes may be symbols."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from symflops.verify.counting import dispatching, first_tensors, plain_attention, tensors_in
from symflops.verify.tensors import needed

FREE = re.compile(
    r"^_?(safe_softmax|abs|alias|all|allclose|amax|amin|aminmax|any|arange|argmax|argmin|argsort|as_strided|assert\w*|avg_pool\w*|adaptive\w*pool\w*"
    r"|bernoulli|bincount|bitwise\w*|bucketize|cat|ceil|chunk|clamp\w*|clone|complex|conj\w*|constant_pad_nd|convert_element_type|copy|cumprod|cumsum"
    r"|deg2rad|detach|device|diag\w*|div|dropout\w*|efficientzerotensor|embedding\w*|empty\w*|eq|equal|exp\w*|eye|fill|flip|floor\w*|fft\w*|full\w*|fused_dropout"
    r"|gather\w*|ge|gelu\w*|glu\w*|grid_sampler\w*|gt|hardtanh\w*|hardsigmoid\w*|hardswish\w*|heaviside|histc|im2col|col2im|index\w*|is\w*|item|kthvalue"
    r"|le|leaky_relu\w*|lift\w*|linspace|local_scalar_dense|log\w*|logical\w*|lt|masked\w*|max\w*|mean|median|min\w*|mish\w*|mode|mul|multinomial"
    r"|native\w*norm\w*|fused_rms_norm\w*|ne|neg|new\w*|nan_to_num|nll_loss\w*|nonzero\w*|norm\w*|normal\w*|one_hot|ones\w*|permute\w*|pixel\w*|polar|pow|prelu\w*"
    r"|prod|put|rand\w*|range|real|imag|reciprocal|reflection_pad\w*|relu\w*|remainder|renorm|repeat\w*|replication_pad\w*|reshape\w*|resize\w*|roll|rot90|round|rsqrt|rsub"
    r"|scalar_tensor|scatter\w*|select\w*|selu|elu\w*|celu\w*|set|sgn|sigmoid\w*|sign\w*|silu\w*|sin\w*|cos\w*|tan\w*|slice\w*|softmax\w*|softplus\w*|sort|split\w*|sqrt"
    r"|square|squeeze\w*|stack|std\w*|sub|sum|sym_\w*|t|take\w*|threshold\w*|to\w*|topk|trace|transpose\w*|tril\w*|triu\w*|trunc|unbind\w*|unfold\w*|uniform\w*|unique\w*"
    r"|unsafe\w*|unsqueeze\w*|upsample\w*|value_selecting\w*|var\w*|view\w*|weight_norm\w*|where|xlogy|zero\w*|zeros\w*|add|addcmul|addcdiv|angle|atan2|atan|asin|acos"
    r"|erf\w*|lerp|hypot|fmod|gcd|nextafter|logsumexp|cummax|cummin|dist|cdist_free|segment_reduce|batch_norm\w*|cudnn_batch\w*|channel_shuffle|has_compatible\w*|huber\w*|mse\w*|l1\w*|smooth_l1\w*|binary_cross\w*)_?$"
)
"""Operators of PyTorch that move, compare, reduce, draw or work element by element: no convention counts them as contractions."""


@dataclass
class Counts:
    """What one call costs; numbers are integers or symbolic integers.

    Attributes:
        parameters: Elements of all parameters, shared ones once.
        forward: FLOPs of the forward pass.
        backward: FLOPs of the backward pass from the sum of the main output.
        modules: Forward FLOPs by module path; a module includes those inside it.
        missed: (operator, times) that have no rule and are not known to be free of counted work.
        shapes: Shape of the first output by module path.
    """

    parameters: Any
    forward: Any
    backward: Any
    modules: dict[str, Any]
    missed: dict[str, int] = field(default_factory=dict)
    shapes: dict[str, tuple[Any, ...]] = field(default_factory=dict)


def count(model: Any, arguments: Mapping[str, Any], positional: tuple[Any, ...] = ()) -> Counts:
    """Run a forward pass and a backward pass of ``model`` and count them."""
    torch, counting = needed("torch"), needed("torch.utils.flop_counter")
    parameters = total(one.numel() for one in model.parameters())
    shapes: dict[str, tuple[Any, ...]] = {}
    missed: dict[str, int] = {}
    registry, asked = counting.flop_registry, torch.ops.aten._local_scalar_dense.default

    def seen(operator: Any, args: Any, kwargs: Any) -> Any:
        if operator is asked and args[0].dtype is torch.bool and args[0].device.type == "meta":
            return True  # checks of values, such as whether a mask is full, usually hold
        packet = operator._overloadpacket
        name = packet.__name__
        if packet not in registry and not FREE.match(name) and not name.startswith("__"):
            tags = torch.Tag
            if not {tags.pointwise, tags.reduction, tags.view_copy} & set(operator.tags) and not operator.is_view:
                missed[name] = missed.get(name, 0) + 1
        return operator(*args, **kwargs)

    with plain_attention(), kernels_that_are_counted(), nonzero_on_meta(), outputs_of(model, shapes), dispatching(seen):
        with symbolic_counter() as ahead:
            output = model(*positional, **arguments)
        summed = [one for one in first_tensors(output) if one.requires_grad]
        with symbolic_counter() as back:
            if summed:
                torch.autograd.backward([total_of(one) for one in summed])
    modules = {path: total(flops.values()) for path, flops in ahead.get_flop_counts().items()}
    return Counts(parameters, modules.get("Global", 0), back.get_total_flops(), modules, missed, shapes)


def total_of(tensor: Any) -> Any:
    """The sum of a tensor as a real number, which a backward pass can start from."""
    return tensor.abs().sum() if tensor.is_complex() else tensor.sum()


def total(values: Any) -> Any:
    """The sum of integers, plain or symbolic."""
    found = 0
    for value in values:
        found = found + value
    return found


def symbolic_counter() -> Any:
    """PyTorch's FLOP counter without a display, with grouped convolutions corrected, in integers of any kind."""
    torch, counting = needed("torch"), needed("torch.utils.flop_counter")

    def convolution_backward(*given: Any, out_val: Any = None, **_: Any) -> Any:
        *shared, groups, mask = given

        def count(*wanted: bool) -> Any:
            return counting.conv_backward_flop(*shared, groups, list(wanted), out_val=out_val)

        return count(mask[0], False, False) + count(False, mask[1], False) // groups

    convolution_backward._get_raw = True  # type: ignore[attr-defined]  # makes the counter pass tensors, not shapes
    mapping = {torch.ops.aten.convolution_backward: convolution_backward}
    return counting.FlopCounterMode(depth=None, display=False, custom_mapping=mapping)


@contextmanager
def kernels_that_are_counted() -> Iterator[None]:
    """Recurrent layers and encoder layers run as products that a counter sees, not as one kernel."""
    torch = needed("torch")
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.backends.mkldnn.flags(enabled=False):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


def nonzero_on_meta() -> Any:
    """On the meta device no element of a tensor is zero."""
    return needed("torch.fx.experimental._config").patch(meta_nonzero_assume_all_nonzero=True)


@contextmanager
def outputs_of(model: Any, shapes: dict[str, tuple[Any, ...]]) -> Iterator[None]:
    """Keep the shape of each module's first output, by path."""
    handles = []
    for path, module in model.named_modules():

        def keep(_: Any, __: Any, output: Any, path: str = path) -> None:
            found = next(
                tensors_in(output if isinstance(output, (tuple, list, Mapping)) or hasattr(output, "shape") else ()), None
            )
            if found is not None:
                shapes.setdefault(path, tuple(found.shape))

        handles.append(module.register_forward_hook(keep))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
