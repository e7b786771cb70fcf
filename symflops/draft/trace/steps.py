"""The data of a trace: its subject, the tape of a run, the plan of a module: steps, loops, branches, references, and queries.

The subject of a draft is a class, its config, and the arguments of a call.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from symflops.verify.classes import built, complete, config_class_of, referenced, signature_of
from symflops.verify.live import OPTIONS
from symflops.verify.running import described, needed


@dataclass(frozen=True, slots=True)
class Subject:
    """A module class with a config and arguments.

    Attributes:
        reference: The class, as ``package.module:Class`` or ``path/to/file.py:Class``.
        config: Field -> value, as given.
        inputs: Argument of the call -> its description: ``{shape: [2, 24], dtype: float32}`` stands for a tensor of this
            shape, ``{value: ...}`` for one with these values.
        options: Further arguments of the class.
        device: The device of PyTorch that the module is built on.
    """

    reference: str
    config: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    device: str = "meta"

    @property
    def package(self) -> str:
        """Python module or file that defines the class."""
        return self.reference.partition(":")[0]

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.reference.rpartition(":")[2]

    def having(self, config: Mapping[str, Any], inputs: Mapping[str, Any]) -> Subject:
        """Copy of this subject with another config and other arguments."""
        return replace(self, config=config, inputs=inputs)

    def build(self) -> Any:
        """Build the module, in evaluation mode."""
        torch = needed("torch")
        torch.manual_seed(0)
        kind = referenced(self.reference)
        given = {**copy.deepcopy(dict(self.config)), **OPTIONS.get(self.package.partition(".")[0], {}), **self.options}
        with torch.device(self.device):
            return built(kind, given).eval()

    def arguments(self) -> dict[str, Any]:
        """Argument of the call -> its value, with tensors built from their descriptions."""
        return {name: described(value, self.device) for name, value in self.inputs.items()}


def full_config(model: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Field -> value for all fields of a built module's config: those ``given``, and the class's defaults."""
    config: Any = getattr(model, "config", None)
    if hasattr(config, "to_dict"):
        return {**dict(given), **config.to_dict()}
    return {**(dict(config) if isinstance(config, Mapping) else {}), **complete(type(model), given)}


def completed(kind: Any, config: Mapping[str, Any]) -> dict[str, Any]:
    """``config`` plus, if the class ``kind`` has no config class, the defaults in its signature."""
    return {**({} if config_class_of(kind) else signature_of(kind)), **config}


Value = int | None
COUNTED = ("matmul", "conv")


@dataclass(slots=True)
class Node:
    """One value of the graph: an input, a parameter, an embedding lookup, a contraction, or a join.

    Attributes:
        id: Its position on the tape.
        kind: ``input``, ``parameter``, ``embedding``, ``matmul``, ``conv``, ``solve`` or ``join``.
        path: The path of the module that ran the operator; the name of a parameter or input.
        operands: Ids of the nodes that it reads, None for a constant. A contraction's two factors come first, then the
            values added to its result.
        shapes: The shapes of the operands, then that of the result.
        sizes: The index sizes of a contraction: batch, rows, inner, columns of a product; batch, channels out, channels in,
            kernel and output (input of a transposed one) of a convolution.
        word: The name of the operator; the dtype of an input.
        data: For each operand, the names of the inputs that it was computed from.
        options: Stride, padding and other options of a convolution.
        quiet: Whether it ran without gradients.
        times: Number of executions.
    """

    id: int
    kind: str
    path: str
    operands: tuple[Value, ...]
    shapes: tuple[tuple[int, ...], ...] = ()
    sizes: tuple[int, ...] = ()
    word: str = ""
    data: tuple[tuple[str, ...], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    quiet: bool = False
    times: int = 1

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the value."""
        return self.shapes[-1] if self.shapes else ()

    @property
    def work(self) -> int:
        """Multiply-adds of the node's forward pass; 0 for a linear solve, which no FLOP counter counts."""
        return self.times * prod(self.sizes) if self.kind in COUNTED else 0


@dataclass(slots=True)
class Tape:
    """A recorded run of a module.

    Attributes:
        nodes: All nodes in execution order.
        outputs: The ids of the nodes that the loss sums.
        parameters: Parameter -> shape.
        frozen: The parameters that require no gradient.
        by_value: Pairs (operator, device) for operators whose output shape or result depends on the values of a tensor on
            this device.
        tied: Alias of a shared parameter -> its first name.
    """

    nodes: list[Node]
    outputs: tuple[int, ...]
    parameters: dict[str, tuple[int, ...]]
    frozen: frozenset[str]
    by_value: frozenset[tuple[str, str]] = frozenset()
    tied: Mapping[str, str] = field(default_factory=dict)

    def readers(self) -> dict[int, list[int]]:
        """Id of a node -> ids of the nodes that read its value, in execution order."""
        found: dict[int, list[int]] = {node.id: [] for node in self.nodes}
        for node in self.nodes:
            for value in node.operands:
                if value is not None and node.id not in found[value][-1:]:
                    found[value].append(node.id)
        return found


@dataclass(frozen=True, slots=True)
class Ref:
    """Reference to what a step reads.

    Attributes:
        kind: ``step``, ``carried`` (a loop-carried value), ``parameter``, ``input`` or ``constant``.
        id: The id of the step, for the first two kinds.
        name: The name of the parameter or input.
    """

    kind: str
    id: int = -1
    name: str = ""


CONSTANT = Ref("constant")


@dataclass(frozen=True, slots=True)
class Step:
    """One operator of a traced forward pass.

    Attributes:
        id: The id of its value, unique in the plan.
        kind: ``linear``, ``conv``, ``matmul``, ``solve``, ``embedding``, ``norm`` or ``join``.
        path: The path of the module that ran the operator.
        operands: The values that it reads, without the parameters below.
        numbers: Index sizes, dimensions and options, which may differ between configs of one structure.
        words: What may not: the name of the operator, and the ranks of the shapes in ``numbers``.
        parameters: The names of the parameters that belong to the operator.
        quiet: Whether the operator ran without gradients.
        times: How many times the operator runs.
    """

    id: int
    kind: str
    path: str
    operands: tuple[Ref, ...]
    numbers: tuple[int, ...]
    words: tuple[Any, ...] = ()
    parameters: tuple[str, ...] = ()
    quiet: bool = False
    times: int = 1


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop over items of a module list with equal bodies.

    Attributes:
        prefix: The path of the module list.
        start: The index of the first item.
        count: The number of items.
        body: The steps, loops and branches of the first item.
        carried: Loop-carried values, as pairs: what the first item reads, and the id of the step in the body whose value
            every later item reads instead.
        others: Paths of further lists whose modules of the same index run in the body.
        shared: Whether the same modules run in every iteration.
    """

    prefix: str
    start: int
    count: int
    body: tuple[Any, ...]
    carried: tuple[tuple[Ref, int], ...] = ()
    others: tuple[str, ...] = ()
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """Value after a branch, with the given id, like a phi node: ``sources`` has one reference per case."""

    id: int
    sources: tuple[Ref, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """A part of a loop's body that has alternatives (``cases``), one of which runs for each item.

    Attributes:
        cases: The steps of each case.
        items: For each case, the index of one item that runs it: paths in the case's steps are those of this item.
        chosen: For each item of the loop, the number of its case.
        choices: The values of the branch that are read after it.
    """

    cases: tuple[tuple[Any, ...], ...]
    items: tuple[int, ...]
    chosen: tuple[int, ...]
    choices: tuple[Choice, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """A traced module as steps and loops.

    Attributes:
        entries: The steps and loops, in execution order.
        outputs: References to the values that the module returns.
        parameters: Parameter name -> shape.
        inputs: Input name -> shape.
        words: Input name -> dtype.
        tied: Alias of a shared parameter -> first name of the parameter.
    """

    entries: tuple[Any, ...]
    outputs: tuple[Ref, ...]
    parameters: Mapping[str, tuple[int, ...]]
    inputs: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    tied: Mapping[str, str] = field(default_factory=dict)


def walk(entries: Iterable[Any], at: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Pairs (position, entry), depth-first: the steps in a loop or branch follow the loop or branch.

    An entry is a step, loop or branch. Its position is the path of indices to it, which begins with ``at``.
    """
    for place, one in enumerate(entries):
        yield (*at, place), one
        if isinstance(one, Loop):
            yield from walk(one.body, (*at, place))
        elif isinstance(one, Branch):
            for case, inside in enumerate(one.cases):
                yield from walk(inside, (*at, place, case))


def steps_in(entries: Iterable[Any]) -> list[Step]:
    """All steps in execution order, including those nested in loops and branches."""
    return [one for _, one in walk(entries) if isinstance(one, Step)]


def operands_of(entry: Any) -> Iterable[Ref]:
    """References that a step, loop or branch reads itself: operands, initial values or sources of choices."""
    if isinstance(entry, Loop):
        return [init for init, _ in entry.carried]
    if isinstance(entry, Branch):
        return [ref for choice in entry.choices for ref in choice.sources]
    return tuple(entry.operands)


def refs_of(entries: Iterable[Any]) -> list[Ref]:
    """References that steps, loops and branches read, with those of nested ones, in execution order."""
    return [ref for _, one in walk(entries) for ref in operands_of(one)]


def readers_of(entries: Sequence[Any], later: Sequence[Ref]) -> dict[int, list[int]]:
    """Id of a value -> ids of the steps among ``entries`` that read it, in execution order.

    A reader in a loop or branch, or among ``later`` (what is read after ``entries``), counts as -1.
    """
    found: dict[int, list[int]] = {}
    for entry in entries:
        for ref in dict.fromkeys(refs_of([entry])):
            found.setdefault(ref.id, []).append(entry.id if isinstance(entry, Step) else -1)
    for ref in later:
        found.setdefault(ref.id, []).append(-1)
    return found


def values_in(entries: Sequence[Any]) -> set[int]:
    """Ids of the values that entries compute: those of steps, and those of branches (choices)."""
    chosen = {choice.id for entry in entries if isinstance(entry, Branch) for choice in entry.choices}
    return chosen | {step.id for step in steps_in(entries)}


def parameters_of(step: Step) -> tuple[str, ...]:
    """Names of the parameters that a step reads."""
    return (*step.parameters, *(ref.name for ref in step.operands if ref.kind == "parameter"))


def names_read(entries: Iterable[Any]) -> Iterator[str]:
    """Names of the parameters that steps and loops read, with loops expanded to all items."""
    for entry in entries:
        if isinstance(entry, Step):
            yield from parameters_of(entry)
        elif isinstance(entry, Loop):
            yield from (name for part in entry.body for name in names_in_loop(part, entry))


def names_in_loop(part: Any, loop: Loop) -> Iterator[str]:
    """Names of the parameters that one part of a loop's body reads, in every item that executes it."""
    if isinstance(part, Branch):
        for number, (case, item) in enumerate(zip(part.cases, part.items, strict=True)):
            places = [loop.start + place for place, one in enumerate(part.chosen) if one == number]
            yield from of_items(list(names_read(case)), loop, item, places)
    else:
        every = range(loop.start, loop.start + loop.count)
        yield from of_items(list(names_read([part])), loop, loop.start, [] if loop.shared else every)


def of_items(names: list[str], loop: Loop, item: int, places: Sequence[int]) -> Iterator[str]:
    """``names``, parameters of the loop item with index ``item``, then their counterparts in other items.

    ``places`` are the indices of the other items.
    """
    yield from names
    for prefix in (loop.prefix, *loop.others):
        first = f"{prefix}.{item}."
        yield from (f"{prefix}.{at}.{name[len(first) :]}" for at in places for name in names if name.startswith(first))
