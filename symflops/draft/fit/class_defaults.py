"""Finds the default of a field by leaving it out: a number, or an expression in other sizes."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from symflops.draft.fit.formula import Vector
from symflops.draft.fit.symbols import Names, value_at
from symflops.draft.limits import attempt
from symflops.draft.sample.family import Sample
from symflops.draft.sample.runner import Runner
from symflops.draft.trace.subject import Subject
from symflops.draft.vary.variables import is_whole

SAMPLES = 3


def class_defaults(runner: Runner, samples: Sequence[Sample], names: Names, signature: Mapping[str, Any]) -> dict[str, str]:
    """The defaults of sizes for which the signature of a class has no number, by letter."""
    order = [0, *range(len(samples) - 1, 0, -1)]
    first, further = ([samples[place] for place in order[start : start + SAMPLES]] for start in (0, SAMPLES))
    found: dict[str, str] = {}
    for letter, key in names.sizes.items():
        sized = is_whole(value_at(runner.subject.config, key)) and letter in names.vectors
        if not sized or isinstance(value_at(signature, key), int) or runner.late():
            continue
        values = [taken(runner.at(sample.state), key) for sample in first]
        own = [value_at(runner.at(sample.state).config, key) for sample in first]
        if None in values or values == own:  # if it is never missed, nothing is known of what the class takes
            continue
        known = {
            name: tuple(vector[place] for place in order[:SAMPLES])
            for name, vector in names.vectors.items()
            if name in names.sizes and name != letter and name not in found
        }
        text = expression(values, known)
        if text is None and len(set(values)) == 1:
            others = {taken(runner.at(sample.state), key) for sample in further}
            text = str(values[0]) if others <= set(values) else None
        if text is not None:
            found[letter] = text
    return found


def expression(values: Sequence[int | None], known: Mapping[str, Vector]) -> str | None:
    """A default in sizes; one that is a number in all samples must come from sizes that move."""
    number = len(set(values)) == 1
    moved = {name: vector for name, vector in known.items() if not number or len(set(vector)) > 1}
    return next((text for text, vector in texts(moved) if vector == tuple(values)), None)


def texts(known: Mapping[str, Vector]) -> Iterator[tuple[str, Vector]]:
    """Sizes, their quotients and their multiples."""
    yield from known.items()
    for one, x in known.items():
        for other, y in known.items():
            if one != other and all(y):
                yield f"{one}//{other}", tuple(a // b for a, b in zip(x, y, strict=True))
    for factor in (2, 3, 4, 8):
        yield from ((f"{factor}*{one}", tuple(factor * a for a in x)) for one, x in known.items())


def taken(subject: Subject, key: Sequence[Any]) -> int | None:
    """The number that gives the same parameters as a field left out; None if no number does."""
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
    """The parameters of a subject; None if it cannot be built."""
    return attempt(lambda: {name: tuple(tensor.shape) for name, tensor in subject.build().named_parameters()})


def without(config: Mapping[str, Any], key: Sequence[Any], value: int | None = None) -> dict[str, Any]:
    """A config without a field, or with another value there."""
    found = copy.deepcopy(dict(config))
    inner: Any = found
    for part in key[:-1]:
        inner = inner[part]
    if value is None:
        del inner[key[-1]]
    else:
        inner[key[-1]] = value
    return found
