"""Counts what PyTorch executes in a model's calls and their backward passes, by module.

Operators run under a dispatch mode, which calls each as it is and adds up its FLOPs, so the kernels stay the same. Work of a
forward pass belongs to the modules that run. Work of a backward pass belongs to the modules in which its node of autograd was
made: nodes are numbered in the order of the forward pass. What runs inside of modules in the backward pass is recomputation.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import wraps
from typing import Any

from symflops.training.introspect.kernels import flops_of, formulas

OUTER = "outer"
"""Kind of forward work that adds nothing up, such as the positions times the frequencies of a rotary embedding."""
AUTOGRAD = ("backward", "grad")

Place = tuple[int, tuple[str, ...]]
"""A watched model, and the paths of its modules that run, outermost first."""
FORWARD = -1
"""The number of no backward pass."""
OUTSIDE: Place = (-1, ())
"""The place of work outside of watched calls."""


def inert(kind: Any) -> Any:
    """An object of a class with hooks whose hooks do nothing."""
    found = kind.__new__(kind)
    found.owned = frozenset()
    return found


class Hooks:
    """An object whose methods are hooks of modules; in a copy of a module, as for a moving average, they do nothing.

    ``owned`` are the modules whose hooks do something, by ``id``.
    """

    owned: Collection[int] = frozenset()

    def __reduce__(self) -> Any:
        return inert, (type(self),)


class Witness(Hooks):
    """Counts the work that PyTorch executes in the watched calls of one step.

    Attributes:
        seen: (place, kind of work) -> FLOPs.
        runs: Module -> number of its calls outside of recomputation.
        foreign: Operators without a formula that are not PyTorch's own -> a place where they ran.
        marks: Graph task -> (first number of nodes, place) of each stretch of nodes that it made.
        made: Of each running backward pass, the graph task that made its nodes.
        problem: Why the step could not be counted; empty if it was.
        types: Number type -> FLOPs.
        outside: What ran outside of the watched calls.
    """

    def __init__(self, roots: Iterable[Any], outside: Any = None) -> None:
        import torch

        self.outside = outside
        self.seen: Counter[tuple[Place, str]] = Counter()
        self.runs: Counter[tuple[int, str]] = Counter()
        self.foreign: dict[str, Place] = {}
        self.types: Counter[str] = Counter()
        self.stack: list[Place] = []
        self.known: dict[Any, Place] = {}
        self.tables: dict[int, dict[Any, str]] = {}
        self.paths: dict[Any, str] = {}
        self.grad = False
        self.marks: dict[int, tuple[list[int], list[Place]]] = {}
        self.made: list[int] = []
        self.mode, self.depth, self.problem = mode_of(self._guarded), 0, ""
        self.handles: list[Any] = []
        modules = list(dict.fromkeys(module for root in roots for module in list(root.modules())[1:]))
        self.owned = set(map(id, modules))
        for module in modules:
            self.handles.append(module.register_forward_pre_hook(self._enter, prepend=True))
            self.handles.append(module.register_forward_hook(self._leave, always_call=True))
        self.originals = {name: getattr(torch.autograd, name) for name in AUTOGRAD}
        for name, function in self.originals.items():
            setattr(torch.autograd, name, self._within(function))

    def end(self) -> None:
        """Remove the hooks, and let autograd be as it was."""
        import torch

        for handle in self.handles:
            handle.remove()
        for name, function in self.originals.items():
            setattr(torch.autograd, name, function)
        while self.depth:
            self.leave()

    def _within(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function of autograd so that it runs under the mode."""

        @wraps(function)
        def counted(*arguments: Any, **named: Any) -> Any:
            self.enter()
            self.made.append(graph_task())
            try:
                return function(*arguments, **named)
            finally:
                self.made.pop()
                self.leave()

        return counted

    def enter(self) -> None:
        """Begin to count, unless it has begun."""
        self.depth += 1
        if self.depth == 1:
            self.mode.__enter__()

    def leave(self) -> None:
        """End what :meth:`enter` has begun."""
        self.depth -= 1
        if not self.depth:
            self.mode.__exit__(None, None, None)

    def call(self, number: int, modules: Mapping[str, Any], grad: bool, part: str = "") -> None:
        """Begin a call of the watched model ``number``, or of a part of it.

        Args:
            number: The number of the model.
            modules: Its modules by path.
            grad: Whether autograd records the call.
            part: The path of the part; empty for the model.
        """
        self.grad = grad
        self.stack.append((number, (part,) if part else ()))
        if part:
            self.runs[number, part] += 1
        self.tables[number] = {module: path for path, module in modules.items()}
        self.paths = {module: path for table in self.tables.values() for module, path in table.items()}
        self._mark()
        self.enter()

    def called(self) -> None:
        """End a call of a watched model."""
        self.leave()
        self.stack.clear()
        self._mark()

    def _mark(self) -> None:
        """Record that nodes of autograd belong to the innermost module from now on.

        Each thread numbers its nodes. A backward pass on a device has a thread of its own, in which recomputation makes nodes;
        so nodes are kept by the graph task that made them.
        """
        import torch

        starts, places = self.marks.setdefault(graph_task(), ([], []))
        starts.append(torch._C._autograd._get_sequence_nr())
        places.append(self.stack[-1] if self.stack else OUTSIDE)

    def _enter(self, module: Any, _: Any) -> None:
        if id(module) not in self.owned:
            return
        path = self.paths.get(module)
        if self.stack and path is not None:
            number, outer = self.stack[-1]
            self.stack.append((number, (*outer, path)))
            self.runs[number, path] += not in_backward()
        elif self.stack or module in self.known:  # a wrapper, or the outermost module of what is recomputed
            self.stack.append(self.stack[-1] if self.stack else self.known[module])
        else:
            self.stack.append(OUTSIDE)
        if self.stack[-1] is not OUTSIDE and not in_backward() and self.grad:
            self.known[module] = self.stack[-1]
        self._mark()

    def _leave(self, module: Any, *_: Any) -> None:
        if id(module) not in self.owned:
            return
        if self.stack:
            self.stack.pop()
        self._mark()

    def _guarded(self, *arguments: Any) -> None:
        try:
            self._called(*arguments)
        except Exception as error:  # the step goes on
            self.problem = f"{arguments[0]}: {type(error).__name__}: {error}"

    def _called(self, operator: Any, arguments: Any, named: Any, result: Any) -> None:
        """Add the FLOPs of one operator to the place where it belongs."""
        backward = in_backward()
        place = self.stack[-1] if self.stack else self._of_node() if backward else OUTSIDE
        flops = flops_of(operator, arguments, named, result)
        if place is OUTSIDE:
            if backward and self.outside is not None and self.outside.running is None:
                self.outside.backward += flops or 0
            return
        if flops is None:
            if getattr(operator, "namespace", "") not in ("aten", "prim", "prims"):
                self.foreign.setdefault(str(operator).rpartition(".")[0], place)
        elif flops:
            kind = "forward" if not backward else "recomputed" if self.stack else "backward"
            self.seen[place, kind] += flops
            if kind == "forward" and hasattr(result, "numel") and flops == 2 * result.numel():
                self.seen[place, OUTER] += flops
            self.types[str(next((one.dtype for one in arguments if hasattr(one, "dtype")), ""))] += flops

    def _of_node(self) -> Place:
        """The place in which the running node of autograd was made."""
        import torch

        node, made = torch._C._current_autograd_node(), self.made[-1:] or [FORWARD]
        starts, places = self.marks.get(made[0], ([], []))
        found = -1 if node is None else bisect_right(starts, node._sequence_nr()) - 1
        return places[found] if found >= 0 else OUTSIDE


def graph_task() -> int:
    """The number of the backward pass that autograd runs on this thread; :data:`FORWARD` outside of any."""
    import torch

    return int(torch._C._current_graph_task_id())


def in_backward() -> bool:
    """Whether autograd is running a backward pass on this thread."""
    return graph_task() != FORWARD


def mode_of(called: Callable[[Any, Any, Any, Any], None]) -> Any:
    """A dispatch mode that calls every operator as it is, and then ``called`` with its arguments and result."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):  # type: ignore[misc]
        supports_higher_order_operators = True

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            named = kwargs or {}
            if torch.is_inference_mode_enabled() and getattr(func, "_overloadpacket", None) not in formulas():
                with self:  # autograd, which decomposes operators, does not run
                    result = func.decompose(*args, **named)
                if result is not NotImplemented:
                    return result
            result = func(*args, **named)
            called(func, args, named, result)
            return result

    return Mode()
