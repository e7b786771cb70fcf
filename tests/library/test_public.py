"""Public functions on wrong inputs: an error of symflops in words, without Python's internals; and what they return."""

from __future__ import annotations

import inspect
import json
import pickle
import re
import warnings
from pathlib import Path

import pytest
import torch
from symflops.generated.language import llama

import symflops
from symflops.evaluate.estimate import Estimate
from symflops.library import naming

BATCH = {"text": [8]}
INTERNAL = re.compile(r"object at 0x|<function|<class|<module|positional arg|unexpected keyword|has no attribute|NoneType|not subscriptable|not iterable|[a-z]Error: ")


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = torch.nn.Linear(3, 4)

    def forward(self, x):
        return self.a(x)


MODELS = [
    None, 5, 3.5, True, b"llama", [], {}, "", ".", "nothing_like", ["llama"], {"architectures": 5}, {"architectures": ["X"]}, {"model_type": "nope"}, object(), lambda: 0, Net(), Net, {"num_hidden_layers": 2}, "{", "[]",
    "x.yaml", "x.json", {1: 2}, set(), float("nan"), {"hidden_sise": 3, "architectures": ["LlamaForCausalLM"]},
]  # fmt: skip
BATCHES = [5, "x", [], [8], {"txt": [8]}, {"text": 5.5}, {"text": None}, {"text": ["a"]}, {"text": [-1]}, {"text": [[1, 2]]}, {1: [2]}, object(), {"text": {"a": 1}}, {"text": object()}, True, {"text": [None]}]
WORDS = [5, "nope", ["fall"], object(), b"full", 1.5]
FUNCTIONS = {
    "estimate": lambda model: symflops.estimate(model, BATCH),
    "explain": lambda model: symflops.explain(model, BATCH).rows,
    "compare": lambda model: symflops.compare(model, BATCH),
    "load": symflops.load,
    "of_model": symflops.of_model,
    "spec": lambda model: symflops.estimate({}, BATCH, spec=model or ""),
    "config": lambda model: symflops.explain("gpt2", BATCH, config=model or "").rows,
    "settings": lambda model: symflops.estimate("llama", BATCH, settings=model or {"x": 1}),
    "from_config": lambda model: llama.Sizes.from_config(model if model or model is None else {"hidden_size": 0}),
    "trace": lambda model: symflops.trace(1 if isinstance(model, (type, torch.nn.Module)) else model),
}


@pytest.fixture(scope="module")
def estimator():
    return symflops.load("llama").estimator({"num_hidden_layers": 2})


def told(call) -> str:
    """The message of the error of a call, which must be one of symflops."""
    with warnings.catch_warnings(), pytest.raises((symflops.SymflopsError, ValueError)) as caught:
        warnings.simplefilter("ignore")
        call()
    assert isinstance(caught.value, symflops.SymflopsError) or "numpy" not in str(caught.type)
    assert not INTERNAL.search(str(caught.value)), str(caught.value)
    return str(caught.value)



@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_function_shows_internals_of_python_for_a_wrong_model(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for model in MODELS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                FUNCTIONS[name](model)
        except (symflops.SymflopsError, ValueError) as error:
            assert not INTERNAL.search(str(error)), (model, str(error))


@pytest.mark.parametrize("number", range(len(BATCHES)))
def test_no_function_shows_internals_of_python_for_a_wrong_batch(number, estimator):
    batch = BATCHES[number]
    functions = [lambda batch: symflops.estimate("llama3-8b", batch), lambda batch: symflops.explain("llama3-8b", batch).rows]
    for call in (*functions, lambda batch: symflops.compare("llama3-8b", batch), estimator.forward, estimator.total, estimator.moments, estimator.by_module, estimator.per_sample, estimator.per_item):
        if batch != [] or call not in functions:  # no batch: a typical one
            told(lambda call=call: call(batch))


@pytest.mark.parametrize("number", range(len(WORDS)))
def test_no_function_shows_internals_of_python_for_a_wrong_regime_or_convention(number):
    word = WORDS[number]
    for call in (
        lambda: symflops.estimate("llama3-8b", BATCH, regime=word), lambda: symflops.estimate("llama3-8b", BATCH, convention=word), lambda: symflops.explain("llama3-8b", BATCH, regime=word),
        lambda: symflops.compare("llama3-8b", BATCH, regimes=word), lambda: symflops.compare("llama3-8b", BATCH, conventions=word), lambda: symflops.load("linear").derive(word),
        lambda: symflops.load("linear").derive("full", word), lambda: symflops.of_model(torch.nn.Linear(3, 4), regime=word),
    ):  # fmt: skip
        told(call)


def test_a_net_of_its_own_is_told_the_way():
    message = told(lambda: symflops.of_model(Net()))
    assert "Net: count it with symflops.trace(module, *inputs)" in message and "module.a" not in message


def test_functions_refuse_what_commands_refuse_in_the_same_words():
    for config in ({"hidden_sise": 64}, {"architectures": ["GPT2LMHeadModel"]}, {"num_attention_heads": "many"}):
        texts = [told(call).partition(" describes ")[0] for call in (lambda: llama.Sizes.from_config(config), lambda: naming.estimate(config, BATCH, spec="llama"))]
        assert texts[0] == texts[1]


def test_an_estimate_is_a_dict_with_attributes_and_a_short_repr():
    found = symflops.estimate("llama3-8b", {"text": [8192]})
    assert isinstance(found, Estimate) and found.forward == found["forward"] and json.loads(json.dumps(found)) == dict(found)
    assert pickle.loads(pickle.dumps(found)) == found and "forward" in dir(found)
    assert repr(found).startswith("<Estimate of llama3-8b (llama): 8.030 G parameters, 8,192 tokens; forward ") and len(repr(found)) < 200
    with pytest.raises(AttributeError, match="an estimate has no 'forwards'"):
        found.forwards  # noqa: B018


def test_a_batch_stands_for_its_moments(estimator):
    batch = {"text": [8192, 3]}
    m = estimator.moments(**batch)
    assert estimator.moments(batch) == m and estimator.forward(batch) == estimator.forward(m) and estimator.total(batch) == estimator.total(m)
    assert estimator.per_sample(batch) == estimator.per_sample(**batch) and estimator.by_module(batch) == estimator.by_module(m)
    made = llama.Estimator(llama.Sizes.from_config({"num_hidden_layers": 2}))
    assert made.forward(batch) == estimator.forward(m) and made.per_sample(batch) == estimator.per_sample(batch)


def test_public_names_are_shown():
    public = [name for name in dir(symflops) if not name.startswith("_")]
    assert sorted(public) == sorted(name for name in symflops.__all__ if not name.startswith("_"))
    assert all(inspect.getdoc(getattr(symflops, name)) for name in public)


def test_modules_of_the_reference_come_with_the_package():
    page = (Path(symflops.__file__).parents[1] / "docs/reference/api.md").read_text("utf-8")
    modules = set(re.findall(r"^### `symflops\.([a-z_]+)\.", page, re.MULTILINE))
    assert "lookup" in modules and [symflops.__getattr__(name).__name__ for name in modules] == [f"symflops.{name}" for name in modules]
    for name in ("lookups", "_lookup", "__wrapped__"):
        assert not hasattr(symflops, name)


def test_an_explanation_is_printed_as_a_tree():
    lines = str(symflops.explain("llama3-8b", BATCH)).splitlines()
    assert lines[0].startswith("llama3-8b (llama): ") and "regime full, convention symflops" in lines[1]
    assert any(re.fullmatch(r" +q_proj +536\.871 M .* \d+\.\d\d%", line) for line in lines)


def test_a_loaded_model_knows_the_config_of_its_name():
    model = symflops.load("Qwen/Qwen3-8B")
    assert model.spec.name == "qwen3" and model.estimator(model.config).parameters == 8190735360
    assert symflops.estimate(model, BATCH).parameters == 8190735360
