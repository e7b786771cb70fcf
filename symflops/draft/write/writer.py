"""Writes a plan as entries of a spec: values know their rows and width over all samples; what does not fit gets a view."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from symflops.draft.fit.fit import Fitter
from symflops.draft.fit.formula import Vector, words
from symflops.draft.fit.symbols import Names, fresh
from symflops.draft.sample.family import Family
from symflops.draft.trace.steps import Loop, Plan, Ref, Step
from symflops.draft.write.scopes import Entry, Fields, Scope, Unsolved, Val

WORD = re.compile(r"[A-Za-z_]\w*")


class Writer:
    """Writes one plan."""

    def __init__(self, family: Family, names: Names, fitter: Fitter, attention: bool = True) -> None:
        self.family, self.names, self.fitter = family, names, fitter
        self.plan: Plan = family.samples[0].plan
        self.count = len(family.samples)
        self.values: dict[int, Val] = {}
        self.carried: dict[int, Val] = {}
        self.inputs: dict[str, Val] = {}
        self.streams: dict[str, Any] = {}
        self.taken: set[str] = set()
        self.unsolved: list[Unsolved] = []
        self.covered: set[str] = set()
        self.with_attention = attention
        self.patterns: list[Any] = []
        self.blocks: set[str] = set()
        self.readers: dict[int, int] = {}
        self.moving = family.items()
        self.grids: dict[Vector, tuple[Any, dict[str, str]]] = {}
        self.apart: dict[str, Any] = {}
        self.selected: dict[str, Val] = {}

    # formulas

    def text(self, vector: Vector, place: str) -> str:
        """The formula of a vector as text; the base value, and a note, where there is none."""
        found = self.fitter.formula(vector)
        if found is None:
            if all(one.values != vector for one in self.unsolved):
                self.unsolved.append(Unsolved(place, vector))
            return str(vector[0])
        return found.text

    def vector(self, step: Step, place: int) -> Vector:
        """A number of a step over all samples."""
        return self.family.numbers(step, lambda one: one.numbers[place])

    def rows(self, total: Vector) -> tuple[Vector, bool]:
        """Rows per item of a total, and whether they are once per batch instead."""
        batch = self.names.batch
        if all(size % items == 0 for size, items in zip(total, batch, strict=True)) and (len(set(batch)) > 1 or True):
            per_item = tuple(size // items for size, items in zip(total, batch, strict=True))
            factors = self.fitter.factors.get(total, ())
            if batch in factors:
                rest = list(factors)
                rest.remove(batch)
                self.fitter.factors.setdefault(per_item, tuple(rest))
            if len(set(batch)) == 1 or self.depends(per_item, total):
                return per_item, False
        return total, True

    def depends(self, per_item: Vector, total: Vector) -> bool:
        """Whether rows are per item: those per item do not vary with the number of items, or the total has no formula."""
        if len(set(per_item)) == 1:
            return True
        if self.fitter.formula(per_item) is not None:
            return True
        return self.fitter.formula(total) is None

    def measured(self, vector: Vector) -> bool:
        """Whether a vector varies with lengths, which a width cannot."""
        found = self.fitter.formula(vector)
        return found is not None and bool(set(words(" ".join(found.atoms))) & set(self.names.lengths))

    def shaped(self, rows: Vector, width: Vector) -> tuple[Vector, Vector]:
        """Rows and a width that no length is part of."""
        if not self.measured(width):
            return rows, width
        found = tuple(a * b for a, b in zip(rows, width, strict=True))
        self.fitter.factors.setdefault(found, (rows, width))
        return found, (1,) * self.count

    # names

    def name(self, base: str) -> str:
        """A name for a value that nothing else has."""
        words = [word for word in base.split(".") if word and not word.isdigit()]
        text = (words[-1] if words else "v").lower()
        for cut in ("to_", "_proj", "proj_"):
            text = text.replace(cut, "") if text.replace(cut, "") else text
        text = "".join(letter for letter in text if letter.isalnum() or letter == "_").strip("_") or "v"
        if text[0].isdigit() or text in ("y", "n", "on", "off", "no", "yes", "true", "false", "null", "once", "_"):
            text = f"v_{text}"
        found, number = text, 2
        while found in self.taken:
            found, number = f"{text}{number}", number + 1
        self.taken.add(found)
        return found

    # values

    def read(self, ref: Ref, scope: Scope) -> Val | None:
        """The value of a reference; None for a constant."""
        if ref.kind == "step":
            return self.values[ref.id]
        if ref.kind == "carried":
            return self.carried[ref.id]
        if ref.kind == "parameter":
            return self.parameter(ref.name, scope)
        return None

    def parameter(self, name: str, scope: Scope) -> Val:
        """A parameter as a value, declared where it is first read in a scope."""
        around: Scope | None = scope
        while around is not None:
            if name in around.parameters:
                return around.parameters[name]
            around = around.parent
        shape = self.family.shape(name)
        found = self.name(name)
        size = [self.text(dim, name) for dim in shape]
        width = shape[-1] if shape else (1,) * self.count
        fields: Fields = {"op": "parameter", "shape": f"[{', '.join(size)}]", "to": found}
        if name in self.covered:
            fields["shared"] = "true"
        scope.entries.append((self.path(name, scope), fields))
        self.covered.add(name)
        val = Val(found, (1,) * self.count, width, True, ("once",))
        scope.parameters[name] = val
        return val

    def operand(self, ref: Ref, rows: Vector, width: Vector, scope: Scope, once: bool = False) -> Val:
        """A reference as a value of given rows and width, with a view where it is not of that form."""
        rows, width = self.shaped(rows, width)
        if ref.kind in ("input", "constant") and ref.name in self.plan.inputs:
            known = self.input(ref.name, rows, width, once)
            if known is not None:
                return self.fitted(known, rows, width, scope, once)
        found = self.read(ref, scope) if ref.kind not in ("input", "constant") else None
        if found is None:
            return self.zeros(rows, width, scope, once)
        return self.fitted(found, rows, width, scope, once)

    def zeros(self, rows: Vector, width: Vector, scope: Scope, once: bool) -> Val:
        """A constant."""
        name = self.name("constant")
        stream = self.whole(rows) if once else self.stream(rows)
        scope.entries.append(("_", {"op": "zeros", "stream": stream, "width": self.text(width, name), "to": name}))
        return Val(name, rows, width, once, self.tag(rows, once))

    def fitted(self, value: Val, rows: Vector, width: Vector, scope: Scope, once: bool) -> Val:
        """A value with given rows and width."""
        around: Scope | None = scope
        key = (value.name, rows, width, once)
        while around is not None:
            if key in around.views:
                return around.views[key]
            around = around.parent
        found = self.changed(value, rows, width, scope, once)
        if found is not value:
            scope.views[key] = found
        return found

    def changed(self, value: Val, rows: Vector, width: Vector, scope: Scope, once: bool) -> Val:
        """What :meth:`fitted` finds no view of yet."""
        if value.once and not once:
            blank = self.zeros(rows, width, scope, False)
            name = self.name(value.name)
            scope.entries.append(("_", {"op": "mul", "from": [blank.name, value.name], "to": name}))
            return Val(name, rows, width, False, blank.tag)
        if value.rows == rows and value.width == width:
            return value
        name = self.name(value.name)
        if value.rows == rows:
            fields = {"op": "map", "from": value.name, "width": self.text(width, name), "to": name}
            scope.entries.append(("_", fields))
            return Val(name, rows, width, value.once, value.tag)
        fields = {"op": "view", "from": value.name, "as": "select"}
        more = rows[0] * width[0] > value.rows[0] * value.width[0]
        if more:
            fields["as"] = "expand"
        if rows != value.rows:
            fields["stream"] = self.whole(rows) if value.once else self.stream(rows)
        if width != value.width:
            fields["width"] = self.text(width, name)
        fields["to"] = name
        scope.entries.append(("_", fields))
        self.selected[name] = Val(name, rows, width, value.once, self.tag(rows, value.once))
        return self.selected[name]

    def tag(self, rows: Vector, once: bool) -> Any:
        """What tells the stream of given rows, as it is written."""
        if not once and rows in self.grids:
            return self.grids[rows][0]
        return ("rows", once, rows)

    def stream(self, rows: Vector) -> Any:
        """Axes of a stream with given rows: those of a convolution with as many, or all in one."""
        if rows in self.grids:
            return dict(self.grids[rows][1])
        for name, axes in self.streams.items():
            if isinstance(axes, tuple) and axes[0] == rows:
                return name
        text = self.text(rows, "rows")
        return {"m": text} if text != "1" else {}

    def whole(self, rows: Vector) -> str:
        """The stream of a value that is there once per batch: of one row, or of as many as the longest items ask for."""
        text = self.text(rows, "rows")
        if text == "1":
            return "once"
        text = WORD.sub(lambda word: f"longest({word[0]})" if word[0] in self.names.lengths else word[0], text)
        known = {axes["axes"]["m"]: name for name, axes in self.apart.items()}
        name = known.get(text) or fresh("positions", {*self.apart, *self.names.sizes, *self.names.lengths})
        self.apart.setdefault(name, {"over": "once", "axes": {"m": text}})
        return name

    def input(self, name: str, rows: Vector, width: Vector, once: bool) -> Val | None:
        """An input, declared with the rows and the width with which it is first read."""
        if once:
            return None
        if name not in self.inputs:
            value = Val(identifier(name), rows, width, False, self.tag(rows, False))
            self.inputs[name] = value
            self.taken.add(value.name)
        return self.inputs[name]

    # paths

    def path(self, path: str, scope: Scope) -> str:
        """A path relative to a scope."""
        for item, template in scope.indexed.items():
            if path == item or path.startswith(f"{item}."):
                return template + path[len(item) :]
        if path == scope.prefix or not path:
            return "_"
        words = path.split(".")
        within = bool(scope.prefix) and path.startswith(f"{scope.prefix}.")
        for place, word in enumerate(words):
            if within and place <= scope.prefix.count("."):
                continue
            item = ".".join(path.split(".")[: place + 1])
            if word.isdigit() and item in self.moving:
                words[place] = f"{{{self.text(self.moving[item], item)}}}"
        if within:
            return ".".join(words[scope.prefix.count(".") + 1 :])
        return f"/{'.'.join(words)}" if scope.prefix else ".".join(words)

    def weight(self, name: str, key: str, scope: Scope, last: str) -> str | None:
        """The field that names a parameter; None where it has the name that it has by default."""
        here = self.path(name, scope)
        if key == "_":
            return here if here != last else None
        if here == f"{key}.{last}":
            return None
        parent = key.rpartition(".")[0]
        if here.startswith("/") or not parent:
            return here
        return here[len(parent) + 1 :] if here.startswith(f"{parent}.") else f"/{name}" if not scope.prefix else None


def identifier(name: str) -> str:
    """The name of an input as an identifier."""
    return "".join(letter if letter.isalnum() else "_" for letter in name)


__all__ = ["Entry", "Fields", "Loop", "Mapping", "Scope", "Sequence", "Unsolved", "Val", "Writer", "prod", "replace"]
