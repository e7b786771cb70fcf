"""Selects the tensors of a model's output that the loss sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from symflops.diagnostics.findings import SymflopsError
from symflops.witness.tensors import needed

OUTPUTS = ("logits", "sample", "last_hidden_state")


def summed_tensors(output: Any, names: Sequence[str]) -> list[Any]:
    """The tensors that the loss sums: the outputs called ``names`` if the model returns any, else as many as there are names.

    A plain tuple has its items in the order of the names, and at least the first one is summed.
    """
    named = [tensor for name in names for tensor in tensors_in(output_called(output, name))]
    if not named and isinstance(output, (tuple, list)) and len(names) > 1:
        named = list(tensors_in(output[: len(names)]))
    return named or first_tensors(output)


def output_called(output: Any, name: str) -> Any:
    """The output under a ``name``, of an object or of a dict; None if there is none."""
    return output.get(name) if isinstance(output, Mapping) else getattr(output, name, None)


def tensors_in(value: Any) -> Iterator[Any]:
    """The tensors of an output: itself, or those of a list or a dict."""
    if isinstance(value, (tuple, list, Mapping)):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from tensors_in(item)
    elif isinstance(value, needed("torch").Tensor):
        yield value


def first_tensors(output: Any) -> list[Any]:
    """The main output of a model that has no output of the spec's names.

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
