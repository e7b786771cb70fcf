"""One query over a table of lengths gives what Python's integers give, for every spec, and leaves out what a model cannot run."""

from __future__ import annotations

import random
from functools import cache

import duckdb
import pytest

from symflops.analysis.corpus import Priced, all_totals, summed_rows
from symflops.analysis.explanation import default_batch
from symflops.emit.sql.query import Writer
from symflops.emit.sql.sums import ENGINES, Substitution, lengths_up_to, whole
from symflops.formula.formula import Apply, Num, Prod, Sum, Sym, Table, number
from symflops.formula.table import Formulas
from symflops.library.lookup import interpreter
from symflops.support.errors import SymflopsError
from tests.sampling import sampled
from tests.shipped import FILES, NAMES, cases_of

DUCKDB, SPARK = ENGINES["duckdb"], ENGINES["spark"]
LONG = "SELECT CAST(1000000 - 7 * (id % 5) AS BIGINT) AS n FROM range(1000003)"
"""Samples of about a million tokens, 10**12 in all."""


def model_of(name, regime="full", convention="symflops"):
    return interpreter(name, cases_of(FILES[name])[0].config, regime, convention)


def columns_of(model):
    """A column per axis of each stream, named after it."""
    return {name: tuple(f"{name} {axis}" for axis in axes) or (name,) for rows in model.sets.values() for name, axes, _ in rows}


def batch_of(model, columns, rows):
    """Rows as the batch of an estimate; a stream without lengths has a number of items."""
    counts = {name for streams in model.sets.values() for name, axes, _ in streams if not axes}
    batch = {stream: [[row[one] for one in some] if len(some) > 1 else row[some[0]] for row in rows] for stream, some in columns.items()}
    return {stream: sum(entries) if stream in counts else entries for stream, entries in batch.items()}


def runs(model, columns, row):
    try:
        model.moments(**batch_of(model, columns, [row]))
    except SymflopsError:
        return False
    return True


@cache
def connection():
    return duckdb.connect()


def in_duckdb(names, rows, query):
    connection().execute("DROP TABLE IF EXISTS lengths")
    connection().execute(f"CREATE TABLE lengths ({', '.join(f'{DUCKDB.name(name)} BIGINT' for name in names)})")
    connection().executemany(f"INSERT INTO lengths VALUES ({', '.join('?' * len(names))})", [[row[name] for name in names] for row in rows])
    return rows_in_duckdb(query)


def rows_in_duckdb(query):
    found = connection().execute(query)
    return [dict(zip([column[0] for column in found.description], row)) for row in found.fetchall()]


def drawn(model, columns, seed):
    """Rows of lengths that divide as models divide them, and of others."""
    names, draw = [column for some in columns.values() for column in some], random.Random(seed)
    axes = {one: (len(own) > 1, axis) for rows in model.sets.values() for name, own, _ in rows for one, axis in zip(columns[name], own)}
    several = {one for one, (some, _) in axes.items() if some}
    known = {one: model.taken[axis] for one, (_, axis) in axes.items() if axis in model.taken}
    forms = [dict.fromkeys(names, length) | more for more in ({}, known, dict.fromkeys(several, 8)) for length in (224, 448, 3360, 32_000)]
    typical = {stream: entries[0] if isinstance(entries[0], list) else entries[:1] for stream, entries in default_batch(model).items() if isinstance(entries, list)}
    forms.append(dict.fromkeys(names, 1) | {one: length for stream, lengths in typical.items() for one, length in zip(columns[stream], lengths)})
    wide = next(form for form in forms if runs(model, columns, form))  # of small images: a text holds their tokens
    mixed = [[draw.choice((wide[name], 2 * wide[name], draw.randrange(300), draw.randrange(10))) for name in names] for _ in range(60)]
    even = [[wide[name] * draw.randrange(1, 4) for name in names] for _ in range(20)]
    return names, [wide, *(dict(zip(names, row)) for row in (*mixed, *even))]


def writer(engine, totals, **options):
    return Writer(engine, "lengths", lengths_up_to(totals), **options)


@pytest.mark.parametrize("name, regime", [*((name, "full") for name in sampled(NAMES, 16, 2)), ("llama", "full:head=given")])
def test_every_spec_sums_up_to_the_integers_of_python(name, regime):
    model = model_of(name, regime)
    columns = columns_of(model)
    if model.whole:
        with pytest.raises(SymflopsError, match="not sums over rows"):
            Priced(model, columns)
        return
    names, rows = drawn(model, columns, name)
    priced = Priced(model, columns)
    (row,) = in_duckdb(names, rows, writer(DUCKDB, priced.totals).aggregate(priced.totals))
    good = [row for row in rows if runs(model, columns, row)]
    assert good
    assert (priced.refused_rows(row), priced.moments(row)) == (len(rows) - len(good), model.moments(**batch_of(model, columns, good)))
    assert priced.figures(row)["total"] == model.total(priced.moments(row))


@pytest.mark.parametrize("name", sampled(["llama", "gemma3", "llama4", "bamba", "qwen_image", "wan", "qwen2_vl", "segformer", "cosmos", "wav2vec2"], 3, 1))
def test_the_cost_of_each_row_is_that_of_a_batch_of_one(name):
    model = model_of(name)
    columns = columns_of(model)
    names, rows = drawn(model, columns, name)
    priced = Priced(model, columns)
    query = writer(DUCKDB, priced.totals).costs({"flops": (priced.rows, priced.terms())}, {"flops": "HUGEINT"}, names)
    for row in in_duckdb(names, rows, query):
        cost = row.pop("flops")
        assert cost == (model.total(model.moments(**batch_of(model, columns, [row]))) if runs(model, columns, row) else None)


def test_several_models_share_one_scan_and_each_has_its_own_rows():
    """A model that cannot run a short row leaves it out; another one, in the same query, counts it."""
    pairs = [(model_of("llama"), {"text": ("n",)}), (model_of("vit"), {"images": ("h", "w")}), (model_of("wav2vec2"), {"audio": ("n",)}), (model_of("gemma3"), {"text": ("n",)})]
    side = pairs[1][0].taken["h"]
    rows = [{"n": -1, "h": side, "w": side}, {"n": 1, "h": side, "w": side}, {"n": 32_000, "h": 3, "w": 224}, {"n": 16_000, "h": side, "w": side}]
    models = [Priced(model, columns) for model, columns in pairs]
    totals = all_totals(models)
    (row,) = in_duckdb(["n", "h", "w"], rows, writer(DUCKDB, totals).aggregate(totals))
    for priced, (model, columns) in zip(models, pairs):
        good = [one for one in rows if runs(model, columns, one)]
        assert (priced.refused_rows(row), priced.moments(row)) == (len(rows) - len(good), model.moments(**batch_of(model, columns, good)))
    assert [priced.refused_rows(row) for priced in models] == [1, 1, 2, 1]


def test_a_row_without_images_has_none():
    model = model_of("qwen2_vl")
    columns = {"text": ("n",), "images": ("t", "h", "w")}
    rows = [
        {"n": 50, "t": None, "h": None, "w": None}, {"n": 40, "t": 1, "h": 8, "w": 16}, {"n": None, "t": 1, "h": 4, "w": 4},
        {"n": None, "t": None, "h": None, "w": None}, {"n": 9, "t": None, "h": 8, "w": 8}, {"n": -1, "t": 1, "h": 8, "w": 8}, {"n": 31, "t": 1, "h": 8, "w": 16},
    ]  # fmt: skip
    priced = Priced(model, columns)
    (row,) = in_duckdb(["n", "t", "h", "w"], rows, writer(DUCKDB, priced.totals).aggregate(priced.totals))
    assert (priced.refused_rows(row), priced.moments(row)) == (4, model.moments(text=[50, 40], images=[[1, 8, 16], [1, 4, 4]]))
    costs = rows_in_duckdb(writer(DUCKDB, priced.totals).costs({"f": (priced.rows, priced.terms())}, {"f": "HUGEINT"}, []))
    assert [one["f"] is None for one in costs] == [False, False, False, True, True, True, True]
    assert sum(one["f"] or 0 for one in costs) == priced.figures(row)["total"]


def expected_of_long(model):
    found = None
    for place in range(5):
        for value in model.moments(text=[1_000_000 - 7 * place]).values:
            found = found or []
            found.append(value * len(range(place, 1_000_003, 5)))
    width = len(found) // 5
    return tuple(sum(found[place::width]) for place in range(width))


def test_sums_are_exact_up_to_a_million_samples_of_a_million_tokens():
    models = [Priced(model_of(name), {"text": ("n",)}) for name in ("llama", "gemma3", "llama4")]
    totals = all_totals(models)
    connection().execute(f"CREATE OR REPLACE TABLE lengths AS {LONG.replace('range(1000003)', 'range(1000003) t(id)')}")
    (row,) = rows_in_duckdb(writer(DUCKDB, totals, checked=True).aggregate(totals))
    for priced in models:
        assert priced.moments(row).values == expected_of_long(priced.model)
    assert max(priced.moments(row).values) > 2**59


def test_a_query_names_what_it_sums_and_another_model_finds_it():
    one, two = (Priced(model_of("llama"), {"text": ("n",)}) for _ in range(2))
    assert {total.name for total in one.totals} == {total.name for total in two.totals}
    other = Priced(model_of("llama"), {"text": ("m",)})
    assert not {total.name for total in one.totals} & {total.name for total in other.totals}
    with pytest.raises(SymflopsError, match="no whole number for the sums of 'gemma3'"):
        Priced(model_of("gemma3"), {"text": ("n",)}).moments({"n_rows": 0, one.rows.count: 0})


def test_halves_are_put_together_and_floats_are_refused():
    priced = Priced(model_of("llama"), {"text": ("n",)})
    text = writer(SPARK, priced.totals).aggregate(priced.totals)
    square = next(total for total in priced.totals if f"{total.name}_hi" in text)
    row = {"n_rows": 2, priced.rows.count: 2, f"{square.name}_hi": 3, f"{square.name}_lo": 2**33 + 5}
    row |= {total.name: 11 for total in priced.totals if total is not square}
    assert (3 << 32) + 2**33 + 5 in priced.moments(row).values
    with pytest.raises(SymflopsError, match="no whole number"):
        priced.moments(row | {f"{square.name}_hi": 3.0})
    with pytest.raises(SymflopsError, match="which is no whole number"):
        summed_rows([row | {square.name: 1.5}])
    assert [whole(value) for value in (5, "-7", None, 1.5, "x", True)] == [5, -7, 0, None, None, None]


def test_groups_add_up():
    priced = Priced(model_of("llama"), {"text": ("n",)})
    rows = [{"n": n, "g": n % 3} for n in range(1, 41)]
    found = in_duckdb(["n", "g"], rows, writer(DUCKDB, priced.totals, by=("g",)).aggregate(priced.totals))
    assert [row["g"] for row in found] == [0, 1, 2]
    assert priced.moments(summed_rows(found)) == priced.model.moments(text=[row["n"] for row in rows])
    for row in found:
        assert priced.moments(row) == priced.model.moments(text=[one["n"] for one in rows if one["g"] == row["g"]])


def test_identifiers_are_quoted():
    name = 'a"; DROP TABLE lengths --\n'
    priced = Priced(model_of("llama"), {"text": (name,)})
    (row,) = in_duckdb([name], [{name: 3}, {name: 4}], writer(DUCKDB, priced.totals).aggregate(priced.totals))
    assert priced.moments(row) == priced.model.moments(text=[3, 4])


@pytest.mark.parametrize("formula", [Apply("floordiv", (Sum((Sym("n"), number(-7))), number(4))), Apply("mod", (Sum((Sym("n"), number(-7))), number(4))), Apply("excess", (Sum((Sym("n"), number(-3))),)), Apply("ceildiv", (Prod((number(3), Sym("n"))), number(8))), Apply("ceildiv", (Sum((number(-5), Sym("n"))), number(4)))])
def test_division_rounds_down_below_zero_too(formula):
    table = Table()
    position = table.add(formula)
    settled = Substitution(Formulas(table.rows), {}, {"n": Sym("n")}).of(position)
    assert not isinstance(settled, Num)
    from symflops.emit.sql.sums import SqlPrinter

    for wide in (False, True):
        text = SqlPrinter(DUCKDB, {"n": "n"}, wide).text(settled)
        found = connection().execute(f"SELECT n, {text} FROM range(20) t(n) ORDER BY n").fetchall()
        assert found == [(n, Formulas(table.rows).value(position, {"n": n})) for n in range(20)]
