"""Several configs of a class in one spec: what merging says, and that it says no more than that."""

import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from symflops.api import load
from symflops.cli.main import main
from symflops.draft.fit.conditions import Setting, guards_between
from symflops.draft.polish.merge import Branch, entries_of, joined, merged
from symflops.draft.write.dimensions import Unsolved
from symflops.draft.write.draft_document import Document
from symflops.support.errors import SymflopsError

MODULE = Path(__file__).parent / "own_model.py"
CONFIG = {"words": 53, "width": 20, "hidden": 36, "depth": 3}
INPUTS = {"tokens": {"shape": [2, 9], "dtype": "int64"}}

bodies = st.recursive(
    st.lists(st.sampled_from("abcd").map(lambda key: (key, {"op": "add"})), max_size=5),
    lambda inner: st.lists(
        st.one_of(
            st.sampled_from("abcd").map(lambda key: (key, {"op": "add"})),
            inner.map(lambda graph: ("r", {"repeat": "L", "graph": graph})),
        ),
        max_size=4,
    ),
    max_leaves=12,
)


def left_of(entries, number):
    """What the entries of one branch are in a merged list."""
    found = []
    for entry in entries:
        if number in entry.branches:
            body = {} if entry.body is None else {"graph": left_of(entry.body, number)}
            found.append((entry.key, {**entry.fields, **body}))
    return found


@given(st.lists(bodies, min_size=2, max_size=3))
def test_each_branch_is_left_as_it_was(branches):
    merged = entries_of(branches[0], 0)
    for number, entries in enumerate(branches[1:], 1):
        merged = joined(merged, entries_of(entries, number))
    for number, entries in enumerate(branches):
        assert left_of(merged, number) == entries


def test_what_both_have_stands_once():
    one = [("a", {"op": "add"}), ("b", {"op": "mul"}), ("c", {"op": "add"})]
    other = [("a", {"op": "add"}), ("c", {"op": "add"})]
    merged = joined(entries_of(one, 0), entries_of(other, 1))
    assert [(entry.key, sorted(entry.branches)) for entry in merged] == [("a", [0, 1]), ("b", [0]), ("c", [0, 1])]


def test_conditions_ask_for_the_fewest_fields():
    configs = [{"g": False, "act": "relu"}, {"g": True, "act": "relu"}, {"g": True, "act": "silu"}]
    guards = guards_between(configs, ["g", "act"], set(), ["", "b", "c"])
    assert guards.of(frozenset([0, 1, 2])) == ""
    assert guards.of(frozenset([0])) == "not g"
    assert guards.of(frozenset([1, 2])) == "g"
    assert guards.of(frozenset([2])) == "act == 'silu'"
    assert guards.of(frozenset([1])) == "(g and act == 'relu')"
    assert guards_between(configs[:2], ["act", "g"], set(), ["", "b"]).sizes == {"g": {"key": "g", "default": "false"}}


def test_a_dimension_without_a_formula_is_noted_once():
    note = Unsolved("a: width", (4, 6))
    entries = [("a", {"op": "linear", "from": "tokens", "width": "4", "to": "h"})]
    document = Document("Tiny", "", {}, {}, {"text": ["x"]}, {"tokens": {"stream": "text"}}, entries, ["h"], [note])
    branches = [Branch(name, document, {"wide": bool(name)}, {"wide": bool(name)}) for name in ("", "wide")]
    assert merged(branches).unsolved == [note]


def test_null_is_asked_for_as_such():
    rank = Setting("r", "q_rank", (None, 32))
    assert rank.among([0]) == "r == null"
    assert rank.among([1]) == "r != null"


def test_configs_that_do_not_differ_are_told():
    with pytest.raises(SymflopsError, match="wide"):
        guards_between([{"a": 0.5}, {"a": 0.7}], ["a"], set(), ["", "wide"])


def run(folder, capsys, *further):
    for name, data in (("config", CONFIG), ("inputs", INPUTS), ("gated", {"gated": True})):
        (folder / f"{name}.json").write_text(json.dumps(data))
    files = ("--config", str(folder / "config.json"), "--inputs", str(folder / "inputs.json"), "--timeout", "600")
    code = main(["draft", f"{MODULE}:Switched", *files, *further])
    return code, capsys.readouterr()


@pytest.mark.nightly
def test_both_variants_are_proven_in_one_spec(tmp_path, capsys):
    spec = tmp_path / "switched.yaml"
    code, printed = run(tmp_path, capsys, "--variant", f"gated={tmp_path / 'gated.json'}", "--json", "-o", str(spec))
    report = json.loads(printed.out)
    assert code == 0, report
    assert sum(proof["at"].startswith("gated: ") for proof in report["proofs"]) >= 5
    text = spec.read_text("utf-8")
    assert text.count("when: gated") == 2  # the gate and the product
    assert "not gated" not in text
    model = load(spec)
    width, hidden, depth = 16, 40, 5
    for gated, linears in ((False, 2), (True, 3)):
        config = {"words": 7, "width": width, "hidden": hidden, "depth": depth, "gated": gated}
        estimator = model.estimator(config, "full", "torch")
        (stream,) = (stream.name for stream in estimator.program.streams)
        assert estimator.forward(estimator.moments(**{stream: [11, 3]})) == 2 * 14 * depth * linears * width * hidden
        assert estimator.parameters == 7 * width + depth * linears * width * hidden


def test_a_variant_without_a_file_is_a_message(tmp_path, capsys):
    code, printed = run(tmp_path, capsys, "--variant", "gated")
    assert code == 2
    assert "NAME=FILE" in printed.err
    code, printed = run(tmp_path, capsys, "--variant-inputs", f"gated={tmp_path / 'inputs.json'}")
    assert code == 2
    assert "there is no --variant gated" in printed.err


def test_a_word_that_no_config_has_is_as_the_first():
    act = Setting("act", "act", ("relu", "silu", "gelu"))
    assert act.among([1]) == "act == 'silu'"
    assert act.among([1, 2]) == "act == 'silu' or act == 'gelu'"
    assert act.among([0, 1]) == "act != 'gelu'"
    assert act.among([0]) == "not (act == 'silu' or act == 'gelu')"
