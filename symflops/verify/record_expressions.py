"""Maps a framework's record to a config and a batch, by expressions over the record's own words."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import pairwise
from math import isfinite
from typing import Any

from sympy import Integer, Rational

from symflops.formula.domain import known, python_value
from symflops.formula.evaluate import evaluate
from symflops.formula.expression import Expression
from symflops.read.peer_pages import Lengths, PeerCase
from symflops.support.findings import SymflopsError
from symflops.verify.classes import with_value

Record = Mapping[str, Any]
MOST_ITEMS = 100_000
PARTS = ("config", "seqlens", "other_args", "args")


class Names(Mapping[str, Any]):
    """Values of the names in expressions over a record; a missing name has the value None."""

    def __init__(self, words: Mapping[str, Any]) -> None:
        self.words = words

    def __getitem__(self, name: str) -> Any:
        return self.words.get(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str)

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)

    def __len__(self) -> int:
        return len(self.words)


def names_of(record: Record) -> Names:
    """Collect the fields of a record as names; nested ones are prefixed: ``text_config_hidden_size``."""
    words: dict[str, Any] = {}
    for part in (record, *(record.get(name) for name in PARTS)):
        words.update(_flat(part, "") if isinstance(part, Mapping) else ())
    return Names(words)


def _flat(part: Mapping[str, Any], before: str) -> Iterator[tuple[str, Any]]:
    for name, value in part.items():
        if isinstance(value, Mapping):
            yield before + name, len(value)
            if name not in PARTS:
                yield from _flat(value, f"{before}{name}_")
        else:
            yield before + name, _known(value)


def _known(value: Any) -> Any:
    """Convert a value of a record to the domain of expressions: exact numbers and tuples."""
    if isinstance(value, float):
        return Rational(repr(value)) if isfinite(value) else None
    return tuple(_known(item) for item in value) if isinstance(value, (list, tuple)) else known(value)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    # a list unchanged; for a number n a list with 1 for every n-th layer from the first on, and 0 for the others
    "every": lambda step, count: (
        step if isinstance(step, tuple) else tuple(Integer(int(i % int(step) == 0)) for i in range(_number(count)))
    ),
    "steps": lambda ends: tuple(after - before for before, after in pairwise(ends)),  # lengths of documents from boundaries
    "copies": lambda value, count: (value,) * _number(count),
    "count": lambda values, value: Integer(values.count(value)),  # how often a list has a value
    "indices": lambda count: tuple(Integer(number) for number in range(_number(count))),
    "modules": lambda names: tuple(f"*{name}" for name in names),  # patterns of modules by their last names
    "letters": lambda text: tuple(str(text)),
    # the lengths of a pack without its empty documents, on which no model runs alone
    "nonzero": lambda lengths: tuple(length for length in lengths if length != 0),
}
"""Functions that expressions over a record may call."""


def _number(count: Any) -> int:
    """Return a number of items as an int, if it is from 0 to ``MOST_ITEMS``."""
    if not 0 <= int(count) <= MOST_ITEMS:
        raise ValueError(f"{count} items")
    return int(count)


def _call(function: Callable[..., Any]) -> Callable[[Any, ast.Call], Any]:
    def called(walker: Any, node: ast.Call) -> Any:
        arguments = [walker.visit(argument) for argument in node.args]
        try:
            return function(*arguments)
        except (TypeError, ValueError, ArithmeticError) as error:
            raise SymflopsError(f"the record has no fitting value for '{ast.unparse(node):.60}': {error!s:.80}") from None

    return called


def value_of(expression: Expression, names: Mapping[str, Any]) -> Any:
    """Evaluate an expression over a record to a plain Python value."""
    value = python_value(evaluate(expression, names, {name: _call(function) for name, function in FUNCTIONS.items()}))
    return value.numerator if isinstance(value, Fraction) and value.denominator == 1 else value


def regime_of(case: PeerCase, names: Names) -> str:
    """Return the regime of a record as text: its name, or ``name:key=value,...`` with changed fields."""
    changes = []
    for key, expression in case.changes:
        value = value_of(expression, names)
        changes.append(f"{key}={'|'.join(map(str, value)) if isinstance(value, tuple) else value}")
    return f"{case.regime}:{','.join(changes)}" if changes else case.regime


def config_of(case: PeerCase, record: Record, names: Names) -> dict[str, Any]:
    """Convert the config of a record to the spec's fields: rename, drop and set some."""
    renamed = dict(case.rename)
    config = {renamed.get(key, key): value for key, value in _mapping(record.get("config")).items() if key not in case.drop}
    for key, expression in case.put:
        config = with_value(config, key, value_of(expression, names))
    return config


def _mapping(part: Any) -> Mapping[str, Any]:
    return part if isinstance(part, Mapping) else {}


def batch_of(case: PeerCase, record: Record, names: Names) -> dict[str, Any]:
    """Map each stream to its lengths, computed from a record as ``case`` says."""
    lists = {lengths.stream: value_of(lengths.source, names) for lengths in case.batch}
    longest = max((len(entries) for entries in lists.values() if isinstance(entries, tuple)), default=0)
    return {lengths.stream: _entries(lengths, lists[lengths.stream], longest, names) for lengths in case.batch}


def _entries(lengths: Lengths, given: Any, longest: int, names: Names) -> Any:
    if given is None:
        given = ()
    if not isinstance(given, tuple):
        raise SymflopsError(f"the record has no list for '{lengths.stream}'")
    if not given and lengths.empty is not None:
        given = (value_of(lengths.empty, names),) * longest
    if lengths.entry is not None:
        given = tuple(value_of(lengths.entry, {**names.words, "n": _known(entry)}) for entry in given)
    if lengths.padded is not None:
        return {"lengths": list(given), "padded": list(value_of(lengths.padded, names))}
    return [list(entry) if isinstance(entry, tuple) else entry for entry in given]
