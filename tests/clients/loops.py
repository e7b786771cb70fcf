"""Tiny models, their data, and what PyTorch's counter sees of each training step inside of a framework's own loop."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    LlamaForSequenceClassification,
    Qwen2VLConfig,
    Qwen2VLForConditionalGeneration,
)

import symflops
from symflops.verify.running import counter

SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 64, "pad_token_id": 0}
VISION = {"depth": 2, "embed_dim": 32, "hidden_size": 32, "num_heads": 2, "patch_size": 4, "mlp_ratio": 2}
IMAGE, START = 60, 61
KINDS = ("full", "lora", "checkpointed", "lora checkpointed", "head", "images")


def model_of(kind: str) -> Any:
    """A model with eager attention, which the counter sees."""
    torch.manual_seed(0)
    config = LlamaConfig(**SIZES, attn_implementation="eager", use_cache=False, num_labels=3)
    if "images" in kind:
        text = {**SIZES, "rope_scaling": {"type": "mrope", "mrope_section": [1, 1, 2]}}
        ids = {"image_token_id": IMAGE, "vision_start_token_id": START, "vision_end_token_id": 62, "video_token_id": 63}
        return Qwen2VLForConditionalGeneration(Qwen2VLConfig(text_config=text, vision_config=VISION, attn_implementation="eager", **ids))
    model = LlamaForSequenceClassification(config) if "head" in kind else LlamaForCausalLM(config)
    return get_peft_model(model, LoraConfig(r=4, target_modules=["q_proj", "v_proj"])) if "lora" in kind else model


def derived(kind: str, **options: Any) -> Any:
    """The estimator of a kind under PyTorch's convention; from then on its program is in the cache, for which a meter does not wait."""
    model = model_of(kind)
    if "checkpointed" in kind:
        if "lora" in kind:
            model.enable_input_require_grads()
        model.gradient_checkpointing_enable({"use_reentrant": False})
    return symflops.of_model(model.train(), convention="torch", **options)


def rows(kind: str, count: int = 7) -> list[dict[str, torch.Tensor]]:
    """Samples of 4 to 10 tokens, padded to 16; of every second one with images, the first 4 tokens are an image of 16 patches."""
    found = []
    for place in range(count):
        length = 4 + place
        ids = torch.arange(16) % 50 + 1
        row = {"input_ids": ids, "attention_mask": (torch.arange(16) < length + 6 * ("images" in kind)).long()}
        row["labels"] = torch.tensor(place % 3) if "head" in kind else ids
        if "images" in kind and place % 4 < 2:
            ids = ids.clone()
            ids[:6] = torch.tensor([START, IMAGE, IMAGE, IMAGE, IMAGE, 62])
            row = {**row, "input_ids": ids, "labels": ids, "pixel_values": torch.randn(16, 3 * 2 * 16), "image_grid_thw": torch.tensor([[1, 4, 4]])}
        found.append(row)
    return found


def collated(samples: list[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """A batch; images are concatenated, and a batch without any has no key of them."""
    joined = {"pixel_values", "image_grid_thw"}
    plain = {name: torch.stack([row[name] for row in samples]) for name in samples[0] if name not in joined}
    images = {name: torch.cat([row[name] for row in samples if name in row]) for name in joined if any(name in row for row in samples)}
    found = {**plain, **images}
    if images or any(START in row["input_ids"] for row in samples):
        found["mm_token_type_ids"] = (found["input_ids"] == IMAGE).long()
    return found


class Seen:
    """The FLOPs that PyTorch's counter saw, and the shapes of the token ids."""

    def __init__(self) -> None:
        self.flops = 0
        self.shapes: list[tuple[int, ...]] = []

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """A step whose FLOPs are added."""
        with sdpa_kernel(SDPBackend.MATH), counter(False) as counted:
            yield
        self.flops += counted.get_total_flops()


def counting(trainer: type) -> type:
    """A class of trainers whose every step, of training and of evaluation, runs under the counter."""

    class Counting(trainer):  # type: ignore[misc, valid-type]
        seen: Seen

        def training_step(self, model: Any, inputs: Any, *arguments: Any, **named: Any) -> Any:
            if "input_ids" in inputs:
                self.seen.shapes.append(tuple(inputs["input_ids"].shape))
            with self.seen.step():
                return super().training_step(model, inputs, *arguments, **named)

        def prediction_step(self, *arguments: Any, **named: Any) -> Any:
            with self.seen.step():
                return super().prediction_step(*arguments, **named)

    return Counting
