"""Generated modules: known figures, moments that add, agreement with the interpreter, and the reading of configs."""

from __future__ import annotations

import ast
import importlib
import pickle
import statistics
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import symflops
from symflops.evaluate.sizes import sizes_of
from symflops.evaluate.stored import stored_of
from symflops.formula.table import ConfigError
from tests.sampling import sampled
from tests.shipped import load
from tests.standalone import MODULES, published

ROOT = Path(__file__).resolve().parents[2]
TINY = {
    "num_layers": 3, "num_attention_heads": 2, "attention_head_dim": 16, "in_channels": 16, "joint_attention_dim": 32,
    "out_channels": 4, "patch_size": 2,
}  # fmt: skip
lengths = st.lists(st.tuples(st.integers(1, 5000), st.integers(1, 600)), max_size=12)


def module(name: str):
    return importlib.import_module(f"symflops.generated.{name}")


def test_tiny_qwen_image_has_the_measured_numbers():
    generated = module("diffusion.qwen_image")
    model = generated.Estimator(generated.Sizes.from_config(TINY), convention="torch")
    m = generated.moments(latent=[16, 16], prompt=[7, 7])
    assert (model.parameters, model.forward(m), model.backward(m), model.total(m)) == (127216, 4084480, 7587328, 4084480 + 7587328)
    assert model.recomputed(m) == 0 and model.trainable_parameters == 127216
    forward = generated.Estimator(generated.Sizes.from_config(TINY), regime="forward", convention="torch")
    assert (forward.forward(m), forward.backward(m), forward.trainable_parameters) == (4084480, 0, 0)


def test_the_dead_end_of_the_last_block():
    """48*H^2*L*d^2 - 36*H^2*d^2 per prompt token, plus 4*H*J*d; and nothing at all where there is no block."""
    generated = module("diffusion.qwen_image")

    def per_token(layers: int) -> int:
        model = generated.Estimator(generated.Sizes.from_config({**TINY, "num_layers": layers}), convention="torch")
        some, more = (model.backward(generated.moments(latent=[1], prompt=[y])) for y in (1, 2))
        return more - some - 8 * layers * 32 * (3**2 - 2**2)  # the last term: its attention pairs

    for layers in range(1, 5):
        assert per_token(layers) == 48 * 4 * layers * 256 - 36 * 4 * 256 + 4 * 2 * 32 * 16
    assert per_token(0) == 0


@given(lengths, lengths)
def test_moments_of_two_batches_add(one, two):
    generated = module("diffusion.qwen_image")

    def moments(batch):
        return generated.moments(latent=[x for x, _ in batch], prompt=[y for _, y in batch])

    assert moments(one) + moments(two) == moments(one + two)
    model = generated.Estimator(generated.Sizes.from_config(TINY))
    assert model.total(moments(one)) + model.total(moments(two)) == model.total(moments(one + two))


@given(lengths)
def test_generated_and_interpreted_agree(batch):
    generated = module("diffusion.qwen_image")
    latent, prompt = [x for x, _ in batch], [y for _, y in batch]
    for regime in generated.REGIMES:
        for convention in generated.CONVENTIONS:
            interpreted = INTERPRETED[regime, convention]
            model = generated.Estimator(generated.Sizes.from_config(TINY), regime=regime, convention=convention)
            m, n = generated.moments(latent=latent, prompt=prompt), interpreted.moments(latent=latent, prompt=prompt)
            assert m.as_dict() == n.as_dict()
            whole = (model.forward(m), model.backward(m), model.recomputed(m))
            assert whole == (interpreted.forward(n), interpreted.backward(n), interpreted.recomputed(n))
            modules, others = (
                {name: (flops.forward, flops.backward, flops.recomputed) for name, flops in estimator.by_module(moments).items()}
                for estimator, moments in ((model, m), (interpreted, n))
            )
            assert modules == others
            assert tuple(map(sum, zip(*modules.values()))) == whole
            assert model.tensors() == interpreted.tensors()
            counts = (model.parameters, model.trainable_parameters)
            assert counts == (interpreted.parameters, interpreted.trainable_parameters)


INTERPRETED = {
    (regime, convention): symflops.load("qwen_image").estimator(TINY, regime, convention)
    for regime in ("full", "forward", "lora", "checkpointed")
    for convention in ("symflops", "torch")
}


def test_lengths_of_any_size_stay_exact():
    generated = module("language.llama")
    model = generated.Estimator(generated.Sizes(), convention="torch")
    one = model.forward(generated.moments(text=[10**6]))
    assert model.forward(generated.moments(text=[10**6] * 1000)) == 1000 * one
    assert isinstance(one, int) and one > 2**53


@pytest.mark.parametrize("entry", [-1, 1.5, True, "4", None, [1, 2]])
def test_a_length_is_a_whole_number(entry):
    with pytest.raises((ValueError, TypeError)):
        module("language.llama").moments(text=[4, entry])


def test_streams_have_as_many_items():
    with pytest.raises(ValueError, match="items"):
        module("diffusion.qwen_image").moments(latent=[1, 2], prompt=[1])


def test_padded_lengths_are_kept_apart():
    generated = module("language.llama")
    both = generated.moments(text={"lengths": [5, 3], "padded": [8, 8]})
    assert both.as_dict() == generated.moments(text=[5, 3]).as_dict()
    assert both.padded == generated.moments(text=[8, 8])
    assert (both + generated.moments(text=[2])).padded == generated.moments(text=[8, 8, 2])


def test_nulls_and_absent_fields_take_defaults():
    sizes = module("language.llama").Sizes.from_config({"hidden_size": 96, "num_attention_heads": 6, "num_key_value_heads": None})
    assert (sizes.num_key_value_heads, sizes.head_dim, sizes.num_hidden_layers) == (6, 16, 32)


@pytest.mark.parametrize("name", ["regime", "convention"])
def test_unknown_names_are_refused(name):
    generated = module("language.llama")
    with pytest.raises(ValueError, match=f"no {name} 'x'"):
        generated.Estimator(generated.Sizes(), **{name: "x"})


@pytest.mark.parametrize("path", sampled(MODULES, 60), ids=lambda path: path.stem)
def test_modules_are_formulas(path):
    """They import the standard library alone, and no line is long; the library's are short."""
    text = path.read_text("utf-8")
    lines = text.splitlines()
    assert max(map(len, lines)) <= 120 and "symflops." not in text.replace("symflops generate", "")
    imports = {node.module if isinstance(node, ast.ImportFrom) else name.name for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Import, ast.ImportFrom)) for name in node.names}
    assert imports <= {"__future__", "collections.abc", "dataclasses", "fractions", "operator", "typing"}


def test_modules_are_short():
    lengths = {path.stem: len(path.read_text("utf-8").splitlines()) for path in MODULES}
    assert lengths["llama"] <= 110 and statistics.median(lengths.values()) <= 130


def test_a_formatter_changes_nothing_but_what_is_marked():
    words = ["ruff", "format", "--check", "--isolated", "--line-length", "128", str(ROOT / "generated")]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-500:]


def test_moments_survive_pickling_between_ranks():
    m = module("language.llama").moments(text=[3, 4])
    assert pickle.loads(pickle.dumps(m)) == m


def test_estimate_from_python_finds_the_spec():
    found = symflops.estimate({"_class_name": "QwenImageTransformer2DModel", **TINY}, {"latent": [16, 16], "prompt": [7, 7]}, convention="torch")
    assert (found["spec"], found["forward"], found["backward"]) == ("qwen_image", 4084480, 7587328)


def test_derivation_time_does_not_grow_with_depth():
    """Nothing is unrolled: the graph of 200 layers is the graph of 2, the same object whatever the config."""
    model = symflops.load("llama")
    shallow, deep = (model.graph({"num_hidden_layers": layers}) for layers in (2, 200))
    assert shallow is deep and len(deep.values) < 100


@pytest.mark.parametrize(
    ("config", "classes"),
    [({}, 2), ({"num_labels": 7}, 7), ({"id2label": {str(label): "cat" for label in range(10)}}, 10), ({"id2label": ["cat", "dog", "cow"]}, 3)],
)
def test_a_size_may_be_the_entries_of_a_field(config, classes):
    program = load("vit").program(["full"], ["torch"], {})
    found = vars(published(program))
    assert found["Sizes"].from_config(config).num_labels == sizes_of(stored_of(program), config)["N"] == classes
    for wrong in ("cats", 2.5, True):
        with pytest.raises(ConfigError, match="num_labels"):
            sizes_of(stored_of(program), {"num_labels": wrong})
        with pytest.raises(ValueError, match="num_labels"):
            found["Sizes"].from_config({"num_labels": wrong})


def test_a_path_that_is_no_name_in_python(tmp_path):
    """What runs over no stream goes by the path of its module, of which code can only hold letters and digits."""
    text = """language: 2
name: odd
sizes: {D: width}
streams: {text: [x]}
inputs: {t: {stream: text, width: D}}
graph:
  - "2-1": {op: attention, heads: 1, query: t, key: t, value: t, to: a}
  - parts.3-x:
      repeat: 2
      graph:
        - 0: {op: attention, heads: 1, query: a, key: a, value: a, mask: causal, to: a}
outputs: [a]
"""
    (tmp_path / "odd.yaml").write_text(text)
    program = load(tmp_path / "odd.yaml").program(["full"], ["torch"])
    found = vars(published(program))
    model = found["Estimator"](found["Sizes"](width=3), convention="torch")
    assert model.forward(model.moments(text=[5, 2])) == 3 * 2 * 2 * 3 * (25 + 4)
