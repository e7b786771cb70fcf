"""One process of an HF Trainer on two processes with gloo: ``python trainer_loop.py FOLDER``, under torchrun's variables.

Case ``whole`` trains and saves between two logs, ``resumed`` continues from such a checkpoint, ``half`` has no meter's estimator on
the second process.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

from symflops.training.frameworks.huggingface import attach

SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 64}


class Lines(torch.utils.data.Dataset):
    """Texts of 4 to 27 tokens, padded to 32."""

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        ids = torch.zeros(32, dtype=torch.int64)
        return {"input_ids": ids, "labels": ids, "attention_mask": (torch.arange(32) < 4 + index).long()}


def trained(folder: str, case: str) -> dict[str, object]:
    """What the meter and the Trainer of this process say after an epoch."""
    torch.manual_seed(0)
    arguments = TrainingArguments(
        output_dir=folder if case != "half" else f"{folder}/half", per_device_train_batch_size=2, num_train_epochs=1, report_to=[], use_cpu=True, disable_tqdm=True,
        ddp_backend="gloo", save_strategy="steps", save_steps=2, logging_steps=3, eval_strategy="steps", eval_steps=4,
    )  # fmt: skip
    model = LlamaForCausalLM(LlamaConfig(**SIZES))
    trainer = Trainer(model=model, args=arguments, train_dataset=Lines(), eval_dataset=Lines())
    lines: list[str] = []
    options = {"spec": "t5"} if case == "half" and dist.get_rank() == 1 else {}
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        meter = attach(trainer, peak_tflops=0.5, log=lines.append, **options)
        trainer.train(resume_from_checkpoint=str(Path(folder) / "checkpoint-4") if case == "resumed" else None)
    logged = [entry["flops_total"] for entry in trainer.state.log_history if "mfu" in entry]
    told = [str(warning.message) for warning in seen if "symflops:" in str(warning.message)]
    return {"flops": meter.flops, "own": trainer.state.total_flos, "logged": logged, "lines": lines, "step": trainer.state.global_step, "told": told}


def main(folder: str) -> None:
    print("RESULT" + json.dumps({case: trained(folder, case) for case in ("whole", "resumed", "half")}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
