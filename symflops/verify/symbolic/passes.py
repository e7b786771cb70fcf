"""Counts one call of a module: parameters, and FLOPs of both passes, in total and by module; sizes may be symbols."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from symflops.training.introspect.tree import starred
from symflops.verify.running import counter, dispatching, needed, plain_attention, summed_tensors, tensors_in

WORDS = """
adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d arange argsort assert_async
assert_scalar assert_tensor_metadata avg_pool1d avg_pool2d avg_pool3d batch_norm_with_update bernoulli
binary_cross_entropy bincount bucketize cat channel_shuffle clone col2im complex constant_pad_nd contiguous copy
cudnn_batch_norm cummax cummin cumprod cumsum detach device diag_embed dropout efficientzerotensor embedding
embedding_bag embedding_bag_dense embedding_bag_forward_only embedding_dense empty empty_like empty_strided equal eye
fft_c2c fft_c2r fft_r2c fill flip full full_like fused_dropout fused_rms_norm gather glu grid_sampler_2d grid_sampler_3d
histc huber_loss im2col index index_add index_copy index_fill index_put index_select is_same_size item kthvalue l1_loss
lift_fresh linspace local_scalar_dense log_softmax logcumsumexp masked_fill masked_scatter masked_select
max_pool2d_with_indices max_pool3d_with_indices median mode mse_loss multinomial native_batch_norm
native_batch_norm_legit native_batch_norm_legit_no_training native_dropout native_group_norm native_layer_norm new_empty
new_empty_strided new_full new_ones new_zeros nll_loss nll_loss2d nonzero normal one_hot ones ones_like pixel_shuffle
pixel_unshuffle polar prelu_kernel prims_convert_element_type put rand rand_like randint randn randn_like randperm
reflection_pad1d reflection_pad2d reflection_pad3d renorm repeat repeat_interleave replication_pad1d replication_pad2d
replication_pad3d reshape_alias resize roll rot90 rrelu_with_noise safe_softmax scalar_tensor scatter scatter_add
scatter_reduce searchsorted segment_reduce select select_scatter set slice slice_scatter smooth_l1_loss softmax sort
split_with_sizes_copy squeeze stack sym_numel sym_size sym_stride take to_copy topk transpose tril tril_indices triu
triu_indices unfold uniform unique2 unique_consecutive unique_dim unsafe_index unsafe_split unsafe_view unsqueeze
upsample_bicubic2d upsample_bicubic2d_aa upsample_bilinear2d upsample_bilinear2d_aa upsample_linear1d upsample_nearest1d
upsample_nearest2d upsample_nearest3d upsample_nearest_exact1d upsample_nearest_exact2d upsample_trilinear3d
value_selecting_reduction view_as_complex view_as_real weight_norm_differentiable weight_norm_interface where zeros
zeros_like
"""
FREE = frozenset(WORDS.split())
"""Operators of PyTorch that move, compare, reduce, draw or work element by element: none of them is a contraction."""
VARIANT = re.compile(r"(_backward)?(_data|_copy|_out|_forward)?_?$")
"""Ends of an operator's name that say in which pass, or into which tensor, it works."""


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
        idle: Outermost modules with parameters of which the forward pass reads none, such as a vision tower without pictures.
    """

    parameters: Any
    forward: Any
    backward: Any
    modules: dict[str, Any]
    missed: dict[str, int] = field(default_factory=dict)
    shapes: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    idle: tuple[str, ...] = ()

    @property
    def figures(self) -> tuple[Any, ...]:
        """Parameters, FLOPs of both passes, and those of each module."""
        return self.parameters, self.forward, self.backward, self.modules


def count(model: Any, arguments: Mapping[str, Any], positional: tuple[Any, ...] = (), outputs: Sequence[str] = ()) -> Counts:
    """Run a forward pass and a backward pass of ``model`` and count them.

    ``outputs`` are the names of those that the loss sums; by default the main output.
    """
    torch, counting = needed("torch"), needed("torch.utils.flop_counter")
    parameters = total(one.numel() for one in model.parameters())
    shapes: dict[str, tuple[Any, ...]] = {}
    missed: dict[str, int] = {}
    read: set[int] = set()
    registry, asked = counting.flop_registry, torch.ops.aten._local_scalar_dense.default

    def free(operator: Any, name: str) -> bool:
        """Whether an operator is known to do no counted work: by its tags, or by its name without marks of its variants."""
        tags = torch.Tag
        if operator.is_view or {tags.pointwise, tags.reduction, tags.view_copy} & set(operator.tags):
            return True
        return not FREE.isdisjoint((name.strip("_"), VARIANT.sub("", name).strip("_")))

    def seen(operator: Any, args: Any, kwargs: Any) -> Any:
        if operator is asked and args[0].dtype is torch.bool and args[0].device.type == "meta":
            return True  # checks of values, such as whether a mask is full, usually hold
        read.update(id(one) for one in tensors_in(args) if isinstance(one, torch.nn.Parameter))
        packet = operator._overloadpacket
        name = packet.__name__
        if packet not in registry and not free(operator, name):
            missed[name] = missed.get(name, 0) + 1
        return operator(*args, **kwargs)

    checks = needed("torch.fx.experimental._config").patch(meta_nonzero_assume_all_nonzero=True)  # no element is zero
    with plain_attention(), kernels_that_are_counted(), checks, outputs_of(model, shapes), no_chance(), dispatching(seen):
        with counter() as ahead:
            output = model(*positional, **arguments)
        summed = [one for one in summed_tensors(output, outputs) if one.requires_grad]
        with counter() as back:
            if summed:
                torch.autograd.backward([one.abs().sum() if one.is_complex() else one.sum() for one in summed])
    modules = {path: total(flops.values()) for path, flops in ahead.get_flop_counts().items()}
    return Counts(
        parameters, modules.get("Global", 0), back.get_total_flops(), modules, missed, shapes, tuple(idle_modules(model, read))
    )


def idle_modules(model: Any, read: set[int]) -> Iterator[str]:
    """Yield the paths, with ``*`` for indices, of the outermost modules of whose parameters none is among ``read`` ids."""
    found: dict[str, None] = {}
    for path, module in model.named_modules():
        owned = [id(one) for one in module.parameters()]
        if path and owned and read.isdisjoint(owned) and not any(path.startswith(f"{outer}.") for outer in found):
            found[path] = None
    yield from dict.fromkeys(map(starred, found))


def total(values: Any) -> Any:
    """The sum of integers, plain or symbolic."""
    found = 0
    for value in values:
        found = found + value
    return found


@contextmanager
def no_chance() -> Iterator[None]:
    """Context manager in which ``torch.rand([])`` is 1, so that no layer is left out at random."""
    torch = needed("torch")
    before = torch.rand
    torch.rand = lambda *shape, **options: 1.0 if not options and shape in ((), ([],), ((),)) else before(*shape, **options)
    try:
        yield
    finally:
        torch.rand = before


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
