"""Heads of real classes that run on some of the tokens: ``logits_to_keep``, labelled tokens, masked positions."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from symflops.api import Model
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.library.catalog import catalogs
from symflops.verify.cases import LiveCase, cases_of
from symflops.verify.classes import in_evaluation
from symflops.verify.live import build, outputs_of, reference_of, run
from symflops.verify.running import arguments_of, moved
from tests.sampling import sampled
from tests.shipped import load

FIRST = {name: entry["references"][0] for name, entry in catalogs()[-1].specs.items() if entry["references"]}
KEEPS = [name for name, one in FIRST.items() if one.endswith(("ForCausalLM", "LMHeadModel")) and name != "whisper_causal_lm"]
KEEPS += [name for name, one in FIRST.items() if one.endswith("ForConditionalGeneration") and name not in ("bart", "t5", "whisper")]
SELECTS = {
    "llama": "lm_head", "gemma": "lm_head", "mamba": "lm_head", "deepseek_v3": "lm_head", "t5": "lm_head", "bart": "lm_head", "whisper": "proj_out",
    "bert_masked_lm": "cls", "roberta_masked_lm": "lm_head", "albert_masked_lm": "predictions", "distilbert_masked_lm": "vocab_transform",
}  # fmt: skip
"""Spec -> the module whose operand a loss over labelled tokens, or masked positions, selects rows of."""


def ready(model: Model, case: LiveCase, **more: Any) -> tuple[Any, dict[str, Any], InterpretedEstimator]:
    """The real model of a case, its arguments, and the estimator of a step with the tokens of the head given."""
    case = LiveCase(**{**{name: getattr(case, name) for name in case.__slots__}, "config": {**case.config, **more}})
    real, built = build(reference_of(model, case), case, model.file.path.parent)
    config = in_evaluation(model.spec, built)
    plain = model.estimator(config, "full", "torch")
    arguments = moved(arguments_of(plain.program, case.batch, plain.sizes, case.arguments), case.device)
    return real, arguments, model.estimator(config, "full:head=given", "torch")


def compared(model: Model, case: LiveCase, real: Any, arguments: dict[str, Any], estimator: InterpretedEstimator, head: list[int]) -> None:
    forward, backward = run(real, arguments, case, train=True, outputs=outputs_of(model))
    moments = estimator.moments(**case.batch, head=head)
    assert (estimator.forward(moments), estimator.backward(moments)) == (forward.total, backward.total)


def tokens_of(case: LiveCase) -> list[int]:
    return case.batch["target" if "target" in case.batch else "text"]


@pytest.mark.parametrize("name", sampled(KEEPS, 6, 2))
def test_logits_to_keep_of_the_real_class(name: str) -> None:
    model = load(name)
    case = next(one for one in cases_of(model.file) if one.reference in ("", model.spec.references[0]))
    real, arguments, estimator = ready(model, case)
    for kept in (1, 3):
        compared(model, case, real, {**arguments, "logits_to_keep": kept}, estimator, [kept] * len(tokens_of(case)))


@pytest.mark.parametrize("name", sampled(sorted(SELECTS), 5, 2))
def test_a_loss_that_selects_rows_before_the_head(name: str) -> None:
    model = load(name)
    case = next(one for one in cases_of(model.file) if len(tokens_of(one)) > 1 and one.reference in ("", model.spec.references[0]))
    real, arguments, estimator = ready(model, case)
    lengths, head = tokens_of(case), [2, *([5] * (len(tokens_of(case)) - 1))]
    rows = torch.tensor([place * lengths[0] + number for place, count in enumerate(head) for number in range(count)], device=case.device)
    real.get_submodule(SELECTS[name]).register_forward_pre_hook(lambda _, given: (given[0].flatten(0, 1)[rows], *given[1:]))
    compared(model, case, real, arguments, estimator, head)


def test_masked_positions_of_a_class_that_skips_the_rest() -> None:
    """ModernBERT with ``sparse_prediction`` gathers the positions with a label before its head."""
    model = load("modernbert_masked_lm")
    case = cases_of(model.file)[0]
    case = LiveCase(**{**{name: getattr(case, name) for name in case.__slots__}, "device": "cpu"})
    real, arguments, estimator = ready(model, case, sparse_prediction=True)
    arguments["input_ids"] = torch.zeros_like(arguments["input_ids"])
    labels = torch.full_like(arguments["input_ids"], -100)
    labels[0, :3], labels[1, 4:5] = 1, 1
    compared(model, case, real, {**arguments, "labels": labels}, estimator, [3, 1])
