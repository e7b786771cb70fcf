"""``baseline``: formulas evaluate to the difference at any length, causes sum to it, crossings are where the costs cross."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import pytest

from symflops.analysis.baseline import Comparison, against, compared, sources_of
from symflops.api import Model, load
from symflops.cli.actions.check import findings
from symflops.cli.main import main
from symflops.emit.emit import page_of
from symflops.emit.html.curves import picture
from symflops.emit.latex.document import render_page as latex
from symflops.emit.markdown.document import render_page as markdown
from symflops.emit.page.sections import document
from symflops.emit.page.sections_against import plot_of
from symflops.formula.formula import evaluate
from symflops.read.spec_files import find_spec, shipped, specs_in
from tests.sampling import sampled
from tests.shipped import load as shared

NAMES = [file.name for file in specs_in(shipped("specs")) if shared(file.name).spec.baseline]
OWN = """language: 2
name: mine
title: A decoder of my own
extends: dense_decoder
baseline: BASELINE
sizes:
  S: {key: steps, default: 3, doc: iterations}
streams:
  picture: [m]
inputs:
  patches: {stream: picture, width: 16}
graph:
  - patch: {before: blocks, op: linear, from: patches, width: D, to: p}
  - {before: blocks, op: concat, along: tokens, from: [h, p], to: h}
"""


def own(tmp_path: Path, baseline: str) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(OWN.replace("BASELINE", baseline))
    return path


def comparison(model: Model) -> Comparison:
    found = compared(model, "full", "symflops")
    assert found is not None
    return found


def costs(found: Comparison, lengths: dict[str, int]) -> list[tuple[int, int]]:
    """FLOPs of both passes, of the model and of its baseline."""
    sides = (found.own.estimator, found.batch(lengths)), (found.base.estimator, found.baseline_batch(lengths))
    moments = [(model, model.moments(**batch)) for model, batch in sides]
    return [(model.forward(m), model.backward(m)) for model, m in moments]


def check_formulas(model: Model, random: Random) -> None:
    """Both formulas at drawn lengths, also where the lengths that grow together do not."""
    found, told = comparison(model), against(model)
    assert told is not None and told.points
    tried = [length for length in (random.randrange(1, 400) * 64 for _ in range(6)) if found.costs(length)]
    for length in tried or [point.length for point in told.points[:3]]:
        lengths = found.lengths(length)
        own, base = costs(found, lengths)
        for place, terms in enumerate((told.forward, told.backward)):
            value = sum(
                evaluate(formula, found.sizes) * evaluate(moment.formula, {**found.sizes, **lengths}) for moment, formula in terms
            )
            assert value == own[place] - base[place], (model.spec.name, length)


@pytest.mark.parametrize("name", sampled(NAMES, 4, 1))
def test_formulas_evaluate_to_the_difference_at_any_length(name: str) -> None:
    check_formulas(shared(name), Random(name))


@pytest.mark.parametrize("name", sampled(NAMES, 4, 1))
def test_causes_sum_to_the_difference(name: str) -> None:
    told = against(shared(name))
    assert told is not None
    change = told.own.less(told.base)
    for what in ("parameters", "forward", "backward"):
        assert sum(getattr(row.figures, what) for row in told.causes) == getattr(change, what)
    assert {row.alone for row in told.causes} <= {"", name, told.baseline}


@pytest.mark.parametrize("name", sampled(NAMES, 4, 1))
def test_costs_cross_where_it_says(name: str) -> None:
    found, told = comparison(shared(name)), against(shared(name))
    assert told is not None
    for turn in told.crossings:
        assert found.less(turn.length) is turn.less
        before = next(length for length in range(turn.length - 1, 0, -1) if found.less(length) is not None)
        assert found.less(before) is not turn.less or turn.length > 2 * 1024
    signs = [point.own < point.base for point in told.points]
    assert sum(one != two for one, two in zip(signs, signs[1:], strict=False)) == len(told.crossings)


@pytest.mark.thorough
def test_what_papers_say_they_are_for() -> None:
    """Each begins to cost less somewhere, or always does; transfusion buys bidirectional images with more pairs."""
    last = {name: against(shared(name)).points[-1].ratio for name in NAMES}
    assert [name for name, ratio in last.items() if ratio >= 1] == ["transfusion"]
    assert len(NAMES) == 18


def test_a_length_of_equal_cost_in_closed_form() -> None:
    told = markdown(page("linformer"), "0")
    assert re.search(r"n\^\{\*\} =\{\}& 2 r\b", told)  # twice the rank: 512 of 256
    assert [turn.length for turn in against(shared("linformer")).crossings] == [513]


def page(name: str):
    model = shared(name)
    program = model.typical()
    return document(page_of(program, (), ("full", "forward"), (), against(model, program)))


@pytest.mark.parametrize("name", sampled(NAMES, 18, 5))
def test_the_section_of_a_page_prints_in_all_formats(name: str, tmp_path: Path) -> None:
    told = against(shared(name))
    for text in (latex(page(name), "0"), markdown(page(name), "0")):
        assert "Beside" in text and f"{told.own.total:,}" in text.replace("{,}", ",").replace(r"\,", ",")
    assert main(["render", name, "--full", "--format", "html", "-o", str(tmp_path)]) == 0
    text = (tmp_path / f"{name}.html").read_text("utf-8")
    assert 'id="against"' in text and text.count('class="curve-0"') == 2


def test_a_page_without_a_baseline_has_no_such_section() -> None:
    assert against(shared("llama")) is None
    assert all(getattr(part, "id", "") != "against" for part in page("dense_decoder").parts)


@pytest.mark.parametrize("name", sampled(NAMES, 10, 2))
def test_the_plot_is_the_same_each_time_and_has_all_points(name: str) -> None:
    told = against(shared(name))
    plot = plot_of(told, name)
    text = picture(plot)
    assert text == picture(plot_of(against(load(find_spec(name))), name))
    root = ElementTree.fromstring(text)
    lines = [one for one in root.iter() if one.tag.endswith("polyline")]
    assert [len(line.get("points", "").split()) for line in lines] == [len(told.points)] * 2
    box = [float(number) for number in root.get("viewBox", "").split()]
    for x, y in (pair.split(",") for line in lines for pair in line.get("points", "").split()):
        assert 0 <= float(x) <= box[2] and 0 <= float(y) <= box[3]


# specs of one's own


MAPPED = "{spec: dense_decoder, config: {layers: L + S, hidden: F//2}, batch: {text: 2*n + m}, lengths: {m: n//2 + 3}}"


@pytest.mark.parametrize("baseline", sampled(["dense_decoder", "dense_encoder", MAPPED, "{spec: mine, config: {width: 2*D}}"], 2, 1))
def test_any_spec_may_name_a_baseline(tmp_path: Path, baseline: str) -> None:
    path = own(tmp_path, baseline)
    assert not [finding for finding in findings(find_spec(path)) if finding.severity == "error"]
    check_formulas(load(path), Random(baseline))
    names = {Path(source.path).stem for source in sources_of(load(path))}
    assert re.search(r"\w+", baseline.removeprefix("{spec: "))[0] in names


@pytest.mark.parametrize(("baseline", "code", "said", "hint"), [
    ("dense_decodr", "unknown-spec", "there is no spec 'dense_decodr'", "did you mean 'dense_decoder'"),
    ("{spec: dense_decoder, config: {layer: 2}}", "unknown-size", "'dense_decoder' has no field 'layer'", "did you mean 'layers'"),
    ("{spec: dense_decoder, batch: {txt: n}}", "unknown-stream", "'dense_decoder' has no stream 'txt'", "did you mean 'text'"),
    ("{spec: dense_decoder, lengths: {k: n}}", "unknown-stream", "this spec has no length 'k'", "it has n, m"),
    ("{spec: dense_decoder, lengths: {n: 3, m: 4}}", "bad-field", "no length is left to grow", "leave one out"),
    ("{spec: dense_decoder, config: {layers: 2*Q}}", "unknown-size", "size 'Q' is not declared", "declare it"),
    ("{spec: dense_decoder, config: {layers: \"[1]\"}}", "bad-field", "does not compare", "'config' says"),
    ("{spec: dense_decoder, batch: {text: 0*n}}", "bad-field", "takes none of the lengths", "'config' says"),
    ("{spec: dense_decoder, batch: {text: n/3}}", "bad-field", "takes none of the lengths", "'config' says"),
    ("{batch: {text: n}}", "missing-field", "a baseline needs 'spec'", "compared with"),
    ("{spec: dense_decoder, confg: {}}", "unknown-field", "a baseline has no field 'confg'", "did you mean 'config'"),
    ("[dense_decoder]", "bad-shape", "a baseline must be a mapping", "write"),
    ("{spec: dense_decoder, config: {\"a b\": 1}}", "bad-key", "'a b' is not a place in a config", "words"),
])  # fmt: skip
def test_what_does_not_compare_is_a_finding(tmp_path: Path, baseline: str, code: str, said: str, hint: str) -> None:
    path = own(tmp_path, baseline)
    found = [finding for finding in findings(find_spec(path)) if finding.severity == "error"]
    assert [finding.code for finding in found][:1] == [code]
    assert said in found[0].message and hint in found[0].hint and found[0].span.line == 5
    if code in ("unknown-spec", "unknown-size", "unknown-stream"):
        assert load(path).estimator({}).parameters  # a baseline decides no figure


def test_a_spec_without_defaults_has_its_names_checked(tmp_path: Path) -> None:
    path = own(tmp_path, "{spec: dense_decoder, config: {layer: S}}")
    path.write_text(path.read_text().replace("default: 3, ", ""))
    assert [finding.code for finding in findings(find_spec(path))][:1] == ["unknown-size"]
    path.write_text(path.read_text().replace("layer: S", "layers: S"))
    assert against(load(path)) is None


# the command


def test_diff_with_one_name_is_against_its_baseline(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "transfusion", "--json"]) == 0
    told, page = json.loads(capsys.readouterr().out), against(shared("transfusion"))
    assert (told["first"], told["second"]) == ("dense_decoder", "transfusion")
    assert told["forward"] == {"first": page.base.forward, "second": page.own.forward, "difference": page.own.less(page.base).forward}
    assert sum(one["backward"] for one in told["causes"]) == told["backward"]["difference"]
    assert main(["diff", "transfusion"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("transfusion less dense_decoder, regime full") and all(len(line) <= 80 for line in out.splitlines())


@pytest.mark.parametrize(("words", "said"), [
    (["llama"], "names no baseline: say B"), (["linformer/none"], "at its defaults alone"), (["linformer", "--batch", "{}"], "--batch is of two models"),
])  # fmt: skip
def test_diff_with_one_name_says_what_is_missing(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", *words]) == 2
    assert said in capsys.readouterr().err
