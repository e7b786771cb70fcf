"""Names and texts of a stranger's spec in what is generated: nothing of them is code, and nothing of them is a macro."""

from __future__ import annotations

import ast
import json
import re
import types

import pytest

from symflops.api import load
from symflops.ground.diagnostics import SpecError
from symflops.stages.emit import emit
from tests.fuzz.mutators import INJECTIONS, SENTINEL

SPEC = """name: small
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
    module = types.ModuleType("small")
    exec(compile(found["py"], "small.py", "exec"), module.__dict__)
    module.Estimator(module.Sizes.from_config({})).parameters  # noqa: B018
    assert not (tmp_path / SENTINEL).exists()
    assert shape(found["py"]) == shape(clean["py"])
    known = set(re.findall(r"\\[A-Za-z]+", clean["tex"])) | {"\\textbackslash", "\\textasciicircum", "\\textasciitilde", "\\textquotedbl", "\\textasciigrave", "\\textless", "\\textgreater", "\\textbar", "\\dots", "\\to", "\\allowbreak"}
    body = re.sub(r"(?<!\\)%.*", "", found["tex"])
    assert set(re.findall(r"\\[A-Za-z]+", body.replace("\\textbackslash{}", ""))) <= known
    assert body.count("\\begin{document}") == body.count("\\end{document}") == 1


def shape(text: str) -> list[str]:
    """The kinds of the nodes of a module: texts may differ, code may not."""
    return [type(node).__name__ for node in ast.walk(ast.parse(text))]


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:20])
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


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:20])
@pytest.mark.parametrize("place", ["name: small", "L: {", "text: [x]", "[x]", "t: {", "key: layers"])
def test_a_name_is_refused(tmp_path, place, text):
    spec = filled()
    old = place.rstrip(":{ [").split(": ")[-1].strip("[]") if place != "text: [x]" else "text"
    new = spec.replace(place, place.replace(old, json.dumps(text), 1), 1)
    assert new != spec and outputs(tmp_path, new) is None


@pytest.mark.parametrize("text", MACROS)
def test_a_symbol_of_a_formula_is_refused(tmp_path, text):
    assert outputs(tmp_path, filled().replace("key: layers", f"key: layers, latex: {json.dumps(text)}")) is None
