"""Runs the skeleton of a spec as its witness: parameters by name and shape, and FLOPs of both passes as PyTorch counts them."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sympy import Integer

from symflops.api import Model
from symflops.compiler import Goal
from symflops.emit.skeleton.expressions import Known
from symflops.emit.skeleton.module import Skeleton, skeleton, symbols_of
from symflops.evaluate.parameters import instances_of, parameter_differences
from symflops.evaluate.typical import as_batch, rests_of, typical_lengths
from symflops.support.errors import SymflopsError
from symflops.verify.live import parameters_of
from symflops.verify.running import Figure, counter

ITEMS, SHORT, SIDE = 2, 24, 8
"""Items of each index set, and the lengths of streams with one axis and with several."""
NUMBERS = ("number", "rational", "position", "entries")
"""Kinds of sizes that stay letters in a skeleton."""


@dataclass(frozen=True, slots=True)
class Written:
    """A skeleton with the graph's lengths and sizes, which its inputs follow from."""

    skeleton: Skeleton
    known: Known


@dataclass(frozen=True, slots=True)
class Witness:
    """The comparison of a spec with its skeleton.

    Attributes:
        name: The name of the spec.
        gaps: What the skeleton lacks; then nothing ran.
        differences: Parameters that are missing, extra or of another shape.
        figures: Parameters and both passes, by name.
    """

    name: str
    gaps: tuple[str, ...]
    differences: dict[str, Any]
    figures: dict[str, Figure]

    @property
    def exact(self) -> bool:
        """Whether there are no gaps, and everything is equal."""
        return not self.gaps and not self.differences and all(figure.equal for figure in self.figures.values())

    def __str__(self) -> str:
        if self.gaps:
            return f"{self.name}: the skeleton lacks {'; '.join(self.gaps)}"
        wrong = [
            f"{name} {figure.expected} in the skeleton, {figure.derived} derived"
            for name, figure in self.figures.items()
            if not figure.equal
        ]
        wrong += [f"{what}: {', '.join(map(str, list(rows)[:4]))}" for what, rows in self.differences.items()]
        return f"{self.name}: skeleton: {'; '.join(wrong) or 'parameters, forward and backward are equal'}"


def written(model: Model, config: Mapping[str, Any] | None = None, variant: str = "") -> Written:
    """Write the skeleton of a spec, for a config, a variant or the defaults.

    Raises:
        SpecError: the spec is not valid.
    """
    config = dict(model.variants[model.variant(variant).name.text] if variant else config or {})
    sizes = {size.name.text: model.value_of(size, config) for size in model.spec.sizes}
    numbers = {size.name.text for size in model.spec.sizes if size.kind in NUMBERS and not size.optional}
    settings = {name: value for name, value in sizes.items() if name not in numbers}
    graph = model.compiled(Goal.GRAPH, config=config, sizes=settings).graph
    name = f"{model.spec.name}, {variant}" if variant else model.spec.name
    return Written(skeleton(graph, sizes, name), Known(symbols_of(graph, sizes), dict(graph.definitions)))


@contextmanager
def imported(found: Skeleton) -> Iterator[Any]:
    """The class of a skeleton, imported from a file of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "skeleton.py"
        path.write_text(found.text, "utf-8")
        spec = importlib.util.spec_from_file_location("symflops_skeleton", path)
        if spec is None or spec.loader is None:
            raise SymflopsError(f"{path} cannot be imported")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield getattr(module, found.name)


def inputs_of(found: Written, lengths: Mapping[str, int]) -> dict[str, Any]:
    """Random arguments of ``forward``, at these lengths of each item."""
    import torch

    def number(expr: Any) -> int:
        whole = found.known.resolved(expr)
        return int(whole.xreplace({symbol: Integer(lengths[symbol.name]) for symbol in whole.free_symbols}))

    given: dict[str, Any] = {symbol.name: lengths[symbol.name] for symbol in found.skeleton.lengths}
    given |= {f"n_{items}": ITEMS for items in found.skeleton.counts}
    for name, value in found.skeleton.inputs:
        shape = (1 if value.stream.items == "once" else ITEMS, number(value.stream.rows))
        given[name] = torch.zeros(shape, dtype=torch.long) if value.width is None else torch.randn(*shape, number(value.width))
    return given


def batch_of(model: Any) -> tuple[dict[str, int], dict[str, Any]]:
    """Lengths that ``model`` accepts, short ones if it does, and the batch of items of these lengths."""
    streams = model.stored.streams
    short = {name: SHORT if len(stream.variables) == 1 else SIDE for stream in streams for name in stream.variables}
    for lengths in (short, typical_lengths(streams, rests_of(model.stored, model.sizes), model.taken)):
        batch = as_batch(streams, lengths) | {stream.name: 1 for stream in streams if stream.counts}
        batch = {name: items * ITEMS for name, items in batch.items()}
        try:
            model.moments(**batch)
        except SymflopsError:
            continue
        return lengths, batch
    raise SymflopsError("no batch of short or typical lengths fits the model")


def witness(model: Model, config: Mapping[str, Any] | None = None, device: str = "meta") -> Witness:
    """Compare a spec with its skeleton, by default without data, as large sizes need it."""
    import torch

    found, estimator = written(model, config), model.estimator(dict(config or {}), "full", "torch")
    if found.skeleton.gaps:
        return Witness(model.spec.name, found.skeleton.gaps, {}, {})
    lengths, batch = batch_of(estimator)
    moments = estimator.moments(**batch)
    with imported(found.skeleton) as made, torch.device(device), counter(False) as mode:
        try:
            module = made()
            outputs = module(**inputs_of(found, lengths))
            forward = mode.get_total_flops()
            sum(output.sum() for output in (outputs if isinstance(outputs, tuple) else (outputs,))).backward()
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            raise SymflopsError(f"{type(error).__name__}: {error}") from error
        backward = mode.get_total_flops() - forward
    real, aliases = parameters_of(module)
    program = model.program(["full"], ["torch"], dict(config or {}))
    rows = parameter_differences(real, instances_of(program, estimator.sizes), aliases)
    count = sum(parameter.numel() for parameter in module.parameters())
    figures = {
        "parameters": Figure(count, estimator.parameters),
        "forward": Figure(forward, estimator.forward(moments)),
        "backward": Figure(backward, estimator.backward(moments)),
    }
    return Witness(model.spec.name, (), {what: found for what, found in rows.items() if found}, figures)
