"""What is estimated when figures are written down: every spec, with the configs and batches of its cases and published models."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[2]
SPECS = ROOT / "specs"
ASSUMED = "assumed"
REGIMES = (
    "checkpointed", "decode", "dpo", "forward", "frozen-tower", "frozen-vision", "full", "generate", "grpo", "lora",
    "mtp", "reference", "reward",
)  # fmt: skip
CONVENTIONS = (
    "ascend-guide", "ascend-profiler", "calflops", "cookbook", "deepspeed", "kaplan", "kempnerforge", "latte",
    "levanter", "linears", "litgpt", "llm-foundry", "maxtext", "megatron", "megatron-bridge", "nanotron", "nemo",
    "nemo-automodel", "olmo-core", "palm", "symflops", "torch", "torch-raw", "torchtitan", "transformers", "trl", "veomni",
    "verl", "verl-omni",
)  # fmt: skip
CACHED = {"decode": 3, "generate": 4}  # regimes whose entries are pairs, and the second number that is given here


@dataclass(frozen=True)
class Case:
    """One config and batch of a spec; ``main`` is the case that stands for the spec where not all can be afforded."""

    label: str
    config: dict[str, Any]
    batch: dict[str, Any]
    main: bool = False


def spec_names() -> list[str]:
    """Every spec by the name that ``symflops.load`` takes, those that are only assumed included."""
    paths = [path for path in sorted(SPECS.glob("*/*.yaml")) if path.parent.name != "blocks" and "." not in path.stem]
    return [f"{ASSUMED}/{path.stem}" if path.parent.name == ASSUMED else path.stem for path in paths]


def cases_of(spec: str) -> list[Case]:
    """The cases beside a spec, then its published configs; the first is the main one."""
    found = [Case(f"case{place}", case["config"], case["batch"]) for place, case in enumerate(beside(spec))]
    published = json.loads((SPECS / "published.json").read_text("utf-8"))["specs"].get(spec, [])
    found += [
        Case(f"{model['name']} {model['reference'].rpartition('.')[2]}", model["config"], model["batch"]) for model in published
    ]
    return [Case(case.label, case.config, case.batch, place == 0) for place, case in enumerate(found)]


def beside(spec: str) -> list[dict[str, Any]]:
    """The entries of the case file of a spec; none where it has no such file."""
    path = next(iter(SPECS.glob(f"*/{spec.rpartition('/')[2]}.cases.yaml")), None)
    if path is None or spec.startswith(ASSUMED):
        return []
    return list(YAML(typ="safe", pure=True).load(path.read_text("utf-8")))


def batch_for(regime: str, batch: dict[str, Any]) -> dict[str, Any]:
    """A batch as a regime takes it: with a cache, entries of the text are pairs."""
    if regime not in CACHED:
        return batch
    stream = "text" if "text" in batch else next(iter(batch))
    given = batch[stream]
    pairs = [[entry, CACHED[regime]] if isinstance(entry, int) else entry for entry in given] if isinstance(given, list) else given
    return {**batch, stream: pairs}
