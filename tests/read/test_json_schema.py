"""The JSON Schema of the language: valid, up to date, no narrower than the shipped pages and no wider than what the reader knows."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path

import pytest
from jsonschema import Draft7Validator
from ruamel.yaml import YAML

from symflops.cli.main import main
from symflops.ops.kind import COMMON
from symflops.ops.table import ALL
from symflops.read import field_tables as tables
from symflops.read.conventions import read_convention
from symflops.read.json_schema import PAGES, schema
from symflops.read.read import read
from symflops.read.regimes import read_regime
from symflops.support.findings import Source, SpecError
from tests.sampling import amount, sampled

ROOT = Path(__file__).resolve().parents[2]
FILES = {"spec": "specs/schema.json", "block": "specs/blocks/schema.json", "regime": "symflops/regimes/schema.json", "convention": "symflops/conventions/schema.json"}
VALIDATORS = {page: Draft7Validator(json.loads(schema(page))) for page in PAGES}
SPECS = [path for path in sorted(ROOT.glob("specs/*/*.yaml")) if path.parent.name != "blocks" and "." not in path.stem]
SHIPPED = {
    "spec": SPECS,
    "block": sorted(ROOT.glob("specs/blocks/*.yaml")),
    "regime": sorted(ROOT.glob("symflops/regimes/*.yaml")),
    "convention": sorted(ROOT.glob("symflops/conventions/*.yaml")),
}
EVERY = [(page, path) for page, paths in SHIPPED.items() for path in paths]


def texts(value):
    """A document as JSON has it: keys are texts."""
    if isinstance(value, dict):
        return {str(key): texts(item) for key, item in value.items()}
    return [texts(item) for item in value] if isinstance(value, list) else value


@cache
def loaded(text: str):
    return texts(YAML(typ="safe", pure=True).load(text))


def mistakes(page: str, document) -> list[str]:
    return [f"{list(error.absolute_path)}: {error.message[:200]}" for error in VALIDATORS[page].iter_errors(document)]


@pytest.mark.parametrize("page", PAGES)
def test_the_schema_is_valid_and_the_shipped_file_is_up_to_date(page, capsys):
    Draft7Validator.check_schema(VALIDATORS[page].schema)
    assert main(["schema", page]) == 0
    assert capsys.readouterr().out == (ROOT / FILES[page]).read_text("utf-8"), f"symflops schema {page} -o {FILES[page]}"


@pytest.mark.parametrize(("page", "path"), sampled(EVERY, 6, 1), ids=lambda value: value if isinstance(value, str) else value.stem)
def test_every_shipped_page_fits_and_names_its_schema(page, path):
    text = path.read_text("utf-8")
    assert mistakes(page, loaded(text)) == []
    first, line = "# yaml-language-server: $schema=", text.split("\n")[0]
    assert line.startswith(first)
    assert (path.parent / line.removeprefix(first)).resolve() == ROOT / FILES[page]


def test_there_are_as_many_specs_as_are_shipped():
    assert len(SPECS) >= 127


def mappings(value, where=()):
    """Every mapping of a document with its place."""
    if isinstance(value, dict):
        yield where, value
        for key, item in value.items():
            yield from mappings(item, (*where, key))
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from mappings(item, (*where, position))


def known_fields(where: tuple, found: dict) -> bool:
    """Whether a mapping of a spec has fields that the language fixes, rather than names that its author chooses."""
    if not where:
        return True
    if where[0] in ("sizes", "inputs"):
        return len(where) == 2
    return any(key in found for key in ("op", "repeat"))


@pytest.mark.parametrize("path", sampled(SPECS, 8, 1), ids=lambda path: path.stem)
def test_a_key_that_nothing_reads_is_refused(path):
    document = loaded(path.read_text("utf-8"))
    places = [where for where, found in mappings(document) if known_fields(where, found) and where[:1] != ("variants",)]
    assert places
    for where in places[:: max(1, len(places) // amount(4, 40))]:
        changed = copy.deepcopy(document)
        inner = changed
        for key in where:
            inner = inner[key]
        inner["colour"] = "red"
        assert not VALIDATORS["spec"].is_valid(changed), where


@pytest.mark.parametrize(("page", "path"), [case for case in EVERY if case[0] in ("regime", "convention", "block")], ids=lambda value: value if isinstance(value, str) else value.stem)
def test_a_key_of_another_page_that_nothing_reads_is_refused(page, path):
    document = loaded(path.read_text("utf-8"))
    assert mistakes(page, {**document, "colour": "red"})


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
def test_every_operator_and_field_is_covered(kind):
    found = VALIDATORS["spec"].schema["definitions"][f"op_{kind.name}"]
    assert set(found["properties"]) == {field.name for field in (*COMMON, *kind.fields)}
    assert set(found["required"]) == {"op", *(field.name for field in kind.fields if field.required)}
    head = {"language": 2, "name": "small", "outputs": ["o"]}
    entry = {"op": kind.name, **{field.name: field.words[0] if field.words else "x" for field in kind.fields if field.required and field.form.name != "FLAG"}}
    assert not mistakes("spec", {**head, "graph": [{"o": entry}]})
    assert mistakes("spec", {**head, "graph": [{"o": {**entry, "colour": 1}}]})
    for field in kind.fields:
        if field.required:
            assert mistakes("spec", {**head, "graph": [{"o": {name: value for name, value in entry.items() if name != field.name}}]})
        if field.words and field.form.name == "WORD":
            assert mistakes("spec", {**head, "graph": [{"o": {**entry, field.name: "no such word"}}]})


# what the schema takes, the reader takes, and the other way round
BODIES = (
    "{op: linear, from: t, width: 4}", "{op: linear, from: t}", "{op: linear, from: t, width: 4, widht: 4}", "{op: linaer, from: t}",
    "{repeat: 2, graph: []}", "{repeat: 2}", "{repeat: 2, graph: [], indx: i}", "{repeat: {axis: x}, graph: []}", "{repeat: {of: t}, graph: []}",
    "{graph: []}", "{graph: [], lst: true}", "{experts: 4, from: t, graph: [], list: true}", "{}", "{width: 3}", "[]", "linear",
    "{op: attention, heads: 1, query: t, key: t, value: t, mask: casual}", "{op: attention, heads: 1, query: t, key: t, value: t, mask: causal}",
    "{op: linear, from: t, width: 4, tie: a.weight}", "{op: linear, from: t, width: 4, tie: {to: a.weight, when: D > 2}}",
    "{op: linear, from: t, width: 4, tie: {when: D > 2}}", "{op: linear, from: t, width: 4, tie: {to: a, if: D > 2}}",
    "{graph: [{op: linear, from: t, width: 4}]}", "{graph: [{op: linear, from: t, widht: 4}]}", "{graph: [{op: linaer}]}",
    "{graph: [{repeat: 2, graph: [{op: add, from: [t, t], to: t}]}]}", "{graph: [{repeat: {axis: x}, graph: []}]}", "{graph: [{graph: []}]}",
    "{graph: [{block: {op: linear, from: t, width: 4}}]}", "{graph: [{op: {op: linear, from: t, width: 4}}]}", "{graph: [{}]}",
    "{repeat: [1, 2], graph: []}", "{op: parameter, shape: [2, [3]]}", "{op: linear, from: t, width: 4, split: [1, 3], to: [u, o]}",
    "{repeat: 2, graph: [], shared: maybe}", "{graph: [], list: 3}", "{op: mul, from: t, role: norm}", "{op: mul, from: t, role: nrm}",
)  # fmt: skip


@pytest.mark.parametrize("body", BODIES)
def test_the_schema_and_the_reader_agree(body):
    text = f"language: 2\nname: small\nsizes: {{D: width}}\nstreams: {{text: [x]}}\ninputs: {{t: {{stream: text, width: D}}}}\ngraph:\n  - o: {body}\noutputs: [o]\n"
    try:
        read(Source("small.yaml", text), lambda name: None)
        readable = True
    except SpecError:
        readable = False
    assert (mistakes("spec", loaded(text)) == []) == readable


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("regime", "name: a\ntrain: ['*']\n"), ("regime", "name: a\nadapters: [{targets: ['*'], rank: 4}]\n"), ("regime", "name: a\nadapters: [{rank: 4}]\n"),
        ("regime", "name: a\ndecode: stop\n"), ("regime", "name: a\nrecompute: {every: 2}\n"), ("regime", "name: a\npasses: {forward: 2}\n"), ("regime", "name: a\nlenient: perhaps\n"),
        ("convention", "name: a\n"), ("convention", "doc: b\n"), ("convention", "name: a\nroles: {norm: no}\n"), ("convention", "name: a\nroles: {nrm: no}\n"),
        ("convention", "name: a\npairs: {causal: half}\n"), ("convention", "name: a\npairs: {casual: half}\n"), ("convention", "name: a\nbackward: 2\n"),
        ("convention", "name: a\nbackward: {trained: 2}\n"), ("convention", "name: a\nunit: bits\n"), ("convention", "name: a\nattention_backward: 4\n"),
    ],
)  # fmt: skip
def test_the_schema_and_the_readers_of_pages_agree(page, text):
    try:
        {"regime": read_regime, "convention": read_convention}[page](Source("mine.yaml", text))
        readable = True
    except SpecError:
        readable = False
    assert (mistakes(page, loaded(text)) == []) == readable


def test_every_table_of_the_reader_is_in_a_schema():
    """A table that a reader gets and no page shows would be a field that editors call wrong."""
    shown = {page: schema(page) for page in PAGES}
    for name, table in vars(tables).items():
        if name.isupper() and isinstance(table, tuple) and table and isinstance(table[0], type(COMMON[0])):
            for field in table:
                assert any(f'"{field.name}"' in text for text in shown.values()), f"{name}: {field.name}"
