"""Regimes: measured variants, known ratios, lines of text, passes and phases, and what is said about mistakes."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from symflops.api import Model, load, phases_of, regime_of
from symflops.ir.regime import Adapter, Passes, Recompute, Regime
from symflops.read.regimes import inline_regime
from symflops.support.findings import SpecError, SymflopsError
from symflops.verify.records import Verdict, read_records, verify_record
from tests.sampling import sampled

PAGES = Path(__file__).parents[2] / "symflops" / "regimes"
RECORDS = [record for record in read_records(Path(__file__).parents[1] / "data" / "regimes") if "_variants/" in record["id"]]
SPECS = {
    "LlamaForCausalLM": "llama", "QwenImageTransformer2DModel": "qwen_image", "WanTransformer3DModel": "wan",
    "SD3Transformer2DModel": "sd3", "FluxTransformer2DModel": "flux", "DeepseekV3ForCausalLM": "deepseek_v3",
}  # fmt: skip


@cache
def model(name: str) -> Model:
    return load(name)


@cache
def llama(regime: str | Regime) -> tuple[int, int, int]:
    """Forward, backward and recomputed FLOPs of Llama-2-7B at 2,048 tokens, as PyTorch counts."""
    estimator = model("llama").estimator({}, regime, "torch")
    moments = estimator.moments(text=[2048])
    assert estimator.total(moments) == estimator.forward(moments) + estimator.backward(moments)
    return estimator.forward(moments), estimator.backward(moments), estimator.recomputed(moments)


def small(regime: str | Regime, name: str = "llama", **config: int) -> tuple[int, int, int]:
    """The same of a small one."""
    sizes = {"num_hidden_layers": 5, "hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 12, "vocab_size": 9}
    estimator = model(name).estimator({**sizes, **config}, regime, "torch")
    moments = estimator.moments(text=[7, 4])
    return estimator.forward(moments), estimator.backward(moments), estimator.recomputed(moments)


def findings(regime: str | Regime, name: str = "llama") -> list[tuple[str, str, str]]:
    with pytest.raises(SpecError) as caught:
        model(name).derive(regime)
    return [(finding.code, finding.message, finding.hint or "") for finding in caught.value.diagnostics]


def test_there_are_records() -> None:
    assert len(RECORDS) == 66 and {record["class"] for record in RECORDS} == set(SPECS)


@pytest.mark.parametrize("record", sampled(RECORDS, 4, 1), ids=lambda record: record["id"])
def test_measured_variants(record) -> None:
    verdict = verify_record(model(SPECS[record["class"]]), record)
    assert verdict == Verdict(record["id"], "exact", True, True, True, True, verdict.expected, verdict.expected)


def test_ratios_of_llama_2() -> None:
    full = sum(llama("full"))
    assert llama("full")[1] == 2 * llama("full")[0]
    assert f"{sum(llama('lora:r=16,targets=*.q_proj|*.v_proj')) / full:.3f}" == "0.690"
    assert f"{sum(llama('checkpointed')) / full:.3f}" == "1.260"


class TestLines:
    """``name:key=value``."""

    def test_adapters(self) -> None:
        regime = regime_of("lora:r=8,targets=*.q_proj|*.v_proj,kind=dora,names=plain")
        assert regime.adapters == (Adapter("dora", 8, ("*.q_proj", "*.v_proj"), ("base", "A", "B")),)
        assert regime.name == "lora" and regime.train == () and not regime.lenient
        assert regime_of("lora:rank=8").adapters[0].rank == 8
        assert regime_of("lora:rank=8").adapters[0].targets == regime_of("lora").adapters[0].targets
        assert regime_of("lora:rank=8").lenient

    def test_recomputation(self) -> None:
        regime = regime_of("full:groups=model.layers.*,early_stop=false,reentrant=true")
        assert regime.recompute == Recompute(("model.layers.*",), early_stop=False, reentrant=True)
        other = regime_of("full:groups=model.layers.*,every=2,attention_only=true")
        assert other.recompute == Recompute(("model.layers.::2",), 2, attention_only=True)

    def test_passes_and_lists(self) -> None:
        regime = regime_of(" full : forward = 2 , detached = 1,timesteps=10,accumulation=4".replace(" ", ""))
        assert regime.passes == Passes(2, 1, 10, 4)
        regime = regime_of("full:train=*.q_proj.*|model.norm.*,freeze=*.bias,loss=logits")
        assert (regime.train, regime.freeze, regime.loss) == (("*.q_proj.*", "model.norm.*"), ("*.bias",), ("logits",))

    def test_a_regime_and_a_file_stay_what_they_are(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.yaml"
        path.write_text("name: mine\ntrain: ['*.bias']\n")
        assert regime_of(path).train == regime_of(str(path)).train == ("*.bias",)
        assert regime_of(Regime("x")) == Regime("x")

    @pytest.mark.parametrize(
        ("line", "code", "words"),
        [
            ("full:tran=a", "unknown-field", "did you mean 'train'"),
            ("full:forward=0", "bad-shape", "a whole number of at least 1"),
            ("full:forward=two", "bad-shape", "a whole number of at least 1"),
            ("full:forward=1,detached=2", "bad-shape", "more passes are detached than there are"),
            ("lora:kind=lara", "unknown-word", "did you mean 'lora'"),
            ("lora:names=pef", "unknown-word", "peft, plain, or three names"),
            ("lora:r=0", "bad-shape", "a whole number of at least 1"),
            ("full:groups=model.layers.*,early_stop=maybe", "bad-shape", "true or false"),
        ],
    )
    def test_mistakes(self, line: str, code: str, words: str) -> None:
        with pytest.raises(SpecError) as caught:
            regime_of(line)
        assert code in [finding.code for finding in caught.value.diagnostics]
        assert words in str(caught.value)

    def test_no_such_regime(self) -> None:
        with pytest.raises(SymflopsError, match="did you mean 'full'"):
            regime_of("fulll:train=*")


class TestPasses:
    """How often the model runs in one step."""

    def test_counts(self) -> None:
        passes = Passes(forward=2, detached=1, timesteps=10, accumulation=4)
        assert (passes.runs, passes.trained) == (80, 40)
        assert (Passes().runs, Passes().trained) == (1, 1)

    @pytest.mark.parametrize("base", ["full", "checkpointed", "lora", "forward"])
    @pytest.mark.parametrize(
        ("line", "runs", "trained"),
        [
            ("forward=2,detached=1,timesteps=10,accumulation=4", 80, 40),
            ("forward=3", 3, 3),
            ("forward=2,detached=2", 2, 0),
            ("timesteps=50", 50, 50),
            ("accumulation=8,forward=2,detached=1", 16, 8),
        ],
    )
    def test_they_multiply(self, base: str, line: str, runs: int, trained: int) -> None:
        forward, backward, recomputed = small(base)
        assert small(f"{base}:{line}") == (runs * forward, trained * backward, trained * recomputed)

    def test_phases(self) -> None:
        forward, backward, _ = small("full")
        assert small("grpo") == (3 * forward, backward, 0)
        assert small("dpo") == (2 * forward, backward, 0)
        assert [(regime.name, times) for regime, times in phases_of(regime_of("grpo"))] == [
            ("grpo", 1), ("forward", 1), ("reference", 1),
        ]  # fmt: skip

    def test_phases_run_several_times(self, tmp_path: Path) -> None:
        path = tmp_path / "distil.yaml"
        path.write_text("name: distil\ntrain: ['model.layers.-1.*']\nphases: [{regime: forward, times: 3}, {regime: full}]\n")
        forward, backward, _ = small("full")
        mine = small(Regime("mine", train=("model.layers.-1.*",)))
        assert small(str(path)) == (5 * forward, backward + mine[1], 0)

    def test_parameters_are_those_of_the_first_phase(self) -> None:
        config = {"num_hidden_layers": 2}
        first, second = (model("llama").estimator(config, name, "torch") for name in ("full", "grpo"))
        assert first.parameters == second.parameters and first.trainable_parameters == second.trainable_parameters


class TestRecomputation:
    """Which forward work is done again."""

    def test_every_other_layer(self) -> None:
        whole = small("checkpointed:groups=model.layers.*,early_stop=false")[2]
        for layers, share in ((5, 3), (4, 2), (1, 1), (0, 0)):
            again = small("checkpointed:groups=model.layers.*,early_stop=false,every=2", num_hidden_layers=layers)[2]
            assert again * 5 == whole * share, layers

    def test_early_stop(self) -> None:
        early, whole = (small(f"checkpointed:groups=model.layers.*,early_stop={flag}")[2] for flag in ("true", "false"))
        assert whole - early == 5 * 2 * 11 * 8 * 12  # down_proj of every block

    def test_a_group_below_the_first_trained_block(self) -> None:
        def again(train: str) -> int:
            return small(Regime("r", train=(train,), recompute=Recompute(("model.layers.*",), early_stop=False)))[2]

        assert again("model.layers.3:.*") * 5 == 2 * again("*")
        assert again("lm_head.*") == 0

    def test_nothing_trains(self) -> None:
        forward, backward, recomputed = small(Regime("r", train=(), recompute=Recompute(("model.layers.*",))))
        assert forward and backward == recomputed == 0


class TestFindings:
    """Mistakes in a regime that a model shows."""

    @pytest.mark.parametrize(
        ("line", "words", "hint"),
        [
            ("full:train=model.layer.*", "'model.layer.*' under 'train'", "model.layers.*"),
            ("full:freeze=modle.norm.weight", "'modle.norm.weight' under 'freeze'", "'model.norm.weight'"),
            ("full:force_grad=model.embd_tokens", "'model.embd_tokens' under 'force_grad'", "'model.embed_tokens'"),
            ("full:train=*.q_prj.weight", "'*.q_prj.weight' under 'train'", "'*.q_proj.weight'"),
            ("lora:targets=*.qproj", "'*.qproj' under 'targets'", "'*.q_proj'"),
            ("lora:targets=lm_haed", "'lm_haed' under 'targets'", "'lm_head'"),
            ("lora:targets=*.q_proj|*.v_porj", "'*.v_porj' under 'targets'", "'*.v_proj'"),
            ("lora:targets=*.q_proj|*.zzz", "'*.zzz' under 'targets'", "lm_head"),
            ("checkpointed:groups=model.layer.*", "'model.layer.*' under 'recompute groups'", "'model.layers.*'"),
            ("checkpointed:groups=blocks.*", "'blocks.*' under 'recompute groups'", "e.g. "),
        ],
    )
    def test_a_pattern_that_matches_nothing(self, line: str, words: str, hint: str) -> None:
        ((code, message, told),) = findings(line)
        assert code == "unmatched-pattern" and words in message and hint in told, (message, told)

    def test_all_of_them(self) -> None:
        found = findings(Regime("r", train=("a.*", "b.*"), freeze=("model.*", "c")))
        assert [(code, message.split("'")[1]) for code, message, _ in found] == [
            ("unmatched-pattern", name) for name in ("a.*", "b.*", "c")
        ]

    @pytest.mark.parametrize("target", ["*.input_layernorm", "model.norm", "model.embed_tokens"])
    def test_an_adapter_on_what_is_no_projection(self, target: str) -> None:
        ((code, message, hint),) = findings(f"lora:targets={target}")
        assert code == "bad-adapter" and "cannot stand on" in message and hint == "targets are linears and convolutions"

    def test_an_adapter_on_a_weight_that_is_used_without_its_module(self) -> None:
        """PyTorch's attention has its weights in one product each and does not call ``out_proj``."""
        ((code, message, hint),) = findings("lora:targets=*.out_proj", "transformer_encoder_layer")
        assert code == "unmatched-pattern" and "matches nothing" in message and "without calling it" in hint
        ((code, message, hint),) = findings("lora:targets=self_attn", "transformer_encoder_layer")
        assert code == "bad-adapter" and "uses 'self_attn.in_proj_weight' without calling a module" in message

    def test_contradictions(self) -> None:
        ((code, message, hint),) = findings("full:train=*.q_proj*|*.up_proj*,freeze=*.q_proj*")
        assert code == "contradiction" and "both trains and freezes '*.q_proj*'" in message and hint == "take it from one of the lists"

    def test_lenient_regimes(self) -> None:
        """A library's regime lists the names of many models; only a list of which nothing matches is a mistake."""
        model("llama").derive("lora")
        model("llama").derive("checkpointed")
        ((code, message, _),) = findings(Regime("r", train=("a.*", "b.*"), lenient=True))
        assert code == "unmatched-pattern" and message.startswith("none of the 2 patterns under 'train'")
        model("llama").derive(Regime("r", train=("a.*", "lm_head.*"), lenient=True))

    def test_unknown_outputs(self) -> None:
        ((code, message, hint),) = findings("full:loss=logit")
        assert code == "unknown-value" and "'logit'" in message and "'logits'" in hint


def test_an_adapter_on_a_tied_head() -> None:
    """The head's weight has one of two names; its adapter exists either way and trains."""
    for tied in (False, True):
        config = {"num_hidden_layers": 1, "tie_word_embeddings": tied, "hidden_size": 8, "num_attention_heads": 2, "vocab_size": 9}
        estimator = model("llama").estimator(config, "lora:r=4,targets=lm_head", "torch")
        moments = estimator.moments(text=[5])
        assert estimator.trainable_parameters == 4 * (8 + 9)
        assert estimator.backward(moments) == 2 * 5 * 4 * (8 + 9 + 9)  # both weights, and the input of the second


@pytest.mark.parametrize("name", sorted(path.stem for path in PAGES.glob("*.yaml")))
def test_a_line_keeps_what_it_does_not_name(name):
    page = regime_of(name)
    changed = regime_of(f"{name}:accumulation=3")
    assert changed.passes == replace(page.passes, accumulation=3)
    assert replace(changed, passes=page.passes, doc=page.doc) == page


def test_a_line_keeps_the_passes_and_recomputation_of_its_page(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text('name: mine\nfreeze: ["*.up_proj.*"]\npasses: {forward: 2, detached: 1}\nrecompute: {groups: ["model.layers.*"], early_stop: false}\n')
    page = regime_of(path)
    changed = inline_regime("timesteps=4", page)
    assert (changed.freeze, changed.passes, changed.recompute) == (page.freeze, Passes(2, 1, 4), page.recompute)
