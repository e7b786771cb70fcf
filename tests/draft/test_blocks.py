"""Runs of entries that a block of the library describes become calls of it, however its switches stand; all others stay."""

import pytest

from symflops.draft.polish.block_calls import called
from symflops.draft.polish.block_patterns import patterns_in, sum_of
from symflops.read.spec_files import roots

PATTERNS = patterns_in(roots()[0])
WIDTHS = {"width": "H*d", "hidden": "F", "heads": "H", "norm_dim": "d", "head_dim": "d", "vectors": "4", "bias": "false"}


def linear(path, source, target, width="D", **further):
    return path, {"op": "linear", "from": source, "width": width, **further, "to": target}


def attention(path, query, key, value, target):
    return path, {"op": "attention", "heads": "H", "query": query, "key": key, "value": value, "to": target}


def crossing(context="c", **further):
    return [
        linear("attn.to_q", "x", "q", **further),
        linear("attn.to_k", context, "k", **further),
        linear("attn.to_v", context, "v", **further),
        attention("attn", "q", "k", "v", "a"),
    ]


def written(pattern, prefix):
    """The entries that a pattern describes, as a draft would have them."""
    known = {name: WIDTHS.get(name, default) for name, default in pattern.parameters.items()}
    names, entries = {}, []
    for step in pattern.steps:
        fields = {word: text if word in ("op", "block") else known.get(text) or text for word, text in step.texts.items()}
        for name, text in known.items():
            fields = {word: value.replace(name, f"({text})") if "*" in value else value for word, value in fields.items()}
        for word, values in (*step.reads.items(), *step.writes.items()):
            found = [names.setdefault(value, f"v{len(names)}") for value in values]
            fields[word] = found if len(found) > 1 else found[0]
        if "add_to" in step.writes:  # the sum has the name of what is added to
            before, after = step.reads["add_to"][0], step.writes["add_to"][0]
            names[after] = fields["add_to"] = names[before]
        entries.append((prefix if step.path == "_" else f"{prefix}.{step.path}", fields))
    return entries, known, [names[value] for value in pattern.outputs]


FOUND = [one for one in PATTERNS if len(one.steps) > 1 and one.name in (
    "adaln_single", "bert_output", "cross_attention", "feed_forward", "gated_mlp", "joint_attention", "plain_mlp",
    "projected_attention", "self_attention", "text_projection", "timestep_mlp",
)]  # fmt: skip


@pytest.mark.parametrize("pattern", FOUND, ids=lambda one: f"{one.name} {' '.join(map(str, one.switches.values()))}")
def test_what_a_block_describes_is_found_again(pattern):
    entries, known, outputs = written(pattern, "layer.part")
    ((path, call),) = called(entries, [pattern], set(outputs))
    assert (path, call["block"]) == ("layer.part", pattern.name)
    assert call["to"] == (outputs if len(outputs) > 1 else outputs[0])
    used = " ".join(text for step in pattern.steps for text in step.texts.values())
    for name, default in pattern.parameters.items():
        if name not in used and name not in pattern.switches:
            continue
        wanted = pattern.switches.get(name, known[name] or default)
        assert sum_of(call.get(name, default), known) == sum_of(wanted, known), name


def test_every_switch_is_tried():
    words = ["'layer_norm'", "'layer_norm_across_heads'", "'rms_norm'", "'rms_norm_across_heads'"]
    found = sorted((one.switches["normed"], one.switches["norm"]) for one in PATTERNS if one.name == "self_attention")
    assert found == [("false", "'rms_norm'"), *(("true", word) for word in words)]
    (gated,) = (one for one in PATTERNS if one.name == "feed_forward" and one.switches["gated"] == "true")
    assert [step.texts.get("width") for step in gated.steps] == ["2 * hidden", "hidden", "width"]


def test_attention_is_a_call_that_says_what_is_not_usual():
    expected = {"block": "cross_attention", "from": ["x", "c"], "heads": "H", "width": "D", "normed": "false", "to": "a"}
    assert called(crossing(), PATTERNS, {"a"}) == [("attn", expected)]
    assert called(crossing("x", bias="false"), PATTERNS, {"a"}) == [
        ("attn", {"block": "self_attention", "from": "x", "heads": "H", "width": "D", "normed": "false", "bias": "false", "to": "a"})
    ]


def test_the_order_of_entries_does_not_matter_and_norms_may_be_of_one_head():
    entries = crossing()
    entries[3:] = [
        ("attn.norm_k", {"op": "rms_norm", "from": "k", "dim": "d", "to": "kn"}),
        ("attn.norm_q", {"op": "rms_norm", "from": "q", "dim": "d", "to": "qn"}),
        attention("attn", "qn", "kn", "v", "a"),
    ]
    ((_, call),) = called(entries, PATTERNS, {"a"})
    assert call == {"block": "cross_attention", "from": ["x", "c"], "heads": "H", "width": "D", "norm_dim": "d", "to": "a"}
    for _, fields in entries[3:5]:
        fields["op"] = "layer_norm"
    assert called(entries, PATTERNS, {"a"})[0][1] == {**call, "norm": "'layer_norm'"}
    entries[3][1]["dim"] = "2*d"
    assert len(called(entries, PATTERNS, {"a"})) == 6


@pytest.mark.parametrize(
    "spoiled",
    [
        lambda entries: entries[1][1].update(width="2*D"),
        lambda entries: entries[1][1].update(bias="false"),
        lambda entries: entries[3][1].update(kv_heads="G"),
        lambda entries: entries[3][1].update(key="v"),
        lambda entries: entries.insert(2, linear("attn.other", "x", "o")),
        lambda entries: entries.append(linear("later", "k", "z")),
        lambda entries: entries[0][1].update(shared="true"),
        lambda entries: entries.__setitem__(0, linear("other.to_q", "x", "q")),
    ],
    ids=["width", "bias", "grouped", "crossed", "between", "read later", "shared", "another module"],
)
def test_a_run_that_differs_anywhere_is_no_call(spoiled):
    entries = crossing()
    spoiled(entries)
    assert not any("block" in fields for _, fields in called(entries, PATTERNS, {"a"}))


def test_a_sum_within_a_block_may_not_be_read_after_it():
    def end(*later):
        return [
            ("out.dense", {"op": "linear", "from": "a", "width": "D", "add_to": "h"}),
            ("out.LayerNorm", {"op": "layer_norm", "from": "h", "to": "n"}),
            *later,
        ]

    assert called(end(), PATTERNS, {"n"}) == [("out", {"block": "bert_output", "from": ["a", "h"], "width": "D", "to": "n"})]
    assert len(called(end(linear("later", "h", "z")), PATTERNS, {"n", "z"})) == 3
    assert len(called(end(), PATTERNS, {"n", "h"})) == 2  # the next turn of a loop, or an output
    assert len(called(end(linear("later", "n", "h")), PATTERNS, {"h"})) == 2  # bound anew before anybody reads it


def test_a_block_that_calls_another_is_found_after_it():
    entries = [
        linear("mod.emb.timestep_embedder.linear_1", "t", "e"),
        linear("mod.emb.timestep_embedder.linear_2", "e", "f"),
        linear("mod.linear", "f", "m", "6*D"),
    ]
    assert called(entries, PATTERNS, {"m"}) == [
        ("mod", {"block": "adaln_single", "from": "t", "width": "D", "to": ["m", "f"]})
    ]
    entries[2][1]["width"] = "2*D"
    assert called(entries, PATTERNS, {"m"})[0][1]["vectors"] == "2"
    entries[2][1]["width"] = "2*D + 1"
    assert [key for key, _ in called(entries, PATTERNS, {"m"})] == ["mod.emb.timestep_embedder", "mod.linear"]


def test_a_second_call_of_shared_weights_says_so():
    entries = [linear("ff.fc1", "x", "h", "F", shared="true"), linear("ff.fc2", "h", "y", shared="true")]
    ((_, call),) = called(entries, PATTERNS, {"y"})
    assert call == {"block": "plain_mlp", "from": "x", "hidden": "F", "width": "D", "shared": "true", "to": "y"}


def test_expressions_are_equal_as_sums_of_products():
    assert sum_of("vectors*width", {"vectors": "6", "width": "H*d"}) == sum_of("H*6*d")
    assert sum_of("(a + b)**2") == sum_of("a*a + 2*a*b + b**2")
    assert sum_of("-(a - b)") == sum_of("b - a")
    assert sum_of("n//2") != sum_of("n//3")
    assert sum_of("D[0]*2") == sum_of("2*D[0]")
