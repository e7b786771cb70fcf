"""The symbols of a draft: sizes named after fields of a config, lengths after axes of inputs; defaults of sizes.

The default of a size that the class fills in is found by omitting its field: a number, or an expression in other sizes.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any

from symflops.draft.fit.fit import Fitter
from symflops.draft.fit.formula import Vector
from symflops.draft.sample.samples import FEWEST_IN_CHUNK, Family, Runner, Sample
from symflops.draft.trace.steps import Subject, steps_in
from symflops.draft.vary.slots import Slot, is_whole
from symflops.draft.vary.variables import Variable
from symflops.verify.census.fields import value_at
from symflops.verify.limits import attempt
from symflops.verify.symbolic.printing import LETTERS

LENGTHS = ("x", "y", "z", "u", "v", "t")
SMALLEST_CONSTANT = 4
RESERVED = {
    "m", "tokens", "steps", "rows", "columns", "frames", "y", "n", "in", "is", "or", "if", "and", "not", "for", "as", "on",
    "off", "no", "yes", "true", "false", "null",
}  # fmt: skip


@dataclass(slots=True)
class Names:
    """The symbols of a draft.

    Attributes:
        sizes: Letter of a size -> its key in the config.
        lengths: Letter of a length -> the input dimension (slot) that it is.
        dims: Input dimension (slot) that was varied -> its symbol.
        vectors: Symbol -> its value in each sample (run with another config).
        solo: Symbol -> the samples in which only its variable was varied.
        batch: The batch size in each sample.
        listed: Letter of a config list that a condition reads -> whether a config may lack the list.
        filled: Letter of a size that the class fills in -> its default, as an expression.
    """

    sizes: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    lengths: dict[str, Slot] = field(default_factory=dict)
    dims: dict[Slot, str] = field(default_factory=dict)
    vectors: dict[str, Vector] = field(default_factory=dict)
    solo: dict[str, list[int]] = field(default_factory=dict)
    batch: Vector = ()
    listed: dict[str, bool] = field(default_factory=dict)
    filled: dict[str, str] = field(default_factory=dict)

    @property
    def taken(self) -> set[str]:
        """All letters of sizes and lengths, which no new symbol may have."""
        return {*self.sizes, *self.lengths}


def numbered(name: str, taken: Collection[str]) -> str:
    """``name`` if it is free, else ``name`` with the first free number appended."""
    return next(one for one in chain([name], (f"{name}{number}" for number in count(2))) if one not in taken)


def fresh(name: str, taken: set[str]) -> str:
    """``name``, numbered if it is taken or a reserved word of specs."""
    return numbered(name, taken if name.lower() not in RESERVED or name == "y" else {*taken, name})


def names_of(family: Family, variables: Sequence[Variable], batch: Variable | None) -> Names:
    """Symbols for all numbers of config and inputs that were varied between samples.

    ``batch`` is the variable of the batch size, which gets no symbol.
    """
    names = Names(batch=(1,) * len(family.samples))
    if batch:
        names.batch = tuple(batch.lead.within(sample.state) for sample in family.samples)
    leads = {variable.lead for variable in variables}
    for number, slot in named_slots(variables, batch, leads):
        name = symbol_of(names, slot, family, slot in leads)
        if name is not None:
            moving = [place for place, sample in enumerate(family.samples) if sample.variable == number]
            names.solo[name] = list(dict.fromkeys((*names.solo.get(name, ()), *moving)))
    for name, vector in names.vectors.items():  # a symbol depends on every variable that changes it
        changing = [place for place, one in enumerate(family.samples) if one.variable >= 0 and vector[place] != vector[0]]
        names.solo[name] = list(dict.fromkeys((*names.solo[name], *changing)))
    return names


def symbol_of(names: Names, slot: Slot, family: Family, lead: bool) -> str | None:
    """Symbol of a slot (number of config or inputs): that of an equal vector in ``names``, else a new one, stored there.

    None if the slot is constant, or an input dimension with a formula in other symbols. A ``lead``, which determines other
    slots, has a symbol even then.
    """
    vector = tuple(value_in(sample, slot) for sample in family.samples)
    if slot.of_run:  # varying this slot changes the argument's total length
        vector = tuple(sample.plan.inputs[str(slot.key[0])][1] for sample in family.samples)
    name = next((name for name, values in names.vectors.items() if values == vector), None)
    if len(set(vector)) == 1 or (name is None and not slot.of_config and not lead and is_made_of(names, vector)):
        return None
    if name is None and slot.of_config:
        name = letter(names, slot)
        names.sizes.setdefault(name.partition("[")[0], slot.key if "[" not in name else slot.key[:-1])
    elif name is None:
        name = length(names, slot, family)
        names.lengths[name] = slot
    names.vectors[name] = vector
    if not slot.of_config:
        names.dims[slot] = name
    return name


def named_slots(variables: Sequence[Variable], batch: Variable | None, leads: set[Slot]) -> list[tuple[int, Slot]]:
    """Pairs (number of a variable, slot) of the slots that need a symbol, those of the config first.

    ``leads`` are the slots that determine others: they come before them.
    """
    skipped = set(batch.slots) if batch else set()
    slots = [
        (number, slot)
        for number, variable in enumerate(variables)
        for slot in variable.named
        if slot not in skipped and slot.kind == ("number" if slot.of_config else "dimension")
    ]
    return sorted(slots, key=lambda one: (not one[1].of_config, one[1] not in leads, len(one[1].key)))


def is_made_of(names: Names, vector: Vector) -> bool:
    """Whether known symbols have a formula for ``vector``, such as a grid's tokens from its sides."""
    fitter = Fitter(names.vectors, {})
    for name in [name for name in names.lengths if len(set(names.vectors[name])) > 1]:
        for other, sizes in names.vectors.items():
            if other not in names.lengths:
                fitter.quotients[f"({name}//{other})"] = tuple(a // b for a, b in zip(names.vectors[name], sizes, strict=True))
    return fitter.formula(vector) is not None


def value_in(sample: Sample, slot: Slot) -> int:
    """Value of a slot (number of config or inputs) in a sample: by the complete config, else by the sample's state."""
    known = value_at(sample.config, slot.key) if slot.of_config else None
    return known if is_whole(known) else slot.within(sample.state)


def letter(names: Names, slot: Slot) -> str:
    """Letter for the config field at a slot; for an item of a list, the list's letter with an index: ``c[0]``."""
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
    """Name for a length: ``h`` and ``w`` for images, ``f`` for video frames, else the next of x, y, z."""
    place = int(slot.key[-1])
    rank = len(family.samples[0].plan.inputs.get(".".join(map(str, slot.key[:-2])), ()))
    if rank in (4, 5) and place >= 2:
        return fresh("fhw"[place - rank], names.taken)
    return fresh(next((name for name in LENGTHS if name not in names.taken), "x"), names.taken)


def fitter_of(names: Names, family: Family) -> Fitter:
    """Fitter that finds formulas in a draft's symbols and in divided input dimensions that do not vary."""
    shapes = [[sample.plan.inputs.get(name, ()) for sample in family.samples] for name in family.samples[0].plan.inputs]
    sizes = [set(values) for one in shapes for values in zip(*one, strict=False)]
    fixed = {size for values in sizes if len(values) == 1 for size in values if size >= SMALLEST_CONSTANT}
    return Fitter(names.vectors, names.solo, constants=tuple(sorted(fixed)), chunks=chunks_of(family))


def chunks_of(family: Family) -> tuple[int, ...]:
    """Lengths of chunks in ascending order: rows or columns of matrix products, at least 16, that no sample changes."""
    steps = [step for step in steps_in(family.samples[0].plan.entries) if step.kind == "matmul"]
    every = [family.parts[family.place[id(step)]] for step in steps]
    sides = [{size for one in same for size in (one.numbers[1], one.numbers[3])} for same in every]
    return tuple(sorted({side for one in sides if len(one) == 1 for side in one if side >= FEWEST_IN_CHUNK}))


SAMPLES = 3


def class_defaults(runner: Runner, samples: Sequence[Sample], names: Names, signature: Mapping[str, Any]) -> dict[str, str]:
    """Letter of a size -> its default (number or expression), for sizes whose default the signature lacks.

    Such a field can be omitted from the config, and the class fills it in from others.
    """
    order = [0, *range(len(samples) - 1, 0, -1)]
    found: dict[str, str] = {}
    for letter, key in names.sizes.items():
        sized = is_whole(value_at(runner.subject.config, key)) and letter in names.vectors
        if not sized or isinstance(value_at(signature, key), int) or runner.late():
            continue
        usable = [name for name in names.vectors if name in names.sizes and name not in (letter, *found)]
        others = {name: tuple(names.vectors[name][place] for place in order[:SAMPLES]) for name in usable}
        text = default_of([runner.at(samples[place].state) for place in order[: 2 * SAMPLES]], key, others)
        if text is not None:
            found[letter] = text
    return found


def default_of(subjects: Sequence[Subject], key: Sequence[Any], others: Mapping[str, Vector]) -> str | None:
    """Default of the field at ``key``, as the text of a number or of an expression in other sizes; None if none fits.

    ``subjects`` are the class with the configs of several samples; ``others`` maps the letters of other sizes to their
    values in the first three.
    """
    first = subjects[:SAMPLES]
    values = [default_number(subject, key) for subject in first]
    if None in values or values == [value_at(subject.config, key) for subject in first]:
        return None  # omitting the field changes nothing, so its default is unknown
    constant = len(set(values)) == 1
    # a constant default may only be explained by sizes that vary
    known = {name: vector for name, vector in others.items() if not constant or len(set(vector)) > 1}
    text = next((text for text, vector in expressions(known) if vector == tuple(values)), None)
    if text is None and constant and {default_number(subject, key) for subject in subjects[SAMPLES:]} <= set(values):
        return str(values[0])
    return text


def expressions(known: Mapping[str, Vector]) -> Iterator[tuple[str, Vector]]:
    """Pairs (expression, its value in each sample) to try as a default: sizes, quotients of two, small multiples.

    ``known`` maps the letters of sizes to their values.
    """
    yield from known.items()
    for one, x in known.items():
        for other, y in known.items():
            if one != other and all(y):
                yield f"{one}//{other}", tuple(a // b for a, b in zip(x, y, strict=True))
    for factor in (2, 3, 4, 8):
        yield from ((f"{factor}*{one}", tuple(factor * a for a in x)) for one, x in known.items())


def default_number(subject: Subject, key: Sequence[Any]) -> int | None:
    """Number for the field at ``key`` that gives the same parameter shapes as omitting the field.

    None if no number does, if the field is no integer, or if the class does not build without it.
    """
    now = value_at(subject.config, key)
    if not isinstance(now, int):
        return None
    whole, less = shapes(subject), shapes(subject.having(without(subject.config, key), subject.inputs))
    if whole is None or less is None or set(whole) != set(less):
        return None
    pairs = [pair for name in whole for pair in zip(whole[name], less[name], strict=False) if pair[0] != pair[1]]
    if not pairs:
        return now
    for value in dict.fromkeys(now * b // a for a, b in pairs if a and now * b % a == 0):
        if shapes(subject.having(without(subject.config, key, value), subject.inputs)) == less:
            return value
    return None


def shapes(subject: Subject) -> dict[str, tuple[int, ...]] | None:
    """Parameter name -> shape, for the module of a subject; None if it cannot be built."""
    return attempt(lambda: {name: tuple(tensor.shape) for name, tensor in subject.build().named_parameters()})


def without(config: Mapping[str, Any], key: Sequence[Any], value: int | None = None) -> dict[str, Any]:
    """Copy of ``config`` without the field at ``key``, or with ``value`` there."""
    found = copy.deepcopy(dict(config))
    inner = value_at(found, key[:-1])
    if value is None:
        del inner[key[-1]]
    else:
        inner[key[-1]] = value
    return found
