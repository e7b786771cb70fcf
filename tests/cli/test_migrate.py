"""``symflops migrate``: what it rewrites means the same, and keeps comments, order and every other line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from symflops.api import load
from symflops.cli.main import main
from symflops.read.edits import unquoted
from symflops.read.migration import migrated
from symflops.support.findings import Source, SpecError
from tests.sampling import sampled

OLD = Path(__file__).resolve().parents[1] / "data" / "language_1"
"""Specs of version 1, with figures that the last symflops of that version derived from them."""
FIGURES = json.loads((OLD / "figures.json").read_text("utf-8"))
SMALL = """# a comment above
name: small
sizes: {D: {key: width, default: 4}, tied: {key: tied, default: false}, k: {key: kernel, default: "[1, 2]"}}   # letters
streams: {text: [x]}
inputs:
  t: {stream: text, layout: "b x"}
graph:
  - embed: {op: embedding, from: t, rows: 9, width: D, to: h}
  - _:                                # why it is here
      repeat: 2
      index: i

      graph:
        - layers.{i}: {op: linear, from: h, width: D, to: n}   # a linear
        # before the activation
        - act: {op: mul, from: n, to: n}
        - _: {op: view, from: n, to: h}
  - head: {op: linear, from: h, width: 9, bias: false, weight: "{'/embed.weight' if tied else ''}", to: o}
  - last: {op: view, as: crop, from: o, axes: {x: x - 1}, to: o}   # the last one
outputs: [o]
"""
NEW = """# a comment above
language: 2
name: small
sizes: {D: {key: width, default: 4}, tied: {key: tied, default: false}, k: {key: kernel, default: [1, 2]}}   # letters
streams: {text: [x]}
inputs:
  t: {stream: text, layout: b x}
graph:
  - embed: {op: embedding, from: t, rows: 9, width: D, to: h}
  # why it is here
  - repeat: 2
    index: i

    graph:
      - layers.{i}: {op: linear, from: h, width: D, to: n}   # a linear
      # before the activation
      - act: {op: act, from: n, to: n}
      - {op: identity, from: n, to: h}
  - head: {op: linear, from: h, width: 9, bias: false, tie: {to: embed.weight, when: tied}, to: o}
  - last: {op: slice, from: o, axes: {x: x - 1}, to: o}   # the last one
outputs: [o]
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    """The old specs, rewritten."""
    folder = tmp_path_factory.mktemp("old") / "specs"
    shutil.copytree(OLD, folder)
    assert main(["migrate", str(folder)]) == 0
    return folder


def rewritten(text: str) -> str:
    return migrated(Source("small.yaml", text))


@pytest.mark.parametrize("row", sampled(FIGURES, 3, 1), ids=lambda row: f"{row['spec']}-{row['regime']}")
def test_a_rewritten_spec_has_the_figures_of_the_old_one(library, row):
    estimator = load(str(library / f"{row['spec']}.yaml")).estimator({}, row["regime"])
    moments = estimator.moments(**{name: [tuple(one) if isinstance(one, list) else one for one in lengths] for name, lengths in row["batch"].items()})
    assert estimator.parameters == row["parameters"]
    assert (estimator.forward(moments), estimator.backward(moments)) == (row["forward"], row["backward"])


def test_comments_order_and_other_lines_stay():
    assert rewritten(SMALL) == NEW


@pytest.mark.parametrize("path", sorted(OLD.glob("*/*.yaml")), ids=lambda path: path.stem)
def test_every_comment_is_kept_and_the_second_time_nothing_changes(path):
    text = path.read_text("utf-8")
    new = rewritten(text)
    comments = [line.partition(" #")[2].strip() for line in text.split("\n") if " #" in line and '"' not in line]
    assert all(comment in new for comment in comments)
    assert new != text and rewritten(new) == new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("graph: [{_: {op: mul, from: [a, b], to: c}}]", "language: 2\ngraph: [{op: mul, from: [a, b], to: c}]"),
        ("graph: [_: {op: view, from: a, as: batch, to: c}]", "language: 2\ngraph: [{op: flatten_batch, from: a, to: c}]"),
        ("graph: [{act: {op: mul, from: [a, b], act: 'f', to: c}}]", "language: 2\ngraph: [{act: {op: act, from: [a, b], of: f, to: c}}]"),
        ("graph: [{v: {as: pool, op: view, from: a, stream: s}}]", "language: 2\ngraph: [{v: {op: pool, from: a, stream: s}}]"),
        ("graph: [{v: {op: view, from: a, as: reshape}}]", "language: 2\ngraph: [{v: {op: identity, from: a}}]"),
        ("graph:\n- v:\n    op: view\n    as: pad   # wider\n    axes: {x: x + 1}\n", "language: 2\ngraph:\n- v:\n    op: pad\n       # wider\n    axes: {x: x + 1}\n"),
        ("graph:\n- v:\n    op: view\n    as: pad\n    axes: {x: x + 1}\n", "language: 2\ngraph:\n- v:\n    op: pad\n    axes: {x: x + 1}\n"),
        ("graph: [{l: {op: linear, weight: /a.b.weight}}]", "language: 2\ngraph: [{l: {op: linear, tie: a.b.weight}}]"),
        ("graph: [{l: {op: linear, weight: own}}]", "language: 2\ngraph: [{l: {op: linear, weight: own}}]"),
        ("graph: [{l: {op: linear, split: '[a, b[0]]', when: \"k == 'x'\"}}]", "language: 2\ngraph: [{l: {op: linear, split: '[a, b[0]]', when: k == 'x'}}]"),
        ("params: {a: 'null', b: 'false'}\ngraph: []", "language: 2\nparams: {a: 'null', b: false}\ngraph: []"),
        ("graph:\r\n- _:\r\n    repeat: 2 # c\r\n    graph: []\r\n", "language: 2\r\ngraph:\r\n- repeat: 2 # c\r\n  graph: []\r\n"),
        ("graph:\n  - _:   # é 🎉\n      {op: add, from: a,\n       to: b}\n", "language: 2\ngraph:\n  # é 🎉\n  - {op: add, from: a,\n     to: b}\n"),
        ("extends: a\ngraph: [{_: {when: x}}, {_: null}]", "language: 2\nextends: a\ngraph: [{_: {when: x}}, {_: null}]"),
        ("{graph: []}", "{language: 2, graph: []}"),
        ("language: 1\ngraph: []", "language: 2\ngraph: []"),
    ],
)  # fmt: skip
def test_each_idiom(old, new):
    assert rewritten(old) == new
    assert rewritten(new) == new


def test_an_unknown_version_is_left_alone():
    with pytest.raises(SpecError, match="there is no version '3'"):
        rewritten("language: 3\ngraph: []")


def test_quotes_that_change_the_meaning_stay():
    text = "streams: {s: {x: 'x'}}\ngraph:\n  - a: {op: zeros, stream: 's', width: 'max(a, b)', to: '_', doc: 'a'}\n"
    assert unquoted(text) == "streams: {s: {x: x}}\ngraph:\n  - a: {op: zeros, stream: 's', width: 'max(a, b)', to: _, doc: 'a'}\n"


def test_files_that_cannot_be_read_are_named_on_one_line_and_the_others_are_rewritten(tmp_path, capsys):
    (tmp_path / "bad.yaml").write_text("graph: [\n", "utf-8")
    (tmp_path / "fine.yaml").write_text(SMALL, "utf-8")
    (tmp_path / "case.yaml").write_text("- config: {graph: 1}\n", "utf-8")
    (tmp_path / "binary.yaml").write_bytes(b"graph: \xff\xfe")
    assert main(["migrate", str(tmp_path), str(tmp_path / "none.yaml"), str(tmp_path / "case.yaml")]) == 1
    printed = capsys.readouterr()
    assert printed.out == f"{tmp_path / 'fine.yaml'}\n"
    assert (tmp_path / "fine.yaml").read_text("utf-8") == NEW
    *lines, last = printed.err.rstrip("\n").split("\n")
    assert [line.split(":")[0].rpartition("/")[2] for line in lines] == ["bad.yaml", "binary.yaml", "none.yaml", "case.yaml is no spec or block"]
    assert last.endswith("4 cannot be read")


def test_check_writes_nothing(tmp_path, capsys):
    path = tmp_path / "small.yaml"
    path.write_text(SMALL, "utf-8")
    assert main(["migrate", str(path), "--check"]) == 1
    assert path.read_text("utf-8") == SMALL and capsys.readouterr().out == f"{path}\n"
    assert main(["migrate", str(path)]) == 0
    assert main(["migrate", str(path), "--check"]) == 0


def test_a_spec_or_block_of_version_1_is_refused_with_the_command(tmp_path, capsys):
    folder = tmp_path / "specs"
    shutil.copytree(OLD, folder)
    for old in ("language/gpt2.yaml", "language/t5.yaml"):
        assert main(["check", str(folder / old)]) == 1
        printed = capsys.readouterr().err
        assert printed.count("error[") == 1 and f"symflops migrate specs/{old}" in printed
    assert main(["migrate", str(folder / "language/gpt2.yaml"), str(folder / "language/t5.yaml")]) == 0
    for new, other in (("language/gpt2.yaml", "decoder_head.yaml"), ("language/t5.yaml", "t5_encoder.yaml")):
        assert main(["check", str(folder / new)]) == 1
        printed = capsys.readouterr().err
        assert printed.count("error[") == 1 and "symflops migrate" in printed and other in printed


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("- _: {op: linear, from: t, width: D, to: o}", "'_' is not a path"),
        ("- {oop: linear, from: t}", "this entry says not what it is"),
        ("- {op: add, from: t, form: D, to: o}", "has no field 'form'"),
        ("- {op: linear, from: t, width: D, tie: {when: D > 2}, to: o}", "'tie' needs 'to'"),
        ("- {op: view, from: t, to: o}", "there is no operator 'view'"),
        ("- {op: parameter, shape: [1, D_ff, 3], to: o}", "size 'D_ff' is not declared"),
        ("- {}", "an entry is one path with its fields"),
    ],
)
def test_mistakes_in_the_new_forms_are_one_finding_each(tmp_path, capsys, entry, told):
    path = tmp_path / "small.yaml"
    head = "language: 2\nname: small\nsizes: {D: width}\nstreams: {text: [x]}\ninputs: {t: {stream: text, width: D}}\ngraph:\n"
    path.write_text(f"{head}  - a: {{op: linear, from: t, width: D, to: o}}\n  {entry}\noutputs: [o]\n", "utf-8")
    assert main(["check", str(path)]) == 1
    printed = capsys.readouterr().err
    assert printed.count("error[") == 1 and told in printed


def test_an_operator_whose_result_has_no_name_is_told(tmp_path, capsys):
    path = tmp_path / "small.yaml"
    head = "language: 2\nname: small\nsizes: {D: width}\nstreams: {text: [x]}\ninputs: {t: {stream: text, width: D}}\ngraph:\n"
    path.write_text(f"{head}  - a: {{op: linear, from: t, width: D, to: o}}\n  - {{op: add, from: [t, t]}}\noutputs: [o]\n", "utf-8")
    assert main(["check", str(path)]) == 0
    assert "warning[unused-value]" in capsys.readouterr().err
