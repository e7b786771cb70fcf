"""Conventions: pages with mistakes, pages that add and take away, and the laws that hold for any of them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import pytest
from hypothesis import given, strategies as st

from symflops.api import convention_of, load
from symflops.ir.convention import ROLES, Backward, Convention, Rule, regions_of, role_of
from symflops.read import spec_files as library
from symflops.read.conventions import read_convention
from symflops.read.spec_files import NotFoundError, pages
from symflops.support.findings import Source, SpecError
from tests.sampling import draws, sampled

MODELS = {
    "gpt_oss": ({"num_hidden_layers": 4, "hidden_size": 24, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
                 "intermediate_size": 12, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 3, "vocab_size": 50},
                {"text": [1, 3, 7]}),
    "qwen2_moe": ({"num_hidden_layers": 3, "hidden_size": 16, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 20,
                   "moe_intermediate_size": 6, "shared_expert_intermediate_size": 10, "num_experts": 4, "num_experts_per_tok": 2, "vocab_size": 33},
                  {"text": [5, 2]}),
    "qwen_image": ({"num_layers": 2, "num_attention_heads": 2, "attention_head_dim": 8, "in_channels": 8, "joint_attention_dim": 12,
                    "out_channels": 4, "patch_size": 2}, {"latent": [16, 4], "prompt": [3, 7]}),
}
OWN = [name for name, role in ROLES.items() if role.group != "region"]
WORK = [name for name in OWN if ROLES[name].group == "work"]
ELEMENTS = [name for name in OWN if ROLES[name].group == "elements"]


@lru_cache
def model(name: str):
    return load(name)


def cost(name: str, convention: Convention, regime: str = "full") -> Fraction:
    config, batch = MODELS[name]
    estimator = model(name).estimator(config, regime, convention)
    m = estimator.moments(**batch)
    modules = estimator.by_module(m)
    total = sum(flops.total for flops in modules.values())
    assert total == estimator.total(m)
    return total


def page(*lines: str) -> Convention:
    return read_convention(Source("mine.yaml", "name: mine\n" + "\n".join(lines) + "\n"))


MISTAKES = {
    "unknown-role": ("roles: {rooter: no}", "rooter", "did you mean 'router'"),
    "unknown-word": ("pairs: haff", "haff", "did you mean 'half'"),
    "unknown-field": ("role: {router: no}", "role", "did you mean 'roles'"),
    "contradiction": ("roles: {linear: as_matmul}", "as_matmul", "yes or no"),
    "contradiction ": ("roles: {norm: yes}", "yes", "per_element"),
    "contradiction  ": ("roles: {norm: {count: no, per_element: 3}}", "{count: no, per_element: 3}", "leave out"),
    "contradiction   ": ("backward: 2\nattention_backward: 5", "5", "leave one of them out"),
    "contradiction    ": ("experts: all", "all", "experts that a token is routed to"),
    "contradiction     ": ("roles: {lm_head: {weights: work}}", "{weights: work}", "counts: parameters"),
    "missing-field": ("backward: {trained: 2}", "{trained: 2}", "multiples"),
    "bad-shape": ("backward: -2", "-2", "such as 2"),
    "unknown-role ": ("roles: {norm.vision: no}", "norm.vision", "a region, a point, a role"),
    "unknown-role  ": ("roles: {indexer: {beyond: picket}}", "picket", "did you mean 'picked'"),
    "missing-field  ": ("reproduces: {of: Frame, date: 2026-01-02}", "{of", "the framework, its version, and the date"),
    "unknown-field ": ("reproduces: {of: Frame, version: 1, date: 2026-01-02, commit: 3}", "commit", "of, version, date, changed"),
    "bad-shape ": ("reproduces: {of: Frame, version: 1, date: May 2026}", "May", "as 2026-08-22"),
    "bad-shape  ": ("reproduces: {of: Frame, version: 1, date: 2026-01-02}\npairs: all", "{of", "stored programs"),
    "missing-field ": ("exceptions: [{classes: [Llama*]}]", "{classes: [Llama*]}", ""),
}


@pytest.mark.parametrize("code", MISTAKES)
def test_mistakes_are_found_at_their_place_with_a_hint(code):
    text, place, hint = MISTAKES[code]
    with pytest.raises(SpecError) as caught:
        page(text)
    (found,) = caught.value.diagnostics
    assert found.code == code.strip()
    assert found.span.source.line(found.span.line)[found.span.column - 1 : found.span.end - 1].startswith(place[:1])
    assert hint in found.hint


def test_a_page_needs_a_name():
    with pytest.raises(SpecError, match="needs a 'name'"):
        read_convention(Source("mine.yaml", "pairs: all\n"))


def test_a_spec_with_an_unknown_role_is_told_so(tmp_path):
    text = "language: 2\nname: small\nsizes: {D: {key: width}}\nstreams: {text: [x]}\ninputs:\n  t: {stream: text, width: D}\ngraph:\n"
    path = tmp_path / "small.yaml"
    path.write_text(text + "  - o: {op: linear, from: t, width: D, role: lm_hed}\noutputs: [o]\n")
    with pytest.raises(SpecError, match="did you mean 'lm_head'"):
        load(path)


# files


@pytest.mark.parametrize("name", sampled(pages("conventions"), 2, 1))
def test_every_shipped_convention_counts_a_model(name):
    assert cost("qwen2_moe", convention_of(name)) > 0


def test_a_convention_that_is_taken_away_has_no_number(tmp_path, monkeypatch):
    for folder in ("conventions", "regimes"):
        shutil.copytree(library.PACKAGE / folder, tmp_path / folder)
    monkeypatch.setattr(library, "PACKAGE", tmp_path)
    assert cost("qwen2_moe", convention_of("verl"))
    (tmp_path / "conventions" / "verl.yaml").unlink()
    with pytest.raises(NotFoundError, match="there is no convention 'verl'"):
        convention_of("verl")


def test_a_new_convention_is_a_file(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text("name: own\nroles: {router: no, embedding: as_matmul}\npairs: half\nbackward: 2\n")
    config, batch = MODELS["qwen2_moe"]
    estimator = model("qwen2_moe").estimator(config, convention=path)
    m = estimator.moments(**batch)
    assert estimator.backward(m) == 2 * estimator.forward(m)
    assert "model.embed_tokens" in estimator.by_module(m)
    assert "model.layers.*.mlp.gate" not in estimator.by_module(m)


def test_an_exception_is_for_its_classes_only():
    general = page("roles: {router: no}")
    special = page("roles: {router: no}", "exceptions:", "  - classes: [Qwen2Moe*]", "    because: it is so", "    roles: {shared_experts: no}")
    assert cost("gpt_oss", special) == cost("gpt_oss", general)
    assert cost("qwen2_moe", special) < cost("qwen2_moe", general)
    assert special.of(["Qwen2MoeForCausalLM"]).rule("router", ()).count == "no"


# what the words mean


def modules(name: str, convention: Convention, regime: str = "full"):
    config, batch = MODELS[name]
    estimator = model(name).estimator(config, regime, convention)
    return estimator.by_module(estimator.moments(**batch))


def test_elements_and_matmuls():
    config, batch = MODELS["qwen2_moe"]
    rows, width = sum(batch["text"]), config["hidden_size"]
    found = modules("qwen2_moe", page("roles: {embedding: as_matmul, rms_norm: {per_element: 5}, softmax: {per_element: 3}}", "backward: 2"))
    assert found["model.embed_tokens"].forward == 2 * rows * width * config["vocab_size"]
    assert found["model.norm"].forward == 5 * rows * width
    plain = modules("qwen2_moe", page("backward: 2"))
    pairs = sum(n * (n + 1) // 2 for n in batch["text"])
    more = found["model.layers.*.self_attn"].forward - plain["model.layers.*.self_attn"].forward
    assert more == 3 * pairs * config["num_attention_heads"] * config["num_hidden_layers"]


@pytest.mark.parametrize(
    ("words", "pairs"),
    [("useful", lambda s, w: sum(min(i + 1, w) for i in range(s))), ("all", lambda s, w: s * s), ("half", lambda s, w: Fraction(s * s, 2)),
     ("band", lambda s, w: s * min(s, w)), ("half_band", lambda s, w: Fraction(s * min(s, w), 2)),
     ("half_within", lambda s, w: Fraction(s * s, 2) if s <= w else sum(min(i + 1, w) for i in range(s))),
     ("area", lambda s, w: s * min(s, w) - Fraction(min(s, w) ** 2, 2))],
)  # fmt: skip
def test_pairs_of_a_window(words, pairs):
    config, batch = MODELS["gpt_oss"]
    found = modules("gpt_oss", page(f"pairs: {{causal: {words}, sliding: {words}}}"))["model.layers.*.self_attn"].forward
    wide = 10**6
    expected = 2 * sum(pairs(s, 3) + pairs(s, wide) for s in batch["text"])  # two layers of each kind
    assert found == 4 * config["num_attention_heads"] * config["head_dim"] * expected


@pytest.mark.parametrize(
    ("word", "pairs"), [("useful_beyond", lambda s: 6 + 3 * (s - 3)), ("band_beyond", lambda s: 3 * s)]
)  # fmt: skip
def test_texts_count_as_if_they_went_beyond_a_window(word, pairs):
    config, batch = MODELS["gpt_oss"]
    found = modules("gpt_oss", page(f"pairs: {{causal: all, sliding: {word}}}"))["model.layers.*.self_attn"].forward
    expected = 2 * sum(pairs(s) + s * s for s in batch["text"])  # 1 token has 0 pairs in a window of 3
    assert found == 4 * config["num_attention_heads"] * config["head_dim"] * expected


def test_a_role_has_pairs_of_its_own():
    whole, own = page("pairs: half"), page("pairs: all", "roles: {attention: {pairs: half}}")
    assert modules("gpt_oss", whole)["model.layers.*.self_attn"] == modules("gpt_oss", own)["model.layers.*.self_attn"]


@pytest.mark.parametrize("tied", [False, True])
def test_a_head_counts_as_work_where_all_else_counts_as_parameters(tied):
    config, batch = MODELS["gpt_oss"]
    config = {**config, "tie_word_embeddings": tied}
    head = config["vocab_size"] * config["hidden_size"] * sum(batch["text"])
    found = []
    for rule in ("{weights: work}", "no"):
        convention = page("counts: parameters", "backward: 2", f"roles: {{embedding: no, lm_head: {rule}}}")
        estimator = model("gpt_oss").estimator(config, "full", convention)
        found.append(estimator.total(estimator.moments(**batch)))
    assert found[0] - found[1] == 6 * head


def test_parameters_count_once_a_token():
    config, batch = MODELS["gpt_oss"]
    estimator = model("gpt_oss").estimator(config, "full", page("counts: parameters", "experts: all", "roles: {attention: no}", "backward: 2"))
    assert estimator.total(estimator.moments(**batch)) == 6 * estimator.parameters * sum(batch["text"])
    active = cost("gpt_oss", page("counts: parameters", "roles: {attention: no}", "backward: 2"))
    experts = sum(count for name, count in estimator.tensors().items() if "experts" in name)
    assert active == 6 * sum(batch["text"]) * (estimator.parameters - experts // 2)


def test_parameters_count_for_each_token_of_a_generation():
    config, _ = MODELS["gpt_oss"]
    six = page("counts: parameters", "experts: all", "roles: {attention: no}", "backward: 2")
    estimator = model("gpt_oss").estimator(config, "generate", six)
    assert estimator.forward(estimator.moments(text=[[6, 4]])) == 2 * estimator.parameters * (6 + 3)


def test_macs_are_half():
    assert 2 * cost("qwen_image", page("unit: macs")) == cost("qwen_image", page("unit: flops"))


def test_frozen_weights_have_no_gradient_of_their_own():
    words = "backward: {trained: 2, frozen: 1, other: 2}"
    full, lora = (modules("qwen2_moe", page(words), regime) for regime in ("full", "lora"))
    name = "model.layers.*.mlp.gate"
    assert (full[name].backward, lora[name].backward) == (2 * full[name].forward, full[name].forward)
    assert all(flops.backward == 0 for flops in modules("qwen2_moe", page(words), "forward").values())


def test_scores_again_in_the_backward_pass():
    four, five = (modules("gpt_oss", page(f"attention_backward: {n}"))["model.layers.*.self_attn"] for n in (4, 5))
    assert four.backward == 2 * four.forward
    assert 2 * five.backward == 5 * four.forward


def test_padded_linears_and_real_pairs():
    config, _ = MODELS["gpt_oss"]
    estimator = model("gpt_oss").estimator(config, "full", page("length: {linear: padded, attention: real}"))
    mixed = estimator.by_module(estimator.moments(text={"lengths": [3, 5], "padded": [8, 8]}))
    real, padded = (estimator.by_module(estimator.moments(text=lengths)) for lengths in ([3, 5], [8, 8]))
    assert mixed["lm_head"] == padded["lm_head"] != real["lm_head"]
    assert mixed["model.layers.*.self_attn"] == real["model.layers.*.self_attn"] != padded["model.layers.*.self_attn"]


# laws

amounts = st.sampled_from([Fraction(1), Fraction(2), Fraction(1, 2), Fraction(5)])
rules = {
    "work": st.builds(Rule, st.sampled_from(["yes", "no", None]), st.none() | amounts),
    "elements": st.just(Rule("no")) | st.just(Rule("as_matmul")) | st.builds(Rule, per_element=st.sampled_from([Fraction(4), Fraction(8), Fraction(20)])),
}
backwards = st.none() | st.builds(Backward, amounts, amounts, amounts, st.none() | amounts)


@st.composite
def conventions(draw):
    chosen = {name: draw(rules[ROLES[name].group]) for name in draw(st.lists(st.sampled_from(OWN), max_size=6, unique=True))}
    masks = draw(st.dictionaries(st.sampled_from(["causal", "sliding"]), st.sampled_from(["useful", "all", "half", "band", "half_band", "half_within", "area"])))
    return Convention(
        "random", draw(st.sampled_from(["useful", "all"])), backward=draw(backwards), masks=tuple(masks.items()),
        roles=tuple(sorted(chosen.items())), unit=draw(st.sampled_from(["flops", "macs"])),
    )  # fmt: skip


def roles_in(name: str) -> list[str]:
    graph = model(name).graph(MODELS[name][0])
    return sorted({role_of(operator) for operator in graph.operators()} & ROLES.keys() | {"bias", "softmax"})


def only(convention: Convention, role: str) -> Convention:
    """The convention with all other roles left out."""
    kept = {name: Rule("no") for name in OWN if name != role}
    return replace(convention, roles=tuple({**dict(convention.roles), **kept}.items()))


@given(conventions(), st.sampled_from(sorted(MODELS)), st.sampled_from(["full", "lora", "forward"]))
@draws(2, 4, 60)
def test_a_cost_is_the_sum_over_roles(convention, name, regime):
    parts = [cost(name, only(convention, role), regime) for role in roles_in(name)]
    assert sum(parts) == cost(name, convention, regime)


MORE = {
    "pairs": lambda c: replace(c, pairs="all", masks=()),
    "backward": lambda c: replace(c, backward=Backward(Fraction(9), Fraction(9), Fraction(9))),
    "roles": lambda c: replace(c, roles=tuple((n, r if r.count != "no" else Rule(None if n in WORK else "as_matmul")) for n, r in c.roles)),
    "elements": lambda c: replace(c, roles=tuple({**{n: Rule("as_matmul") for n in ELEMENTS}, **dict(c.roles)}.items())),
    "unit": lambda c: replace(c, unit="flops"),
}


@given(conventions(), st.sampled_from(sorted(MODELS)), st.sampled_from(sorted(MORE)))
@draws(6, 12, 200)
def test_counting_more_never_gives_less(convention, name, change):
    assert cost(name, MORE[change](convention)) >= cost(name, convention)


def test_every_piece_of_work_of_the_shipped_specs_has_a_known_role():
    for name in MODELS:
        for operator in model(name).graph(MODELS[name][0]).operators():
            assert not operator.contractions or role_of(operator) in ROLES
            assert all(ROLES[region].group == "region" for region in regions_of(operator))
