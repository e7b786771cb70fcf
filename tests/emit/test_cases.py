"""One table of cases: random sizes and batches under every stored regime and convention of every structure of every spec.

Each is answered by the generated module alone in an empty interpreter, by the interpreter of the stored program, by the script of
the page and, where a query can, by SQL: equal to the last digit.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from symflops.analysis.corpus import Priced
from symflops.emit.javascript import script
from symflops.emit.sql.query import Writer
from symflops.emit.sql.sums import ENGINES, lengths_up_to
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.published import put
from symflops.evaluate.stored import Stored, config_value
from symflops.ir.index_sets import PADDED
from symflops.ir.serialise import program_of
from symflops.support.errors import SymflopsError
from tests.emit.script_reader import Script
from tests.sampling import amount, sampled
from tests.shipped import FILES, cases_of
from tests.standalone import MODULES, ROOT

PATHS = [str(path.relative_to(ROOT / "generated").with_suffix("")) for path in MODULES]
CONFIGS, BATCHES = amount(2, 6), amount(2, 5)
ALONE = """
import importlib.util, json, sys
from fractions import Fraction

def value(given):
    if isinstance(given, dict):
        return Fraction(given["fraction"])
    return tuple(map(value, given)) if isinstance(given, list) else given

path, cases = json.load(sys.stdin)
spec = importlib.util.spec_from_file_location("alone", path)
alone = sys.modules["alone"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(alone)
found = []
for sizes, batch, regime, convention in cases:
    s = alone.Sizes(**{name: value(given) for name, given in sizes.items()})
    own = [s] if "sizes" in alone.moments.__annotations__ else []
    try:
        m = alone.moments(*own, **batch)
        found.append([*alone.parameters(s, regime), alone.forward(s, m, regime, convention), alone.backward(s, m, regime, convention)])
    except (ValueError, ZeroDivisionError) as error:
        found.append(str(error))
assert not any(name.partition(".")[0] == "symflops" for name in sys.modules)
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Case:
    """A model on a batch, and the four figures of the interpreter, or None if it refuses the batch."""

    one: InterpretedEstimator
    batch: dict[str, Any]
    figures: list[int] | None


@cache
def document(path: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "generated" / f"{path}.json").read_bytes())
    return found


def live_cases(name: str) -> list[Any]:
    """The live cases of a spec; specs of papers may have none."""
    return list(cases_of(FILES[name])) if name in FILES else []


def configs(path: str, draw: random.Random) -> Iterator[dict[str, Any]]:
    """Configs of a structure: what decides it, those of live cases, and others with other numbers and flags."""
    stored = Stored(document(path))
    fields = {row["letter"]: row for row in stored.document["fields"]}
    base: dict[str, Any] = {}
    for letter, given in stored.fixed:
        put(base, fields[letter]["keys"], json.loads(json.dumps(given)))
    cases = [dict(case.config) for case in live_cases(stored.name)]
    yield from (base, *cases[:2])
    for _ in range(CONFIGS):
        config = json.loads(json.dumps(draw.choice([base, *cases]), default=float))
        for row in stored.document["fields"]:
            default = row.get("default")
            known = stored.formulas.nodes[default["formula"]] if isinstance(default, dict) and "formula" in default else None
            if row["letter"] in dict(stored.fixed) or draw.random() < 0.5:
                continue
            if row["kind"] == "number" and isinstance(known, int):
                put(config, row["keys"], known * draw.choice((1, 2, 3)))
            elif row["kind"] == "count" and isinstance(known, int):
                put(config, row["keys"], max(0, known + draw.randint(-3, 3)))
            elif row["kind"] == "flag":
                put(config, row["keys"], draw.random() < 0.5)
        yield config


def batches(one: InterpretedEstimator, draw: random.Random) -> Iterator[dict[str, Any]]:
    """Ragged batches of lengths that many models divide, or that the class takes, and of others."""
    for case in live_cases(one.name)[:1]:
        yield dict(case.batch)
    for _ in range(BATCHES):
        batch: dict[str, Any] = {}
        for streams in one.sets.values():
            count = draw.randint(1, 3)
            for name, axes, _ in streams:
                if one.streams[name] and draw.random() < 0.4:
                    continue
                rows = [[one.taken.get(axis) or (draw.choice((0, 1, 5, 48, 336, 1000)) if len(axes) == 1 else 48 * draw.randint(0, 3)) for axis in axes] for _ in range(count)]
                batch[name] = count if not axes else [row[0] for row in rows] if len(axes) == 1 else rows
        yield batch


def made(path: str) -> Iterator[Case]:
    """The cases of a structure."""
    draw = random.Random(path)
    for config in configs(path, draw):
        for regime in document(path)["regimes"]:
            for convention in ("symflops", "torch"):
                try:
                    one = InterpretedEstimator(document(path), config, regime=regime["name"], convention=convention)
                except SymflopsError:
                    continue  # of another structure, or with sizes that do not fit each other
                if one.parameters_active is not None and one.parameters_active > one.parameters:
                    continue  # more experts are chosen than there are, which printings alone do not refuse
                for batch in batches(one, draw):
                    try:
                        m = one.moments(**batch)
                        figures = [one.parameters, one.trainable_parameters, one.forward(m), one.backward(m)]
                    except SymflopsError:
                        figures = None
                    yield Case(one, batch, figures)


def as_json(value: Any) -> Any:
    """A size as JSON."""
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    return [as_json(item) for item in value] if isinstance(value, tuple) else value


def answers_alone(path: str, cases: list[Case]) -> list[Any]:
    """What the module alone says, in an interpreter without symflops and without site-packages."""
    rows = document(path)["fields"]
    asked = [
        ({row["attribute"]: as_json(config_value(case.one.sizes[row["letter"]])) for row in rows}, case.batch, case.one.regime, case.one.convention)
        for case in cases
    ]  # fmt: skip
    words = [sys.executable, "-I", "-S", "-c", ALONE]
    done = subprocess.run(words, input=json.dumps([str(ROOT / "generated" / f"{path}.py"), asked]), capture_output=True, text=True, cwd=Path("/"))
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


def columns(one: InterpretedEstimator, batch: dict[str, Any]) -> dict[str, list[int]]:
    """The lengths of a batch by axis, as a script takes them."""
    found = one._batches.read(batch)
    names = [axis or name for streams in one.sets.values() for name, axes, _ in streams for axis in axes or ("",)]
    return dict(zip(names, map(list, found.real), strict=True))


def answer_of_script(text: str, case: Case) -> tuple[Any, ...]:
    """Forward and backward by the script of a page."""
    fields = document_fields(case)
    mine = columns(case.one, case.batch).__getitem__
    one = Script(text, fields)
    return one.flops(case.one.regime, case.one.convention, one.moments(mine, mine, case.one.padded))[:2]


def document_fields(case: Case) -> dict[str, Any]:
    """The sizes of a case by the names of a script."""
    found = {}
    for row in case.one.stored.document["fields"]:
        value = case.one.sizes[row["letter"]]
        rational = row["kind"] == "rational" and value is not None
        found[row["attribute"]] = [value.numerator, value.denominator] if rational else value
    return found


def answer_of_query(case: Case) -> int | None:
    """Both passes by a query over a table with a row per item; None if no query can price the batch."""
    import duckdb

    one, (items, streams) = case.one, next(iter(case.one.sets.items()), ("", ()))
    if items != "samples" or len(one.sets) > 1 or one.whole or any(not axes or name not in case.batch for name, axes, _ in streams):
        return None
    priced = Priced(one, {name: tuple(f"{name} {axis}" for axis in axes) for name, axes, _ in streams})
    names = [f"{name} {axis}" for name, axes, _ in streams for axis in axes]
    rows = [[length for entry in entries for length in (entry if isinstance(entry, (list, tuple)) else [entry])] for entries in zip(*(case.batch[name] for name, _, _ in streams), strict=True)]
    engine = ENGINES["duckdb"]
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE lengths ({', '.join(f'{engine.name(name)} BIGINT' for name in names)})")
        connection.executemany(f"INSERT INTO lengths VALUES ({', '.join('?' * len(names))})", rows)
        found = connection.execute(Writer(engine, "lengths", lengths_up_to(priced.totals)).aggregate(priced.totals))
        row = dict(zip([column[0] for column in found.description], found.fetchone() or (), strict=True))
    total: int = priced.figures(row)["total"]
    return None if priced.refused_rows(row) else total


@pytest.mark.parametrize("path", sampled(PATHS, 14, 3))
def test_every_printing_answers_alike(path: str) -> None:
    cases = list(made(path))
    good = [case for case in cases if case.figures is not None]
    assert good, "no batch that the model takes"
    for case, found in zip(cases, answers_alone(path, cases), strict=True):
        told = f"{path} {case.one.regime} {case.one.convention} {case.batch}"
        assert isinstance(found, str) if case.figures is None else found == case.figures, told
    draw = random.Random(path)
    text = script.render(program_of(document(path)), "0")
    for case in draw.sample(good, min(len(good), BATCHES * 2)):
        assert case.figures is not None
        assert answer_of_script(text, case) == tuple(case.figures[2:]), (path, case.batch)
        queried = answer_of_query(case)
        assert queried is None or queried == sum(case.figures[2:]), (path, case.batch)


def test_a_module_counts_padded_lengths_where_a_convention_does() -> None:
    """A batch that gives both sides: the module alone takes the side that the convention counts."""
    one = InterpretedEstimator(document("language/llama"), {}, convention="torch")
    assert dict(one.stored.document["lengths"])["torch"] == PADDED
    both = one.moments(text={"lengths": [3, 5], "padded": [8, 8]})
    (found,) = answers_alone("language/llama", [Case(one, {"text": [8, 8]}, None)])
    assert found[2:] == [one.forward(both), one.backward(both)]
