"""Selects the tensors of a model's output that the loss sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from symflops.diagnostics.findings import SymflopsError
from symflops.witness.tensors import needed

OUTPUTS = ("logits", "sample", "last_hidden_state")


def summed_tensors(output: Any, names: Sequence[str]) -> list[Any]:
    """The tensors that the loss sums: the outputs called ``names`` if the model returns any, else the first output."""
    return [tensor for name in names for tensor in tensors_in(getattr(output, name, None))] or first_tensors(output)


def tensors_in(value: Any) -> Iterator[Any]:
    """The tensors of an output: itself, or those of a list."""
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, needed("torch").Tensor):
        yield value


def first_tensors(output: Any) -> list[Any]:
    """The main output of a model that has no output of the spec's names.

    Raises:
        SymflopsError: the model returns no tensor.
    """
    for name in OUTPUTS:
        if getattr(output, name, None) is not None:
            return list(tensors_in(getattr(output, name)))
    while isinstance(output, (tuple, list)) or hasattr(output, "to_tuple"):
        output = output[0]
    if not isinstance(output, needed("torch").Tensor):
        raise SymflopsError(f"the model returns no tensor to sum but a {type(output).__name__}")
    return [output]
