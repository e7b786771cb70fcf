"""Steps whose micro-batches are of text alone or of text and images, in the real Trainer, against PyTorch's counter."""

from __future__ import annotations

import pytest
import torch
import transformers
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import Trainer, TrainingArguments

import symflops
from symflops.training.frameworks.huggingface import attach
from symflops.verify.running import counter

TEXT = {
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 64, "head_dim": 8,
    "rope_parameters": {"rope_type": "default", "mrope_section": [1, 1, 2]}, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
TOKENS = {"image_token_id": 60, "video_token_id": 61, "vision_start_token_id": 62, "vision_end_token_id": 63}
VISION = {
    "Qwen2VL": {"depth": 2, "embed_dim": 32, "hidden_size": 32, "num_heads": 4, "patch_size": 4, "mlp_ratio": 2},
    "Qwen2_5_VL": {"depth": 2, "hidden_size": 32, "intermediate_size": 64, "out_hidden_size": 32, "num_heads": 4, "patch_size": 4, "window_size": 16, "fullatt_block_indexes": [1]},
    "Qwen3VL": {"depth": 2, "hidden_size": 32, "intermediate_size": 64, "out_hidden_size": 32, "num_heads": 4, "patch_size": 4, "deepstack_visual_indexes": [0, 1], "num_position_embeddings": 64},
}  # fmt: skip
IMAGES = {0: [[1, 4, 4], [1, 4, 8]], 2: [[1, 8, 4]]}
"""The grids of images of those micro-batches that have some."""


def micro_batch(place):
    ids = torch.full((2, 20), 5)
    grids = IMAGES.get(place, [])
    for row, (frames, height, width) in enumerate(grids):
        ids[row, 2 : 2 + frames * height * width // 4] = TOKENS["image_token_id"]
    batch = {"input_ids": ids, "labels": ids, "attention_mask": torch.ones_like(ids)}
    if grids:
        patches = sum(frames * height * width for frames, height, width in grids)
        batch |= {"pixel_values": torch.randn(patches, 3 * 2 * 16), "image_grid_thw": torch.tensor(grids), "mm_token_type_ids": (ids == TOKENS["image_token_id"]).int()}
    return batch


@pytest.mark.parametrize("name", VISION)
def test_text_and_images_in_turn(name, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    config = getattr(transformers, f"{name}Config")(text_config=TEXT, vision_config=VISION[name], **TOKENS)
    model = getattr(transformers, f"{name}ForConditionalGeneration")(config)
    symflops.of_model(model, convention="torch")  # in the cache from now on, if no program is stored for this structure
    arguments = TrainingArguments(output_dir=str(tmp_path), max_steps=2, per_device_train_batch_size=1, gradient_accumulation_steps=2, logging_steps=1, report_to=[], use_cpu=True, save_strategy="no", disable_tqdm=True, remove_unused_columns=False, dataloader_num_workers=0)
    trainer = Trainer(model=model, args=arguments, train_dataset=list(range(4)), data_collator=lambda places: micro_batch(places[0]))
    meter = attach(trainer, devices=1, peak_tflops=1.0, convention="torch", log=lambda line: None)
    with sdpa_kernel(SDPBackend.MATH), counter(False) as counted:
        trainer.train()
    logged = [entry for entry in trainer.state.log_history if "mfu" in entry]
    assert meter.flops == counted.get_total_flops() == trainer.state.total_flos
    assert len(logged) == 2 and all(entry["mfu"] > 0 for entry in logged)
