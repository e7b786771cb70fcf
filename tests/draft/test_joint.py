"""Attention over the tokens of several streams is written with lists where the streams go apart again."""

import copy

import pytest

from symflops.draft.polish.polish import split_joint
from symflops.draft.write.values import Val

X, Y = (5, 7, 9), (4, 4, 6)
BOTH = tuple(map(sum, zip(X, Y, strict=True)))
WIDTH = (8, 8, 8)
VALUES = {name: Val(name, Y if name[0] == "t" else X, WIDTH, False, "t" if name[0] == "t" else "x") for name in
          ("q", "k", "v", "tq", "tk", "tv", "a_x", "ta", "a_x2")}  # fmt: skip


def view(source, target, **further):
    return "_", {"op": "select", "from": source, "stream": {"m": "x"}, **further, "to": target}


def joint():
    return [
        *(("_", {"op": "concat", "along": "tokens", "from": [f"t{one}", one], "to": f"j{one}"}) for one in "qkv"),
        ("attn", {"op": "attention", "heads": "H", "query": "jq", "key": "jk", "value": "jv", "to": "a"}),
        view("a", "a_x"),
        ("out", {"op": "linear", "from": "a_x", "width": "D", "to": "o"}),
        view("a", "ta"),
        ("out2", {"op": "linear", "from": "ta", "width": "D", "to": "o2"}),
    ]


def test_joined_sides_are_lists_and_so_are_the_results():
    entries = joint()
    split_joint(entries, VALUES, entries, ["o", "o2"])
    assert [key for key, _ in entries] == ["attn", "out", "out2"]
    expected = {"op": "attention", "heads": "H", "query": ["tq", "q"], "key": ["tk", "k"], "value": ["tv", "v"], "to": ["ta", "a_x"]}
    assert entries[0][1] == expected


def test_a_part_that_nobody_reads_has_no_name_and_one_read_twice_has_one():
    entries = joint()
    entries[6:] = [view("a", "a_x2"), ("out2", {"op": "linear", "from": "a_x2", "width": "D", "to": "o2"})]
    split_joint(entries, VALUES, entries, ["o", "o2"])
    assert entries[0][1]["to"] == ["_", "a_x"]
    assert [fields["from"] for _, fields in entries[1:]] == ["a_x", "a_x"]


@pytest.mark.parametrize(
    "spoiled",
    [
        lambda entries: entries.append(("all", {"op": "linear", "from": "a", "width": "D", "to": "o3"})),
        lambda entries: entries.append(("more", {"op": "linear", "from": "jk", "width": "D", "to": "o3"})),
        lambda entries: entries[4][1].update(width="4"),
        lambda entries: entries[4][1].update({"op": "expand"}),
        lambda entries: entries[2][1].update({"from": ["v", "tv"]}),
        lambda entries: entries[3][1].update(bias=["b"]),
        lambda entries: entries[0][1].pop("along"),
    ],
    ids=["read whole", "joined keys read elsewhere", "narrower", "longer", "values in another order", "bias", "along the width"],
)
def test_all_else_stays(spoiled):
    entries = joint()
    spoiled(entries)
    before = copy.deepcopy(entries)
    split_joint(entries, VALUES, entries, ["o", "o2"])
    assert entries == before
