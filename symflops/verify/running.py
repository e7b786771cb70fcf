"""Runs real classes: makes the arguments of a forward pass, and counts both passes with PyTorch's FLOP counter.

Arguments follow from the layouts of a program's inputs and the lengths of a batch. Tensors are on the meta device and cost
nothing. Only tensors whose values are lengths are real, on the CPU. For a model on the CPU all tensors are moved there.

The loss sums the outputs that a spec names. In FLOPs by module, a container includes all work that runs inside its call.
"""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from sympy import Integer

from symflops.evaluate.batch import BatchError, items_of
from symflops.formula.evaluate import evaluate as evaluate_expression
from symflops.formula.expression import parse_expression
from symflops.formula.formula import evaluate
from symflops.ir.batch import InputInfo
from symflops.ir.index_sets import SAMPLES
from symflops.ir.program import Program
from symflops.support.findings import Source, Span, SymflopsError
from symflops.training.introspect.kernels import convolution_backward
from symflops.training.introspect.tree import starred

if TYPE_CHECKING:
    from symflops.evaluate.batch import Item

NAMES = re.compile(r"[A-Za-z_]\w*")
COMPOSITE = "CompositeImplicitAutograd"
"""Dispatch key of operators that PyTorch defines by others."""


def needed(package: str) -> Any:
    """Import a package that live verification needs.

    Raises:
        SymflopsError: it is not installed, or cannot be imported.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        if error.name != package.partition(".")[0]:
            raise SymflopsError(f"'{package}' cannot be imported: {error}") from error
        raise SymflopsError(f"live verification needs {error.name}: pip install symflops[verify]") from None


def arguments_of(
    program: Program, batch: Mapping[str, Any], sizes: Mapping[str, Any], further: Mapping[str, Any]
) -> dict[str, Any]:
    """Build the keyword arguments of the forward pass.

    Args:
        program: Its inputs and their layouts.
        batch: The lengths of each stream.
        sizes: The sizes of the config.
        further: Arguments that replace or extend those of the layouts; null leaves an input out.

    Raises:
        BatchError: the batch does not fit the model, or items of one index set differ in length.
        SymflopsError: a layout has a dimension of unknown length.
    """
    sets = items_of(program, batch, "padded")
    streams = {stream.name: stream for stream in program.streams}
    found: dict[str, Any] = {}
    samples: list[Item] = [{} for _ in sets.get(SAMPLES, ({},))]  # of an index set that has no lengths
    for info in program.inputs:
        stream = streams.get(info.stream)
        absent = stream is not None and bool(stream.variables) and not stream.absent and stream.name not in batch
        absent = absent or (info.when is not None and not evaluate(info.when, sizes))
        if info.name in further or info.layout is None or absent:
            continue
        items = info.over or (stream.items if stream else SAMPLES)
        found[info.name] = tensor_of(info, sets.get(items, samples), sizes, streams)
    return found | {name: described(value) for name, value in further.items()}


def tensor_of(info: InputInfo, items: list[Item], sizes: Mapping[str, Any], streams: Mapping[str, Any]) -> Any:
    """Build the tensor of one input: int64 indices if it has no width, else float32.

    Args:
        info: The input.
        items: The lengths of each of its items, by axis.
        sizes: The sizes of the config.
        streams: The streams of the program by name.
    """
    torch = needed("torch")
    layout = info.layout
    assert layout is not None
    if layout.values:
        rows = [[item[name] for name in layout.values] for item in items]
        return torch.tensor(rows, dtype=torch.int64, device="cpu")
    lengths = _dense(info, items)
    if layout.counts:
        rows_of = evaluate(streams[layout.counts].rows, {**sizes, **lengths})
        return torch.ones((len(items), rows_of), dtype=torch.int64, device="meta")
    width = None if info.width is None else evaluate(info.width, sizes)
    shape = [_dimension(info, axis, {**lengths, "b": len(items)}, width, sizes) for axis in layout.axes]
    return torch.zeros(shape, dtype=torch.int64 if width is None else torch.float32, device="meta")


def moved(value: Any, device: str) -> Any:
    """Return arguments with zeros on ``device`` in place of their meta tensors."""
    return value if device == "meta" else filled(value, lambda one, _: needed("torch").zeros_like(one, device=device))


def filled(value: Any, make: Callable[[Any, str], Any], name: str = "") -> Any:
    """Replace each meta tensor by ``make(tensor, name)``, also in mappings and lists; ``name`` is its key."""
    if isinstance(value, Mapping):
        return {inner: filled(item, make, str(inner)) for inner, item in value.items()}
    if isinstance(value, list):
        return [filled(item, make, name) for item in value]
    there = not isinstance(value, needed("torch").Tensor) or value.device.type == "cpu"
    return value if there else make(value, name)


def described(value: Any, device: str = "meta") -> Any:
    """Convert a case's argument: ``{shape: [2, 24], dtype: float32}``, ``{value: [[1, 4]]}`` are tensors.

    Mappings and lists may contain such tensors. Those with a shape are on ``device``; dtype ``int64(ones)`` makes a mask.
    """
    if isinstance(value, Mapping) and {"shape"} <= value.keys() <= {"shape", "dtype"}:
        torch = needed("torch")
        word, _, ones = str(value.get("dtype", "float32")).partition("(")
        return (torch.ones if ones else torch.zeros)(value["shape"], dtype=_dtype(torch, word), device=device)
    if isinstance(value, Mapping) and {"value"} <= value.keys() <= {"value", "dtype"}:
        torch = needed("torch")
        dtype = _dtype(torch, value["dtype"]) if "dtype" in value else None
        return torch.tensor(value["value"], dtype=dtype, device="cpu")
    if isinstance(value, Mapping):
        return {name: described(item, device) for name, item in value.items()}
    return [described(item, device) for item in value] if isinstance(value, (list, tuple)) else value


def _dtype(torch: Any, name: Any) -> Any:
    found = getattr(torch, str(name), None)
    if not isinstance(found, torch.dtype):
        raise SymflopsError(f"torch has no dtype '{name}'")
    return found


def _dense(info: InputInfo, items: list[Item]) -> Item:
    """The lengths, by axis, that all items of a dense input share; they must be equal."""
    assert info.layout is not None
    if not info.layout.counts:
        named = {name for axis in info.layout.axes for name in NAMES.findall(axis.partition("=")[0])}
        items = [{name: length for name, length in item.items() if name in named} for item in items]
    first = items[0] if items else {}
    for item in items:
        if item != first:
            raise BatchError(f"'{info.name}' is one dense tensor, so all items have equal lengths, not {first} and {item}")
    return first


def _dimension(info: InputInfo, axis: str, lengths: Item, width: int | None, sizes: Mapping[str, Any]) -> int:
    """The length of the dimension ``axis`` of an input's layout.

    It is the first of: an entry of ``lengths`` under this name, ``width`` (if not None), a size, the value of a formula.
    """
    word = axis.partition("=")[0]
    if word in lengths:
        return lengths[word]
    if word.isidentifier():
        found = sizes.get(word) if width is None else width
    else:
        scope = {name: Integer(value) for name, value in {**sizes, **lengths}.items() if isinstance(value, int)}
        found = evaluate_expression(parse_expression(word, Span(Source(info.name, word), 1, 1, len(word) + 1)), scope)
    if isinstance(found, (int, Integer)) and found >= 0:
        return int(found)
    raise SymflopsError(f"nothing tells the length of '{word}' in the layout of '{info.name}'")


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


def light_counter() -> Any:
    """Build a fast FLOP counter: PyTorch's rules, but only a ``total``, without FLOPs by module."""
    registry = counter(False).flop_registry
    is_composite = cache(lambda func: needed("torch")._C._dispatch_has_kernel_for_dispatch_key(func.name(), COMPOSITE))

    def call(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        count = registry.get(func._overloadpacket)
        if count is None and is_composite(func):
            with mode:
                return func.decompose(*args, **kwargs)
        result = func(*args, **kwargs)
        if count is not None:
            mode.total += int(count(*args, **kwargs, out_val=result))
        return result

    mode = dispatching(call)
    mode.total = 0
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
