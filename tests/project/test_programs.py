"""Stored programs: every one reads back to the same program and the same bytes, and damage is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.stored import stored_of
from symflops.formula.formula import evaluate
from symflops.ir.format import FormatError
from symflops.ir.serialise import document_of, program_of, text_of
from tests.sampling import sampled

ROOT = Path(__file__).resolve().parents[2]
STORED = sorted(path for path in (ROOT / "generated").glob("*/*.json") if "." not in path.stem)
LLAMA = (ROOT / "generated" / "language" / "llama.json").read_text("utf-8")


def test_every_module_has_its_program():
    assert [path.with_suffix(".py") for path in STORED] == sorted((ROOT / "generated").glob("*/*.py"))


@pytest.mark.parametrize("path", sampled(STORED, 24, 6), ids=lambda path: path.stem)
def test_a_program_reads_back_to_the_same_bytes(path):
    text = path.read_text("utf-8")
    program = program_of(json.loads(text))
    assert text_of(document_of(program)) == text
    assert program_of(document_of(program)) == program


@pytest.mark.parametrize("damage", [{"format": 1}, {"format": None}, {"formulas": [["+", 5]]}, {"formulas": [True]}, {"regimes": 3}, {"regimes": [3]}, {"streams": [{}]}, {"work": 3}, {"work": {"columns": [["unit"]], "rows": [[0, 1, 2]]}}, {"regimes": [{"lines": {"runs": [0, 10**9]}}]}, {"regimes": [{"lines": {"runs": [5]}}]}])
def test_damage_is_refused(damage):
    with pytest.raises(FormatError):
        program_of(json.loads(LLAMA) | damage)


@pytest.mark.parametrize("damage", [{"format": 1}, {"all_tensors": [["5000~x", 0]]}, {"all_tensors": [["-1~x", 0]]}, {"words": []}, {"streams": [{}]}, {"regimes": 3}, {"regimes": [3]}, {"work": {"columns": [], "rows": [[0]]}}, {"regimes": [{"lines": {"runs": [0, 10**9]}}]}])
def test_the_interpreter_refuses_damage(damage):
    with pytest.raises(FormatError):
        stored_of(json.loads(LLAMA) | damage)


@given(layers=st.integers(0, 50), heads=st.integers(1, 16), text=st.lists(st.integers(0, 5000), max_size=4).filter(lambda text: not text or any(text)))
def test_a_stored_program_and_its_closed_forms_agree(layers, heads, text):
    document = json.loads(LLAMA)
    config = {"num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": 1, "hidden_size": 64}
    stored = InterpretedEstimator(document, config, regime="lora", convention="torch")
    m = stored.moments(text=text)
    case = program_of(document).case("lora", "torch")
    forms = (case.forward, case.backward, case.recomputed)
    by_hand = [sum(evaluate(formula, stored.sizes) * m.padded_values[position] for position, formula in form) for form in forms]
    assert [stored.forward(m), stored.backward(m), stored.recomputed(m)] == by_hand
