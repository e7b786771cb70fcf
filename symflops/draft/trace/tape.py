"""Records a run of a module as a graph of contractions, with the edges that carry gradients.

The module runs on the meta device under a dispatch mode, so any Python is fine. Tensors are known by identity and by the
storage that they view. Operators between contractions are reduced at once: a value that depends on one other value is that
value, and one that depends on several is a *join*. Only edges that carry a gradient count; a constant is no value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

from symflops.draft.trace.nodes import Tape
from symflops.draft.trace.recorder import Recorder, named_tensors
from symflops.draft.trace.subject import Subject, summed
from symflops.verify.counting import dispatching, following, plain_attention
from symflops.verify.tensors import needed


def taped(subject: Subject) -> tuple[Any, dict[str, Any], Tape]:
    """Build and run a subject; returns (module, argument -> value, tape)."""
    model, arguments = subject.build(), subject.arguments()
    needed("torch").manual_seed(0)
    return model, arguments, record(model, arguments, summed)


def record(model: Any, arguments: Mapping[str, Any], summed: Callable[[Any], list[Any]]) -> Tape:
    """Run a module on its arguments and return the tape.

    Args:
        model: The module.
        arguments: The arguments of the call, by name. Floating-point ones require a gradient during the run; otherwise
            values that depend on them alone would look like constants.
        summed: Picks the tensors of the output that the loss sums.
    """
    every = dict(model.named_parameters(remove_duplicate=False))
    names = {id(tensor): name for name, tensor in reversed(every.items())}
    tied = {name: names[id(tensor)] for name, tensor in every.items() if names[id(tensor)] != name}
    frozen = frozenset(name for name, tensor in model.named_parameters() if not tensor.requires_grad)
    recorder = Recorder(names)
    given = dict(named_tensors(arguments, ""))
    with requiring_gradients([tensor for tensor in given.values() if tensor.is_floating_point() and tensor.is_leaf]):
        for name, tensor in given.items():
            recorder.input(name, tensor)
        with (
            plain_attention(),
            following(model, recorder.paths),
            needed("torch").enable_grad(),
            answering() as by_value,
            recording(recorder),
        ):
            output = model(**arguments)
        outputs = tuple(dict.fromkeys(value for tensor in summed(output) if (value := recorder.used(tensor)) is not None))
    shapes = {name: tuple(tensor.shape) for name, tensor in model.named_parameters()}
    return Tape(recorder.nodes, outputs, shapes, frozen, frozenset(by_value), tied)


@contextmanager
def requiring_gradients(tensors: Sequence[Any]) -> Iterator[None]:
    """Context in which ``tensors`` require a gradient."""
    try:
        for tensor in tensors:
            tensor.requires_grad_(True)
        yield
    finally:
        for tensor in tensors:
            tensor.requires_grad_(False)


def recording(recorder: Recorder) -> Any:
    """Dispatch mode that executes every operator and records it in ``recorder``."""

    def call(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        out = func(*args, **kwargs)
        mutates = any(one.alias_info is not None and one.alias_info.is_write for one in func._schema.arguments)
        recorder.call(func._schema.name.partition("::")[2], args, kwargs, out, mutates)
        return out

    return dispatching(call)


@contextmanager
def answering() -> Iterator[set[tuple[str, str]]]:
    """Context that guesses tensor values on the meta device; yields the set of (operator, device) that ask.

    A truth value is true: modules ask for one in checks (are these positions in order, is this mask full), which usually
    hold. For the same reason no element of a tensor is zero. Autocast is ignored. A proof on real values must confirm these
    guesses.
    """
    torch = needed("torch")
    settings = needed("torch.fx.experimental._config")
    plain = torch.autocast
    by_value: set[tuple[str, str]] = set()

    def call(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        by_value.update((func._schema.name.partition("::")[2], device) for device in devices_asked(func, args))
        asked = func is torch.ops.aten._local_scalar_dense.default and args[0].device.type == "meta"
        return True if asked and args[0].dtype is torch.bool else func(*args, **kwargs)

    def autocast(device_type: str, *args: Any, **kwargs: Any) -> Any:
        return nullcontext() if device_type == "meta" else plain(device_type, *args, **kwargs)

    with settings.patch(meta_nonzero_assume_all_nonzero=True), patch.object(torch, "autocast", autocast), dispatching(call):
        yield by_value


def devices_asked(func: Any, args: tuple[Any, ...]) -> set[str]:
    """Devices of the arguments whose values decide an operator's output shape or result; empty if none do."""
    tags = needed("torch").Tag
    if tags.dynamic_output_shape not in func.tags and tags.data_dependent_output not in func.tags:
        return set()
    chosen: Any = args
    if len(args) > 1 and isinstance(args[1], (list, tuple)):  # indexing by several tensors: only masks matter
        masks = needed("torch").bool, needed("torch").uint8
        chosen = [one for one in args[1] if getattr(one, "dtype", None) in masks]
    return {str(tensor.device.type) for _, tensor in named_tensors(chosen, "")}
