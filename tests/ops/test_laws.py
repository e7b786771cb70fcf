"""Every operator under the same laws: its cost adds over samples, knows no order, is never negative, grows with every length.

What belongs to a batch as a whole does not add, and says so: its moments refuse to; its cost is that of the whole batch.

Beside the laws there are the facts: it is what counting one by one gives, on ragged batches, from the program and from the module that
is generated of it; and it grows with each length as fast as the table says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, strategies as st
from ruamel.yaml import YAML

from symflops.api import CONVENTIONS, Model
from symflops.evaluate.batch import BatchError
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.ir.convention import Convention
from symflops.ops.kind import COMMON
from symflops.ops.table import KINDS
from symflops.read.field_tables import GROUP, REPEAT
from symflops.read.read import read
from symflops.read.spec_files import SpecFile
from symflops.support.findings import Source
from tests.sampling import draws
from tests.standalone import figures, published

from .laws import LAWS, Item, Law, each

TEMPLATES = {"weight", "bias_name", "tie"}  # where a parameter is stored says nothing about its cost
EXECUTED = Convention("executed", pairs="all", experts="executed")  # all that runs, whether a counter sees it or not
COUNTED = (*CONVENTIONS, EXECUTED.name)
FOLDER = TemporaryDirectory()
QUICK = draws(2, 4, 100, suppress_health_check=[HealthCheck.function_scoped_fixture])
EVERY = pytest.mark.parametrize("law", LAWS, ids=lambda law: f"{law.kind}-{LAWS.index(law)}")


@cache
def program(law: Law) -> Any:
    file = SpecFile(Path("."), Path("law.yaml"), "law.yaml")
    return Model(file, read(Source("law.yaml", law.spec()), lambda name: None)).program(["full"], [*CONVENTIONS, EXECUTED], {})


@cache
def estimator(law: Law, convention: str = "symflops") -> InterpretedEstimator:
    return InterpretedEstimator(program(law), {}, regime="full", convention=convention)


@cache
def module(law: Law) -> ModuleType:
    return published(program(law), name=f"law_{LAWS.index(law)}")


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


def written(entry: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """What an entry and those inside it say: the name of the operator or construct, and its fields."""
    for fields in entry.values() if len(entry) == 1 else (entry,):
        yield fields.get("op", "repeat" if "repeat" in fields else "group"), fields
        for inner in fields.get("graph", ()):
            yield from written(inner)


USED = [use for law in LAWS for entry in law.entries for use in written(YAML(typ="safe").load(entry))]


def test_every_operator_and_field_has_a_law() -> None:
    """An operator is registered with its laws, and a field, or a word that it allows, with a law that uses it."""
    assert {law.kind for law in LAWS} >= KINDS.keys()
    for name, kind in KINDS.items():
        mine = [fields for used, fields in USED if used == name]
        unused = {field.name for field in kind.fields} - TEMPLATES - {field for fields in mine for field in fields}
        assert not unused, f"no law of '{name}' uses {', '.join(sorted(unused))}"
        for field in kind.fields:
            unused = set(field.words) - {str(fields.get(field.name, field.default)) for fields in mine}
            assert not unused, f"no law of '{name}' has {', '.join(sorted(unused))} under '{field.name}'"


@pytest.mark.parametrize(("construct", "allowed"), [("repeat", [field.name for field in REPEAT]), ("group", [field.name for field in GROUP]), ("", [field.name for field in COMMON])])
def test_every_field_of_all_entries_has_a_law(construct: str, allowed: Iterable[str]) -> None:
    """Those of repeats and groups, and those that all operators share."""
    unused = set(allowed) - {field for used, fields in USED if used == construct or (not construct and used in KINDS) for field in fields}
    assert not unused, f"no law uses {', '.join(sorted(unused))}"


@EVERY
@QUICK
@given(data=st.data())
def test_work_is_what_counting_gives(law: Law, data: st.DataObject) -> None:
    items = data.draw(ragged(law))
    for convention in COUNTED:
        executed = convention != "symflops"
        amount = law.counted(executed and law.every or law.work, items, executed)
        seen, gradients = law.seen or convention != "torch", law.gradients
        if convention == "torch":
            gradients = (law.gradients if law.seen else 0) if law.seen_gradients is None else law.seen_gradients
        one = estimator(law, convention)
        moments = one.moments(**batch(law, items))
        modules = one.by_module(moments)
        assert mine(modules, "forward") == 2 * amount * seen
        assert modules["after"].forward == 2 * law.counted(law.rows, items, executed) * law.width
        assert sum(flops.forward for flops in modules.values()) == one.forward(moments)
        assert mine(modules, "backward") == 2 * gradients * amount
        for name, flops in modules.items():
            if name.startswith("before"):
                assert flops.backward == flops.forward * (name[-1] in law.reached)
        made = module(law)
        assert figures(made.formulas, made.formulas.Sizes(), batch(law, items), "full", convention)[2:] == (one.forward(moments), one.backward(moments))


@EVERY
@QUICK
@given(data=st.data())
def test_costs_add_and_know_no_order(law: Law, data: st.DataObject) -> None:
    first, second = data.draw(ragged(law)), data.draw(ragged(law))
    for convention in COUNTED:
        a, b, both = cost(law, first, convention), cost(law, second, convention), cost(law, first + second, convention)
        if (law.useful if convention == "symflops" else law.runs) is each:
            assert (a[0] + b[0], a[1] + b[1]) == both
        assert all(0 <= less <= more for part in (a, b) for less, more in zip(part, both, strict=True))
        assert cost(law, data.draw(st.permutations(first + second)), convention) == both


@EVERY
@QUICK
@given(data=st.data())
def test_moments_add_or_refuse_to(law: Law, data: st.DataObject) -> None:
    """Those of the interpreter and those of the module: they add where every item runs on its own, and nowhere else."""
    first, second = data.draw(ragged(law)), data.draw(ragged(law))
    for made, refusal in ((estimator(law), BatchError), (module(law), ValueError)):
        a, b, both = (made.moments(**batch(law, items)) for items in (first, second, first + second))
        if law.runs is each:
            assert a + b == both
        else:
            with pytest.raises(refusal, match="moments of one batch as a whole do not add"):
                a + b


@EVERY
@QUICK
@given(data=st.data())
def test_costs_grow_with_every_length(law: Law, data: st.DataObject) -> None:
    items = data.draw(ragged(law, 1))
    position, axis = data.draw(st.integers(0, len(items) - 1)), data.draw(st.sampled_from(sorted(items[0])))
    longer = [dict(item) for item in items]
    longer[position][axis] += law.legal(axis)[1]
    for convention in COUNTED:
        less, more = cost(law, items, convention), cost(law, longer, convention)
        assert more[0] >= less[0] and more[1] >= less[1]


@EVERY
@QUICK
@given(data=st.data())
def test_work_grows_as_fast_as_stated(law: Law, data: st.DataObject) -> None:
    """Finite differences along each axis, and along the number of equal items: those of one order more than its degree
    vanish, those of its degree do not.
    """
    (item,) = [{axis: length + law.legal(axis)[1] for axis, length in drawn.items()} for drawn in data.draw(ragged(law, 1))[:1]]
    for axis in (*item, "items"):
        degree = law.degree(axis)
        low, step = law.legal(axis)
        lengths = [low + step * (steps + 1) for steps in range(degree + 4)]
        line = [work(law, [item] * length if axis == "items" else [{**item, axis: length}]) for length in lengths]
        for _ in range(degree):
            line = [after - before for before, after in zip(line, line[1:], strict=False)]
        assert len(set(line)) == 1, (axis, degree)
        assert line[0] > 0 or degree == 0


def mine(modules: Any, side: str) -> int:
    """FLOPs of the entry that a law is about, what is inside it included."""
    return sum(getattr(flops, side) for name, flops in modules.items() if name == "one" or name.startswith("one."))


def done(modules: Any) -> dict[str, tuple[int, int]]:
    """FLOPs of both passes by module, of those that have any."""
    return {name: (flops.forward, flops.backward) for name, flops in modules.items() if flops.forward or flops.backward}


def work(law: Law, items: list[Item]) -> int:
    """The useful forward work of the entry that a law is about."""
    one = estimator(law)
    return mine(one.by_module(one.moments(**batch(law, items))), "forward")
