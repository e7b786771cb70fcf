"""Names for what moves: sizes after the fields of a config, lengths after the axes of inputs, streams after the inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from symflops.draft.fit.fit import Fitter
from symflops.draft.fit.formula import Vector
from symflops.draft.sample.family import Family, Sample
from symflops.draft.trace.reads import steps_in
from symflops.draft.vary.variables import Slot
from symflops.draft.vary.vary import Variable

LETTERS = (
    ("head_dim", "d"), ("d_kv", "d"), ("vocab", "V"), ("key_value_heads", "G"), ("kv_heads", "G"), ("heads", "H"),
    ("n_head", "H"), ("layers", "L"), ("depth", "L"), ("n_layer", "L"), ("blocks", "L"), ("moe_intermediate", "M"),
    ("intermediate", "F"), ("ffn", "F"), ("d_ff", "F"), ("experts_per_tok", "k"), ("top_k", "k"), ("experts", "E"),
    ("hidden_size", "D"), ("d_model", "D"), ("n_embd", "D"), ("embed_dim", "D"), ("dim", "D"), ("in_channels", "c"),
    ("out_channels", "o"), ("channels", "c"), ("patch", "p"), ("image_size", "R"), ("max_position", "X"), ("positions", "X"),
    ("rank", "r"), ("kernel", "K"), ("stride", "s"), ("width", "D"), ("words", "V"), ("state", "N"),
    ("groups", "g"), ("text", "J"),
)  # fmt: skip
FEWEST_IN_CHUNK = 16
PLAIN = ("x", "y", "z", "u", "v", "t")
RESERVED = {
    "m",
    "tokens",
    "steps",
    "rows",
    "columns",
    "frames",
    "y",
    "n",
    "in",
    "is",
    "or",
    "if",
    "and",
    "not",
    "for",
    "as",
    "on",
    "off",
    "no",
    "yes",
    "true",
    "false",
    "null",
}


@dataclass(slots=True)
class Names:
    """The symbols of a draft: vectors over the samples, and where each is read from.

    ``sizes`` are letter -> key of the config, ``lengths`` are name -> slot, ``batch`` is the vector of the number of items.
    ``listed`` are lists that conditions read, true where they may be absent; ``filled`` is what a class takes for a field that
    nobody gives.
    """

    sizes: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    lengths: dict[str, Slot] = field(default_factory=dict)
    dims: dict[Slot, str] = field(default_factory=dict)
    vectors: dict[str, Vector] = field(default_factory=dict)
    solo: dict[str, list[int]] = field(default_factory=dict)
    batch: Vector = ()
    listed: dict[str, bool] = field(default_factory=dict)
    filled: dict[str, str] = field(default_factory=dict)


def value_at(config: Mapping[str, Any], key: Sequence[Any]) -> Any:
    """What stands at a place of a config, None where nothing does."""
    found: Any = config
    for part in key:
        if isinstance(found, Mapping):
            found = found.get(part)
        elif isinstance(found, (list, tuple)) and isinstance(part, int) and part < len(found):
            found = found[part]
        else:
            return None
    return found


def names_of(family: Family, variables: Sequence[Variable], batch: Variable | None) -> Names:
    """Symbols for everything that moves in the samples."""
    names = Names()
    count = len(family.samples)
    names.batch = tuple(sample.state.get(batch.lead, batch.lead.value) for sample in family.samples) if batch else (1,) * count
    tied: dict[Vector, str] = {}
    slots = [(number, slot) for number, variable in enumerate(variables) for slot in variable.named]
    skipped = set(batch.slots) if batch else set()
    leads = {variable.lead for variable in variables}
    for number, slot in sorted(slots, key=lambda one: (one[1].side != "config", one[1] not in leads, len(one[1].key))):
        if slot in skipped or slot.kind == "length" or (slot.side == "inputs" and slot.kind != "dimension"):
            continue
        vector = tuple(now(sample, slot) for sample in family.samples)
        moving = [place for place, sample in enumerate(family.samples) if sample.variable == number]
        if len(set(vector)) == 1:
            continue
        if vector in tied:
            if slot.side == "inputs":
                names.dims[slot] = tied[vector]
            names.solo[tied[vector]].extend(place for place in moving if place not in names.solo[tied[vector]])
            continue
        if slot.side == "config":
            name = letter(names, slot)
            names.sizes.setdefault(name.partition("[")[0], slot.key if "[" not in name else slot.key[:-1])
        else:
            if slot not in leads and made_of(names, vector):
                continue
            name = length(names, slot, family)
            names.lengths[name] = slot
            names.dims[slot] = name
        tied[vector] = name
        names.vectors[name] = vector
        names.solo[name] = moving
    # a symbol depends on every variable that changes it
    for place, sample in enumerate(family.samples):
        for name, vector in names.vectors.items():
            if sample.variable >= 0 and vector[place] != vector[0] and place not in names.solo[name]:
                names.solo[name].append(place)
    return names


def made_of(names: Names, vector: Vector) -> bool:
    """Whether a dimension that only follows others is a formula of their names, as the tokens of a grid are of its sides."""
    fitter = Fitter(names.vectors, {})
    sides = [name for name in names.lengths if any(len(set(values)) > 1 for values in (names.vectors[name],))]
    for name in sides:
        for other, sizes in names.vectors.items():
            if other not in names.lengths:
                fitter.quotients[f"({name}//{other})"] = tuple(a // b for a, b in zip(names.vectors[name], sizes, strict=True))
    return fitter.formula(vector) is not None


def now(sample: Sample, slot: Slot) -> int:
    """What a slot is in a sample: as its complete config says, where it does."""
    known = value_at(sample.config, slot.key) if slot.side == "config" else None
    if isinstance(known, int) and not isinstance(known, bool):
        return known
    return sample.state.get(slot, slot.value)


def letter(names: Names, slot: Slot) -> str:
    """A letter for a field of the config; an item of a list is the list's letter with an index."""
    index = f"[{slot.key[-1]}]" if isinstance(slot.key[-1], int) else ""
    key = slot.key[:-1] if index else slot.key
    for name, known in names.sizes.items():
        if known == key:
            return name + index
    text = str(key[-1]).lower()
    short = "".join(word[0] for word in text.split("_") if word) if not index else text.split("_")[0][:5]
    found = next((letter for word, letter in LETTERS if word in text), short)
    return fresh(found or "a", {*names.sizes, *names.lengths}) + index


def length(names: Names, slot: Slot, family: Family) -> str:
    """A name for a length: ``h`` and ``w`` of pictures, ``f`` before them, else the next of x, y, z."""
    place = int(slot.key[-1])
    taken = {*names.sizes, *names.lengths}
    shape = [one for one in family.samples[0].plan.inputs.items() if one[0] == ".".join(map(str, slot.key[:-2]))]
    dims = len(shape[0][1]) if shape else 0
    if dims == 5 and place >= 2:
        return fresh(("f", "h", "w")[place - 2], taken)
    if dims == 4 and place >= 2:
        return fresh(("h", "w")[place - 2], taken)
    return fresh(next((name for name in PLAIN if name not in taken), "x"), taken)


def fresh(name: str, taken: set[str]) -> str:
    """A name that nothing else has."""
    if name not in taken and (name.lower() not in RESERVED or name == "y"):
        return name
    number = 2
    while f"{name}{number}" in taken:
        number += 1
    return f"{name}{number}"


def fitter_of(names: Names, family: Family) -> Fitter:
    """A fitter with these symbols; dimensions of inputs that never move are constants that may be divided."""
    fixed = set()
    for name in family.samples[0].plan.inputs:
        shapes = [sample.plan.inputs.get(name, ()) for sample in family.samples]
        fixed |= {sizes[0] for sizes in zip(*shapes, strict=False) if len(set(sizes)) == 1 and sizes[0] > 3}
    return Fitter(names.vectors, names.solo, constants=tuple(sorted(fixed)), chunks=chunks_of(family))


def chunks_of(family: Family) -> tuple[int, ...]:
    """The sides of square products of two values that never move, as the scores within a chunk of tokens are."""
    sides = set()
    for step in steps_in(family.samples[0].plan.entries):
        if step.kind == "matmul" and step.numbers[1] == step.numbers[3] >= FEWEST_IN_CHUNK:
            sizes = {(one.numbers[1], one.numbers[3]) for one in family.parts[family.place[id(step)]]}
            sides |= {step.numbers[1]} if len(sizes) == 1 else set()
    return tuple(sorted(sides))
