"""A run of a module as a graph of contractions, with what autograd would do at each of them.

The module runs on the meta device under a dispatch mode, so any Python is fine. Tensors are known by identity and by the
storage that they are views of. What lies between contractions is reduced as it comes: a value that depends on one other value
is that value, one that depends on several is a *join* of them. Only edges that carry a gradient count; a constant is no value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

from symflops.draft.trace.nodes import Node, Tape
from symflops.draft.trace.recorder import Recorder, named_tensors
from symflops.witness.counting import plain_attention
from symflops.witness.tensors import needed


def record(model: Any, arguments: Mapping[str, Any], summed: Callable[[Any], list[Any]]) -> Tape:
    """Run a module on its arguments, and reduce what it did.

    ``summed`` picks the tensors of the output that the loss sums. Float arguments need a gradient while it runs, else what
    depends on them alone would look like constants.
    """
    torch = needed("torch")
    dispatch = needed("torch.utils._python_dispatch")
    names = {id(tensor): name for name, tensor in reversed(list(model.named_parameters(remove_duplicate=False)))}
    recorder = Recorder(names)

    class Mode(dispatch.TorchDispatchMode):  # type: ignore[misc, name-defined]
        """Hands every call on, and tells the recorder."""

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            out = func(*args, **kwargs)
            packet = func._schema.name.partition("::")[2]
            mutates = any(
                argument.alias_info is not None and argument.alias_info.is_write for argument in func._schema.arguments
            )
            recorder.call(packet, args, kwargs, out, mutates)
            return out

    given = dict(named_tensors(arguments, ""))
    floats = [tensor for tensor in given.values() if tensor.is_floating_point() and tensor.is_leaf]
    frozen = frozenset(name for name, tensor in model.named_parameters() if not tensor.requires_grad)
    try:
        for tensor in floats:
            tensor.requires_grad_(True)
        for name, tensor in given.items():
            recorder.input(name, tensor)
        with ExitStack() as stack:
            stack.enter_context(plain_attention())
            stack.enter_context(following(model, recorder.paths))
            stack.enter_context(torch.enable_grad())
            stack.enter_context(answering())
            stack.enter_context(Mode())
            output = model(**arguments)
        outputs = tuple(dict.fromkeys(value for tensor in summed(output) if (value := recorder.used(tensor)) is not None))
    finally:
        for tensor in floats:
            tensor.requires_grad_(False)
    shapes = {name: tuple(tensor.shape) for name, tensor in model.named_parameters()}
    return Tape(recorder.nodes, outputs, shapes, frozen)


@contextmanager
def answering() -> Iterator[None]:
    """Answers what a module asks of the meta device, which knows no values.

    A truth value is true: such questions are checks (are these positions in order, is this mask full), whose plain case is the
    true one. For the same reason all places of a tensor are places that are not zero. A type to cast to is of no importance.
    """
    torch = needed("torch")
    dispatch = needed("torch.utils._python_dispatch")
    settings = needed("torch.fx.experimental._config")
    plain = torch.autocast

    class Mode(dispatch.TorchDispatchMode):  # type: ignore[misc, name-defined]
        """Answers, and hands every other call on."""

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if (
                func is torch.ops.aten._local_scalar_dense.default
                and args[0].device.type == "meta"
                and args[0].dtype is torch.bool
            ):
                return True
            return func(*args, **(kwargs or {}))

    def autocast(device_type: str, *args: Any, **kwargs: Any) -> Any:
        return nullcontext() if device_type == "meta" else plain(device_type, *args, **kwargs)

    with settings.patch(meta_nonzero_assume_all_nonzero=True), patch.object(torch, "autocast", autocast), Mode():
        yield


@contextmanager
def following(model: Any, paths: list[str]) -> Iterator[None]:
    """Keep the path of the module that runs on top of ``paths``."""
    handles = []
    try:
        for name, module in model.named_modules():
            if not name:
                continue

            def enter(_: Any, __: Any, name: str = name) -> None:
                paths.append(name)

            def leave(_: Any, __: Any, ___: Any) -> None:
                paths.pop()

            handles.append(module.register_forward_pre_hook(enter))
            handles.append(module.register_forward_hook(leave, always_call=True))
        yield
    finally:
        for handle in handles:
            handle.remove()


__all__ = ["Node", "Tape", "answering", "record"]
