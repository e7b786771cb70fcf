"""PyTorch's FLOP counter, configured for live verification, with the outputs that the loss sums and FLOPs by module.

A container includes all work that runs inside its forward call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from symflops.support.findings import SymflopsError
from symflops.training.introspect.kernels import convolution_backward
from symflops.training.introspect.tree import starred
from symflops.verify.tensors import needed

OUTPUTS = ("logits", "sample", "last_hidden_state")
EVERY = ("*",)
"""In place of names of outputs: the loss sums every tensor that a module returns."""


def counter(modules: bool = True) -> Any:
    """Build PyTorch's FLOP counter, corrected for grouped convolutions.

    PyTorch counts the weight gradient of a grouped convolution ``groups`` times. With ``modules=False`` the counter has no
    FLOPs by module: it sets no hooks, which fail on views inside a reentrant checkpoint.
    """
    torch, counting = needed("torch"), needed("torch.utils.flop_counter")
    mapping = {torch.ops.aten.convolution_backward: convolution_backward}
    mode = counting.FlopCounterMode(depth=None, display=False, custom_mapping=mapping)
    if not modules:
        mode.mod_tracker = nullcontext()
        mode.mod_tracker.parents = frozenset(("Global",))  # every operation is outside of all modules
    return mode


def both_passes(
    model: Any, arguments: Mapping[str, Any], outputs: Sequence[str], made: Callable[[], Any], label: str = ""
) -> tuple[Any, Any]:
    """Run a forward pass and a backward pass; return (counter of the forward pass, of the backward pass).

    Args:
        model: The PyTorch module.
        arguments: Keyword arguments of the forward pass.
        outputs: Names of the outputs whose sum is the loss.
        made: Builds a counter, a context manager.
        label: Text before the message of an error.

    Raises:
        SymflopsError: the model fails to run.
    """
    try:
        with plain_attention(), made() as forward:
            summed = [tensor for tensor in summed_tensors(model(**arguments), outputs) if tensor.requires_grad]
        with plain_attention(), made() as backward:
            if summed:
                needed("torch").autograd.backward([tensor.sum() for tensor in summed])
    except SymflopsError:
        raise
    except Exception as error:
        raise SymflopsError(f"{label}{type(model).__name__} fails to run: {type(error).__name__}: {error}") from error
    finally:
        model.zero_grad(set_to_none=True)
    return forward, backward


def plain_attention() -> Any:
    """Context manager in which attention runs as two matmuls, which FLOP counters see, not as one kernel."""
    kernels = needed("torch.nn.attention")
    return kernels.sdpa_kernel(kernels.SDPBackend.MATH)


def dispatching(call: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]) -> Any:
    """Context manager in which ``call(operator, args, kwargs)`` computes the result of every operator."""
    base = needed("torch.utils._python_dispatch").TorchDispatchMode

    class Mode(base):  # type: ignore[misc, valid-type]
        """The dispatch mode: lets ``call`` compute every PyTorch operator."""

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return call(func, args, kwargs or {})

    return Mode()


@contextmanager
def following(model: Any, paths: list[str]) -> Iterator[None]:
    """Keep in ``paths``, while the model runs, the paths of the modules that are running, innermost last."""
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


def summed_tensors(output: Any, names: Sequence[str]) -> list[Any]:
    """List the tensors of ``output`` that the loss sums: those called ``names``.

    In a plain tuple, the items are taken to have these names in order. If nothing matches, the main output is summed.

    Raises:
        SymflopsError: ``output`` has no such tensor.
    """
    if tuple(names) == EVERY:
        if not (found := list(returned(output))):
            raise SymflopsError(f"the module returns no tensor to sum but a {type(output).__name__}")
        return found
    named = [tensor for name in names for tensor in tensors_in(output_called(output, name))]
    if not named and isinstance(output, (tuple, list)) and len(names) > 1:
        named = list(tensors_in(output[: len(names)]))
    return named or first_tensors(output)


def output_called(output: Any, name: str) -> Any:
    """Look up an output by ``name`` in an object or a dict; None if it is missing."""
    return output.get(name) if isinstance(output, Mapping) else getattr(output, name, None)


def tensors_in(value: Any) -> Iterator[Any]:
    """Yield the tensors in ``value``: itself, or those nested in its lists and dicts."""
    if isinstance(value, (tuple, list, Mapping)):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from tensors_in(item)
    elif isinstance(value, needed("torch").Tensor):
        yield value


def returned(output: Any) -> Iterator[Any]:
    """Tensors of a module's output; those inside other objects, such as a key-value cache, are skipped."""
    if isinstance(output, needed("torch").Tensor):
        yield output
        return
    parts = output.values() if isinstance(output, Mapping) else output if isinstance(output, (list, tuple, set)) else ()
    if is_dataclass(output) and not isinstance(output, (type, Mapping, list, tuple, set)):
        parts = [getattr(output, one.name, None) for one in fields(output)]
    for value in parts:
        yield from returned(value)


def first_tensors(output: Any) -> list[Any]:
    """Tensors of the main output, for a model that returns none of the spec's output names.

    Raises:
        SymflopsError: the model returns no tensor.
    """
    for name in OUTPUTS:
        if (found := output_called(output, name)) is not None:
            return list(tensors_in(found))
    while (isinstance(output, (tuple, list, Mapping)) or hasattr(output, "to_tuple")) and len(output):
        output = next(iter(output.values())) if type(output) is dict else output[0]
    if not isinstance(output, needed("torch").Tensor):
        raise SymflopsError(f"the model returns no tensor to sum but a {type(output).__name__}")
    return [output]


@dataclass(frozen=True, slots=True)
class Figure:
    """One number in two versions: ``expected`` is that of the real model, ``derived`` that of the spec."""

    expected: int
    derived: int

    @property
    def equal(self) -> bool:
        """Whether the expected and the derived number are equal."""
        return self.expected == self.derived


def rolled_up(work: Mapping[tuple[str, ...], int]) -> Counter[str]:
    """Compute module path -> FLOPs, with ``*`` for indices; a module includes the modules inside it.

    Each key of ``work`` lists the paths of all modules around some work; the value is the FLOPs of that work.
    """
    found: Counter[str] = Counter()
    for modules, flops in work.items():
        for module in {starred(module) for module in modules}:
            found[module] += flops
    return found


def different(
    real: Mapping[str, int], work: Mapping[tuple[str, ...], int], known: Iterable[str]
) -> Iterator[tuple[str, Figure]]:
    """Yield (module path, figure) for modules whose forward FLOPs differ; paths have ``*`` for indices.

    Args:
        real: FLOPs of the real model by module path.
        work: Derived FLOPs, as for :func:`rolled_up`.
        known: Paths of all modules of the real model; derived work at any other path is a difference as well.
    """
    expected: Counter[str] = Counter()
    for path, flops in real.items():
        expected[starred(path)] += flops
    derived = rolled_up(work)
    unknown = {starred(modules[-1]) for modules, flops in work.items() if flops and modules} - {starred(path) for path in known}
    for path in sorted(expected.keys() | unknown):
        figure = Figure(expected[path], derived[path])
        if not figure.equal:
            yield path, figure
