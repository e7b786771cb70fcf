"""Finds a config field's default by omitting the field: a number, or an expression in other sizes."""

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
from symflops.draft.vary.slots import is_whole

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
    """Default of the field at ``key``, as a number or an expression in other sizes; None if none fits."""
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
    """Pairs of an expression and its value per sample: sizes, quotients of two, and small multiples.

    ``known`` are the sizes, with their values.
    """
    yield from known.items()
    for one, x in known.items():
        for other, y in known.items():
            if one != other and all(y):
                yield f"{one}//{other}", tuple(a // b for a, b in zip(x, y, strict=True))
    for factor in (2, 3, 4, 8):
        yield from ((f"{factor}*{one}", tuple(factor * a for a in x)) for one, x in known.items())


def default_number(subject: Subject, key: Sequence[Any]) -> int | None:
    """Number for the field at ``key`` that gives the same parameter shapes as omitting the field, or None."""
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
