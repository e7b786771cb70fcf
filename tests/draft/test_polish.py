"""Entries become what a person writes: sums and gates within operators, blocks of the library, no copies."""

from symflops.draft.polish.block_calls import called
from symflops.draft.polish.block_patterns import patterns_in
from symflops.draft.polish.polish import polished
from symflops.read.spec_files import roots


def linear(source, target, width="D", **further):
    return {"op": "linear", "from": source, "width": width, **further, "to": target}


def test_a_residual_is_added_to_and_its_copy_goes():
    entries = [
        ("a", linear("h", "t")),
        ("_", {"op": "add", "from": ["h", "t"], "to": "s"}),
        ("_", {"op": "add", "from": "s", "to": "h"}),
    ]
    assert polished(entries, {"h"}) == [("a", {"op": "linear", "from": "h", "width": "D", "add_to": "h"})]


def test_a_value_that_is_read_later_is_not_overwritten():
    entries = [
        ("a", linear("h", "t")),
        ("_", {"op": "add", "from": ["h", "t"], "to": "s"}),
        ("b", linear("h", "u")),
        ("c", linear("s", "w")),
    ]
    assert [fields.get("add_to") for _, fields in polished(entries, {"u", "w"})] == [None] * 4


def test_a_product_with_what_came_before_is_a_gate():
    entries = [("g", linear("x", "g")), ("a", linear("x", "t")), ("_", {"op": "mul", "from": ["t", "g"], "to": "s"})]
    assert polished(entries, {"s"})[1:] == [("a", {"op": "linear", "from": "x", "width": "D", "to": "s", "gate": "g"})]


def gated(last):
    return [
        ("mlp.gate_proj", linear("n", "g", "F", bias="false")),
        ("mlp.up_proj", linear("n", "u", "F", bias="false")),
        ("_", {"op": "mul", "from": ["g", "u"], "to": "m"}),
        ("mlp.down_proj", last),
    ]


def test_a_run_that_a_block_describes_is_a_call_of_it():
    patterns = patterns_in(roots()[0])
    entries = gated({"op": "linear", "from": "m", "width": "D", "bias": "false", "add_to": "h"})
    assert called(entries, patterns, set()) == [
        ("mlp", {"block": "gated_mlp", "from": "n", "hidden": "F", "width": "D", "add_to": "h"})
    ]


def test_a_run_of_other_widths_or_with_a_value_read_elsewhere_is_no_block():
    patterns = patterns_in(roots()[0])
    wide = gated(linear("m", "t", bias="false"))
    wide[1][1]["width"] = "2*F"
    assert len(called(wide, patterns, set())) == 4
    read = [*gated(linear("m", "t", bias="false")), ("x", linear("g", "z"))]
    assert len(called(read, patterns, set())) == 5


def product(*further):
    return [("a", linear("x", "t")), *further, ("_", {"op": "mul", "from": ["t", "g"], "to": "s"})]


def added(target="h"):
    return "_", {"op": "add", "from": ["h", "s"], "to": target}


def test_a_product_that_is_added_is_the_gate_of_what_is_added():
    expected = {"op": "linear", "from": "x", "width": "D", "gate": "g", "add_to": "h"}
    assert polished([*product(), added()], {"h"}) == [("a", expected)]


def test_a_sum_that_is_read_before_its_product_keeps_its_line():
    read = polished([*product(("b", linear("h", "u"))), added()], {"h", "u"})
    assert [fields.get("add_to") for _, fields in read] == [None, None, "h"]
    gate = polished([*product(("b", linear("x", "g"))), added()], {"h"})
    assert [key for key, _ in gate] == ["a", "b", "_"]
