"""Proves a step: counts what PyTorch executes in a model's calls and their backward passes, and compares it by module.

Operators run under a dispatch mode, which calls each as it is and adds up its FLOPs, so the kernels stay the same. Work of a
forward pass belongs to the modules that run. Work of a backward pass belongs to the modules in which its node of autograd was
made: nodes are numbered in the order of the forward pass. What runs inside of modules in the backward pass is recomputation.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial, wraps
from typing import Any

from symflops.evaluate.lengths import entry_of
from symflops.training.introspect.kernels import flops_of, formulas
from symflops.training.introspect.tree import starred, tree_of

ENOUGH = 0.95
"""Share of the executed FLOPs that must have been compared for the word *proven*."""
KINDS = ("forward", "backward", "recomputed")
AUTOGRAD = ("backward", "grad")

Place = tuple[int, tuple[str, ...]]
"""A watched model, and the paths of its modules that run, outermost first."""


class Witness:
    """What PyTorch executes in the watched calls of one step.

    Attributes:
        seen: (place, kind of work) -> FLOPs.
        runs: Module -> number of its calls outside of recomputation.
        foreign: Operators without a formula that are not PyTorch's own -> a place where they ran.
        problem: Why the step could not be counted; empty if it was.
        types: Number type -> FLOPs.
    """

    def __init__(self, roots: Iterable[Any]) -> None:
        import torch

        self.seen: Counter[tuple[Place, str]] = Counter()
        self.runs: Counter[tuple[int, str]] = Counter()
        self.foreign: dict[str, Place] = {}
        self.types: Counter[str] = Counter()
        self.stack: list[Place] = []
        self.known: dict[tuple[int, str], tuple[str, ...]] = {}
        self.starts: list[int] = []
        self.places: list[Place | None] = []
        self.mode, self.depth, self.problem = mode_of(self._guarded), 0, ""
        self.handles: list[Any] = []
        for number, root in enumerate(roots):
            for path, module in tree_of(root).modules.items():
                if path:
                    enter, leave = partial(self._enter, (number, path)), self._leave
                    self.handles.append(module.register_forward_pre_hook(enter, prepend=True))
                    self.handles.append(module.register_forward_hook(leave, always_call=True))
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
            try:
                return function(*arguments, **named)
            finally:
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

    def call(self, number: int) -> None:
        """Begin a call of the watched model ``number``."""
        self.stack.append((number, ()))
        self._mark()
        self.enter()

    def called(self) -> None:
        """End a call of a watched model."""
        self.leave()
        self.stack.clear()
        self._mark()

    def _mark(self) -> None:
        """Record that nodes of autograd belong to the innermost module from now on."""
        import torch

        self.starts.append(torch._C._autograd._get_sequence_nr())
        self.places.append(self.stack[-1] if self.stack else None)

    def _enter(self, key: tuple[int, str], *_: Any) -> None:
        number, path = key
        if self.stack:
            self.known[key] = (*self.stack[-1][1], path)
            self.runs[key] += not in_backward()
        elif not in_backward():  # outside of a watched call
            self.known.setdefault(key, (path,))
        self.stack.append((number, self.known.get(key, (path,))))
        self._mark()

    def _leave(self, *_: Any) -> None:
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
        place = self.stack[-1] if self.stack else self._of_node() if backward else None
        if place is None:
            return
        flops = flops_of(operator, arguments, named, result)
        if flops is None:
            if getattr(operator, "namespace", "") not in ("aten", "prim", "prims"):
                self.foreign.setdefault(str(operator).rpartition(".")[0], place)
        elif flops:
            kind = "forward" if not backward else "recomputed" if self.stack else "backward"
            self.seen[place, kind] += flops
            self.types[str(next((one.dtype for one in arguments if hasattr(one, "dtype")), ""))] += flops

    def _of_node(self) -> Place | None:
        """The place in which the running node of autograd was made; None for one outside of watched calls."""
        import torch

        node = torch._C._current_autograd_node()
        found = -1 if node is None else bisect_right(self.starts, node._sequence_nr()) - 1
        return self.places[found] if found >= 0 else None


def in_backward() -> bool:
    """Whether autograd is running a backward pass on this thread."""
    import torch

    return bool(torch._C._current_graph_task_id() != -1)


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


def work_of(estimator: Any, streams: Mapping[str, Any], parts: Iterable[int]) -> Counter[tuple[tuple[str, ...], str]]:
    """FLOPs of a call by (modules that run, kind), for how often each kind runs; waits for a device."""
    moments = estimator.moments(**{name: entry_of(entry) for name, entry in streams.items()})
    found: Counter[tuple[tuple[str, ...], str]] = Counter()
    for line, flops in estimator._work(moments):
        for kind, times in zip(KINDS, parts, strict=True):
            found[line.within, kind] += flops * times * getattr(line, kind)
    return found


class Verdict:
    """Executed work of a model beside that of its estimator.

    Attributes:
        modules: Number of modules that did work.
        differences: A sentence for each difference.
        unseen: Operators that no formula counts, where the estimator has more work than was seen.
        share: The share of the executed FLOPs that were compared.
    """

    def __init__(self, number: int, witness: Witness, derived: Mapping[tuple[tuple[str, ...], str], int]) -> None:
        real = {(place[1], kind): flops for (place, kind), flops in witness.seen.items() if place[0] == number}
        self.modules = len({stack[-1] if stack else "" for stack, _ in real})
        called = {path for (mine, path), _ in witness.runs.items() if mine == number}
        names = {starred(path) for path in called}
        one, two = rolled(real, names), rolled(derived, names)
        apart = {key for key in one.keys() | two.keys() if one[key] != two[key]}
        places = {path for path, _ in apart}
        deepest = [path for path in sorted(places) if not any(inside(other, path) for other in places)]
        blind = {starred(place[1][-1]): name for name, place in witness.foreign.items() if place[0] == number and place[1]}
        self.unseen: dict[str, str] = {}
        self.differences: list[str] = []
        for path in deepest:
            less = all(one[path, kind] <= two[path, kind] for kind in KINDS)
            kernel = next((name for place, name in blind.items() if place == path or inside(place, path)), None)
            if kernel is not None and less:
                self.unseen[path] = kernel
            else:
                self.differences.append(self._cause(path, one, two, real, witness, number))
        total = sum(two["", kind] for kind in KINDS)
        missed = sum(two[path, kind] - one[path, kind] for path in self.unseen for kind in KINDS)
        self.share = 1 - missed / total if total else 1.0
        self.apart = sum(abs(one["", kind] - two["", kind]) for kind in KINDS)

    @staticmethod
    def _cause(
        path: str, one: Counter[tuple[str, str]], two: Counter[tuple[str, str]], real: Mapping[Any, int], witness: Witness, number: int
    ) -> str:
        """Say in a sentence why executed work (``one``) and derived work (``two``) of a module differ."""
        single: Counter[str] = Counter()
        for (stack, kind), flops in real.items():
            if kind == "forward" and stack and starred(stack[-1]) == path:
                single[stack[-1]] += flops
        usual = min(single.values(), default=0)
        odd = [name for name, flops in single.items() if flops != usual]
        name = odd[0] if odd and len(odd) < len(single) else path or "the model"
        ran, due = one[path, "forward"], two[path, "forward"]
        if ran != due:
            most = max((witness.runs[number, each] for each in single), default=0)
            if due and not ran % due and ran > due:
                return f"{name} ran {ran // due} times as often as counted"
            if odd and most > 1 and witness.runs[number, name] > 1:
                return f"{name} ran twice"
            return f"{name} executed {ran:,} FLOPs forward, {due:,} were counted"
        ran, due = one[path, "backward"], two[path, "backward"]
        if ran != due:
            why = "a gradient ran that was not counted" if ran > due else "a gradient was counted that did not run"
            return f"{name}: {why} ({ran:,} FLOPs backward, {due:,} were counted)"
        ran, due = one[path, "recomputed"], two[path, "recomputed"]
        return f"{name} recomputed {ran:,} FLOPs, {due:,} were counted"


def rolled(work: Mapping[tuple[tuple[str, ...], str], int], names: Iterable[str]) -> Counter[tuple[str, str]]:
    """Add up work by (path, kind), each module with those inside it; paths have ``*`` for indices, that of the model is empty.

    Modules that are not among ``names`` count only if they do work themselves.
    """
    known = set(names)
    found: Counter[tuple[str, str]] = Counter()
    for (stack, kind), flops in work.items():
        stars = list(map(starred, stack))
        for path in {"", *(one for one in stars if one in known), *stars[-1:]}:
            found[path, kind] += flops
    return +found


def inside(path: str, outer: str) -> bool:
    """Whether a module's path lies inside that of another module."""
    return path != outer and (not outer or path.startswith(f"{outer}."))


def sentence(verdicts: Iterable[Verdict]) -> tuple[str, bool]:
    """The line about a proof, and whether rates may be logged."""
    found = list(verdicts)
    wrong = [text for one in found for text in one.differences]
    if wrong:
        more = f"; and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        return f"the first step is not what was counted: {'; '.join(wrong[:3])}{more}", False
    modules, unseen = sum(one.modules for one in found), {**{k: v for one in found for k, v in one.unseen.items()}}
    share = min((one.share for one in found), default=1.0)
    kernels = ", ".join(sorted(set(unseen.values())))
    if unseen:
        word = "proven" if share >= ENOUGH else "compared"
        return f"{word} on the first step, {100 * share:.1f} % of it: {kernels} is not counted; 0 FLOPs apart in {modules} modules", True
    return f"proven on the first step: {modules} of {modules} modules, 0 FLOPs apart", True


