"""Evaluates what a printed script says of a model, without an engine: its tables and sums, as Python over the same names.

The class that multiplies them is the same for all models; tests with a browser run it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any


class Nothing(tuple):
    """A list that is null: it counts as 0, and so do its items."""

    def __getitem__(self, place: Any) -> int:
        return 0


def item(given: Any, place: int) -> int:
    return given[place]


def exact(a: int, b: int) -> int:
    assert a % b == 0
    return a // b


CALLS: dict[str, Any] = {
    "_div": lambda a, b: a // b, "_exact": exact, "_mod": lambda a, b: a % b, "_min": min, "_max": max, "_flag": lambda value: int(bool(value)),
    "_given": lambda value: int(value is not None), "_equal": lambda a, b: int(a == b), "_item": item, "_len": len, "BigInt": int,
    "_each": lambda size, place: size[place] if isinstance(size, tuple) else 0 if isinstance(size, str) else size,
    "_count": lambda items, value: items.count(value), "_total": sum, "_contains": lambda items, value: int(value in items),
    "_tally": lambda low, high, condition: sum(condition(place) for place in range(low, high)),
    "_at": lambda path, rows: [[f"{path}.{name}", *cells] for name, *cells in rows],
    "_sum": lambda columns, of: sum(of(*row) for row in zip(*columns, strict=True)),
    "_largest": lambda columns, of: max([0, *(of(*row) for row in zip(*columns, strict=True))]), "_nothing": Nothing(), "null": None,
}  # fmt: skip


def python_of(text: str) -> str:
    """An expression or a row of JavaScript as Python."""
    text = re.sub(r"(?<![\w$.])(\d+)n\b", r"\1", re.sub(r"//.*", "", text))
    text = re.sub(r"\[?pairs === \"useful\" \? (\[.*?\]) : (\[.*?\])$", r'\1 if pairs == "useful" else \2', text.strip().rstrip(";"))
    text = re.sub(r"BigInt\((_c\.\w+)\.length\)", r"len(\1)", text.replace("$", "_"))
    text = re.sub(r"([\w.]+) \?\? (\w+)", r"(\2 if \1 is None else \1)", text)
    text = re.sub(r"\(([\w, ]*)\) => ", r"lambda \1: ", text)
    return text.replace("..._at(", "*_at(")


class Names:
    def __init__(self, values: Mapping[str, Any]) -> None:
        self.__dict__.update(values)


class Script:
    """A printed script; ``sizes`` are the attributes of a model's sizes."""

    def __init__(self, text: str, sizes: Mapping[str, Any]) -> None:
        self.text = text
        self.sizes = Names({name.replace("$", "_"): value for name, value in sizes.items()})

    def constant(self, name: str) -> Any:
        """A constant that is written as JSON; numbers of FLOPs may be BigInt."""
        found = re.search(rf"^  const {name} = (.*?);", self.text, re.MULTILINE)
        return json.loads(re.sub(r"(\d)n\b", r"\1", found[1])) if found else {}

    def called(self, name: str, **given: Any) -> list[Any]:
        """What a function of the model returns."""
        _, head, rest = self.text.partition(f"  const {name} = (")
        assert head, f"no function {name}"
        body = rest[: rest.index("\n  };")].partition("{\n")[2]
        base = re.search(r"return (\S+)\(sizes, pairs\)\.map", body)
        if base:  # the first regime without gradients
            return [[*row[:4], [0] * len(row[4]), 0] for row in self.called(base[1], **given)]
        names = {**CALLS, "sizes": self.sizes, **given}
        statements, _, rows = body.rpartition("return [")
        code = re.sub(r"const (\S+) = ", r"\1 = ", statements).replace("$", "_")
        scope: dict[str, Any] = dict(names)
        for statement in re.findall(r"^    (\w+) = ((?:\[\n.*?\n    \]|.*?));?$", re.sub(r"\s*//.*", "", code), re.MULTILINE | re.DOTALL):
            name, value = statement
            scope[name] = self.value(value, scope)
        return list(self.value("[" + rows.rstrip().removesuffix(";"), scope))

    def value(self, text: str, scope: Mapping[str, Any]) -> Any:
        lines = (python_of(line) for line in text.split("\n"))
        return eval(" ".join(lines), dict(scope))  # our own text, in a test

    def flops(self, regime: str, convention: str, moments: list[int]) -> tuple[Any, Any, Any]:
        """Forward, backward and recomputed FLOPs on the moments of a batch."""
        lines = dict(re.findall(r'"([^"]+)": (\w+)', re.search(r"const LINES = \{(.*?)\};", self.text)[1]))
        key = f"{regime} {convention}" if f"{regime} {convention}" in lines else regime
        rows = self.called(lines[key], pairs=self.constant("PAIRS")[convention])
        hidden = () if self.constant("UNSEEN")[convention] else self.constant("HIDDEN")[key]
        totals = [0, 0, 0]
        for place, (_, amount, unit, forward, gradients, again) in enumerate(rows):
            if place not in hidden:
                size = unit * sum(part * value for part, value in zip(amount, moments, strict=True))
                for kind, count in enumerate((forward, sum(gradients), again)):
                    totals[kind] += size * count
        shares = self.constant("SHARES").get(convention, 1)
        assert not any(total % shares for total in totals)
        return tuple(total // shares for total in totals)

    def moments(self, columns: Callable[[str], list[int]], padded: Callable[[str], list[int]], counts_padded: bool) -> list[int]:
        """The moments of a batch, from its columns of lengths on both sides."""
        names = re.findall(r"\$c\.(\w+)", self.text)
        real, other = (self.called("$sums", _c=Names({name: side(name) for name in names})) for side in (columns, padded))
        always = self.constant("PADDED_SUMS") or []
        return other if counts_padded else [other[place] if place in always else value for place, value in enumerate(real)]
