"""The meter: what it measures, what it says, and that it stops no job."""

from __future__ import annotations

import re
import warnings
from decimal import Decimal
from fractions import Fraction

import pytest
import torch

from symflops.evaluate.lengths import of_cu_seqlens, same
from symflops.library import lookup
from symflops.training.meter.keys import PRESETS
from symflops.training.meter.mfu import MFUMeter

CONFIG = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100}


def estimator(regime="full", convention="symflops"):
    return lookup.estimator(lookup.by_name("llama"), "llama", CONFIG, regime, convention)[1]


def flops(lengths, regime="full", kind="total"):
    one = estimator(regime)
    return getattr(one, kind)(one.moments(text=lengths))


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def meter(estimators=None, **options):
    options = {"devices": 2, "peak_tflops": 1e-3, "clock": Clock(), "log": lambda line: None, **options}
    return MFUMeter(estimator() if estimators is None else estimators, **options)


def test_one_window():
    one = meter()
    one.add(text=[100, 50])
    one.clock.now += 4
    found = one.step()
    rate = flops([100, 50]) / 4 / 2
    assert found == pytest.approx({"mfu": rate / 1e9, "hfu": rate / 1e9, "tflops_per_device": rate / 1e12, "flops_total": flops([100, 50]),
                                   "tokens_per_second": 150 / 4, "peak_tflops": 1e-3})  # fmt: skip
    one.add(text=torch.tensor([10]))
    one.clock.now += 1
    second = one.step()
    assert second["tflops_per_device"] == pytest.approx(flops([10]) / 2 / 1e12)
    assert second["flops_total"] == flops([100, 50, 10])
    one.add(text=[10])
    assert one.step(seconds=2)["tflops_per_device"] == pytest.approx(flops([10]) / 4 / 1e12)


def test_padding_and_recomputation_are_in_hfu_only():
    one = meter(estimator("checkpointed"))
    one.add(text=of_cu_seqlens(torch.tensor([0, 64, 128]), torch.tensor([0, 60, 101])))
    found = one.step(seconds=1)
    assert found["mfu"] == pytest.approx(flops([60, 41]) / 2e9)
    executed = flops([64, 64], "checkpointed") + flops([64, 64], "checkpointed", "recomputed")
    assert found["hfu"] == pytest.approx(executed / 2e9) and executed > flops([60, 41])


def test_a_pack_of_32_costs_one_32nd_of_the_attention():
    one = estimator()
    attention = one.coefficients["total"][list(one.moment_sets).index("xx")]
    pack, whole = (one.total(one.moments(text=lengths)) for lengths in ([256] * 32, [8192]))
    linears = one.coefficients["total"][list(one.moment_sets).index("x")] * 8192
    assert (pack - linears) * 32 == whole - linears == attention * 8192**2


def test_mixing_scopes_inflates():
    """FLOPs of all ranks over the devices of one: as many times too much as there are ranks."""
    ranks = 4
    right, local, mixed = (meter(devices=devices, scope=scope) for devices, scope in ((ranks, "global"), (1, "rank"), (1, "global")))
    for one, lengths in ((right, [128] * ranks), (local, [128]), (mixed, [128] * ranks)):  # a reduced step sums all ranks
        one.add(text=lengths)
    found = [one.step(seconds=1)["mfu"] for one in (right, local, mixed)]
    assert found[0] == found[1] and found[2] == pytest.approx(ranks * found[0])
    with pytest.raises(ValueError, match="scope"):
        meter(scope="world")
    with pytest.raises(ValueError, match="devices"):
        meter(devices=0)


def test_phases_of_verl():
    phases = {"actor": estimator(), "actor_infer": estimator("forward"), "ref": estimator("forward")}
    one = meter(phases, keys="verl")
    for name, seconds in (("actor", 3), ("actor_infer", 1), ("ref", 2)):
        with one.phase(name):
            one.add(text=[100])
            one.clock.now += seconds
    found = one.step()
    assert found["perf/mfu/actor"] == pytest.approx(flops([100]) / 3 / 2e9)
    assert found["perf/mfu/actor_infer"] == pytest.approx(flops([100], "forward") / 1 / 2e9)
    assert not any("ref" in key for key in found)
    assert one.flops == flops([100]) + 2 * flops([100], "forward")
    one.add(text=[100], phase="actor")
    one.spent("actor", 5)
    assert set(one.step()) == {key for key in found if "infer" not in key}
    shown = meter(phases, keys="verl", hidden=())
    shown.add(text=[1], phase="ref")
    assert "perf/mfu/ref" in shown.step(seconds=1)


def test_passes_and_timesteps():
    image = lookup.estimator(lookup.by_name("qwen_image"), "qwen_image", {"num_layers": 1})[1]
    one = meter(image, peak_tflops=100)
    one.add(latent=same(2, 16), prompt=torch.tensor([3, 5]), passes=2, timesteps=10)
    once = image.total(image.moments(latent=[16, 16], prompt=[3, 5]))
    one.step(seconds=1)
    assert one.flops == 20 * once


@pytest.mark.parametrize(("keys", "name", "factor"), [("plain", "mfu", 1), ("verl", "perf/mfu/train", 1), ("torchtitan", "mfu(%)", 100), ("lightning", "device/mfu", 1), ("hf", "mfu", 1), ("composer", "throughput/device/mfu", 1)])
def test_keys(keys, name, factor):
    one = meter(keys=keys)
    one.add(text=[64])
    found = one.step(seconds=1)
    assert found[name] == pytest.approx(factor * flops([64]) / 2e9)
    assert all(isinstance(value, (int, float)) for value in found.values()) and len(found) == len(PRESETS[keys])
    with pytest.raises(ValueError, match="preset"):
        meter(keys="none")


def test_state_survives_and_the_clock_does_not():
    one = meter()
    one.add(text=[100])
    one.step(seconds=1)
    state = one.state_dict()
    other = meter()
    other.clock.now += 5000  # the time in between is no training time
    other.load_state_dict(state)
    other.add(text=[10])
    other.clock.now += 2
    found = other.step()
    assert found["flops_total"] == flops([100, 10]) and found["tflops_per_device"] == pytest.approx(flops([10]) / 2 / 2 / 1e12)
    assert other.steps == 2


def test_above_one_it_warns_once_and_does_not_clamp():
    one = meter(peak_tflops=1e-9)
    with pytest.warns(UserWarning, match="above 1: check the peak"):
        one.add(text=[100])
        assert one.step(seconds=1)["mfu"] > 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one.add(text=[100])
        assert one.step(seconds=1)["mfu"] > 1


def test_an_unknown_peak_leaves_the_key_away(monkeypatch):
    monkeypatch.delenv("SYMFLOPS_PEAK_TFLOPS", raising=False)
    with pytest.warns(UserWarning, match="NVIDIA X1"):
        one = meter(peak_tflops=None, device_name="NVIDIA X1")
    one.add(text=[100])
    found = one.step(seconds=1)
    assert found["tflops_per_device"] > 0 and not {"mfu", "hfu", "peak_tflops"} & found.keys()
    monkeypatch.setenv("VERL_OMNI_DEVICE_FLOPS_TFLOPS", "100")
    assert meter(peak_tflops=None, device_name="NVIDIA X1", variables=("VERL_OMNI_DEVICE_FLOPS_TFLOPS",)).peak.tflops == 100


@pytest.mark.parametrize("config", [None, {}, {"model_type": "nothing"}, "/no/such/config.json", {**CONFIG, "hidden_size": "wide"}, 7])
def test_a_model_that_is_unknown_stops_no_job(config):
    with pytest.warns(UserWarning, match="no MFU: .+"):
        one = MFUMeter.of_config(config, devices=1, peak_tflops=1)
    for _ in range(2):
        one.add(text=[100])
        with one.phase("actor"):
            one.add(text="nonsense")
        assert one.step() == {}
    assert "no MFU" in one.describe() and one.state_dict()["steps"] == 2


@pytest.mark.parametrize("batch", [{"text": "abc"}, {"text": None}, {"image": [1]}, {}, {"text": [-1]}, {"text": torch.tensor([-1])}, {"text": torch.tensor([1.5])}, {"text": object()}])
def test_a_batch_that_cannot_be_read_takes_the_key_of_its_window(batch):
    one = meter()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(2):
            one.add(text=[100])
            one.add(**batch)
            found = one.step(seconds=1)
            assert "mfu" not in found and 0 not in found.values(), batch
    assert 1 <= len(seen) <= 2 and all("no MFU" in str(warning.message) for warning in seen)
    one.add(text=[100])
    assert "mfu" in one.step(seconds=1)


def test_nothing_ran_nothing_is_logged():
    one = meter()
    assert one.step(seconds=1) == {}
    one.add(text=[])
    assert one.step(seconds=1) == {}
    one.add(text=[4])
    with pytest.warns(UserWarning, match="seconds"):
        assert "mfu" not in one.step(seconds=0)


def test_what_it_prints():
    lines = []
    one = meter(log_every=2, log=lines.append, device_name="NVIDIA H100 80GB HBM3", peak_tflops=None)
    text = one.describe(text=[100, 50])
    for word in (f"{estimator().parameters:,} parameters", "regime full", "FLOPs forward =", "xx", "2 devices", "989.4 TFLOP/s", "ml-engineering", "MFU = FLOPs", f"{flops([100, 50], kind='forward') // 2:,} FLOPs forward per sample", f"{flops([100, 50]):,} FLOPs a step"):
        assert word in text, word
    for _ in range(4):
        one.add(text=[100])
        one.step(seconds=1)
    assert len(lines) == 2 and "step 2: " in lines[0] and re.fullmatch(r"step 2: \S+ TFLOP/s/GPU, MFU \S+%, HFU \S+%, 100 tokens/s, 1,000.0 ms", lines[0])
    assert "xx" in one.describe() and "this batch" not in one.describe()


def rates(line):
    """The numbers of a printed line: TFLOP/s of a device, MFU, HFU, tokens a second and milliseconds a step."""
    return [float(number.replace(",", "")) for number in re.findall(r"([\d.,e+-]+)(?: TFLOP|%| tokens| ms)", line)]


def test_a_line_has_the_work_and_the_time_since_the_last_one():
    lines = []
    one = meter(log_every=3, log=lines.append)
    lengths, seconds = ([100], [50, 20], [10], [400], [30], [60]), (1, 2, 5, 3, 3, 4)
    for text, spent in zip(lengths, seconds, strict=True):
        one.add(text=text)
        one.clock.now += spent
        found = one.step()
        assert found["tflops_per_device"] == pytest.approx(flops(text) / spent / 2e12)  # what a step returns is its own
    assert [line.partition(":")[0] for line in lines] == ["step 3", "step 6"]
    for place, line in enumerate(lines):
        mine, spent = [length for text in lengths[3 * place : 3 * place + 3] for length in text], sum(seconds[3 * place : 3 * place + 3])
        rate = sum(flops([length]) for length in mine) / spent / 2e12
        assert rates(line) == pytest.approx([rate, 1e5 * rate, 1e5 * rate, sum(mine) / spent, 1000 * spent / 3], rel=0.01, abs=0.5)
        assert rates(line)[0] == pytest.approx(rate, rel=1e-3)


def test_a_line_leaves_out_windows_without_a_rate_and_keeps_those_without_a_line():
    lines = []
    one = meter({"actor": estimator(), "ref": estimator("forward")}, keys="verl", hidden=(), log_every=2, log=lines.append)

    def step(actor, seconds, ref=None):
        one.add(text=actor, phase="actor")
        if ref:
            one.add(text=ref, phase="ref")
            one.spent("ref", 4)
        one.step(seconds=seconds)

    with pytest.warns(UserWarning, match="seconds") as seen:
        step([100], 1)
        step([100], float("nan"))  # due, but of unknown length: nothing is printed, and the first window waits for a line
        assert lines == []
        step([50], 2, ref=[10])
        step([20], 1)
        step([20], -1)
    assert len([warning for warning in seen if "seconds" in str(warning.message)]) == 1
    (first,) = lines
    actor, ref = first.split("; ")
    assert rates(actor)[0] == pytest.approx((flops([100, 50, 20])) / 4 / 2e12, rel=1e-3) and "step 4: actor: " in actor
    assert rates(ref)[0] == pytest.approx(flops([10], "forward") / 4 / 2e12, rel=1e-3)
    step([], 3)  # no work, but time
    step([40], 1)
    step([10], 2)
    assert [line.partition(":")[0] for line in lines] == ["step 4", "step 8"]
    assert rates(lines[1])[0] == pytest.approx(flops([40, 10]) / 6 / 2e12, rel=1e-3)


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -float("inf"), -1, 0, "4", "soon", True, [], {}, object(), 10**400, 1j, torch.tensor(float("nan")), torch.ones(2)], ids=lambda value: type(value).__name__)
def test_seconds_that_are_none_take_the_rates_of_their_window(seconds):
    lines = []
    one = meter(log_every=1, log=lines.append)
    with pytest.warns(UserWarning, match="seconds are not a positive, finite number") as seen:
        for _ in range(2):
            one.add(text=[100])
            assert one.step(seconds=seconds) == {}
    assert len(seen) == 1 and lines == [] and one.flops == flops([100, 100])  # the work is done all the same
    one.add(text=[100])
    one.clock.now += 2
    assert one.step()["tflops_per_device"] == pytest.approx(flops([100]) / 2 / 2e12) and len(lines) == 1
    assert rates(lines[0])[0] == pytest.approx(flops([100]) / 2 / 2e12, rel=1e-3)


def test_seconds_of_a_phase_that_are_none():
    one = meter({"actor": estimator(), "ref": estimator("forward")}, keys="verl", hidden=())
    one.add(text=[100], phase="actor")
    one.add(text=[100], phase="ref")
    one.spent("actor", float("nan"))
    one.spent("ref", 4)
    with pytest.warns(UserWarning, match="seconds"):
        found = one.step()
    assert "perf/mfu/actor" not in found and found["perf/mfu/ref"] == pytest.approx(flops([100], "forward") / 4 / 2e9)


def test_seconds_of_other_types():
    for seconds in (2, 2.0, torch.tensor(2.0), Fraction(2), Decimal(2)):
        one = meter()
        one.add(text=[100])
        assert one.step(seconds=seconds)["mfu"] == pytest.approx(flops([100]) / 2 / 2e9)
    for wrong in ("10", [1]):
        with pytest.raises(ValueError, match="log_every"):
            meter(log_every=wrong)


def test_importing_the_meter_imports_neither_sympy_nor_torch():
    import subprocess
    import sys

    text = "import sys; import symflops.training.meter.mfu, symflops.training.meter.batches; print([name for name in ('sympy', 'torch', 'jinja2', 'ruamel', 'numpy') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_pauses_are_no_training_time():
    one = meter({"actor": estimator(), "ref": estimator("forward")}, keys="verl", hidden=())
    with one.phase("actor"):
        one.add(text=[100])
        one.clock.now += 1
        with one.paused(), one.paused():
            one.clock.now += 1000
        one.clock.now += 1
    one.pause()
    one.add(text=[100], phase="ref")
    one.clock.now += 500
    one.resume()
    one.resume()  # one too many changes nothing
    one.clock.now += 2
    found = one.step()
    assert found["perf/mfu/actor"] == pytest.approx(flops([100]) / 2 / 2e9)
    assert found["perf/mfu/ref"] == pytest.approx(flops([100], "forward") / 4 / 2e9)


class Later:
    """An estimator that arrives at the third look."""

    looks = 0

    def __init__(self):
        self.estimator = estimator()

    def poll(self):
        self.looks += 1
        return self.estimator if self.looks > 2 else None


def test_a_window_that_was_settled_in_part_before_the_estimator_came_has_no_rate():
    one = meter(Later())
    one.add(text=[100])
    one.step(seconds=1)
    one.add(text=[100])
    one.settle()
    one.add(text=[100])
    assert one.step(seconds=1) == {} and one.flops == 3 * flops([100])
    one.add(text=[100])
    assert one.step(seconds=1)["tflops_per_device"] == pytest.approx(flops([100]) / 2e12)


def test_a_settled_window_has_the_rate_of_all_of_it():
    one = meter()
    for _ in range(3):
        one.add(text=[100])
        one.settle()
    assert one.flops == 3 * flops([100])
    assert one.step(seconds=1)["tflops_per_device"] == pytest.approx(3 * flops([100]) / 2e12) and one.flops == 3 * flops([100])
    assert one.step(seconds=1) == {}


def test_streams_that_no_batch_has_are_told_once():
    vision = lookup.estimator(lookup.by_name("qwen2_vl"), "qwen2_vl", {})[1]
    one = meter(vision, peak_tflops=1e6)
    with pytest.warns(UserWarning, match="no batch so far has 'images', which this config implies"):
        one.add(text=[100])
        one.step(seconds=1)
    other = meter(vision, peak_tflops=1e6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one.add(text=[100])
        assert "mfu" in one.step(seconds=1)
        other.add(text=[100])
        other.add(text=[100], images=[[1, 4, 4]])
        assert "mfu" in other.step(seconds=1)  # mixed micro-batches are nothing to tell
        other.add(text=[100])
        assert "mfu" in other.step(seconds=1)


def test_whole_batches():
    one = meter()
    one.add_batch({"input_ids": torch.zeros(2, 6), "attention_mask": torch.tensor([[1, 1, 1, 0, 0, 0], [1] * 6])}, passes=2)
    one.step(seconds=1)
    assert one.flops == 2 * flops([3, 6])
    with pytest.warns(UserWarning, match="could not be read: LengthError: nothing in the batch"):
        one.add_batch({"labels": 1})
    assert one.step(seconds=1) == {}


@pytest.mark.parametrize(("options", "words"), [
    ({"peak_tflops": 989e12}, "taken for FLOP/s: give 989"), ({"devices": 1.5}, "1.5 devices"), ({"peak_tflops": "many"}, "'many', not a positive number"), ({"dtype": "bfloat"}, "no number type 'bfloat'"),
])  # fmt: skip
def test_options_that_do_not_fit_are_told_and_stop_no_job(options, words):
    with pytest.warns(UserWarning, match=words):
        one = meter(**options)
    one.add(text=[100])
    found = one.step(seconds=1)
    assert found.get("peak_tflops") == (989.0 if options.get("peak_tflops") == 989e12 else None)
    assert ("mfu" in found) == ("peak_tflops" in found)


def test_options_in_other_forms(monkeypatch):
    one = meter(peak_tflops="989", dtype=torch.bfloat16, devices=None)
    assert (one.peak.tflops, one.peak.dtype, one.devices) == (989.0, "bf16", 1)
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert meter(devices=None).devices == 4 and meter(devices=None, scope="rank").devices == 1


def test_batches_that_cannot_be_read_are_told_by_types_and_a_few_times():
    one = meter()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for place in range(100):
            one.add_batch((torch.full((2, 4), 1234), torch.ones(2)))
            one.add_batch({"prompts": ["a secret"] * place, "input": torch.full((2, place), 1234)})
            one.add(text=["a secret"])
            one.add(text=f"a secret {place}")
    texts = [str(warning.message) for warning in told]
    assert len(texts) == 3 and not any("secret" in text or "1234" in text for text in texts)
    assert "it has a tuple of Tensor" in texts[0] and "prompts (a list), input (Tensor of shape [2, 0])" in texts[1]
    assert one.step(seconds=1) == {}


def test_a_job_that_ended_before_its_program_was_derived(capsys):
    from symflops.training.meter.phases import Waiting

    for batches in (0, 2):
        waiting = Waiting()
        for _ in range(batches):
            waiting.add(text=[3])
        del waiting
    assert capsys.readouterr().err == "symflops: no MFU: the job ended before its program was derived (2 batches)\n"
