"""``symflops new``: a start that is valid, says what each part is for, and harms nothing that is there."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft7Validator
from ruamel.yaml import YAML

from symflops.cli.actions.check import findings
from symflops.cli.actions.new import COMMENTS, OTHERS
from symflops.cli.main import main
from symflops.read.field_tables import DOCUMENT, EXTENDS
from symflops.read.json_schema import schema
from symflops.read.spec_files import find_spec, roots, specs_in
from tests.sampling import sampled
from tests.shipped import load

NAMES = [file.name for file in specs_in(roots()[-1])]
VALIDATOR = Draft7Validator(json.loads(schema("spec")))


@pytest.mark.parametrize("like", sampled(sorted(NAMES, key=lambda name: find_spec(name).path.stat().st_size), 50, 24))
def test_a_start_like_each_shipped_spec_is_valid_and_commented(tmp_path, like):
    assert main(["new", "mine", "--like", like, "-o", str(tmp_path)]) == 0
    text = (tmp_path / "mine.yaml").read_text("utf-8")
    assert {finding.severity for finding in findings(find_spec(tmp_path / "mine.yaml"))} <= {"note"}
    assert text.startswith("# yaml-language-server: $schema=schema.json\n# mine, begun like ")
    assert json.loads((tmp_path / "schema.json").read_text("utf-8"))["title"] == "symflops spec"
    document = YAML(typ="safe", pure=True).load(text)
    assert not list(VALIDATOR.iter_errors(json.loads(json.dumps(document))))
    assert document["name"] == "mine" and not set(OTHERS) & document.keys()
    lines = text.split("\n")
    for key in COMMENTS.keys() & document.keys():
        position = next(number for number, line in enumerate(lines) if line.startswith(f"{key}:"))
        assert lines[position - 1].startswith("# "), key


@pytest.mark.parametrize("like", sampled(["llama", "qwen_image", "deepseek_v32", "whisper"], 4, 1))
def test_a_start_derives_what_the_other_one_does(tmp_path, like):
    assert main(["new", "mine", "--like", like, "-o", str(tmp_path)]) == 0
    mine, other = load(tmp_path / "mine.yaml").derive(config={}), load(like).derive(config={})
    assert (mine.forward, mine.backward) == (other.forward, other.backward)


def test_a_start_of_its_own_is_a_decoder_that_derives(tmp_path, capsys):
    assert main(["new", "mine", "-o", str(tmp_path / "specs")]) == 0
    assert main(["check", str(tmp_path / "specs/mine.yaml")]) == 0
    assert "all fine" in capsys.readouterr().err
    derived = load(tmp_path / "specs/mine.yaml").derive(convention="torch")
    assert derived.forward == {"x_padded": "4*L*D*(2*D + F) + 2*D*V", "xx_padded": "4*L*D"}
    assert derived.estimator({}).parameters == 32000 * 768 * 2 + 768 + 12 * (2 * 768 + 12 * 768**2)


def test_every_part_of_a_spec_that_needs_it_has_a_comment():
    assert set(COMMENTS) == {field.name for field in (*DOCUMENT, EXTENDS)} - {"language", "name", "title", *OTHERS}


def test_what_is_there_is_left_as_it_is(tmp_path, capsys):
    for taken in ("mine.yaml", "mine.cases.yaml"):
        folder = tmp_path / taken.replace(".", "_")
        folder.mkdir()
        (folder / taken).write_text("mine")
        assert main(["new", "mine", "--like", "llama", "-o", str(folder)]) == 2
        assert f"{taken} is there already" in capsys.readouterr().err
        assert [path.name for path in folder.iterdir()] == [taken] and (folder / taken).read_text() == "mine"


def test_a_schema_of_something_else_is_left_as_it_is_and_one_of_specs_is_used(tmp_path):
    (tmp_path / "schema.json").write_text("{}")
    assert main(["new", "mine", "-o", str(tmp_path)]) == 0
    assert (tmp_path / "schema.json").read_text() == "{}"
    assert (tmp_path / "mine.yaml").read_text().startswith("# yaml-language-server: $schema=symflops.schema.json\n")
    assert main(["new", "other", "-o", str(tmp_path / "more")]) == 0
    assert main(["new", "third", "-o", str(tmp_path / "more")]) == 0
    assert sorted(path.name for path in (tmp_path / "more").iterdir()) == ["other.yaml", "schema.json", "third.yaml"]


def test_a_start_in_a_library_uses_its_schema(tmp_path):
    (tmp_path / "schema.json").write_text(schema("spec"))
    assert main(["new", "mine", "-o", str(tmp_path / "language")]) == 0
    assert (tmp_path / "language/mine.yaml").read_text().startswith("# yaml-language-server: $schema=../schema.json\n")


@pytest.mark.parametrize("name", ["Mine", "my-model", "1st", "class", "a" * 60, "", "../mine", "yes"])
def test_a_name_that_cannot_be_one_is_refused(tmp_path, capsys, name):
    assert main(["new", name, "-o", str(tmp_path)]) == 2
    assert "cannot name a spec" in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_a_spec_that_there_is_not_is_named_with_the_nearest(tmp_path, capsys):
    assert main(["new", "mine", "--like", "lama", "-o", str(tmp_path)]) == 2
    assert "did you mean 'llama'" in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_a_spec_that_would_not_be_valid_in_its_new_place_leaves_nothing_behind(tmp_path, capsys):
    library = tmp_path / "specs"
    (library / "blocks").mkdir(parents=True)
    (library / "blocks/own.yaml").write_text("language: 2\ninputs: [x]\noutputs: [y]\ngraph: [{up: {op: linear, from: x, width: 4, to: y}}]\n")
    (library / "nn").mkdir()
    (library / "nn/one.yaml").write_text("language: 2\nname: one\nstreams: {text: [x]}\ninputs: {t: {stream: text, width: 4}}\ngraph: [{m: {block: own, from: t, to: o}}]\noutputs: [o]\n")
    assert main(["check", str(library / "nn/one.yaml")]) == 0
    capsys.readouterr()
    assert main(["new", "mine", "--like", str(library / "nn/one.yaml"), "-o", str(tmp_path / "away")]) == 1
    assert "unknown-block" in capsys.readouterr().err and not list((tmp_path / "away").iterdir())
