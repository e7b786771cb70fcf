"""Estimates of classes without a spec: each is traced once, and refused where its forms do not hold.

Witness: PyTorch's own counter on the real class, built with values.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
import transformers
from torch.utils.flop_counter import FlopCounterMode

import symflops
from symflops.cli.main import main
from symflops.evaluate.boundaries import LengthError
from symflops.support.errors import SymflopsError
from symflops.training.introspect import traced
from symflops.verify.symbolic import answers
from symflops.verify.symbolic.printing import Parser, as_json, parsed

ARCEE = {"architectures": ["ArceeForCausalLM"], "model_type": "arcee", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100, "bos_token_id": 1, "eos_token_id": 2}
GPT = {"architectures": ["OpenAIGPTLMHeadModel"], "model_type": "openai-gpt", "n_embd": 24, "n_head": 4, "n_layer": 3, "n_positions": 40, "vocab_size": 100}
CONFIGS = {"arcee": ARCEE, "gpt": GPT}


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """A cache with a trace of both classes: name -> estimate of a ragged batch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        with pytest.warns(UserWarning, match="a trace counts executed work, convention 'torch', not 'symflops'"):
            gpt = symflops.estimate(GPT, {"text": [5, 7]}, trace=True)
        yield {"gpt": gpt, "arcee": symflops.estimate(ARCEE, {"text": [5, 7]}, convention="torch", trace=True)}


@pytest.fixture
def untraced(traces, monkeypatch):
    """Configs that were traced: no class may be traced again."""
    asked = []

    def refuse(kind, config, regime=None):
        asked.append(config)
        raise SymflopsError("traced again")

    monkeypatch.setattr(answers, "trace", refuse)
    monkeypatch.setattr(traced, "built_elsewhere", lambda request, module: json.dumps(answers.answer(**json.loads(request))))
    return asked


def real(config):
    kind = getattr(transformers, config["architectures"][0])
    return kind(kind.config_class(**config, attn_implementation="eager"))


def counted(config, lengths):
    """(parameters, forward, backward) of the real class, each item in a call of its own, by PyTorch's counter."""
    model, flops = real(config), [0, 0]
    for length in lengths:
        with FlopCounterMode(display=False) as forward:
            found = model(input_ids=torch.zeros(1, length, dtype=torch.long), use_cache=False).logits
        with FlopCounterMode(display=False) as backward:
            found.sum().backward()
        flops = [flops[0] + forward.get_total_flops(), flops[1] + backward.get_total_flops()]
    return (sum(one.numel() for one in model.parameters()), *flops)


def figures(found):
    return found["parameters"], found["forward"], found["backward"]


@pytest.mark.parametrize("name", CONFIGS)
def test_estimates_are_those_of_the_counter_item_by_item(name, traces):
    found = traces[name]
    assert figures(found) == counted(CONFIGS[name], [5, 7])
    assert (found["convention"], found["tokens"], found["unit"]) == ("torch", 12, "flops")
    assert found["evidence"]["grade"] == "traced here, exact at 4 unseen configs"
    assert bool(found["notes"]) == (name == "gpt")  # only where another convention is asked


def test_a_trace_serves_other_sizes_and_depths(untraced):
    other = {**ARCEE, "hidden_size": 64, "num_attention_heads": 8, "num_hidden_layers": 5, "vocab_size": 90, "intermediate_size": 40}
    for _ in range(2):
        assert figures(traced.estimate(other, {"text": [3, 1, 9]})) == counted(other, [3, 1, 9])
    whole = real(ARCEE).config.to_dict()  # a saved config has all fields
    assert figures(traced.estimate({**whole, "architectures": ARCEE["architectures"]}, {"text": [4]})) == counted(ARCEE, [4])
    assert not untraced


def test_forms_of_fewer_lengths_and_passes(untraced, traces):
    both = traced.estimate(GPT, {"text": [5, 7]})
    assert traced.estimate(GPT, {"text": [5, 7]}, "forward")["total"] == both["forward"]
    assert traced.estimate(GPT, {"s": [6], "b": [4]})["total"] == traced.estimate(GPT, {"text": [6] * 4})["total"]


@pytest.mark.parametrize("changes", [{"hidden_act": "silu"}, {"num_key_value_heads": 1}, {"num_hidden_layers": 1}, {"attention_bias": True}])
def test_a_config_with_other_further_fields_is_traced_anew(changes, untraced):
    with pytest.raises(SymflopsError, match="traced again"):
        traced.estimate({**ARCEE, **changes}, {"text": [5]})
    assert len(untraced) == 1


def test_what_the_real_class_contradicts_is_traced_anew(untraced, monkeypatch):
    monkeypatch.setattr(answers, "counted", lambda target: {"parameters": 1, "forward": 1, "backward": 1})
    with pytest.raises(SymflopsError, match="traced again"):
        traced.estimate({**ARCEE, "vocab_size": 77}, {"text": [5]})


def test_lengths_outside_of_the_domain_are_refused(untraced):
    assert traced.estimate(GPT, {"text": [40]})["tokens"] == 40
    with pytest.raises(SymflopsError, match="outside of the domain of OpenAIGPTLMHeadModel: s <= n_positions"):
        traced.estimate(GPT, {"text": [5, 41]})


def test_unproven_forms_are_refused(untraced, monkeypatch):
    monkeypatch.setattr(answers, "trace", lambda kind, config, regime: replace(parsed(SMALL), unproven="no size is a symbol"))
    with pytest.raises(SymflopsError, match="the forms of Small are unproven: no size is a symbol"):
        traced.estimate({**ARCEE, "hidden_act": "gelu"}, {"text": [5]})


@pytest.mark.parametrize(
    ("batch", "told"),
    [({"text": [0]}, "positive integers"), ({"text": 5}, "positive integers"), ({"text": [5], "b": [1, 2]}, "one entry per call"), ({}, "one entry per call"),
     ({"text": [5], "t": [3]}, r"has no t: its lengths are b \(samples\), s \(tokens\)"), ({"b": [3]}, "needs s: its lengths are")],
)  # fmt: skip
def test_batches_of_another_form_are_refused(batch, told, untraced):
    with pytest.raises(SymflopsError, match=told):
        traced.estimate(GPT, batch)


@pytest.mark.parametrize(
    ("config", "told"),
    [({"model_type": "gpt2"}, "names no class to trace"), ({"architectures": ["NoSuchModel"]}, "has no class 'NoSuchModel'"), ({"_class_name": "NoModel2D"}, "has no class 'NoModel2D'")],
)
def test_configs_without_a_class_are_refused(config, told, untraced):
    with pytest.raises(SymflopsError, match=told):
        traced.estimate(config, {"text": [5]})


@pytest.mark.thorough
def test_adapters_and_checkpoints_are_traced(traces):
    """Witness: arithmetic. Adapters of rank 4 lie beside four projections; all but the last product of a layer is repeated."""
    import peft

    model = real(ARCEE)
    tuned = peft.get_peft_model(model, peft.LoraConfig(r=4, target_modules=["q_proj", "k_proj", "v_proj", "o_proj"]))
    with FlopCounterMode(display=False) as forward:
        found = tuned(input_ids=torch.zeros(1, 5, dtype=torch.long), use_cache=False).logits
    with FlopCounterMode(display=False) as backward:
        found.sum().backward()
    told = symflops.estimate(ARCEE, {"text": [5]}, regime="lora:r=4", convention="torch", trace=True)
    real_figures = sum(one.numel() for one in tuned.parameters()), forward.get_total_flops(), backward.get_total_flops()
    assert figures(told) == real_figures and told["recomputed"] == 0
    kept = symflops.estimate(ARCEE, {"text": [5, 7]}, regime="checkpointed", convention="torch", trace=True)
    assert figures(kept) == figures(traces["arcee"])
    assert kept["recomputed"] == kept["forward"] - 12 * 2 * 32 * 100 - 12 * 3 * 2 * 32 * 48


def test_regimes_and_options_of_specs_are_refused():
    with pytest.raises(SymflopsError, match="regime 'dpo' cannot be applied"):
        symflops.estimate(ARCEE, {"text": [5]}, regime="dpo", trace=True)
    with pytest.raises(SymflopsError, match="goes without spec, prove, strict and settings"):
        symflops.estimate(GPT, {"text": [5]}, spec="gpt2", trace=True)


def test_code_that_a_config_names_runs_if_trusted_alone(untraced, tmp_path, monkeypatch):
    from transformers import dynamic_module_utils

    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    (tmp_path / "modeling_own.py").write_text("from torch import nn\nopen(__file__ + '.ran', 'w').close()\nclass OwnModel(nn.Module):\n    pass\n")
    config = {"architectures": ["OwnModel"], "auto_map": {"AutoModel": "modeling_own.OwnModel"}}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    with pytest.raises(SymflopsError, match=r"the config names code of its own \(auto_map\): --trust or trust=True runs it"):
        traced.estimate(path, {"text": [5]})
    with pytest.raises(SymflopsError, match="give the config as a path"):
        traced.estimate(config, {"text": [5]}, trust=True)
    assert not list(tmp_path.rglob("*.ran"))
    with pytest.raises(SymflopsError, match="traced again"):
        traced.estimate(path, {"text": [5]}, trust=True)
    assert list(tmp_path.rglob("*.ran"))


def test_the_command_prints_a_traced_estimate(untraced, tmp_path, capsys):
    (tmp_path / "config.json").write_text(json.dumps(GPT))
    words = ["estimate", "--config", str(tmp_path), "--batch", '{"text": [5, 7]}']
    assert main(words) == 2
    assert "'estimate --trace' (trace=True) runs the class itself" in capsys.readouterr().err
    assert main([*words, "--trace", "--convention", "torch"]) == 0
    out, error = capsys.readouterr()
    assert not error and all(len(line) <= 80 for line in out.splitlines())
    assert out.startswith("OpenAIGPTLMHeadModel, regime full, convention torch\n") and "moments                text = 12\n" in out
    assert "grade                  traced here, exact at 4 unseen configs" in out
    assert main([*words, "--trace", "--json"]) == 0
    out, error = capsys.readouterr()
    assert json.loads(out)["parameters"] == counted(GPT, [])[0] and "convention 'torch', not 'symflops'" in error
    assert main([*words, "--trace", "--prove"]) == 2


def test_a_live_module_without_a_spec_has_an_estimator(untraced):
    model = real(GPT)
    found = symflops.of_model(model, convention="torch", log=lambda line: None)
    m = found.moments(text=[5, 7])
    assert (found.parameters, found.forward(m), found.backward(m)) == counted(GPT, [5, 7])
    assert found.account == f"OpenAIGPTLMHeadModel: {found.parameters:,} parameters; traced here, exact at 4 unseen configs"
    with pytest.raises(LengthError, match="a length is above 40"):
        found.moments(text=[41])
    model.lm_head = torch.nn.Linear(24, 200, bias=False)
    with pytest.raises(SymflopsError, match="the module has .* parameters, its class with its config"):
        symflops.of_model(model)
    model = real(GPT)
    model.lm_head.weight.requires_grad_(False)
    with pytest.raises(SymflopsError, match="models that train as a whole"):
        symflops.of_model(model)


@pytest.mark.thorough
def test_a_meter_counts_while_the_class_is_traced(traces):
    meter = symflops.MFUMeter.of_model(real(GPT), devices=1, peak_tflops=1.0, log=lambda line: None)
    meter.add_batch({"input_ids": torch.zeros(2, 6, dtype=torch.long)})
    assert meter.step(1.0) == {}
    meter.phases[""].awaited.derivation.process.wait(120)
    meter.add(text=[5, 7])
    logged = meter.step(1.0)
    assert logged["flops_total"] == sum(counted(GPT, [6, 6, 5, 7])[1:]) and logged["mfu"]


SMALL = {
    "name": "Small", "parameters": "a.0*b_c", "forward": "ceiling(a.0/4) + 2*(a.0 // 3) + Max(a.0, b_c)/2", "backward": "0", "unseen": 4, "unproven": "",
    "domain": [{"condition": "(a.0 % b_c == 0) | (b_c > 2)", "line": "x.py:1"}], "fields": {name: {"kind": "symbolic", "value": 4, "note": "", "origin": ""} for name in ("a.0", "b_c")},
    "fixed": {}, "equations": {}, "depths": {}, "points": [], "numbers": {}, "missed": {}, "idle": ["vision"], "modules": [{"path": "x.*", "shape": "[b_c, 3]", "forward": "a.0"}], "proven": True,
}  # fmt: skip


def test_a_trace_is_read_back_as_it_was_written():
    found = parsed(SMALL)
    assert as_json(found) == {**SMALL, "masks": []}
    assert found.at({"a.0": 8, "b_c": 2})["forward"] == 2 * 2 + 4 + 2
    for outside in ({"a.0": 3, "b_c": 2}, {"a.0": 8, "b_c": 0}):  # at 0 a condition has no truth
        with pytest.raises(SymflopsError, match="outside of the domain"):
            found.at(outside)


@pytest.mark.parametrize("text", ["__import__('os')", "a.b", "[a for a in b]", "lambda: 1", "a +", "print(a)", "1.5", "'a'", "(" * 300])
def test_no_other_code_is_read(text):
    with pytest.raises(SymflopsError, match="is no expression of a trace"):
        Parser(["a"])(text)


def test_a_damaged_trace_is_told():
    with pytest.raises(SymflopsError, match="this is no trace: KeyError"):
        parsed({**{name: value for name, value in SMALL.items() if name != "depths"}})


@pytest.mark.thorough
def test_the_subprocess_runs_no_code_of_the_folder(traces, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "transformers.py").write_text("open('ran', 'w')\n")
    with pytest.raises(SymflopsError, match="has no class 'NoSuchModel'"):
        symflops.estimate({"architectures": ["NoSuchModel"]}, {"text": [5]}, trace=True)
    assert not (tmp_path / "ran").exists()
