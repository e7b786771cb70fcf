"""Names what moves: sizes after the fields of a config, lengths after the axes of inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from symflops.draft.fit.fit import Fitter
from symflops.draft.fit.formula import Vector
from symflops.draft.fit.symbols import Names, fresh, value_at
from symflops.draft.sample.chunks import FEWEST_IN_CHUNK
from symflops.draft.sample.family import Family, Sample
from symflops.draft.trace.reads import steps_in
from symflops.draft.vary.variables import Slot, Variable, is_whole

LETTERS = (
    ("head_dim", "d"), ("d_kv", "d"), ("vocab", "V"), ("key_value_heads", "G"), ("kv_heads", "G"), ("heads", "H"),
    ("n_head", "H"), ("layers", "L"), ("depth", "L"), ("n_layer", "L"), ("blocks", "L"), ("moe_intermediate", "M"),
    ("intermediate", "F"), ("ffn", "F"), ("d_ff", "F"), ("experts_per_tok", "k"), ("top_k", "k"), ("experts", "E"),
    ("hidden_size", "D"), ("d_model", "D"), ("n_embd", "D"), ("embed_dim", "D"), ("dim", "D"), ("in_channels", "c"),
    ("out_channels", "o"), ("channels", "c"), ("patch", "p"), ("image_size", "R"), ("max_position", "X"), ("positions", "X"),
    ("rank", "r"), ("kernel", "K"), ("stride", "s"), ("width", "D"), ("words", "V"), ("state", "N"),
    ("groups", "g"), ("text", "J"),
)  # fmt: skip
LENGTHS = ("x", "y", "z", "u", "v", "t")
SMALLEST_CONSTANT = 4


def names_of(family: Family, variables: Sequence[Variable], batch: Variable | None) -> Names:
    """Symbols for everything that moves in the samples; ``batch`` is the variable of the number of items."""
    names = Names(batch=(1,) * len(family.samples))
    if batch:
        names.batch = tuple(batch.lead.within(sample.state) for sample in family.samples)
    equal: dict[Vector, str] = {}
    for number, slot in named_slots(variables, batch):
        vector = tuple(now(sample, slot) for sample in family.samples)
        if len(set(vector)) == 1:
            continue
        moving = [place for place, sample in enumerate(family.samples) if sample.variable == number]
        if vector in equal:
            name = equal[vector]
            names.solo[name].extend(place for place in moving if place not in names.solo[name])
        elif slot.of_config or slot in [variable.lead for variable in variables] or not is_made_of(names, vector):
            name = letter(names, slot) if slot.of_config else length(names, slot, family)
            equal[vector] = name
            names.vectors[name], names.solo[name] = vector, moving
            if slot.of_config:
                names.sizes.setdefault(name.partition("[")[0], slot.key if "[" not in name else slot.key[:-1])
            else:
                names.lengths[name] = slot
        else:
            continue
        if not slot.of_config:
            names.dims[slot] = name
    add_dependencies(names, family.samples)
    return names


def named_slots(variables: Sequence[Variable], batch: Variable | None) -> Iterator[tuple[int, Slot]]:
    """The slots to name, each with the number of its variable: those of the config first, and leads before others."""
    leads = {variable.lead for variable in variables}
    skipped = set(batch.slots) if batch else set()
    slots = [(number, slot) for number, variable in enumerate(variables) for slot in variable.named]
    for number, slot in sorted(slots, key=lambda one: (not one[1].of_config, one[1] not in leads, len(one[1].key))):
        if slot not in skipped and slot.kind != "length" and (slot.of_config or slot.kind == "dimension"):
            yield number, slot


def add_dependencies(names: Names, samples: Sequence[Sample]) -> None:
    """Let a symbol depend on every variable that changes it."""
    for place, sample in enumerate(samples):
        for name, vector in names.vectors.items():
            if sample.variable >= 0 and vector[place] != vector[0] and place not in names.solo[name]:
                names.solo[name].append(place)


def is_made_of(names: Names, vector: Vector) -> bool:
    """Whether a dimension that only follows others is a formula of their names, as the tokens of a grid are of its sides."""
    fitter = Fitter(names.vectors, {})
    for name in [name for name in names.lengths if len(set(names.vectors[name])) > 1]:
        for other, sizes in names.vectors.items():
            if other not in names.lengths:
                fitter.quotients[f"({name}//{other})"] = tuple(a // b for a, b in zip(names.vectors[name], sizes, strict=True))
    return fitter.formula(vector) is not None


def now(sample: Sample, slot: Slot) -> int:
    """The value of a slot in a sample: from the complete config if it is there, else from the state."""
    known = value_at(sample.config, slot.key) if slot.of_config else None
    return known if is_whole(known) else slot.within(sample.state)


def letter(names: Names, slot: Slot) -> str:
    """A letter for a field of the config; an item of a list is the list's letter with an index."""
    index = f"[{slot.key[-1]}]" if slot.of_list else ""
    key = slot.key[:-1] if index else slot.key
    for name, known in names.sizes.items():
        if known == key:
            return name + index
    text = str(key[-1]).lower()
    short = "".join(word[0] for word in text.split("_") if word) if not index else text.split("_")[0][:5]
    found = next((letter for word, letter in LETTERS if word in text), short)
    return fresh(found or "a", names.taken) + index


def length(names: Names, slot: Slot, family: Family) -> str:
    """A name for a length: ``h`` and ``w`` of pictures, ``f`` before them in a video, else the next of x, y, z."""
    place = int(slot.key[-1])
    rank = len(family.samples[0].plan.inputs.get(".".join(map(str, slot.key[:-2])), ()))
    if rank in (4, 5) and place >= 2:
        return fresh("fhw"[place - rank], names.taken)
    return fresh(next((name for name in LENGTHS if name not in names.taken), "x"), names.taken)


def fitter_of(names: Names, family: Family) -> Fitter:
    """A fitter with the symbols of a draft; dimensions of inputs that never move are constants that may be divided."""
    fixed: set[int] = set()
    for name in family.samples[0].plan.inputs:
        shapes = [sample.plan.inputs.get(name, ()) for sample in family.samples]
        fixed |= {sizes[0] for sizes in zip(*shapes, strict=False) if len(set(sizes)) == 1 and sizes[0] >= SMALLEST_CONSTANT}
    return Fitter(names.vectors, names.solo, constants=tuple(sorted(fixed)), chunks=chunks_of(family))


def chunks_of(family: Family) -> tuple[int, ...]:
    """The sides of square products of two values that never move, as scores within a chunk of tokens."""
    sides = set()
    for step in steps_in(family.samples[0].plan.entries):
        if step.kind == "matmul" and step.numbers[1] == step.numbers[3] >= FEWEST_IN_CHUNK:
            columns = (family.numbers(step, lambda one: one.numbers[1]), family.numbers(step, lambda one: one.numbers[3]))
            if len(set(zip(*columns, strict=True))) == 1:
                sides.add(step.numbers[1])
    return tuple(sorted(sides))
