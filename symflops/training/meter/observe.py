"""Observes one call of a live model: what its arguments and its autograd graph tell, and its config does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from symflops.training.meter.arguments import EMBEDS, requires_grad, tensors_of
from symflops.training.meter.calls import More, State
from symflops.training.meter.witness import Hooks

PRODUCTS = ("Mm", "Addmm", "Bmm", "Baddbmm", "Convolution", "ScaledDot")


class Observer(Hooks):
    """Hooks on modules for one call.

    Args:
        modules: Path -> module.
        groups: The recomputed modules, to find out how far recomputation runs; may be empty.

    Attributes:
        entered: Paths of modules with weights into which a gradient flows.
        ends: Of each recomputed module that ran, whether it runs to its end again: the last tensor that autograd saves follows
            all products.
    """

    def __init__(self, modules: Mapping[str, Any], groups: Sequence[str] = ()) -> None:
        self.entered: set[str] = set()
        self.ends: list[bool] = []
        self.handles: list[Any] = []
        self.owned = set(map(id, modules.values()))
        for path, module in modules.items():
            if not module._modules and module._parameters:
                self.handles.append(module.register_forward_pre_hook(partial(self._enters, path), with_kwargs=True))
        for path in groups:
            if path in modules:
                self.handles.append(modules[path].register_forward_hook(self._ends, with_kwargs=True))

    def end(self) -> None:
        """Remove the hooks."""
        for handle in self.handles:
            handle.remove()
        self.handles = []

    def _enters(self, path: str, module: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        if id(module) in self.owned and any(map(requires_grad, (*args, *named.values()))):
            self.entered.add(path)

    def _ends(self, module: Any, args: tuple[Any, ...], named: dict[str, Any], output: Any) -> None:
        if id(module) in self.owned:
            self.ends.append(saves_last([*args, *named.values()], output))

    @property
    def whole(self) -> bool:
        """Whether recomputed modules ran, and each runs to its end again."""
        return bool(self.ends) and all(self.ends)


def saves_last(arguments: Sequence[Any], output: Any) -> bool:
    """Whether autograd saves a tensor after the last product between the arguments of a module and its output."""
    outer = {tensor.grad_fn for value in arguments for _, tensor in tensors_of(value)}
    nodes = list(nodes_of([tensor.grad_fn for _, tensor in tensors_of(output)], outer))
    products = [number for name, number, _ in nodes if name.startswith(PRODUCTS)]
    return any(saves and number > max(products, default=-1) for name, number, saves in nodes if not name.startswith(PRODUCTS))


def nodes_of(starts: Sequence[Any], outer: set[Any]) -> Iterator[tuple[str, int, bool]]:
    """Yield (name, number, whether it saves a tensor) of each node of autograd between ``starts`` and the last products."""
    rest, known = list(starts), {None, *outer}
    for node in rest:
        if node in known:
            continue
        known.add(node)
        name = node.name()
        yield name, node._sequence_nr(), any(word.startswith("_raw_saved_") for word in dir(node))
        if not name.startswith(PRODUCTS):
            rest += [inner for inner, _ in node.next_functions]


def more_of(model: Any, state: State, outside: tuple[str, ...]) -> More:
    """Fields that the arguments that require a gradient add to the regime."""
    needs = [name for name, value in model.arguments.items() if model.grad and requires_grad(value)]
    if not needs:
        return ()
    found: dict[str, list[str]] = {}
    for name in needs:
        if name == EMBEDS and model.ends[0] is not None:
            tree, table = state.live.reading.tree, model.ends[0]
            path = next((path for path, module in tree.modules.items() if module is table), "")
            found.setdefault("force_grad", []).append(path)
        elif name in state.live.names[0]:
            found.setdefault("input_grad", []).append(name)
        else:
            found["enter_grad"] = list(state.entered.get(outside, ()))
    return tuple((name, tuple(words)) for name, words in found.items())
