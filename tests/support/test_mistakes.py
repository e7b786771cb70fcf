"""What a new user does wrong, one at a time, in a real spec: the message names the place, and the fix."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.cases import checked

LLAMA = (Path(__file__).resolve().parents[2] / "specs/language/llama.yaml").read_text("utf-8")
LLAMA = re.sub(r"^expect: .*\n", "", LLAMA, flags=re.MULTILINE)  # figures would differ, too

# what is written, what is written instead, the kind, the text under the marks, and what the message must say
MISTAKES = {
    "a wrong width": ("from: a, width: D, bias", "from: a, width: F, bias", "width-mismatch", "h", ("'h' has width D here", "'self_attn.o_proj' adds F here", "is as wide: D")),
    "a wrong width of keys": ("k_proj: {op: linear, from: n, width: G*d", "k_proj: {op: linear, from: n, width: D", "width-mismatch", "k", ("'k' has width D here", "'q' has width H*d here", "give 'k' the width G*d")),
    "an unknown stream": ("stream: text", "stream: txt", "unknown-stream", "txt", ("did you mean 'text'",)),
    "a missing size": ("width: G*d, bias: biased, to: k", "width: K*d, bias: biased, to: k", "unknown-size", "K", ("declare it under 'sizes' as 'K: <field of the config>'",)),
    "a field of the config for a size": ("repeat: L", "repeat: num_hidden_layers", "unknown-size", "num_hidden_layers", ("is the size 'L' here",)),
    "a typo in an operator": ("op: rms_norm, from: h, to: m", "op: rms_nrom, from: h, to: m", "unknown-operator", "rms_nrom", ("did you mean 'rms_norm'",)),
    "a typo in a field": ("kv_heads: G", "kv_head: G", "unknown-field", "kv_head", ("did you mean 'kv_heads'",)),
    "a cycle": ("q_proj: {op: linear, from: n", "q_proj: {op: linear, from: a", "cycle", "a", ("it reads 'a', which is made of 'q'", "makes 'a'")),
    "a cycle of sizes": ("streams:", "derived: {A: B + 1, B: A + 1}\nstreams:", "cycle", "B", ("A -> B -> A", "'B' is declared here")),
    "a default that reads below": ("default: D//H", "default: F//H", "used-too-early", "F", ("move 'F' up",)),
    "a value before it is made": ("  - model.norm:", "  - extra: {op: linear, from: logits, width: D, add_to: h}\n  - model.norm:", "used-too-early", "logits", ("'logits' is made here", "move this one below")),
    "an unused value": ("  - model.norm:", "  - gate: {op: linear, from: h, width: D, to: g}\n  - model.norm:", "unused-value", "g", ("'_' under 'to'",)),
    "an unused size": ("streams:", "derived: {Z: 2*D}\nstreams:", "unused-size", "Z", ("take it away",)),
    "a bad repeat": ("repeat: L", "repeat: L/2", "bad-repeat", "L/2", ("// rounds down",)),
    "a repeat of nothing": ("repeat: L", "repeat:", "missing-field", "repeat", ("a size, a list, or {axis: t}",)),
    "a tab": ("      repeat: L", "\trepeat: L", "tab-indent", "\t", ("use spaces",)),
    "a key twice": ("  V: {", "  F: {key: ffn}\n  V: {", "duplicate-key", "F", ("take one away: the first one is on line",)),
    "a wrong name of a parameter of a block": ("hidden: F", "hiden: F", "unknown-field", "hiden", ("did you mean 'hidden'",)),
    "a wrong output": ("outputs: [logits]", "outputs: [logit]", "unknown-value", "logit", ("did you mean 'logits'",)),
}  # fmt: skip


def told(tmp_path, text: str) -> tuple[int, str]:
    (tmp_path / "spec.yaml").write_text(text, "utf-8")
    return checked(tmp_path)


@pytest.mark.parametrize("name", MISTAKES)
def test_the_message_names_the_fix(tmp_path, name):
    old, new, kind, place, words = MISTAKES[name]
    assert LLAMA.count(old) == 1
    code, text = told(tmp_path, LLAMA.replace(old, new))
    severity = "warning" if kind.startswith("unused") else "error"
    assert code == (severity == "error")
    heads = [line for line in text.split("\n") if "error[" in line or "warning[" in line]
    assert any(f"{severity}[{kind}]" in line for line in heads)
    assert all(word in text for word in words), text
    marked = next(line for line in heads if f"[{kind}]" in line).split(":")
    source = LLAMA.replace(old, new).split("\n")[int(marked[1]) - 1]
    assert source[int(marked[2]) - 1 :].startswith(place)


def test_all_mistakes_of_a_file_are_told_in_one_run_those_of_form_and_those_of_meaning(tmp_path):
    text = LLAMA.replace("op: rms_norm, from: h, to: m", "op: rms_nrom, from: h, to: m").replace("to: q}", "to: q, colour: red}")
    text = text.replace("from: n, kind: head", "from: nn, kind: head").replace("  F: {", "  F: {defalt: 3, ").replace("from: a, width: D, bias", "from: a, width: F, bias")
    code, shown = told(tmp_path, text)
    kinds = [line.split("error[")[1].split("]")[0] for line in shown.split("\n") if "error[" in line]
    assert code == 1
    assert sorted(kinds) == ["unknown-field", "unknown-field", "unknown-operator", "unknown-value"], shown


def test_a_mistake_in_a_block_says_where_the_block_is_called(tmp_path):
    (tmp_path / "blocks").mkdir()
    text = LLAMA.replace("from: m, hidden: F, width: D", "from: m, hidden: F, width: D, bias: D")
    text = text.replace(", bias: mlp_biased, add_to", ", add_to")
    _, shown = told(tmp_path, text)
    line = next(number for number, line in enumerate(text.split("\n"), start=1) if "- mlp:" in line)
    assert "specs/blocks/gated_mlp.yaml:" in shown and f"::: spec.yaml:{line}:11" in shown and "in this call of block 'gated_mlp'" in shown
