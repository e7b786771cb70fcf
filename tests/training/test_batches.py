"""Streams of a batch by the layouts of the model's inputs, and the cases of VeRL-Omni's extractors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from symflops.evaluate.diffusion_passes import forward_passes
from symflops.evaluate.lengths import LengthError
from symflops.library import lookup
from symflops.read.spec_files import shipped, specs_in
from symflops.support.errors import SymflopsError
from symflops.training.meter.batches import streams_of
from symflops.verify.cases import cases_of
from tests.shipped import NAMES

FILES = {file.name: file for file in specs_in(shipped("specs"))}
PEER = json.loads((Path(__file__).resolve().parents[1] / "data" / "peers" / "verl_omni_extractors.json").read_text())[0]


def estimator(name, config=None):
    return lookup.estimator(lookup.by_name(name), name, config or {})[1]


def tokens(name, shape, key):
    """Tokens per sample that the model sees, from the key under which a trainer holds latents."""
    one = estimator(name)
    latent = next(name for streams in one.sets.values() for name, _, _ in streams)
    batch = {key: torch.zeros(shape, device="meta"), "prompt_embeds": torch.zeros(shape[0], 7, 8, device="meta")}
    keys = key if key in ("audio_latents", "latents_clean") else ""
    found = streams_of(one, batch, keys)[latent]
    return [found.axes] * found.count


# per case of the peer: the spec, what it sees of each sample, and why where the peer's count of tokens is another one
QWEN = {
    "image_latents (4, 1024, 64)": ((1024,), ""),
    "all_latents (4, 2, 1024, 64)": ((1024,), ""),
    "latents_clean (4, 64, 64, 64)": ((4096,), ""),
    "image_latents (2, 16, 128, 128)": ((4096,), "unpacked latents are packed two by two before the model: 16 x 128 x 128 = 64 x 4096; the peer counts each place"),
}
WAN = {
    "image_latents (1, 16, 21, 60, 104)": ((21, 60, 104), "131040 places are 21 x 30 x 52 = 32760 tokens of patches (1, 2, 2); the peer counts each place"),
    "all_latents (1, 10, 16, 21, 60, 104)": ((21, 60, 104), "as above"),
}


@pytest.mark.parametrize("case", PEER["latent_extract"], ids=lambda case: f"{case['key']}-{case['shape']}")
def test_latents_of_the_peer(case):
    shape, key = tuple(case["shape"]), case["key"]
    label = f"{key} {shape}"
    name, table = ("stable_audio", {}) if key == "audio_latents" else ("wan", WAN) if label in WAN else ("qwen_image", QWEN)
    expected, difference = table.get(label, ((200,), ""))
    assert tokens(name, shape, key) == [expected] * shape[0]
    if not difference:
        assert [expected[0]] * shape[0] == case["qwen"]
    elif name == "qwen_image":
        assert [expected[0]] * shape[0] != case["qwen"]
    else:
        one = estimator("wan")
        video = dict(zip(one.moment_sets, one.terms(*expected, 0, 0, 0, 1)))["video"]
        assert video == 32760 and [video] != case["qwen"] == [131040]


def test_passes_of_the_peer():
    for case in PEER["cfg_passes"]:
        assert forward_passes(case["pipeline"], case["transformer"]) == case["passes"]


def test_order_of_latents_and_prompts():
    one = estimator("qwen_image")
    image, stacked = torch.zeros(2, 1024, 64), torch.zeros(2, 3, 4096, 64)
    mask, embeddings = torch.tensor([[1, 1, 0], [1, 0, 0]]), torch.zeros(2, 9, 3584)
    nested = torch.nested.nested_tensor([torch.zeros(4), torch.zeros(2)], layout=torch.jagged)

    def read(**batch):
        found = streams_of(one, batch)
        return found["latent"].axes[0], [int(value) for value in found["prompt"].axes[0]] if hasattr(found["prompt"].axes[0], "tolist") else found["prompt"].axes[0]

    assert read(image_latents=image, all_latents=stacked, prompt_embeds_mask=mask, prompt_embeds=embeddings) == (1024, [2, 1])
    assert read(all_latents=stacked, prompt_embeds_mask=nested, prompt_embeds=embeddings) == (4096, [4, 2])
    assert read(all_latents=stacked, prompt_embeds=embeddings) == (4096, 9)
    assert read(image_latents=image) == (1024, 0)
    assert streams_of(one, {"z": image}, "z")["latent"].axes == (1024,)
    assert streams_of(one, {"hidden_states": image, "encoder_hidden_states": embeddings})["prompt"].axes == (9,)
    with pytest.raises(LengthError, match="nothing"):
        streams_of(one, {"labels": image})
    with pytest.raises(LengthError, match="pack"):
        streams_of(one, {"image_latents": torch.zeros(2, 3, 5, 5)})


def test_token_ids_and_what_stands_beside_them():
    one = estimator("llama")
    ids = torch.zeros(2, 6, dtype=torch.int64)
    mask = torch.tensor([[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1]])

    def read(**batch):
        found = streams_of(one, batch)["text"]
        lengths = found.axes[0]
        return lengths.tolist() if hasattr(lengths, "tolist") else [lengths] * found.count

    assert read(input_ids=ids) == [6, 6]
    assert read(input_ids=ids, attention_mask=mask) == [3, 6]
    assert read(input_ids=ids[:1], position_ids=torch.tensor([[0, 1, 0, 1, 2, 3]]))[:2] == [2, 4]
    assert read(input_ids=ids[:1], cu_seq_lens_q=torch.tensor([0, 1, 6], dtype=torch.int32), attention_mask=mask[:1]) == [1, 5]
    nested = torch.nested.nested_tensor([torch.zeros(4), torch.zeros(2)], layout=torch.jagged)
    assert read(input_ids=nested) == [4, 2]


@pytest.mark.parametrize("name", ["t5", "bart"])
def test_tokens_of_a_decoder_have_a_mask_of_their_own(name):
    """The mask of the encoder says nothing of the decoder; labels alone become the decoder's tokens, without those that are ignored."""
    one = estimator(name)
    source, target = (one.inputs()[argument][0] for argument in ("input_ids", "decoder_input_ids"))
    batch = {"input_ids": torch.zeros(2, 6), "attention_mask": torch.tensor([[1, 1, 1, 0, 0, 0], [1] * 6])}

    def read(**more):
        found = streams_of(one, batch | more)
        assert found[source].axes[0].tolist() == [3, 6]
        return found[target].axes[0].tolist() if hasattr(found[target].axes[0], "tolist") else found[target].axes[0], found[target].padded

    decoded = torch.zeros(2, 4)
    assert read(decoder_input_ids=decoded) == (4, None)
    assert read(decoder_input_ids=decoded, decoder_attention_mask=torch.tensor([[1, 0, 0, 0], [1, 1, 0, 0]])) == ([1, 2], (4,))
    assert read(labels=torch.tensor([[5, 5, -100, -100], [5, 5, 5, 5]])) == ([2, 4], (4,))
    assert read(labels=[[5, 5, -100], [5, 5, 5]]) == ([2, 3], (3,))
    with pytest.raises(LengthError, match="nothing"):
        read(labels=torch.tensor([0, 1]))


def test_videos_alone():
    one = estimator("qwen2_vl")
    found = streams_of(one, {"input_ids": torch.zeros(1, 50), "video_grid_thw": torch.tensor([[2, 4, 8]])})
    assert [axis.tolist() for axis in found["images"].axes] == [[2], [4], [8]]


def test_images_and_videos():
    one = estimator("qwen2_vl")
    batch = {"input_ids": torch.zeros(1, 50), "image_grid_thw": torch.tensor([[1, 4, 4]]), "video_grid_thw": torch.tensor([[2, 4, 8]])}
    found = streams_of(one, batch)
    assert [axis.tolist() for axis in found["images"].axes] == [[1, 2], [4, 4], [4, 8]] and found["text"].axes == (50,)
    assert "images" not in streams_of(one, {"input_ids": torch.zeros(1, 50)})


def some_estimator(name):
    """The estimator of a spec's defaults or, where a config has to be given, of its first live case that has one."""
    for config in ({}, *(case.config for case in cases_of(FILES[name]))):
        try:
            return estimator(name, dict(config))
        except SymflopsError:
            continue
    raise AssertionError(f"no config for {name}")


def plain_inputs(one):
    """The inputs whose dimensions are items, lengths and widths, with those dimensions."""
    rows = {argument: (to, layout.split(), width) for argument, (to, layout, width) in one.inputs().items()}
    return {name: row for name, row in rows.items() if row[1][0] == "b" and not any("*" in word for word in row[1])}


@pytest.mark.parametrize("name", [name for name in NAMES if name != "z_image"])
def test_inputs_of_every_spec_read_back(name):
    """Arguments of the shapes that the layouts say give the lengths that they were made of; Z-Image takes lists of tensors."""
    one = some_estimator(name)
    drawn, batch = {}, {}
    sizes = {axis: 8 * place for streams in one.sets.values() for _, axes, _ in streams for place, axis in enumerate(axes, 2)}
    for argument, (to, words, width) in plain_inputs(one).items():
        shape = [2 if word == "b" else sizes.get(word.partition("=")[0], width or 3) for word in words]
        batch[argument] = torch.zeros(shape, device="meta")
        drawn[to] = shape
    found = streams_of(one, batch)
    for streams in one.sets.values():
        for stream, axes, _ in streams:
            if stream in drawn and stream in found and axes and found[stream].count == 2 and stream != "prompt":
                assert found[stream].axes == tuple(sizes[axis] for axis in axes), stream
