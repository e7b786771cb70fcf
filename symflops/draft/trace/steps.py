"""A tape as steps: parameters and inputs are no steps but what a step reads, biases and norms are part of one step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from symflops.draft.trace.tape import Node, Tape

NORMALISING = ("layer_norm", "group_norm", "batch_norm")
LONGEST_TURN = 8


@dataclass(frozen=True, slots=True)
class Ref:
    """What a step reads: a step's value, what is carried into a turn, a parameter or input by name, or a constant."""

    kind: str
    id: int = -1
    name: str = ""


CONSTANT = Ref("constant")


@dataclass(frozen=True, slots=True)
class Step:
    """One operator of a draft; ``numbers`` are all that may vary, ``words`` all that may not."""

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
    """Items of a module list with equal bodies: the first one's steps, how many there are, and what one hands to the next.

    ``carried`` are pairs: what the first item reads, and the step of the body whose value the next item reads there. ``others``
    are lists beside this one whose modules of the same index run in the body. A ``shared`` loop runs the same modules every
    turn.
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
    """One value of a loop's body that comes from another place in each case of a branch."""

    id: int
    sources: tuple[Ref, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """A place of a loop's body at which items differ: the steps of each case, and which case each item of the loop has.

    ``items`` are indices of items that have the cases: the paths of a case's steps are theirs.
    """

    cases: tuple[tuple[Any, ...], ...]
    items: tuple[int, ...]
    chosen: tuple[int, ...]
    choices: tuple[Choice, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """A module as steps and loops, its outputs, and the shapes of its parameters."""

    entries: tuple[Any, ...]
    outputs: tuple[Ref, ...]
    parameters: Mapping[str, tuple[int, ...]]
    inputs: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)


def steps_of(tape: Tape) -> Plan:
    """The steps of a tape, flat."""
    references: dict[int, Ref] = {}
    steps: list[Step] = []
    single = {value: readers[0] for value, readers in tape.readers().items() if len(readers) == 1}
    by_id: dict[int, int] = {}
    for node in tape.nodes:
        if node.kind == "parameter":
            references[node.id] = Ref("parameter", name=node.path)
            continue
        if node.kind == "input":
            references[node.id] = Ref("input", name=node.path)
            continue
        operands = tuple(operand_of(node, place, references) for place in range(len(node.operands)))
        fused = biased(node, operands, steps, by_id, single)
        if fused is not None:
            steps[fused[0]] = fused[1]
            references[node.id] = Ref("step", fused[1].id)
            continue
        step = step_of(node, operands)
        by_id[node.id] = len(steps)
        steps.append(step)
        references[node.id] = Ref("step", node.id)
    inputs = {node.path: node.shape for node in tape.nodes if node.kind == "input"}
    words = {node.path: node.word for node in tape.nodes if node.kind == "input"}
    outputs = tuple(references[value] for value in tape.outputs)
    return Plan(tuple(merged(steps, outputs)), outputs, tape.parameters, inputs, words)


def operand_of(node: Node, place: int, references: Mapping[int, Ref]) -> Ref:
    """What stands at one place of a node."""
    value = node.operands[place]
    if value is not None:
        return references[value]
    data = node.data[place] if place < len(node.data) else ()
    return Ref("constant", name=data[0] if data else "")


def step_of(node: Node, operands: tuple[Ref, ...]) -> Step:
    """A node as a step."""
    shapes = tuple(size for shape in node.shapes for size in shape)
    ranks = tuple(len(shape) for shape in node.shapes)
    common: dict[str, Any] = {"quiet": node.quiet}
    kind, numbers = node.kind, (*node.sizes, *shapes)
    words: tuple[Any, ...] = (node.word, ranks)
    if kind in ("matmul", "conv"):
        added = operands[2:]
        sides = [operand.kind == "parameter" for operand in operands[:2]]
        if kind == "matmul" and sides in ([True, False], [False, True]):
            kind = "linear"
            weight = operands[0 if sides[0] else 1]
            flipped = sides[0]
            bias = tuple(ref.name for ref in added if ref.kind == "parameter")
            other = tuple(ref for ref in added if ref.kind not in ("parameter", "constant"))
            if bias:  # whether it is added here or just after is not for a reader to know
                kept = [
                    shape for shape, ref in zip(node.shapes, (*operands, None), strict=True) if ref not in added[: len(bias)]
                ]
                numbers, ranks = (*node.sizes, *(size for shape in kept for size in shape)), tuple(map(len, kept))
            return Step(
                node.id, kind, node.path or weight.name.rpartition(".")[0], (operands[1 if flipped else 0], *other), numbers,
                ("flipped" if flipped else "plain", len(bias), ranks), (weight.name, *bias), **common,
            )  # fmt: skip
        if kind == "conv" and operands[1].kind == "parameter":
            bias = tuple(ref.name for ref in added if ref.kind == "parameter")
            options = node.options
            numbers = (
                *numbers,
                *options["stride"],
                *options["padding"],
                *options["dilation"],
                *options["output_padding"],
                options["groups"],
            )
            words = (bool(options["transposed"]), len(options["kernel"]), len(bias), ranks)
            path = node.path or operands[1].name.rpartition(".")[0]
            return Step(node.id, kind, path, operands[:1], numbers, words, (operands[1].name, *bias), **common)
        added = tuple(ref for ref in added if ref.kind != "constant")
        return Step(node.id, kind, node.path, (*operands[:2], *added), numbers, (node.word, ranks), **common)
    if kind == "embedding" and operands[0].kind == "parameter":
        source = Ref("constant", name=node.data[0][0] if node.data[0] else "")
        path = operands[0].name.rpartition(".")[0]
        return Step(node.id, kind, path, (source,), shapes, (ranks,), (operands[0].name,), **common)
    if kind == "join":
        own = [ref for ref in operands if ref.kind == "parameter"]
        rest = [ref for ref in operands if ref.kind != "parameter"]
        places = {ref.name.rpartition(".")[0] for ref in own}
        if own and len(rest) == 1 and len(places) == 1 and len(own) <= 2 and (names := normed(own, node)):
            word = node.word if node.word in NORMALISING else "rms_norm" if len(own) == 1 else "layer_norm"
            return Step(node.id, "norm", next(iter(places)), tuple(rest), shapes, (word, ranks), names, **common)
    return Step(node.id, kind, node.path, operands, numbers, words, **common)


def normed(own: list[Ref], node: Node) -> tuple[str, ...]:
    """The parameters of a normalisation, weight first; nothing where they are called otherwise."""
    last = {ref.name.rpartition(".")[2]: ref.name for ref in own}
    if node.word not in NORMALISING and node.path and any(not ref.name.startswith(node.path) for ref in own):
        return ()
    if set(last) <= {"weight", "bias"} and "weight" in last:
        return (last["weight"], *([last["bias"]] if "bias" in last else []))
    return ()


def biased(
    node: Node, operands: tuple[Ref, ...], steps: list[Step], by_id: Mapping[int, int], single: Mapping[int, int]
) -> tuple[int, Step] | None:
    """A join that only adds a bias to the linear or the norm before it, as a part of that."""
    if node.kind != "join" or len(operands) != 2:
        return None
    values = [ref for ref in operands if ref.kind == "step"]
    own = [ref for ref in operands if ref.kind == "parameter"]
    if len(values) != 1 or len(own) != 1 or single.get(values[0].id) != node.id or values[0].id not in by_id:
        return None
    place = by_id[values[0].id]
    step = steps[place]
    same = len(step.parameters) == 1 and own[0].name == step.parameters[0].removesuffix("weight") + "bias"
    if not same or step.kind not in ("linear", "conv", "norm"):
        return None
    if step.kind == "norm":
        return place, replace(step, words=("layer_norm", *step.words[1:]), parameters=(*step.parameters, own[0].name))
    words = tuple(1 if position == (1 if step.kind == "linear" else 2) else word for position, word in enumerate(step.words))
    return place, replace(step, words=words, parameters=(*step.parameters, own[0].name))


def merged(steps: list[Step], outputs: tuple[Ref, ...]) -> list[Step]:
    """Turns of a loop that reads no parameters, as over time: one turn that runs several times."""
    found: list[Step] = []
    renamed: dict[int, int] = {}
    place = 0
    while place < len(steps):
        length, turns = longest_run(steps, place)
        if turns > 1:
            first = steps[place : place + length]
            sides: list[dict[Ref, None]] = [{} for _ in range(length)]
            for turn in range(turns):
                for offset in range(length):
                    step = steps[place + turn * length + offset]
                    renamed[step.id] = first[offset].id
            inside = {step.id for step in first}
            made = []
            for offset in range(length):
                base = first[offset]
                operands = []
                for position, _ in enumerate(base.operands):
                    seen: dict[Ref, None] = {}
                    for turn in range(turns):
                        ref = steps[place + turn * length + offset].operands[position]
                        ref = replace(ref, id=renamed.get(ref.id, ref.id)) if ref.kind == "step" else ref
                        if ref.kind != "constant" or not seen:
                            seen[ref] = None
                    kept = [ref for ref in seen if ref.kind != "constant"] or list(seen)
                    earlier = [ref for ref in kept if not (ref.kind == "step" and ref.id in inside and ref.id >= base.id)]
                    operands.append(earlier or kept)
                made.append((base, operands))
            for base, operands in made:
                further = tuple(ref for refs in operands for ref in refs[1:])
                found.append(
                    replace(
                        base,
                        operands=(*(refs[0] for refs in operands), *further),
                        times=turns,
                        words=(*base.words, len(further)),
                    )
                )
            del sides
            place += length * turns
        else:
            found.append(steps[place])
            place += 1
    return [replace(step, operands=tuple(dict_first(step, renamed))) for step in found]


def dict_first(step: Step, renamed: Mapping[int, int]) -> list[Ref]:
    """The operands of a step with merged turns under the name of their first."""
    refs = [replace(ref, id=renamed.get(ref.id, ref.id)) if ref.kind == "step" else ref for ref in step.operands]
    if step.kind == "join":
        refs = [ref for ref in dict.fromkeys(refs) if ref.id != step.id]
    return refs


def longest_run(steps: list[Step], place: int) -> tuple[int, int]:
    """The length of one turn and the number of turns from here on."""

    def key(step: Step) -> Any:
        return (step.kind, step.path, step.numbers, step.words, len(step.operands))

    for length in range(1, LONGEST_TURN + 1):
        first = steps[place : place + length]
        if any(step.parameters for step in first) or not any(step.kind in ("matmul", "solve") for step in first):
            continue
        turns = 1
        while True:
            here = steps[place + turns * length : place + (turns + 1) * length]
            if len(here) < length or any(key(a) != key(b) for a, b in zip(first, here, strict=True)):
                break
            turns += 1
        if turns > 2:
            return length, turns
    return 1, 1
