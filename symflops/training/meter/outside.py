"""Sees modules that run beside the calls of watched models in a step that is proven, such as a teacher that nobody watches.

Hooks of PyTorch on all modules begin to count when a module runs that is in no watched call, and end with it, so neither the
optimizer nor a compiled function runs under a counter. What runs in a pause, or over models that contain a watched one, is left
out. A watched model's own modules are looked up, because they belong to its formula; all others are told by their class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from threading import get_ident
from typing import Any
from weakref import WeakSet, finalize, ref

from symflops.training.introspect.kernels import flops_of
from symflops.training.meter.witness import FORWARD, graph_task, mode_of

WATCHES: WeakSet[Any] = WeakSet()
"""The watched models of all meters: what another meter watches counts there."""


class Outside:
    """Work that runs outside of the watched calls of one step.

    Args:
        watch: The models that are watched, and their meter.

    Attributes:
        ran: Class of a module that is not watched -> forward FLOPs.
        own: (class of a watched model, path of its module that ran by itself) -> forward FLOPs.
        backward: FLOPs of backward passes of what no watched call made.
        hidden: Classes of modules that ran and whose operators cannot be seen.
    """

    def __init__(self, watch: Any) -> None:
        from torch.nn.modules import module as modules

        self.watch, self.thread = watch, get_ident()
        self.ran: Counter[str] = Counter()
        self.own: Counter[tuple[str, str]] = Counter()
        self.backward, self.hidden = 0, set[str]()
        self.running: Any = None
        self.again = 0
        self.add: Callable[[int], None] = self._nothing
        self.mode = mode_of(self._called)
        handles = [
            modules.register_module_forward_pre_hook(hook(ref(self), "_enter")),
            modules.register_module_forward_hook(hook(ref(self), "_leave"), always_call=True),
        ]
        self.end = finalize(self, removed, handles)

    @property
    def flops(self) -> int:
        """All FLOPs that no watched call explains."""
        return self.backward + self.ran.total() + self.own.total()

    def differences(self) -> list[str]:
        """A sentence for each module of a watched model that ran by itself."""
        return [
            f"{path} ran outside of a call of {kind}: {flops:,} FLOPs are not counted"
            for (kind, path), flops in self.own.items()
            if flops
        ]

    def notes(self) -> list[str]:
        """The sentence on work that ran beside the watched calls, and is not counted."""
        found = [
            f"{kind} ran too, and its {flops:,} FLOPs forward are not counted: watch it as well, meter.watch(...)"
            for kind, flops in sorted(self.ran.items())
            if flops
        ]
        found += [f"{kind} ran too, and its operators cannot be seen" for kind in sorted(self.hidden)]
        more = f"{self.backward:,} FLOPs of backward passes outside of the watched calls are not counted"
        return [*found, more] if self.backward else found

    def _nothing(self, flops: int) -> None:
        """Count nothing."""

    def _enter(self, module: Any) -> None:
        if self.running is not None:
            self.again += module is self.running
            return
        if graph_task() != FORWARD or is_within_call() or self.watch.meter.is_paused:
            return
        watched = [model for watch in WATCHES for model in watch.models]
        roots = {id(model.root) for model in watched}
        if any(id(module) in model.owned for model in watched) or any(id(one) in roots for one in module.modules()):
            return
        if is_opaque(module):
            self.hidden.add(type(module).__name__)
            return
        for model in self.watch.models:
            path = next((path for path, one in model.root.named_modules() if one is module), None)
            if path is not None:
                if not model.trains():
                    return
                self._count(self.own, (type(model.root).__name__, path))
                break
        else:
            self._count(self.ran, type(module).__name__)
        self.running = module
        self.mode.__enter__()

    def _count(self, sums: Counter[Any], key: Any) -> None:
        """Add what runs from now on to ``sums[key]``."""

        def add(flops: int) -> None:
            sums[key] += flops

        self.add = add

    def _leave(self, module: Any) -> None:
        if module is not self.running:
            return
        if self.again:
            self.again -= 1
            return
        self.running = None
        self.mode.__exit__(None, None, None)

    def _called(self, operator: Any, arguments: Any, named: dict[str, Any], result: Any) -> None:
        if not is_within_call():
            try:
                self.add(flops_of(operator, arguments, named, result) or 0)
            except Exception:  # the step goes on
                self.hidden.add(type(self.running).__name__)


def is_within_call() -> bool:
    """Whether a watched model is running."""
    return any(model.depth for watch in WATCHES for model in watch.models)


def is_opaque(module: Any) -> bool:
    """Whether a counter sees no operators of a module, or would change how it runs: it is compiled or scripted."""
    import torch

    return isinstance(module, torch.jit.ScriptModule) or "_orig_mod" in module._modules


def hook(found: ref[Outside], name: str) -> Callable[..., None]:
    """A hook on all modules that calls a method while its object lives, in its thread; compiled functions do not call it."""
    import torch

    def called(module: Any, *_: Any) -> None:
        if torch.compiler.is_compiling():
            return
        one = found()
        if one is not None and one.thread == get_ident():
            getattr(one, name)(module)

    return called


def removed(handles: list[Any]) -> None:
    """Remove hooks."""
    for handle in handles:
        handle.remove()
