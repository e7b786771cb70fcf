"""Proves a step: counts what PyTorch executes in a model's calls and their backward passes, and compares it by module.

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

from symflops.evaluate.lengths import entry_of
from symflops.training.introspect.kernels import flops_of, formulas
from symflops.training.introspect.tree import starred
from symflops.training.meter.parts import is_within

ENOUGH = 0.95
"""Share of the executed FLOPs that must have been compared for the word *proven*."""
KINDS = ("forward", "backward", "recomputed")
OUTER = "outer"
"""Kind of forward work that adds nothing up, such as the positions times the frequencies of a rotary embedding."""
AUTOGRAD = ("backward", "grad")

Work = Mapping[tuple[tuple[str, ...], str], int]
"""(modules that run, kind of work) -> FLOPs."""
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
    """What PyTorch executes in the watched calls of one step.

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


def work_of(
    estimator: Any, streams: Mapping[str, Any], parts: Iterable[int], inside: str = "", without: str = ""
) -> Counter[tuple[tuple[str, ...], str]]:
    """FLOPs of a call by (modules that run, kind), for how often each kind runs; waits for a device.

    ``inside`` is the part of the model that runs, empty for all of it, and ``without`` a part that does not.
    """
    moments = estimator.moments(**{name: entry_of(entry) for name, entry in streams.items()})
    found: Counter[tuple[tuple[str, ...], str]] = Counter()
    for line, flops in estimator._work(moments):
        if not is_within(line.within, inside) or (without and is_within(line.within, without)):
            continue
        for kind, times in zip(KINDS, parts, strict=True):
            found[line.within, kind] += flops * times * getattr(line, kind)
    return found


class Verdict:
    """Executed work of a model beside that of its estimator.

    Args:
        number: The number of the model.
        witness: What was executed.
        derived: The work of the estimator.
        rows: The same if packs are whole rows, as a kernel that masks packs computes them.
        head: The path of the module that computes logits.
        units: Paths, with ``*`` for indices, of modules that are compared as a whole, because their parts run for each other.

    Attributes:
        modules: Number of modules that did work.
        differences: A sentence for each difference.
        unseen: Module -> why its work is not compared: an operator without a formula, a fused head, or outer products.
        beside: FLOPs of outer products that are not counted.
        total, missed: FLOPs that ran or are counted, and those of them that were not compared.
    """

    def __init__(
        self, number: int, witness: Witness, derived: Work, rows: Work | None, head: str = "", units: Collection[str] = ()
    ) -> None:
        real = {(place[1], kind): flops for (place, kind), flops in witness.seen.items() if place[0] == number}
        self.modules = len({stack[-1] if stack else "" for stack, _ in real})
        names = {starred(path) for mine, path in witness.runs if mine == number}
        one, two = rolled(real, names, units), rolled(derived, names, units)
        masked = two if rows is None else rolled(rows, names, units)
        keys = [key for key in one.keys() | two.keys() if key[1] in KINDS]
        places = {key[0] for key in keys if one[key] not in (two[key], masked[key])}
        self.notes = ["packs ran as whole rows"] if any(one[key] != two[key] and key[0] not in places for key in keys) else []
        blind = {starred(place[1][-1]): name for name, place in witness.foreign.items() if place[0] == number and place[1]}
        self.unseen, self.differences, self.beside = dict[str, str](), list[str](), 0
        for path in sorted(places):
            if any(inside(other, path) for other in places):  # told of the inner one
                continue
            figures = {kind: (one[path, kind], two[path, kind]) for kind in KINDS}
            outer = Counter(forward=one[path, OUTER])
            kernel = next((name for place, name in blind.items() if place == path or inside(place, path)), None)
            if kernel is not None and all(ran <= due for ran, due in figures.values()):
                self.unseen[path] = f"no formula counts {kernel}"
            elif path == head and path not in names:
                self.unseen[path] = f"the loss is fused with {head}"
            elif all(ran - due == outer[kind] for kind, (ran, due) in figures.items()):
                self.unseen[path] = f"{outer.total():,} FLOPs of {path} are outer products, which are not counted"
                self.beside += outer.total()
            else:
                single = {
                    stack[-1]: flops
                    for (stack, kind), flops in real.items()
                    if kind == "forward" and stack and starred(stack[-1]) == path
                }
                self.differences.append(cause(path, figures, single))
        self.total = sum(two["", kind] for kind in KINDS) + self.beside
        self.missed = sum(abs(two[path, kind] - one[path, kind]) for path in self.unseen for kind in KINDS)


def cause(path: str, figures: Mapping[str, tuple[int, int]], single: Mapping[str, int]) -> str:
    """Say why a module's executed work is not what was counted.

    Args:
        path: The path of the module, with ``*`` for indices.
        figures: Kind of work -> (executed, counted) FLOPs.
        single: Executed forward FLOPs of each module that the path stands for.
    """
    usual = min(single.values(), default=0)
    odd = [name for name, flops in single.items() if flops != usual]
    name = odd[0] if len(odd) == 1 else path or "the model"
    ran, due = figures["forward"]
    if ran != due:
        once, whole = (usual, single[name]) if name in single else (due, ran)
        if once and whole > once and not whole % once:
            return f"{name} ran {whole // once} times as often as counted"
        return f"{name} executed {ran:,} FLOPs forward, {due:,} were counted"
    ran, due = figures["backward"]
    if ran != due:
        why = "a gradient ran that was not counted" if ran > due else "a gradient was counted that did not run"
        return f"{name}: {why} ({ran:,} FLOPs backward, {due:,} were counted)"
    ran, due = figures["recomputed"]
    return f"{name} recomputed {ran:,} FLOPs, {due:,} were counted"


def rolled(work: Work, names: Iterable[str], units: Collection[str] = ()) -> Counter[tuple[str, str]]:
    """Add up work by (path, kind), each module with those inside it; paths have ``*`` for indices, that of the model is empty.

    Modules that are not among ``names`` count only if they do work themselves, and those inside of one of ``units`` as that.
    """
    known = set(names)
    found: Counter[tuple[str, str]] = Counter()
    for (stack, kind), flops in work.items():
        stars = [next((one for one in units if inside(path, one)), path) for path in map(starred, stack)]
        for path in {"", *(one for one in stars if one in known), *stars[-1:]}:
            found[path, kind] += flops
    return +found


def inside(path: str, outer: str) -> bool:
    """Whether a module's path lies inside that of another module."""
    return path != outer and (not outer or path.startswith(f"{outer}."))


def sentence(verdicts: Iterable[Verdict], outside: Any = None) -> tuple[str, bool]:
    """The line about a proof, and whether rates may be logged; ``outside`` is what ran outside of watched calls."""
    found = list(verdicts)
    wrong = [text for one in found for text in one.differences]
    wrong += outside.differences() if outside is not None else []
    if wrong:
        more = f"; and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        return f"what ran is not what was counted: {'; '.join(wrong[:3])}{more}", False
    modules, executed = sum(one.modules for one in found), sum(one.total for one in found)
    compared = executed - sum(one.missed for one in found)
    unseen = sorted({why for one in found for why in one.unseen.values()})
    if outside is not None:
        executed, unseen = executed + outside.flops, [*unseen, *outside.notes()]
    share = compared / executed if executed else 1.0
    word = "proven" if share >= ENOUGH and not (outside is not None and outside.hidden) else "compared"
    notes = [*[f"{100 * share:.1f} % of its FLOPs"] * bool(unseen), *unseen, *sorted({n for one in found for n in one.notes})]
    note = f" ({'; '.join(notes)})" if notes else ""
    return f"{word} on the first step{note}: {modules} of {modules} modules, 0 FLOPs apart", True
