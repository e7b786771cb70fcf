"""Random steps of a valid graph: what exists, with which stream and width, is tracked while entries are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

Entry = dict[str, Any]
T = TypeVar("T")
SAMPLES = ("text", "prompt", "sample")
WIDTHS = ("D", "E", "F")


@dataclass(frozen=True)
class Known:
    """A value in scope; `maybe` when a condition may leave it out."""

    stream: str
    width: str
    maybe: bool = False


@dataclass(frozen=True)
class Place:
    """Where entries are being written."""

    depth: int = 0
    path: str | None = ""  # None below a numbered repeat: no absolute path leads there
    suffix: str = ""  # of labels, inside a repeat without a module
    indices: tuple[tuple[str, str], ...] = ()  # (index, count) of the enclosing repeats


@dataclass
class Builder:
    """Draws entries; `values` are the names in scope here."""

    rng: Random
    budget: int
    values: dict[str, Known]
    prompt_axes: tuple[str, ...] = ("y",)
    place: Place = Place()
    labels: list[str] = field(default_factory=list)
    weights: list[tuple[str, str, str]] = field(default_factory=list)  # (absolute name, in, out)
    counter: list[int] = field(default_factory=lambda: [0])
    more: Random = field(default_factory=Random)  # for what was added later, so that cases by seed stay
    bound: set[str] = field(default_factory=set)  # names that some entry computes, at any depth

    def pick(self, options: Sequence[T]) -> T:
        return self.rng.choice(list(options))

    def chance(self, percent: int) -> bool:
        return self.rng.randrange(100) < percent

    def fresh(self, letter: str) -> str:
        self.counter[0] += 1
        return f"{letter}{self.counter[0]}"

    def label(self, letter: str = "a") -> str:
        self.labels.append(self.fresh(letter))
        return self.labels[-1] + self.place.suffix

    def sure(self, *, stream: str | None = None, width: str | None = None) -> list[str]:
        """Names that are certainly there, of a stream and a width."""
        return [n for n, k in self.values.items() if k.width and not k.maybe
                and stream in (None, k.stream) and width in (None, k.width)]  # fmt: skip

    def source(self) -> str:
        """A value to read, rather a computed one than an input."""
        names = self.sure()
        computed = [n for n in names if n in self.bound]
        return self.pick(computed if computed and self.chance(75) else names)

    def partners(self, stream: str) -> list[str]:
        """Names that the row rule lets meet a value of this stream (absent ones are dropped)."""
        return [n for n, k in self.values.items() if k.width and (
            k.stream in (stream, "table") or (k.stream == "sample" and stream in SAMPLES))]  # fmt: skip

    def condition(self) -> str | None:
        """Now and then a condition on a flag or on a loop index."""
        if not self.chance(20):
            return None
        if self.place.indices and self.chance(70):
            i, count = self.pick(self.place.indices)
            return self.pick([f"{i} < {count}-1", f"{i} == 0", f"{i} % 2 == 0", f"{i} == {count}-1", f"{i} > 0",
                              f"{i} % 2 == 1"])  # fmt: skip
        return self.pick(["flag", "not flag", "other"])

    def entry(self, fields: Entry, stream: str, width: str, *, extras: bool = True, letter: str = "a") -> list[Entry]:
        """One operator: its result bound to a new or an existing name, gated, added, under a condition."""
        label = self.label(letter)
        self.budget -= 1
        if extras and self.chance(20) and (others := self.partners(stream)):
            fields["gate"] = [self.pick(others)]
        when = self.condition() if extras else None
        if when:
            fields["when"] = when
        same = self.sure(stream=stream, width=width)
        if extras and same and self.chance(30):
            fields["add_to"] = self.pick(same)
            self.bound.add(fields["add_to"])
            if self.chance(50):
                fields["to"] = "_"
                return [{label: fields}]
        if same and "add_to" not in fields and self.chance(60 if self.place.indices else 30):
            fields["to"] = self.pick(same)
        else:
            fields["to"] = self.fresh("v")
            self.values[fields["to"]] = Known(stream, width, maybe=when is not None)
        self.bound.add(fields["to"])
        return [{label: fields}]

    def project(self, source: str, width: str, **more: Any) -> tuple[str, list[Entry]]:
        """A plain linear into a new name."""
        self.budget -= 1
        name = self.fresh("v")
        self.values[name] = Known(self.values[source].stream, width)
        self.bound.add(name)
        return name, [{self.label(): {"op": "linear", "from": source, "width": width, **more, "to": name}}]
