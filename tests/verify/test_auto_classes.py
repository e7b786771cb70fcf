"""A class of transformers' auto mappings is exact, or refused."""

from __future__ import annotations

import pytest

from tests.sampling import sampled
from tests.verify.auto_classes import EXACT, REFUSED, UNBUILT, auto_classes, outcome

DECODERS = ("llama", "qwen2", "mistral", "gpt2", "falcon", "gemma2", "qwen3_moe", "opt", "mamba", "jamba")


@pytest.mark.parametrize(("kind", "spec", "name"), sampled(auto_classes(), 54, 18))
def test_it_is_exact_or_refused(kind: str, spec: str, name: str) -> None:
    found, why = outcome(kind, spec, name)
    assert found in (EXACT, REFUSED, UNBUILT), why


@pytest.mark.parametrize("spec", sampled(DECODERS, 4, 1))
def test_the_base_model_of_a_decoder_is_exact(spec: str) -> None:
    kind, _, name = next(row for row in auto_classes() if row[1] == spec and row[2].endswith("Model") and "LMHead" not in row[2])
    assert outcome(kind, spec, name) == (EXACT, "")
