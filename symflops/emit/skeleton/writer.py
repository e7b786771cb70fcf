"""Writes the lines of a skeleton: modules and parameters in ``__init__``, and the steps of ``forward`` in their order."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from sympy import Expr, Integer, Symbol

from symflops.emit.skeleton.expressions import GapError, Known, code, name_of
from symflops.emit.skeleton.liveness import last_uses, made_by
from symflops.emit.skeleton.operators import KINDS, Step
from symflops.formula.identifiers import why_not_identifier
from symflops.ir.graph import Graph
from symflops.ir.nodes import CHOICE, Checkpoint, Loop, Node, Operator, Pop, Push, Select, Value
from symflops.ir.patterns import Path

Lines = list[Any]
"""Lines of code, and pairs (header, lines) of indented blocks."""


@dataclass(frozen=True, slots=True)
class Group:
    """The group of experts that is being written.

    Attributes:
        chosen: The name of the tensor with the expert of each row.
        index: The name of the expert in calls.
        count: The code of the number of experts.
        copies: The code of the number of experts per row.
    """

    chosen: str
    index: str
    count: str
    copies: str


@dataclass
class Writer:
    """Collects the lines of ``__init__`` and ``forward`` while the nodes of a graph are walked."""

    graph: Graph
    known: Known
    body: Lines = field(default_factory=list)
    init: Lines = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    gaps: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    experts: Group | None = None
    now: int = 0

    def __post_init__(self) -> None:
        self.values = {value.id: value for value in self.graph.values}
        self.last, self.places = last_uses(self.graph)
        self.owners: dict[str, int] = {}
        lengths = {length.symbol.name for length in self.graph.lengths}
        letters = {name for name, _ in self.graph.sizes} | {symbol.name for symbol, _ in self.graph.definitions}
        self.taken = lengths | letters | {"self", "batch", "torch", "nn", "functional", "math", *helper_names()}
        self.registered: set[tuple[str, str]] = set()

    def line(self, text: str) -> None:
        """Add a line to ``forward``."""
        self.body.append(text)

    def note(self, text: str) -> None:
        """Say that the next line stands in for something."""
        self.notes.append(text)
        self.line(f"# stands in: {text}")

    def bind(self, value: Value) -> str:
        """Choose a name for a value: its own, unless another value that is still needed has it."""
        base = re.sub(r"\W", "_", value.name).strip("_") or "found"
        base = base if not base[0].isdigit() else f"v_{base}"
        base = f"{base}_" if base in self.taken or (why_not_identifier(base) and base not in ("n", "y")) else base
        number, name = 1, base
        while (owner := self.owners.get(name)) is not None and owner != value.id and self.last.get(owner, -1) > self.now:
            number += 1
            name = f"{base}_{number}"
        self.owners[name] = value.id
        self.names[value.id] = name
        return name

    def joined(self, numbers: Sequence[int]) -> str:
        """The values, one after another along the rows."""
        names = [self.names[number] for number in numbers]
        return names[0] if len(names) == 1 else f"torch.cat([{', '.join(names)}], 1)"

    def put(self, path: Path, made: str, lists: Sequence[tuple[Symbol, Expr]] = ()) -> None:
        """Register a module or parameter at ``path`` in ``__init__``, in all modules of ``lists``."""
        pieces = [part if isinstance(part, str) else f"{{{code(part)}}}" for part in path.parts]
        text = "".join(pieces)
        if (text, made) in self.registered and not path.indices:
            return
        self.registered.add((text, made))
        lines = self.init
        for symbol, count in lists:
            inner: Lines = []
            lines.append((f"for {name_of(symbol)} in range({code(count)}):", inner))
            lines = inner
        prefix = "f" if "{" in text else ""
        lines.append(f'put(self, {prefix}"{text}", {made})')

    def read(self, path: Path) -> str:
        """The code that reads the module or parameter at ``path``."""
        components: list[list[str | Expr]] = [[]]
        for part in path.parts:
            if not isinstance(part, str):
                components[-1].append(part)
                continue
            first, *more = part.split(".")
            components[-1] += [first] * bool(first)
            components += [[one] if one else [] for one in more]
        found = "self"
        for component in (one for one in components if one):
            (first, *rest) = component
            if rest:
                text = "".join(one if isinstance(one, str) else f"{{{code(one)}}}" for one in component)
                found = f"getattr({found}, f{text!r})"
            elif isinstance(first, str):
                found += f".{first}" if first.isidentifier() else f"[{first}]"
            else:
                found += f"[{code(first)}]"
        return found

    def nodes(self, nodes: Sequence[Node]) -> None:
        """Write the nodes of a region in order; a gap in place of one that has no form."""
        for position, node in enumerate(nodes):
            self.now = self.places[id(node)]
            body, init = self.body, self.init
            try:
                self.node(node, nodes[position + 1 :])
            except GapError as gap:
                self.body, self.init = body, init
                self.gap(node, gap)

    def node(self, node: Node, after: Sequence[Node]) -> None:
        """Write one node; ``after`` follow it in its region.

        Raises:
            GapError: it has no form in PyTorch.
        """
        match node:
            case Operator():
                self.operator(node, after)
            case Select():
                chosen = node.then if self.known.number(node.condition.expr) else node.otherwise
                self.same(self.values[node.result], chosen)
            case Loop():
                self.loop(node)
            case Checkpoint():
                for made, result in zip(node.made, node.results, strict=True):
                    self.same(self.values[result], made)
            case Push() if self.known.number(node.guard.expr):
                self.line(f"{node.sequence}.append({self.names[node.value]})")
            case Pop() if self.known.number(node.guard.expr):
                self.line(f"{self.bind(self.values[node.result])} = {node.sequence}.pop()")

    def gap(self, node: Node, gap: GapError) -> None:
        """Write a line that raises ``NotImplementedError`` in place of ``node``."""
        made = dict.fromkeys(made_by(node))
        names = [self.bind(self.values[number]) for number in made]
        place = getattr(node, "path", getattr(node, "sequence", ", ".join(names)))
        text = f"{place}: {gap}".removeprefix(": ")
        self.gaps.append(text)
        self.line(f"raise NotImplementedError({text!r})  # gap: makes {', '.join(names)}")

    def same(self, value: Value, other: int) -> None:
        """Bind ``value`` to the value ``other``."""
        if other in self.names:
            old, new = self.names[other], self.bind(value)
            if old != new:
                self.line(f"{new} = {old}")

    def operator(self, operator: Operator, after: Sequence[Node]) -> None:
        """Write one operator that exists."""
        if not self.known.number(operator.guard.expr) or any(one not in self.names for one in operator.operands):
            return
        outer = self.body
        if not operator.flows and operator.kind != "detach":
            self.body = []
        step = Step(self, operator)
        if operator.kind == "map" and is_routed(self.values[operator.results[0]]) and not operator.fields:
            self.enter(step, after)
        elif operator.role == "combine" and not operator.fields:
            self.leave(step)
        elif operator.kind not in KINDS:
            raise GapError(f"'{operator.kind}' has no plain form")
        else:
            KINDS[operator.kind](step)
        if self.body is not outer:
            outer.append(("with torch.no_grad():", self.body))
            self.body = outer

    def enter(self, step: Step, after: Sequence[Node]) -> None:
        """Begin a group of experts: copies of the rows, and the expert of each."""
        inner, ends = [], (one for one in after if isinstance(one, Operator) and one.role == "combine")
        end = next(ends)
        for node in after:
            if node is end:
                break
            inner += list(node.parameters) if isinstance(node, Operator) else []
        lists = [pair for one in inner for pair in one.lists]
        copies = code(self.values[step.operator.results[0]].stream.parts[0].axes[0][1])
        stacks = [one.shape[0] for one in inner if len(one.shape) == 3]
        count = code(lists[0][1] if lists else stacks[0]) if lists or stacks else copies
        scores = self.names[end.operands[1]] if end.kind == "mul" else "None"
        rows = code(step.operands[0].stream.rows)
        self.experts = Group(f"chosen_{step.operator.id}", name_of(lists[0][0]) if lists else "e", count, copies)
        self.line(f"{self.experts.chosen} = chosen_experts({scores}, {rows}, {count}, {copies})")
        step.assign(f"{step.first}.repeat(1, {copies}, 1)")

    def leave(self, step: Step) -> None:
        """End a group of experts: the sum of each row's copies, weighted by the router."""
        rows, copies = code(step.results[0].stream.rows), self.experts.copies if self.experts else "1"
        weights = f" * fit({step.names[1]}, {rows}, 1)" if len(step.names) > 1 else ""
        step.assign(f"{step.first}.unflatten(1, ({copies}, {rows})).sum(1){weights}")
        self.experts = None

    def loop(self, loop: Loop) -> None:
        """Write a loop over modules, with a branch for each of its bodies that runs in some iteration."""
        turns = self.turns(loop)
        count = len(set().union(*turns))
        states = self.states(loop)
        outer, init = self.body, self.init
        body: Lines = []
        made: Lines = []
        for place, (_, nodes) in enumerate(loop.classes):
            if not turns[place] and not loop.shared:
                continue
            whole = len(turns[place]) == count
            self.body, self.init = [], []
            self.owners.update(
                (self.names[one.argument], one.argument) for one in loop.carries[place] if one.argument in self.names
            )
            self.nodes(nodes)
            self.now = self.places[id(nodes)]
            self.carried(loop, place, states)
            test = f"if {name_of(loop.index)} in {tuple(turns[place])}:"
            body += self.body if whole else [(test, self.body)] if self.body else []
            made += self.init if whole else [(test, self.init)] if self.init else []
        self.body, self.init = outer, init
        first, last = code(loop.offset), code(loop.offset + loop.count)
        head = f"for {name_of(loop.index)} in range({last if first == '0' else f'{first}, {last}'}):"
        self.body += [(head, body)] if body else []
        self.init += (made if loop.shared else [(head, made)]) if made else []
        self.now = self.places[id(loop.classes)]
        for result, name in states.items():
            self.names[result], self.owners[name] = name, result

    def turns(self, loop: Loop) -> list[list[int]]:
        """The indices of the iterations of each body of ``loop``; one index alone if a length decides how many there are.

        Raises:
            GapError: a length decides, and there are several bodies.
        """
        if not self.known.resolved(loop.count).is_Integer and len(loop.classes) == 1:
            return [[0]]
        start = self.known.number(loop.offset)
        indices = range(start, start + self.known.number(loop.count))
        return [
            [index for index in indices if self.known.number(truth.expr.xreplace({loop.index: Integer(index)}))]
            for truth, _ in loop.classes
        ]

    def states(self, loop: Loop) -> dict[int, str]:
        """Name the values that iterations pass on; returns value after the loop -> name."""
        found: dict[int, str] = {}
        for carry in (carry for carries in loop.carries for carry in carries):
            if carry.initial not in self.names:
                continue
            if carry.result not in found:
                old, value = self.names[carry.initial], self.values[carry.result]
                free = self.last.get(carry.initial, -1) <= self.now and old not in found.values()
                name = old if free else self.bind(value)
                found[carry.result] = name
                if name != old:
                    self.line(f"{name} = {old}")
            self.names[carry.argument] = name = found[carry.result]
            self.owners[name] = carry.argument
        return found

    def carried(self, loop: Loop, place: int, names: dict[int, str]) -> None:
        """End the body of a loop: bind the names of passed values to those that the iteration made."""
        pairs = [
            (names[one.result], self.names[one.final])
            for one in loop.carries[place]
            if one.result in names and one.final in self.names
        ]
        pairs = [(new, old) for new, old in pairs if new != old]
        if pairs:
            self.line(f"{', '.join(new for new, _ in pairs)} = {', '.join(old for _, old in pairs)}")


def is_routed(value: Value) -> bool:
    """Whether the rows of ``value`` are those of experts."""
    axes = value.stream.parts[0].axes
    return bool(axes) and axes[0][0] == CHOICE


def helper_names() -> dict[str, str]:
    """Name -> source of the functions that a skeleton may call."""
    text = files("symflops.emit.skeleton").joinpath("helpers.py.txt").read_text("utf-8")
    return {
        node.name: str(ast.get_source_segment(text, node))
        for node in ast.parse(text).body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    }


def used_helpers(text: str) -> Iterator[str]:
    """The sources of those helpers that ``text`` calls, and of those that these call, in order."""
    helpers = helper_names()
    needed: set[str] = set()
    waiting = [text]
    while waiting:
        words = set(re.findall(r"\w+", waiting.pop()))
        new = [name for name in helpers if name in words and name not in needed]
        needed.update(new)
        waiting += [helpers[name] for name in new]
    return (source for name, source in helpers.items() if name in needed)
