"""Adapters as ``peft`` puts them in: trainable elements and both passes of the real model are what is derived."""

from __future__ import annotations

from itertools import product

import pytest
from peft import LoraConfig, get_peft_model

from symflops.api import regime_of
from symflops.read.spec_files import find_spec
from symflops.verify.bench import Bench
from symflops.verify.live import run
from tests.sampling import sampled
from tests.shipped import cases_of, load
from tests.verify.random_regimes import derived_of

# model, case, targets as peft takes them: the ends of module paths
CASES = (
    ("llama", 0, ("q_proj", "v_proj")), ("llama", 0, ("q_proj", "lm_head")), ("llama", 2, ("o_proj", "down_proj")),
    ("qwen_image", 1, ("to_q", "to_out.0")), ("wan", 0, ("to_q", "ffn.net.2")), ("flux", 1, ("proj_mlp", "attn.to_q")),
    ("sd3", 3, ("add_q_proj", "to_out.0")), ("deepseek_v3", 0, ("q_a_proj", "kv_b_proj")), ("qwen3_moe", 2, ("k_proj", "o_proj")),
)  # fmt: skip
KINDS = ("lora", "rslora", "dora")


@pytest.mark.parametrize(("case", "kind"), sampled(list(product(CASES, KINDS)), 7, 2), ids=lambda value: value if isinstance(value, str) else value[0])
def test_adapters_of_peft(case: tuple[str, int, tuple[str, ...]], kind: str) -> None:
    name, row, targets = case
    bench = Bench(load(name), cases_of(find_spec(name))[row])
    config = LoraConfig(r=4, target_modules=list(targets), use_dora=kind == "dora", use_rslora=kind == "rslora")
    adapted = get_peft_model(bench.real, config)
    names = {module for module, _ in bench.real.named_modules()}
    patterns = [f"*.{target}" if target not in names else target for target in targets]
    passes = run(adapted.base_model.model, bench.arguments, bench.case, train=True, modules=False)
    trained = sum(tensor.numel() for tensor in adapted.parameters() if tensor.requires_grad)
    regime = regime_of(f"lora:r=4,targets={'|'.join(patterns)},kind={kind},names=peft")
    found = derived_of(bench.model, regime, bench.config, bench.case.batch, known=True)
    assert found == (trained, *(counts.total for counts in passes))
    assert trained and all(found)


def test_dora_costs_more_than_lora() -> None:
    bench = Bench(load("llama"), cases_of(find_spec("llama"))[0])
    figures = [derived_of(bench.model, regime_of(f"lora:r=4,targets=*.q_proj,kind={kind}"), bench.config, bench.case.batch) for kind in KINDS]
    assert figures[0] == figures[1] != figures[2]
    assert figures[2][1] > figures[0][1]
