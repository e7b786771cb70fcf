"""What a class takes for a field of its config that is not given: found by leaving it out, and written in other sizes."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from symflops.draft.fit.formula import Vector
from symflops.draft.fit.symbols import Names, value_at
from symflops.draft.sample.sampling import Laboratory
from symflops.draft.trace.subject import Subject

SAMPLES = 3


def absent(laboratory: Laboratory, samples: Sequence[Any], names: Names, defaults: Mapping[str, Any]) -> dict[str, str]:
    """A default in other sizes for each size that a class has no number for: what it takes instead in several samples."""
    order = [0, *range(len(samples) - 1, 0, -1)]
    found: dict[str, str] = {}

    def asked(key: Sequence[Any], places: Sequence[int]) -> list[int | None]:
        return [taken(laboratory.at(samples[place].state), key) for place in places]

    for letter, key in names.sizes.items():
        given = value_at(laboratory.subject.config, key)
        plain = isinstance(given, int) and not isinstance(given, bool) and letter in names.vectors
        if not plain or isinstance(value_at(defaults, key), int) or laboratory.late():
            continue
        places = order[:SAMPLES]
        values = asked(key, places)
        own = [value_at(laboratory.at(samples[place].state).config, key) for place in places]
        if None in values or values == own:  # where it is never missed, nothing is known of what the class takes
            continue
        known = {
            name: tuple(vector[place] for place in places)
            for name, vector in names.vectors.items()
            if name in names.sizes and name != letter and name not in found
        }
        number = len(set(values)) == 1  # one, where no size that moved gives it, in further samples neither
        moved = {name: vector for name, vector in known.items() if not number or len(set(vector)) > 1}
        text = next((text for text, vector in texts(moved) if vector == tuple(values)), None)
        if text is None and number and set(asked(key, order[SAMPLES : 2 * SAMPLES])) <= set(values):
            text = str(values[0])
        if text is not None:
            found[letter] = text
    return found


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
    """The number that gives the parameters that there are without a field; None where no number does."""
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
    """The parameters of a subject; None where it cannot be built."""
    try:
        return {name: tuple(tensor.shape) for name, tensor in subject.build().named_parameters()}
    except Exception:  # whatever a module raises, it does not accept the config
        return None


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
