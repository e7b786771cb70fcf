"""Names and texts of a stranger's spec in what is generated: nothing of them is code, and nothing of them is a macro."""

from __future__ import annotations

import ast
import contextlib
import json
import re

import pytest

from symflops.api import load
from symflops.emit.emit import emit
from symflops.support.findings import SpecError, SymflopsError
from tests.fuzz.mutators import INJECTIONS, SENTINEL
from tests.sampling import sampled
from tests.standalone import alone

SPEC = """language: 2
name: small
title: TITLE
sizes: {L: {key: layers, default: 2, doc: DOC}, D: {key: width, default: 4}, mode: {key: mode, default: DEFAULT, doc: DOC}}
streams: {text: [x]}
inputs: {t: {stream: text, width: D, layout: LAYOUT}}
graph:
  - PATH: {op: linear, from: t, width: D, when: WHEN, to: u}
  - o: {op: linear, from: t, width: D}
outputs: [o]
"""
MACROS = ("\\immediate\\write18{touch x}", "\\input{/etc/passwd}", "$\\def\\x{1}$", "\\end{document}", "%\n\\catcode`\\@=0", "#{}~^_&", "\\csname x\\endcsname", "``\\include''")
TEXTS = (*INJECTIONS, *MACROS, '"""', "'''", "\\", '"', "\\N{BULLET}", "\\x00", "{x}", "%s", "<< x >>", "<% for %>", "\n\n# x", '"""\nimport os\n"""')


def filled(**texts: str) -> str:
    quoted = {"TITLE": "small", "DOC": "a size", "DEFAULT": "'m'", "LAYOUT": "b x c", "PATH": "a"} | texts
    quoted["WHEN"] = f"mode == {quoted['DEFAULT']}"
    found = SPEC
    for name, text in quoted.items():
        found = found.replace(name, json.dumps(text))
    return found


def outputs(tmp_path, text: str) -> dict[str, str] | None:
    """What is generated, or None where the spec is refused with a diagnostic."""
    path = tmp_path / "small.yaml"
    path.write_text(text, "utf-8")
    try:
        return dict(emit(load(path).program(config={}), "0", ()))
    except SpecError:
        return None


def check(found: dict[str, str], clean: dict[str, str], tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = alone(found["py"], "small")
    module.parameters(module.Sizes())
    assert not (tmp_path / SENTINEL).exists()
    assert shape(found["py"]) == shape(clean["py"])
    known = set(re.findall(r"\\[A-Za-z]+", clean["tex"])) | {"\\textbackslash", "\\textasciicircum", "\\textasciitilde", "\\textquotedbl", "\\textasciigrave", "\\textless", "\\textgreater", "\\textbar", "\\dots", "\\to", "\\allowbreak"}
    body = re.sub(r"(?<!\\)%.*", "", found["tex"])
    assert set(re.findall(r"\\[A-Za-z]+", body.replace("\\textbackslash{}", ""))) <= known
    assert body.count("\\begin{document}") == body.count("\\end{document}") == 1


def shape(text: str) -> list[str]:
    """The kinds of the nodes of a module: texts may differ, code may not."""
    return [type(node).__name__ for node in ast.walk(ast.parse(text))]


@pytest.mark.parametrize("text", sampled(TEXTS, 9, 3), ids=lambda text: text[:20])
@pytest.mark.parametrize("place", ["TITLE", "DOC", "DEFAULT", "LAYOUT", "PATH"])
def test_a_text_stays_a_text(tmp_path, monkeypatch, place, text):
    given = "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'" if place == "DEFAULT" else text
    found = outputs(tmp_path, filled(**{place: given}))
    like = {"DEFAULT": f"'{'m' * (len(json.dumps(text)) - 2)}'"} if place == "DEFAULT" else {}  # what is long gets a name
    clean = outputs(tmp_path, filled(**like))
    assert clean is not None
    if found is not None:
        check(found, clean, tmp_path, monkeypatch)
    else:
        assert place in ("DEFAULT", "PATH", "LAYOUT") or "\\" in text or '"""' in text, "a title and a doc may say almost anything"


@pytest.mark.parametrize("text", sampled(TEXTS, 9, 3), ids=lambda text: text[:20])
@pytest.mark.parametrize("place", ["name: small", "L: {", "text: [x]", "[x]", "t: {", "key: layers"])
def test_a_name_is_refused(tmp_path, place, text):
    spec = filled()
    old = place.rstrip(":{ [").split(": ")[-1].strip("[]") if place != "text: [x]" else "text"
    new = spec.replace(place, place.replace(old, json.dumps(text), 1), 1)
    assert new != spec and outputs(tmp_path, new) is None


@pytest.mark.parametrize("text", MACROS)
def test_a_symbol_of_a_formula_is_refused(tmp_path, text):
    assert outputs(tmp_path, filled().replace("key: layers", f"key: layers, latex: {json.dumps(text)}")) is None


MIXED = """language: 2
name: mixed
sizes: {n: {key: n, default: 3}, any: {key: any, type: any, default: 1}, items: {key: items, type: list, default: "[]"}}
streams: {text: [x]}
inputs: {t: {stream: text, width: 4}}
graph:
  - o: {op: linear, from: t, width: EXPRESSION}
outputs: [o]
"""
COMPARING = ("1 if any == 3 else 2", "1 if 3 == any else 2", "1 if any == [3] else 2", "index(items, 3)", "1 + count(rev(items), 3)", "1 if 3 in rev(items) else 2", "any if 3 > 2 else items")


@pytest.mark.parametrize("expression", COMPARING)
@pytest.mark.parametrize("text", sampled(INJECTIONS, 9, 3), ids=lambda text: text[:20])
def test_a_text_of_a_config_that_meets_a_number_stays_a_text(tmp_path, monkeypatch, expression, text):
    """Sympy reads texts as Python where it compares a number of its own with a list of them."""
    path = tmp_path / "mixed.yaml"
    path.write_text(MIXED.replace("EXPRESSION", json.dumps(expression)), "utf-8")
    monkeypatch.chdir(tmp_path)
    seen = []
    monkeypatch.setattr("sympy.parsing.sympy_parser.parse_expr", lambda *given, **more: seen.append(given))
    for value in ([text], [[text]], [{"a": text}], [{text: 1}], [3, text]):
        with contextlib.suppress(SymflopsError):
            load(path).program(config={"any": value, "items": value})
        assert not seen and not (tmp_path / SENTINEL).exists()


def test_a_number_too_large_for_a_list(tmp_path):
    path = tmp_path / "mixed.yaml"
    path.write_text(MIXED.replace("EXPRESSION", json.dumps("len(range(n))")), "utf-8")
    with pytest.raises(SymflopsError, match="a list has at most"):
        load(path).program(config={"n": 10**14})


@pytest.mark.parametrize("name", ["/", "..", "a/b", "", "."])
def test_the_base_of_a_spec_is_a_name(tmp_path, name):
    path = tmp_path / "mixed.yaml"
    path.write_text(f"extends: {json.dumps(name)}\nlanguage: 2\nname: mixed\n", "utf-8")
    with pytest.raises(SymflopsError, match="there is no spec"):
        load(path)
