"""Lowers a tape to a plan: inlines parameters and inputs, fuses biases and norms, rolls up loops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from symflops.draft.trace.steps import Node, Plan, Ref, Step, Tape

NORMALISING = ("layer_norm", "group_norm", "batch_norm")
LONGEST_ITERATION = 8  # steps
FEWEST_ITERATIONS = 3
BIASED = {"linear": 1, "conv": 2}  # index of the number of biases in a step's words


def steps_of(tape: Tape) -> Plan:
    """Plan that has one step per operator of a tape; module lists are not folded into loops yet."""
    references: dict[int, Ref] = {}
    steps: dict[int, Step] = {}
    readers = tape.readers()
    for node in tape.nodes:
        if node.kind in ("parameter", "input"):
            references[node.id] = Ref(node.kind, name=node.path)
            continue
        operands = tuple(
            constant(node, place) if value is None else references[value] for place, value in enumerate(node.operands)
        )
        step = fused_bias(node, operands, steps, readers) or step_of(node, operands)
        steps[step.id] = step
        references[node.id] = Ref("step", step.id)
    inputs = [node for node in tape.nodes if node.kind == "input"]
    shapes, dtypes = {node.path: node.shape for node in inputs}, {node.path: node.word for node in inputs}
    outputs = tuple(references[value] for value in tape.outputs)
    return Plan(tuple(rerolled(list(steps.values()))), outputs, tape.parameters, shapes, dtypes, tape.tied)


def constant(node: Node, place: int) -> Ref:
    """Constant reference for operand ``place`` of a node, named after the first input that it depends on."""
    data = node.data[place] if place < len(node.data) else ()
    return Ref("constant", name=data[0] if data else "")


def step_of(node: Node, operands: tuple[Ref, ...]) -> Step:
    """Step of a node: a linear, convolution, embedding or norm if it fits one, else a step of its own kind."""
    special = next(filter(None, (lower(node, operands) for lower in (linear, convolution, embedding, norm))), None)
    if special is not None:
        return special
    if node.kind in ("matmul", "conv"):
        operands = (*operands[:2], *(ref for ref in operands[2:] if ref.kind != "constant"))
    return Step(node.id, node.kind, node.path, operands, numbers_of(node), (node.word, ranks_of(node.shapes)), quiet=node.quiet)


def linear(node: Node, operands: tuple[Ref, ...]) -> Step | None:
    """Lower a product with one parameter, and the biases added to it, to a linear; None for other nodes."""
    sides = [operand.kind == "parameter" for operand in operands[:2]]
    if node.kind != "matmul" or sum(sides) != 1:
        return None
    weight, value = operands[:2] if sides[0] else operands[1::-1]
    added = operands[2:]
    bias = parameter_names(added)
    others = tuple(ref for ref in added if ref.kind not in ("parameter", "constant"))
    shapes = node.shapes
    if bias:  # a bias added here and one added just after must look the same
        known = zip(node.shapes, (*operands, None), strict=True)
        shapes = tuple(shape for shape, ref in known if ref not in added[: len(bias)])
    words = ("flipped" if sides[0] else "plain", len(bias), ranks_of(shapes))
    path = node.path or parent(weight.name)
    return Step(node.id, "linear", path, (value, *others), numbers_of(node, shapes), words, (weight.name, *bias), node.quiet)


def convolution(node: Node, operands: tuple[Ref, ...]) -> Step | None:
    """Lower a convolution whose kernel is a parameter; None for other nodes.

    Stride, padding and the other options are appended to the numbers of the step.
    """
    if node.kind != "conv" or operands[1].kind != "parameter":
        return None
    bias = parameter_names(operands[2:])
    options = node.options
    settings = [number for name in ("stride", "padding", "dilation", "output_padding") for number in options[name]]
    numbers = (*numbers_of(node), *settings, options["groups"])
    words = (bool(options["transposed"]), len(options["kernel"]), len(bias), ranks_of(node.shapes))
    weight = operands[1].name
    return Step(node.id, "conv", node.path or parent(weight), operands[:1], numbers, words, (weight, *bias), node.quiet)


def embedding(node: Node, operands: tuple[Ref, ...]) -> Step | None:
    """Lower a lookup in a parameter to an embedding; None for other nodes."""
    if node.kind != "embedding" or operands[0].kind != "parameter":
        return None
    table = operands[0].name
    words = (ranks_of(node.shapes),)
    return Step(node.id, "embedding", parent(table), (constant(node, 0),), numbers_of(node), words, (table,), node.quiet)


def norm(node: Node, operands: tuple[Ref, ...]) -> Step | None:
    """Lower a node that combines one value with a norm's weight (and bias) to a norm; None for others."""
    own = [ref for ref in operands if ref.kind == "parameter"]
    rest = tuple(ref for ref in operands if ref.kind != "parameter")
    paths = {parent(ref.name) for ref in own}
    names = norm_parameters(own, node)
    if node.kind != "join" or len(rest) != 1 or len(paths) != 1 or not names:
        return None
    word = node.word if node.word in NORMALISING else "rms_norm" if len(own) == 1 else "layer_norm"
    return Step(node.id, "norm", paths.pop(), rest, numbers_of(node), (word, ranks_of(node.shapes)), names, node.quiet)


def norm_parameters(own: Sequence[Ref], node: Node) -> tuple[str, ...]:
    """Names of the parameters ``own`` of a norm, weight first; empty if not called weight and bias."""
    last = {ref.name.rpartition(".")[2]: ref.name for ref in own}
    if node.word not in NORMALISING and node.path and any(not ref.name.startswith(node.path) for ref in own):
        return ()
    if len(own) == 1 and node.word in ("add", "cat", "stack"):
        return ()  # such as a learned position embedding, which is added
    known = [last[word] for word in ("weight", "bias") if word in last]
    return tuple(known) if "weight" in last and len(known) == len(last) else ()


def fused_bias(
    node: Node, operands: tuple[Ref, ...], steps: Mapping[int, Step], readers: Mapping[int, list[int]]
) -> Step | None:
    """The linear, conv or norm step before a node, with the bias that the node adds; None for other nodes.

    ``steps`` are the steps by id, ``readers`` the ids of the nodes that read each value.
    """
    values = [ref for ref in operands if ref.kind == "step"]
    names = parameter_names(operands)
    if node.kind != "join" or (len(operands), len(values), len(names)) != (2, 1, 1):
        return None
    step = steps[values[0].id]
    if step.kind not in ("linear", "conv", "norm") or readers[step.id] != [node.id] or len(step.parameters) != 1:
        return None
    if names[0] != step.parameters[0].removesuffix("weight") + "bias":
        return None
    words = list(step.words)
    words[BIASED.get(step.kind, 0)] = 1 if step.kind in BIASED else "layer_norm"
    return replace(step, words=tuple(words), parameters=(*step.parameters, *names))


def parameter_names(refs: Iterable[Ref]) -> tuple[str, ...]:
    """Names of the parameters among ``refs``."""
    return tuple(ref.name for ref in refs if ref.kind == "parameter")


def parent(name: str) -> str:
    """Path of the module that owns the parameter ``name``."""
    return name.rpartition(".")[0]


def numbers_of(node: Node, shapes: Sequence[tuple[int, ...]] | None = None) -> tuple[int, ...]:
    """Index sizes of a node, followed by all dimensions of ``shapes`` (default: the node's own)."""
    return (*node.sizes, *(size for shape in (node.shapes if shapes is None else shapes) for size in shape))


def ranks_of(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The number of dimensions of each shape."""
    return tuple(map(len, shapes))


def rerolled(steps: Sequence[Step]) -> list[Step]:
    """Steps with only the first iteration of each unrolled loop; their ``times`` is the iteration count."""
    found: list[Step] = []
    first_copy: dict[int, int] = {}
    place = 0
    while place < len(steps):
        length, count = repetition(steps, place)
        iterations = [steps[start : start + length] for start in range(place, place + length * count, length)]
        place += length * count
        if count == 1:
            found += iterations[0]
            continue
        copies = list(zip(*iterations, strict=True))
        first_copy |= {copy.id: group[0].id for group in copies for copy in group}
        found += [united(group, {first.id for first in iterations[0]}, first_copy) for group in copies]
    return [replace(step, operands=tuple(operands_of(step, first_copy))) for step in found]


def united(copies: Sequence[Step], inside: set[int], first_copy: Mapping[int, int]) -> Step:
    """Merge the ``copies`` of a step, one per iteration of an unrolled loop, into one step.

    If iterations read different operands, those of later ones are appended, and their number is appended to ``words``.
    ``inside`` are the ids of the first iteration; ``first_copy`` maps the id of each copy to that in the first iteration.
    """
    base = copies[0]
    columns = zip(*(step.operands for step in copies), strict=True)
    sources = [sources_of([renamed(ref, first_copy) for ref in refs], base.id, inside) for refs in columns]
    further = [ref for refs in sources for ref in refs[1:]]
    operands = (*(refs[0] for refs in sources), *further)
    return replace(base, operands=operands, times=len(copies), words=(*base.words, len(further)))


def sources_of(refs: Sequence[Ref], reader: int, inside: set[int]) -> list[Ref]:
    """Distinct references among ``refs``.

    Step ``reader`` reads these as one operand in the iterations of a loop. Constants are dropped unless nothing else remains,
    and so are steps of the iteration (``inside``) from the reader on.
    """
    known = [ref for ref in dict.fromkeys(refs) if ref.kind != "constant"] or list(refs[:1])
    return [ref for ref in known if not (ref.kind == "step" and ref.id in inside and ref.id >= reader)] or known


def operands_of(step: Step, first_copy: Mapping[int, int]) -> list[Ref]:
    """Operands of a step, with copies of later iterations replaced by those of the first (``first_copy``).

    For a join, duplicates and references to the step itself are removed.
    """
    refs = [renamed(ref, first_copy) for ref in step.operands]
    return [ref for ref in dict.fromkeys(refs) if ref.id != step.id] if step.kind == "join" else refs


def renamed(ref: Ref, first_copy: Mapping[int, int]) -> Ref:
    """``ref`` with its step replaced by the copy in the first iteration (``first_copy``), if there is one."""
    return replace(ref, id=first_copy.get(ref.id, ref.id)) if ref.kind == "step" else ref


def repetition(steps: Sequence[Step], place: int) -> tuple[int, int]:
    """(Steps per iteration, iterations) of an unrolled loop that begins at step ``place``; (1, 1) if none does."""
    for length in range(1, LONGEST_ITERATION + 1):
        first = steps[place : place + length]
        if any(step.parameters for step in first) or not any(step.kind in ("matmul", "solve") for step in first):
            continue
        count = 1
        while alike(first, steps[place + count * length : place + (count + 1) * length]):
            count += 1
        if count >= FEWEST_ITERATIONS:
            return length, count
    return 1, 1


def alike(first: Sequence[Step], other: Sequence[Step]) -> bool:
    """Whether two sequences of steps are equal except for their ids and what they read."""
    return len(first) == len(other) and all(
        (a.kind, a.path, a.numbers, a.words, len(a.operands)) == (b.kind, b.path, b.numbers, b.words, len(b.operands))
        for a, b in zip(first, other, strict=True)
    )
