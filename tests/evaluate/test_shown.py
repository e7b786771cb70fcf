"""What a notebook and an interactive session see: short reprs, tables, rows as plain data, signatures that say what they take."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

import symflops
from symflops import api
from symflops.analysis.explanation import Explanation
from symflops.evaluate.module_tree import html_table
from symflops.evaluate.stored import stored_of
from symflops.library.catalog import PACKAGE, catalogs
from symflops.library.lookup import interpreter
from symflops.lookup import by_name, estimator
from symflops.support.errors import SymflopsError
from symflops.training.devices.peaks import peak
from tests.sampling import sampled
from tests.shipped import FILES, NAMES, cases_of, load

LONGEST = 200
PLAIN = (str, int, float, bool, type(None))


def config_of(name: str) -> dict[str, Any]:
    required = any(row.get("required") for row in by_name(name).program(name)["fields"])
    return {**cases_of(FILES[name])[0].config} if required else {}


def objects(name: str) -> dict[str, Any]:
    """Every kind of object that a call of the published API returns."""
    model, config = load(name), config_of(name)
    derived = model.derive(config=config)
    bound = model.estimator(config)
    found = {
        "model": model, "spec": model.spec, "derived": derived, "program": derived.program, "case": derived.case, "graph": model.graph(config),
        "derivation": model.derivation(config=config), "estimator": bound, "stored": stored_of(derived.program), "catalog": by_name(name),
        "explanation": Explanation(bound), "regime": api.regime_of("lora"), "convention": api.convention_of("megatron"),
    }  # fmt: skip
    found["generated"] = estimator(by_name(name), name, config)[1]
    found["meter"] = symflops.MFUMeter(bound, devices=8, peak_tflops=989)
    return found


@pytest.mark.parametrize("name", ["llama", "unet_2d_condition", "deepseek_v3", "bilinear", "qwen3_vl", "wan"])
def test_reprs_are_short_and_say_what_it_is(name):
    for kind, one in objects(name).items():
        if kind == "explanation":  # it prints its tree, under the title
            assert repr(one).startswith(load(name).spec.title)
            continue
        told = repr(one)
        assert len(told) <= LONGEST and "\n" not in told, (kind, len(told))
        assert not re.search(r" at 0x[0-9a-f]+", told), (kind, told)
        assert kind in ("regime", "convention", "meter", "catalog", "case") or name in told, (kind, told)


def test_a_repr_of_a_long_regime_is_short():
    regime = '{"name": "mine", "train": [' + ", ".join(f'"layers.{place}.*"' for place in range(50)) + "]}"
    model = load("llama").estimator({}, "full")
    model.regime = regime
    assert len(repr(model)) <= LONGEST and len(repr(peak("x" * 50))) <= LONGEST


@pytest.mark.parametrize("name", sampled(NAMES, 4, 1))
def test_rows_are_flat_and_alike(name):
    told = Explanation(interpreter(name, config_of(name)))
    for rows in (told.rows, told.top(5)):
        assert rows and all(row.keys() == rows[0].keys() for row in rows)
        assert all(type(value) in PLAIN for row in rows for value in row.values())
        kinds = [{type(row[key]) for row in rows} for key in rows[0]]
        assert all(len(kind) == 1 for kind in kinds)


def test_rows_of_comparisons_are_flat_and_alike():
    batch = {"text": [64]}
    for rows in (symflops.compare("llama", batch), symflops.compare("llama", batch, conventions=["symflops", "torch"])):
        assert all(row.keys() == rows[0].keys() and all(type(value) in PLAIN for value in row.values()) for row in rows)


def test_explain_takes_what_a_caller_has(tmp_path):
    (tmp_path / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    model, batch = load("llama"), {"text": [512]}
    wanted = symflops.estimate({"architectures": ["LlamaForCausalLM"]}, batch)["total"]
    for one in ("llama", "LlamaForCausalLM", tmp_path, str(tmp_path), model, model.estimator({}), {"architectures": ["LlamaForCausalLM"]}, FILES["llama"].path):
        assert symflops.explain(one, batch).estimate["total"] == wanted
    assert symflops.explain("llama", batch, config={"num_hidden_layers": 1}).estimate["total"] < wanted


def test_an_estimator_is_taken_under_the_regime_that_is_asked_for():
    batch, bound = {"text": [512]}, load("llama").estimator({})
    for regime, convention in (("forward", None), (None, "torch"), ("lora", "torch")):
        told = symflops.explain(bound, batch, regime=regime, convention=convention).estimate
        wanted = load("llama").estimator({}, regime or "full", convention or "symflops")
        assert told["total"] == wanted.total(wanted.moments(**batch))
    rows = symflops.compare(bound, batch, regimes=["full", "forward"])
    assert rows[1]["total"] * 3 == rows[0]["total"]


def test_compare_is_what_the_command_prints(capsys):
    import json

    from symflops.cli.main import main

    batch = {"text": [64]}
    assert main(["compare", "llama", "--batch", json.dumps(batch), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["regimes"] == symflops.compare("llama", batch)
    with pytest.raises(SymflopsError, match="not both"):
        symflops.compare("llama", batch, regimes=["full", "lora"], conventions=["torch", "symflops"])


@pytest.mark.parametrize("name", ["llama", "unet_2d_condition", "qwen3_vl"])
def test_notebooks_see_tables(name):
    model = load(name)
    told = Explanation(model.estimator(config_of(name)))
    for one, wanted in ((model, {size.name.text for size in model.spec.sizes}), (told, {row["name"] for row in told.rows if row["total"]})):
        text = one._repr_html_()
        cells = set(re.findall(r"<td[^>]*>\s*([^<]*)</td>", text))
        assert wanted <= cells and text.count("<tr>") == text.count("</tr>")
    assert f"{told.estimate['forward']:,}" in told._repr_html_()
    assert "\\begin{aligned}" in model.derive(config=config_of(name))._repr_latex_()


def test_nothing_of_a_table_is_markup():
    assert html_table("<b>", ("a",), [("<script>",)]).count("<script") == 0


def test_no_signature_hides_its_options():
    """A call takes any word as a stream of a batch, and nothing else."""
    hidden, folders = [], ("api.py", "lookup.py", "__init__.py", "evaluate", "library", "training")
    assert all((Path(PACKAGE) / name).exists() for name in folders)
    for path in sorted(Path(PACKAGE).rglob("*.py")):
        if path.relative_to(PACKAGE).parts[0] in folders:
            whole = ast.parse(path.read_text("utf-8")).body
            for node in (*whole, *(inner for outer in whole if isinstance(outer, ast.ClassDef) for inner in outer.body)):
                if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and node.args.kwarg:
                    kwarg = node.args.kwarg
                    if ast.unparse(kwarg.annotation) == "Any" and kwarg.arg not in ("streams", "batch", "_", "named", "header", "kargs"):
                        hidden.append(f"{path.name}: {node.name}(**{kwarg.arg})")
    assert hidden == []


def test_catalogs_are_told_by_their_kind():
    assert all(repr(catalog).startswith("<Catalog of ") for catalog in catalogs())
