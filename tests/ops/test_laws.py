"""Every operator under the same laws: its cost adds over samples, knows no order, is never negative, grows with every length.

Beside the laws there are the facts: it is what counting one by one gives, on ragged batches, from the program and from the module that
is generated of it; and it grows with each length as fast as the table says.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from symflops.api import CONVENTIONS, Model
from symflops.ground.diagnostics import Source
from symflops.library import SpecFile
from symflops.ops.table import KINDS
from symflops.runtime.interpreted import InterpretedEstimator
from symflops.stages.read import read
from symflops.targets.python import render

from .laws import LAWS, Law

Item = dict[str, int]
TEMPLATES = {"weight", "bias_name"}  # where a parameter is stored says nothing about its cost
FOLDER = TemporaryDirectory()
QUICK = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
EVERY = pytest.mark.parametrize("law", LAWS, ids=lambda law: f"{law.kind}-{LAWS.index(law)}")


@cache
def program(law: Law) -> Any:
    file = SpecFile(Path("."), Path("law.yaml"), "law.yaml")
    return Model(file, read(Source("law.yaml", law.spec()), lambda name: None)).program(["full"], CONVENTIONS, {})


@cache
def estimator(law: Law, convention: str = "symflops") -> InterpretedEstimator:
    return InterpretedEstimator(program(law), {}, regime="full", convention=convention)


@cache
def module(law: Law) -> ModuleType:
    path = Path(FOLDER.name) / f"law_{LAWS.index(law)}.py"
    path.write_text(render(program(law), "0"), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def ragged(law: Law, least: int = 0) -> st.SearchStrategy[list[Item]]:
    """Items of any legal lengths."""
    lengths = {}
    for axes in law.axes.values():
        for axis in filter(None, axes):
            low, step = law.legal(axis)
            lengths[axis] = st.integers(0, 6).map(lambda steps, low=low, step=step: low + step * steps)
    return st.lists(st.fixed_dictionaries(lengths), min_size=least, max_size=4)


def batch(law: Law, items: list[Item]) -> dict[str, list[Any]]:
    """What an estimator is given: per stream with lengths of its own one entry per item."""
    found = {}
    for stream, axes in law.axes.items():
        if any(axes):
            rows = [[item[axis] for axis in axes] for item in items]
            found[stream] = [row[0] for row in rows] if len(axes) == 1 else rows
    return found


def cost(law: Law, items: list[Item], convention: str = "symflops") -> tuple[int, int]:
    one = estimator(law, convention)
    moments = one.moments(**batch(law, items))
    return one.forward(moments), one.backward(moments)


def total(count: Callable[..., int] | None, items: list[Item]) -> int:
    """A count of the table over all items."""
    return sum(count(**item) for item in items) if count else 0


def operators(entry: Any) -> Iterator[dict[str, Any]]:
    """The operators of an entry, those of a graph in it included."""
    for fields in entry.values():
        if "op" in fields:
            yield fields
        for inner in fields.get("graph", ()):
            yield from operators(inner)


def test_every_operator_and_field_has_a_law() -> None:
    """An operator is registered with its laws, and a field with a law that uses it."""
    assert {law.kind for law in LAWS} >= KINDS.keys()
    used: dict[str, set[str]] = {}
    for law in LAWS:
        for fields in (fields for entry in law.entries for fields in operators(YAML(typ="safe").load(entry))):
            used.setdefault(fields["op"], set()).update(fields)
    for name, kind in KINDS.items():
        unused = {field.name for field in kind.fields} - used.get(name, set()) - TEMPLATES
        assert not unused, f"no law of '{name}' uses {', '.join(sorted(unused))}"


@EVERY
@QUICK
@given(data=st.data())
def test_work_is_what_counting_gives(law: Law, data: st.DataObject) -> None:
    items = data.draw(ragged(law))
    work, every, rows = (total(count, items) for count in (law.work, law.every or law.work, law.rows))
    for convention, amount in (("symflops", work), ("torch", every if law.seen else 0)):
        one = estimator(law, convention)
        moments = one.moments(**batch(law, items))
        modules = one.by_module(moments)
        mine = modules.get("one")
        assert (mine.forward if mine else 0) == 2 * amount
        assert modules["after"].forward == 2 * rows * law.width
        assert sum(flops.forward for flops in modules.values()) == one.forward(moments)
        if law.kind != "repeat":  # its first step has no gradient of the state before it
            assert (mine.backward if mine else 0) == 2 * law.gradients * amount
        reaches = any(flops.backward for name, flops in modules.items() if name.startswith("before"))
        assert reaches <= law.flows
        made = module(law)
        generated = made.Estimator(made.Sizes.from_config({}), regime="full", convention=convention)
        same = made.moments(**batch(law, items))
        assert (generated.forward(same), generated.backward(same)) == (one.forward(moments), one.backward(moments))


@EVERY
@QUICK
@given(data=st.data())
def test_costs_add_and_know_no_order(law: Law, data: st.DataObject) -> None:
    first, second = data.draw(ragged(law)), data.draw(ragged(law))
    one = estimator(law)
    sums = one.moments(**batch(law, first)) + one.moments(**batch(law, second))
    assert sums == one.moments(**batch(law, first + second))
    a, b, both = cost(law, first), cost(law, second), cost(law, first + second)
    assert (a[0] + b[0], a[1] + b[1]) == both
    assert cost(law, data.draw(st.permutations(first + second))) == both
    assert min(*a, *b) >= 0


@EVERY
@QUICK
@given(data=st.data())
def test_costs_grow_with_every_length(law: Law, data: st.DataObject) -> None:
    items = data.draw(ragged(law, 1))
    position, axis = data.draw(st.integers(0, len(items) - 1)), data.draw(st.sampled_from(sorted(items[0])))
    longer = [dict(item) for item in items]
    longer[position][axis] += law.legal(axis)[1]
    for convention in CONVENTIONS:
        less, more = cost(law, items, convention), cost(law, longer, convention)
        assert more[0] >= less[0] and more[1] >= less[1]


@EVERY
@QUICK
@given(data=st.data())
def test_work_grows_as_fast_as_stated(law: Law, data: st.DataObject) -> None:
    """Finite differences along each axis: those of one order more than its degree vanish, those of its degree do not."""
    (item,) = [{axis: length + law.legal(axis)[1] for axis, length in drawn.items()} for drawn in data.draw(ragged(law, 1))[:1]]
    for axis, (low, step) in {axis: law.legal(axis) for axis in item}.items():
        degree = law.degrees.get(axis, 0)
        line = [mine(law, {**item, axis: low + step * (steps + 1)}) for steps in range(degree + 4)]
        for _ in range(degree):
            line = [after - before for before, after in zip(line, line[1:], strict=False)]
        assert len(set(line)) == 1, (axis, degree)
        assert (line[0] > 0) == (degree > 0) or (degree == 0 and axis not in law.degrees)


def mine(law: Law, item: Item) -> int:
    """The forward work of the operator itself."""
    one = estimator(law)
    found = one.by_module(one.moments(**batch(law, [item]))).get("one")
    return found.forward if found else 0
