"""Vendored estimators run on their own, and say what symflops says: of every spec, for configs and ragged batches."""

from __future__ import annotations

import inspect
import json
import random
from pathlib import Path
from types import SimpleNamespace

import pytest

from symflops import api
from symflops.cli.actions.vendor import Order, plan
from symflops.cli.actions.vendored_batches import arguments_of
from symflops.cli.main import main
from symflops.emit.vendor.targets import TARGETS
from symflops.evaluate.batch import BatchError
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.latent_inputs import latent_inputs
from symflops.evaluate.sizes import sizes_of
from symflops.evaluate.stored import config_value, stored_of
from symflops.evaluate.units import in_flops
from symflops.support.errors import SymflopsError
from tests import shipped
from tests.emit.vendored import built, function, names_of
from tests.sampling import amount, sampled

REFUSED = "hands over|depends on the shape of images|finds an estimator by|does a config of|give --config|the class takes"
PAIRS = [(spec, project) for spec in shipped.NAMES for project in TARGETS]
TEXT = {*TARGETS} - {"latte", "verl-omni"}
KNOWN = {
    "llama": TEXT, "qwen3_next": {"verl", "torchtitan"}, "qwen2_vl": {"verl", "torchtitan", "megatron-bridge"}, "sd3": {"verl-omni"},
    "wan": {"verl-omni", "megatron-bridge", "latte"}, "flux2": {"verl-omni"}, "mixtral": TEXT, "gemma3": {"verl", "torchtitan"},
}  # fmt: skip
PEERS = Path(__file__).resolve().parents[1] / "data/peers"
DRAWS = amount(3, 20)


def drawn(one, source, estimator):
    """A ragged batch as the streams of the spec, without those that the config switches off."""
    count = 1 if one.target.feeds in ("one", "video") else source.randint(1, 5)
    off = {switch.stream for switch in latent_inputs(one.program).others} - {*estimator.implied}
    batch = {}
    for place, (name, axes) in enumerate(one.streams.items()):
        if name in off:
            continue
        if one.target.feeds == "video" and not place:
            frames, side = source.randint(1, 9), 8 * source.randint(1, 9)
            batch[name] = [[frames, side, side]] if len(axes) > 1 else [frames * side**2]
            continue
        if one.target.feeds == "lists" and place:
            batch[name] = [[1] * (len(axes) - 2) + [8 * source.randint(1, 9), 8 * source.randint(1, 9)] if len(axes) > 1 else source.randint(1, 999) for _ in range(source.randint(0, 3))]
        elif len(axes) > 1:
            batch[name] = [[8 * source.randint(1, 4), *(64 * source.randint(1, 4) for _ in axes[1:])] if len(axes) > 2 else [64 * source.randint(1, 4) for _ in axes] for _ in range(count)]
        else:
            batch[name] = [source.randint(1, 9000) for _ in range(count)]
    return batch


def agrees(one, run, config, estimator, source):
    for _ in range(DRAWS):
        batch = drawn(one, source, estimator)
        arguments = arguments_of(batch, one.program, one.target, estimator.sizes)
        try:
            moments = estimator.moments(**batch)
            expected = estimator.forward(moments) if one.target.feeds == "video" else in_flops(estimator, estimator.total(moments))
        except BatchError:
            continue  # an item is too short for the model
        assert run(config, arguments) == expected, (one.program.name, one.target.name, arguments)


def config_as_read(program, config):
    """A config with every field that a class has: what transformers' config objects hold."""
    found = {}
    sizes = sizes_of(stored_of(program), config)
    for size in program.fields:
        *outer, last = size.keys[0].split(".")
        place = found
        for word in outer:
            place = place.setdefault(word, {})
        value = sizes[size.letter]
        place[last] = list(value) if isinstance(value, tuple) else float(value) if size.kind == "rational" and value is not None else config_value(value)
    return found


@pytest.mark.parametrize(("spec", "project"), sampled(PAIRS, 105, 35))
def test_every_spec(spec, project, projects):
    """The figures of the test, random ragged batches, and the configs of the spec's cases; or a reason."""
    target = TARGETS[project]
    try:
        one = plan(spec, target, Order())
        run = function(one)
    except SymflopsError as error:
        assert any(word in str(error) for word in REFUSED.split("|")), error
        assert project not in KNOWN.get(spec, ())
        return
    for example in one.examples:
        assert run(one.config, example.arguments) == example.flops
    source = random.Random(f"{spec} {project}")
    whole = api.program_in(api.load(spec).structure("", ["full"], [target.convention]))
    agrees(one, run, one.config, InterpretedEstimator(whole, dict(with_default(whole)), regime="full", convention=target.convention), source)
    for case in shipped.cases_of(shipped.FILES[spec])[:DRAWS]:
        try:
            estimator = InterpretedEstimator(whole, case.config, regime="full", convention=target.convention)
            estimator.total(estimator.moments(**drawn(one, source, estimator)))
        except SymflopsError:
            continue  # another structure, or lengths that do not fit it
        if target.reads in ("arguments", "words"):
            one = plan(spec, target, Order(config=case.config))
            try:
                run = function(one)
            except SymflopsError as error:
                assert "hands over sums" in str(error)  # a window, which this config has
                continue
            agrees(one, run, one.config, estimator, source)
        else:
            agrees(one, run, config_as_read(whole, case.config) if target.reads == "attributes" else case.config, estimator, source)


def with_default(program):
    """A config of the structure that a program has."""
    from symflops.cli.actions.stored_rules import config_of

    return config_of(program)


@pytest.mark.parametrize(("spec", "project"), sampled([(spec, project) for spec, some in KNOWN.items() for project in sorted(some)], 3))
def test_known_pairs_are_written(spec, project, projects):
    test_every_spec(spec, project, projects)


@pytest.mark.parametrize("convention", sampled(api.CONVENTIONS, 7))
@pytest.mark.parametrize("regime", ["full", "forward", "lora:r=8,targets=*.q_proj|*.v_proj"])
def test_every_convention_and_regime(regime, convention, projects):
    """A framework's own convention counts in its unit, or in parts of a FLOP; figures are FLOPs."""
    try:
        one = plan("mixtral", TARGETS["verl"], Order(regime, convention))
    except SymflopsError as error:
        pytest.fail(str(error))
    estimator = api.load("mixtral").estimator({}, api.regime_of(regime), convention)
    agrees(one, function(one), one.config, estimator, random.Random(convention))


def test_estimators_register_themselves(projects):
    for spec, project in (("mixtral", "verl"), ("sd3", "verl-omni")):
        function(plan(spec, TARGETS[project], Order()))
    assert projects["verl"]["mixtral"](built(plan("mixtral", TARGETS["verl"], Order()).config), 30, [10, 20], 2.0) > 0
    assert {"StableDiffusion3Pipeline"} <= set(projects["verl-omni"])


def test_another_structure_is_refused_where_it_runs(projects):
    one = plan("unet_2d_condition", TARGETS["verl-omni"], Order())
    letter, value = next((letter, value) for letter, value in one.program.fixed if isinstance(value, int))
    key = next(size.keys[0] for size in one.program.fields if size.letter == letter)
    with pytest.raises(ValueError, match="the FLOPs are those of models whose"):
        function(one)({**one.config, key: value + 1}, one.examples[0].arguments)


def test_files_need_no_symflops_and_are_kept_current(tmp_path, capsys):
    words = ["vendor", "llama", "mixtral", "--for", "megatron-bridge", "--out", str(tmp_path)]
    assert main([*words, "--check"]) == 1
    assert main(words) == 0
    assert main([*words, "--check"]) == 0
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 6
    assert not any(f"{word} symflops" in path.read_text() for word in ("import", "from") for path in files)
    files[0].write_text(files[0].read_text() + "\n")
    files[1].unlink()
    capsys.readouterr()
    assert main([*words, "--check"]) == 1
    told = capsys.readouterr().err
    assert f"{files[0]}: differs from what is derived" in told
    assert f"{files[1]}: missing" in told
    assert "4 of 6 files agree" in told


def records(peer):
    """The recorded figures of a framework, with the config and the lengths of each."""
    return json.loads((PEERS / f"{peer}.json").read_text())


def test_kempnerforge_s_figures(projects):
    """6N + 12 L dim S of its own function, for every recorded model and length, dense or with experts."""
    one = plan("kempnerforge", TARGETS["kempnerforge"], Order())
    per_token = names_of(one)["estimate_kempnerforge_flops_per_token"]
    fields = {"n_kv_heads": None, "head_dim": None, "num_experts": 0, "moe_top_k": 2, "moe_frequency": 1, "moe_shared_experts": 0}
    for record in records("kempnerforge"):
        config = SimpleNamespace(**{**fields, **record["config"]}, max_seq_len=record["seqlens"]["tokens"][0])
        assert per_token(config) == per_token(config, config.max_seq_len)
        assert sum(per_token(config, length) * length for length in record["seqlens"]["tokens"]) == record["flops"], record["id"]
    with pytest.raises(ValueError, match="seq_len must be the length of a sequence, not 0"):
        per_token(config, 0)


def test_kempnerforge_s_names_of_other_models(projects):
    """Llama 3 8B by the fields of ModelConfig: 6 (N without the embedding) + 12 L dim S, as its page has it."""
    one = plan("llama", TARGETS["kempnerforge"], Order())
    config = SimpleNamespace(dim=4096, n_layers=32, n_heads=32, n_kv_heads=8, head_dim=128, vocab_size=128256, computed_ffn_hidden_dim=14336)
    weights = 32 * (4096 * 128 * (32 + 2 * 8 + 32) + 3 * 4096 * 14336) + 128256 * 4096
    assert names_of(one)["estimate_llama_flops_per_token"](config, 4096) == 6 * weights + 12 * 32 * 4096 * 4096


def test_latte_s_figures(projects):
    """Its function's signature and defaults, and every recorded figure: multiply-adds, which the source calls FLOPs."""
    one = plan("latte_fork", TARGETS["latte"], Order())
    flops = names_of(one)["estimate_latte_fork_flops_per_forward"]
    assert [*inspect.signature(flops).parameters][:4] == ["num_frames", "latent_size", "hidden_size", "num_layers"]
    for record in records("latte_fork"):
        assert flops(**record["config"]) == record["flops"], record["id"]
    assert flops(16, 32) == flops(16, 32, 384, 12) == 2821793513472
    with pytest.raises(ValueError, match="must be whole numbers"):
        flops(1.5, 32)


@pytest.mark.parametrize("project", TARGETS)
def test_a_project_has_its_own_convention(project, projects):
    spec = {"verl-omni": "sd3", "latte": "latte_fork"}.get(project, "mixtral")
    assert plan(spec, TARGETS[project], Order()).program.cases[0].convention == project
    assert plan(spec, TARGETS[project], Order(convention="symflops")).program.cases[0].convention == "symflops"


def test_files_of_others_are_kept(tmp_path, capsys):
    words = ["vendor", "dit", "--for", "verl-omni", "--out", str(tmp_path)]
    theirs = tmp_path / "verl_omni/utils/mfu/dit.py"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("class DitFlops: ...\n")
    assert main(words) == 2
    assert f"symflops did not write {theirs}: --force replaces it" in capsys.readouterr().err
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [theirs] and theirs.read_text() == "class DitFlops: ...\n"
    assert main([*words, "--force"]) == 0
    assert "Generated by symflops" in theirs.read_text()
    theirs.write_text(theirs.read_text() + "# older\n")
    assert main(words) == 0  # what symflops wrote is replaced


def test_batches_of_the_wrong_form_get_a_sentence(projects):
    one = plan("mixtral", TARGETS["verl"], Order())
    estimate = names_of(one)["_estimate_mixtral_flops"]
    assert estimate(built(one.config), 30, [10, 20], 0.0) == estimate(built(one.config), 30, [10, 20], float("nan")) == 0.0
    for wrong in ([[10], [20]], [10, -1], 10, ["a"], [10, 0.5], "10"):
        with pytest.raises(ValueError, match="batch_seqlens must be a list of lengths, not"):
            estimate(built(one.config), 30, wrong, 1.0)
    one = plan("wan", TARGETS["megatron-bridge"], Order())
    with pytest.raises(ValueError, match="cross_seqlen_product_sum is None"):
        function(one)(one.config, {"batch_size": 1, "seqlen_sum": 4, "seqlen_squared_sum": 16, "cross_seqlen_sum": 3})
    one = plan("mistral", TARGETS["torchtitan"], Order())
    with pytest.raises(ValueError, match="seq_len must be the length of a sequence, not 0"):
        names_of(one)["get_mistral_nparams_and_flops"](built(one.config), SimpleNamespace(parameters=list), 0)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["llama", "--for", "latte"], "latte hands over the frames and the side of a video, and the work of 'llama' depends on its 'text'"),
        (["llama", "--for", "verl", "--regime", "dpo"], "a step of 'dpo' also runs the model under"),
        (["linear", "--for", "torchtitan"], "the config has no 'in_features': give --config"),
        (["hidream", "--for", "verl-omni"], "verl-omni hands over the lengths of latents and prompts, and the work of 'hidream' depends on its 'prompt_t5'"),
        (["llama", "--for", "verl-omni"], "verl-omni finds an estimator by a pipeline, and 'llama' is in none"),
        (["qwen2_5_vl", "--for", "verl"], "depends on the shape of images"),
        (["mistral", "--for", "megatron-bridge"], "hands over sums of lengths, of their squares and products, and none of min(x"),
        (["llama", "--for", "torchtitan", "--read", "hidden_siz=dim"], "the spec reads no 'hidden_siz': did you mean 'hidden_size'"),
        (["llama", "--for", "torchtitan", "--read", "hidden_size=os.system('x')"], "is no path such as"),
        (["llama", "--for", "torchtitan", "--read", "hidden_size"], "--read is FIELD=PATH"),
        (["llama", "--for", "verl", "--read", "hidden_size=dim"], "verl has the fields of a config under their own names"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(words, told, tmp_path, capsys):
    assert main(["vendor", *words, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_own_words_of_a_config(projects):
    order = Order(words={"intermediate_size": "hidden", "num_hidden_layers": "len:blocks"})
    one = plan("llama", TARGETS["torchtitan"], order)
    assert one.config["hidden"] == 11008
    assert one.config["blocks"].count == 32
    assert function(one)(one.config, one.examples[0].arguments) == one.examples[0].flops
