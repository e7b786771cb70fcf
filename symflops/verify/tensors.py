"""Makes the real arguments of a forward pass, from the layouts of a program's inputs and the lengths of a batch.

Tensors are on the meta device and cost nothing. Only tensors whose values are lengths are real, on the CPU. For a model on the
CPU all tensors are moved there.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sympy import Integer

from symflops.evaluate.batch import BatchError, items_of
from symflops.formula.evaluate import evaluate as evaluate_expression
from symflops.formula.expression import parse_expression
from symflops.formula.formula import evaluate
from symflops.ir.batch import SAMPLES, InputInfo
from symflops.ir.program import Program
from symflops.support.findings import Source, Span, SymflopsError

if TYPE_CHECKING:
    from symflops.evaluate.batch import Item

NAMES = re.compile(r"[A-Za-z_]\w*")


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
