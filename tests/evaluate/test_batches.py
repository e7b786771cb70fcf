"""Batches of any form: an estimate in non-negative integers, or a refusal that says what would fit."""

from __future__ import annotations

import json
import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from symflops.api import load
from symflops.evaluate.batch import LONGEST, BatchError
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.lengths import LengthError
from symflops.evaluate.typical import example_of
from symflops.library import lookup, naming
from symflops.support.errors import SymflopsError
from symflops.training.meter.accumulate import Accumulator
from symflops.training.meter.mfu import MFUMeter
from tests.sampling import amount
from tests.shipped import FILES, NAMES, cases_of, some

LENGTHS = st.one_of(st.sampled_from([0, 1, 2, 3, 7, 16, 31, 32, 64, 224, 399, 400, 10**6, LONGEST, LONGEST + 1]), st.integers(0, 4096))


@cache
def estimators(name: str) -> tuple[Any, Any]:
    """The interpreter and the generated module of the defaults of a spec, of its first variant, or of its first live case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        catalog = lookup.by_name(name)
        for config in ({}, *load(name).variants.values(), *(dict(case.config) for case in cases_of(FILES[name]))):
            try:
                return lookup.interpreted(catalog, name, config), lookup.estimator(catalog, name, config)[1]
            except SymflopsError:
                continue
    raise AssertionError(f"no config of {name} is known")


@st.composite
def batches(draw: st.DrawFn, estimator: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """A batch, and the same with one more item in each index set."""
    less: dict[str, Any] = {}
    more: dict[str, Any] = {}
    for rows in estimator.sets.values():
        count = draw(st.integers(0, 3))
        for name, axes, _ in rows:
            if estimator.streams[name] and draw(st.booleans()):
                continue
            entry = st.lists(LENGTHS, min_size=len(axes), max_size=len(axes)) if len(axes) > 1 else LENGTHS
            entries = draw(st.lists(entry, min_size=count + 1, max_size=count + 1))
            less[name], more[name] = (entries[:count], entries) if axes else (count, count + 1)
    return less, more


def figures(estimator: Any, batch: dict[str, Any]) -> list[int] | None:
    """All that an estimator says of a batch; None if it refuses it."""
    try:
        moments = estimator.moments(**batch)
    except (SymflopsError, ValueError) as error:
        assert str(error)
        return None
    modules = [part for flops in estimator.by_module(moments).values() for part in (flops.forward, flops.backward, flops.recomputed)]
    found = [estimator.forward(moments), estimator.backward(moments), estimator.recomputed(moments), estimator.total(moments), *modules]
    assert all(type(value) is int and value >= 0 for value in found)
    if not estimator.whole:
        assert sum(map(sum, estimator.per_item(**batch).values())) == estimator.total(moments)
    return found


@pytest.mark.parametrize("name", some(NAMES))
def test_figures_are_whole_numbers_that_grow_with_every_item(name: str) -> None:
    interpreted, generated = estimators(name)

    @settings(max_examples=amount(4, 300), deadline=None, database=None, derandomize=True)
    @given(drawn=batches(interpreted))
    def check(drawn: tuple[dict[str, Any], dict[str, Any]]) -> None:
        less, more = (figures(interpreted, batch) for batch in drawn)
        if str(LONGEST + 1) not in json.dumps(drawn):
            assert (figures(generated, drawn[0]), figures(generated, drawn[1])) == (less, more)
        if less is not None and more is not None:
            assert all(a <= b for a, b in zip(less, more, strict=True))
        assert less is not None or more is None, "what is refused stays refused beside another item"

    check()


@pytest.mark.parametrize("name", some(NAMES))
def test_the_example_of_a_message_is_a_batch_that_fits(name: str) -> None:
    for estimator in estimators(name):
        example = example_of(estimator)
        assert example
        assert estimator.forward(estimator.moments(**json.loads(example))) >= 0


WRONG = [4096, None, -1, 4.5, "4096", b"4096", True, float("nan"), {1, 2}, ["a"], [4.5], [True], [None], [float("nan")], [-1], [[1, 2, 3, 4, 5]], [[]],
         {"padded": [4]}, {"lengths": [4], "else": [4]}, {"lengths": 4}, {"lengths": [4], "padded": [3]}, {"lengths": [4], "padded": [4, 4]},
         {"lengths": {"lengths": [4]}}]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
@pytest.mark.parametrize(("name", "stream"), [("llama", "text"), ("vit", "images"), ("wan", "latent")])
def test_a_message_has_the_stream_what_came_and_an_example(name: str, stream: str, wrong: Any) -> None:
    for estimator in estimators(name):
        batch = json.loads(example_of(estimator)) | {stream: wrong}
        with pytest.raises((BatchError, ValueError)) as refused:
            estimator.moments(**batch)
        assert f"'{stream}'" in str(refused.value) and "; e.g. {" in str(refused.value)
        meter = Accumulator(estimator)
        with pytest.raises((LengthError, ValueError), match="e.g."):
            meter.add(**batch)


def test_whole_numbers_of_numpy_and_torch_are_lengths() -> None:
    import numpy as np
    import torch
    for estimator in estimators("llama"):
        plain = estimator.moments(text=[5, 7])
        for given_ in ([np.int64(5), np.int32(7)], [torch.tensor(5), torch.tensor(7)], np.array([5, 7]), torch.tensor([5, 7]), (5, 7)):
            assert estimator.moments(text=given_) == plain
        for wrong in (np.int64(5), torch.tensor(5), [np.float64(5)], [torch.tensor(5.0)], np.array([5.0]), torch.tensor([True])):
            with pytest.raises((BatchError, ValueError), match="'text'.*e.g."):
                estimator.moments(text=wrong)


SHORT = [
    ("wav2vec2", {}, {"audio": [16000, 399]}, "item 1 of 'audio' has length 399, and the model needs at least 400"),
    ("conv1d", {"in_channels": 3, "out_channels": 4, "kernel_size": 5}, {"source": [4]}, "item 0 of 'source' has length 4, and the model needs at least 5"),
    ("autoencoder_kl_wan", {}, {"images": [[0, 64, 64]]}, "item 0 of 'images' has 'f' = 0, and the model needs at least 1"),
    ("vit", {}, {"images": [[224, 224], [224, 15]]}, "item 1 of 'images' has 'w' = 15, and the model needs at least 16"),
    ("convnext", {}, {"images": [[31, 64]]}, "item 0 of 'images' has 'h' = 31, and the model needs at least 32"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "config", "batch", "message"), SHORT)
def test_what_the_model_cannot_run_is_refused_with_the_least_length(name: str, config: dict[str, Any], batch: dict[str, Any], message: str) -> None:
    catalog = lookup.by_name(name)
    for estimator in (lookup.interpreted(catalog, name, config), lookup.estimator(catalog, name, config)[1]):
        for read in (estimator.moments, estimator.per_item, Accumulator(estimator).add):
            with pytest.raises((BatchError, ValueError)) as refused:
                read(**batch)
            assert str(refused.value) == message


def test_on_a_device_a_short_length_is_a_fault_that_the_read_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    monkeypatch.setattr("symflops.evaluate.boundaries.HOST", "none")  # so that tensors are treated as those of a device
    catalog = lookup.by_name("wav2vec2")
    for estimator in (lookup.interpreted(catalog, "wav2vec2", {}), lookup.estimator(catalog, "wav2vec2", {})[1]):
        meter = Accumulator(estimator)
        meter.add(audio=torch.tensor([16000, 400]))
        assert meter.read(reduce=False).faults == 0
        meter.add(audio=torch.tensor([16000, 399]))
        assert meter.read(reduce=False).faults
        meter.add(audio={"lengths": torch.tensor([16000]), "padded": torch.tensor([15000])})
        assert meter.read(reduce=False).faults


@settings(max_examples=amount(30, 2000), deadline=None)
@given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 4), st.integers(1, 3), st.integers(0, 12), st.booleans())
def test_a_convolution_takes_what_the_real_one_takes(kernel: int, stride: int, padding: int, dilation: int, length: int, transposed: bool) -> None:
    import torch
    sizes = {"kernel_size": kernel, "stride": stride, "padding": padding, "dilation": dilation}
    grown = 2 * padding - dilation * (kernel - 1)
    assume(transposed or length or grown <= 0)  # rows of padding alone: the real one refuses an empty input, wherever it comes from
    kind = torch.nn.ConvTranspose1d if transposed else torch.nn.Conv1d
    try:
        kind(2, 3, **sizes)(torch.zeros(1, 2, length))
        runs = True
    except RuntimeError:
        runs = False
    name = "conv_transpose1d" if transposed else "conv1d"
    estimator = InterpretedEstimator(lookup.by_name(name).of_structure(name, {"in_channels": 2, "out_channels": 3, **sizes})[1], {"in_channels": 2, "out_channels": 3, **sizes})
    assert (figures(estimator, {"source": [length]}) is not None) == runs


REAL = {
    "wav2vec2": ("Wav2Vec2", "Model", {
        "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "conv_dim": [8, 8], "conv_kernel": [5, 3], "conv_stride": [3, 2],
        "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2,
    }),
    "convnext": ("ConvNext", "ForImageClassification", {"hidden_sizes": [4, 4, 4, 4], "depths": [1, 1, 1, 1], "patch_size": 2}),
    "resnet": ("ResNet", "ForImageClassification", {"embedding_size": 4, "hidden_sizes": [4, 4, 4, 4], "depths": [1, 1, 1, 1], "layer_type": "basic"}),
    "segformer": ("Segformer", "ForImageClassification", {
        "hidden_sizes": [4, 4, 4, 4], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 1, 1, 1], "decoder_hidden_size": 4, "mlp_ratios": [1, 1, 1, 1],
    }),
}  # fmt: skip


@pytest.mark.parametrize("name", REAL)
def test_the_least_length_is_that_of_the_real_class(name: str) -> None:
    import torch
    import transformers
    family, suffix, sizes = REAL[name]
    model = getattr(transformers, family + suffix)(getattr(transformers, f"{family}Config")(**sizes)).eval()
    estimator = lookup.interpreted(lookup.by_name(name), name, sizes)
    for length in range(1, 36):
        try:
            model(torch.zeros(1, length) if name == "wav2vec2" else torch.zeros(1, 3, length, 64))
            runs = True
        except (RuntimeError, ValueError):
            runs = False
        batch = {"audio": [length]} if name == "wav2vec2" else {"images": [[length, 64]]}
        assert (figures(estimator, batch) is not None) == runs, length


def test_a_stream_that_is_given_twice_is_refused() -> None:
    for estimator in estimators("llama"):
        with pytest.raises(BatchError, match="'text' is given twice"):
            estimator.moments({"text": [8]}, text=[9])


def test_an_implied_stream_that_is_left_out_is_told() -> None:
    config = {"_class_name": "WanTransformer3DModel", "num_layers": 40, "image_dim": 1280, "added_kv_proj_dim": 5120}
    batch = {"latent": [[5, 8, 8]], "prompt": [10]}
    with pytest.warns(UserWarning, match="no 'image_context'"):
        found = naming.estimate(config, batch)
    assert len(found["notes"]) == 1
    assert not naming.estimate(config, batch | {"image_context": [[1, 257]]})["notes"]
    assert not naming.estimate(config | {"image_dim": None, "added_kv_proj_dim": None}, batch)["notes"]
    for estimator in (lookup.interpreted(lookup.by_name("wan"), "wan", config), lookup.estimator(lookup.by_name("wan"), "wan", config)[1]):
        assert tuple(estimator.implied) == ("image_context",)


def test_a_stream_that_the_class_cannot_run_without_is_required() -> None:
    variant = load("audioldm2_unet").variants["audioldm2"]
    estimator = lookup.interpreted(lookup.by_name("audioldm2_unet"), "audioldm2_unet", variant)
    with pytest.raises(BatchError, match="lacks the stream 'other'"):
        estimator.moments(latent=[[64, 16]], prompt=[8])


@pytest.mark.parametrize("many", (2, 200))
def test_a_size_of_0_by_which_lengths_are_divided_is_refused(many: int) -> None:
    """Qwen2.5-VL's windows of 8 pixels are less than a merged patch of 28: ``8//2//14*2`` is 0, and divides the sides of images."""
    one = load("qwen2_5_vl").estimator({"vision_config": {"window_size": 8, "patch_size": 14, "spatial_merge_size": 2}})
    batch = {"text": [400] * many, "images": [[1, 28, 28]] * many}
    for text in ([400] * many, np.full(many, 400)):  # texts alone are not divided
        assert one.moments(text=text).as_dict()["x"] == 400 * many
        assert sum(one.per_sample(text=text)) == one.total(one.moments(text=text))
    for ask in (one.moments, one.per_item, lambda **given: MFUMeter(one, devices=1, peak_tflops=1.0).add(**given)):
        with pytest.raises(SymflopsError, match="a size by which lengths are divided is 0"):
            ask(**batch)
