"""Skeletons of the papers' specs, and of some models of the library, equal their specs in parameters and both passes, and train."""

from __future__ import annotations

from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from sympy import Expr, Integer
from sympy.core.symbol import Str
from torch.nn import functional

from symflops.api import load
from symflops.cli.main import main
from symflops.emit.skeleton.expressions import code
from symflops.emit.skeleton.writer import helper_names
from symflops.formula import functions as fn
from symflops.verify.skeletons import imported, inputs_of, witness, written
from tests.papers.test_specs import NAMES, loaded
from tests.sampling import sampled

LIBRARY = ["llama", "gpt2", "t5", "qwen3_moe", "bert", "resnet", "flux", "qwen_image"]
LETTERS = [fn.size_symbol(name) for name in "abc"]
GAPS = {"mamba": "a convolution that is transposed, constant, or of a weight elsewhere"}


def config_of(name: str, seed: int) -> dict[str, Any]:
    """The config of a drawn case of a paper."""
    return asdict(import_module(f"tests.papers.cases.{name}").draw(Random(seed))[0])


@pytest.mark.parametrize(("name", "seed"), sampled([(name, seed) for seed in range(4) for name in NAMES], 18, 6))
def test_a_skeleton_of_a_paper_is_its_spec(name: str, seed: int) -> None:
    found = witness(loaded(name), config_of(name, seed), "cpu")
    assert found.exact, str(found)


@pytest.mark.parametrize("name", sampled(LIBRARY, 8, 2))
def test_a_skeleton_of_the_library_is_its_spec_at_full_size(name: str) -> None:
    found = witness(load(name))
    assert found.exact, str(found)


@pytest.mark.parametrize("name", GAPS)
def test_a_gap_is_said_and_raises_in_its_place(name: str) -> None:
    skeleton = written(load(name)).skeleton
    assert GAPS[name] in skeleton.gaps[0] and f"# gap: {skeleton.gaps[0]}" in skeleton.text
    assert "raise NotImplementedError" in skeleton.text


@pytest.mark.parametrize("kind", ["rms_norm", "layer_norm"])
def test_operators_at_the_path_of_other_modules(kind: str, tmp_path: Path) -> None:
    """One path has modules inside of it, a weight of its own, and norms of two widths without weights."""
    affine = f"op: {kind}, affine: false" + (", bias: false" if kind == "layer_norm" else "")
    spec = tmp_path / "nested.yaml"
    spec.write_text(f"""language: 2
name: nested
sizes: {{D: {{key: width, default: 6}}, L: {{key: layers, default: 2}}}}
streams: {{text: [x]}}
inputs: {{h: {{stream: text, width: D}}}}
graph:
  - layers:
      repeat: L
      graph:
        - mix:
            graph:
              - up: {{op: linear, from: h, width: 2*D, to: u}}
              - {{{affine}, from: u, to: u}}
              - {{{affine}, from: h, to: n}}
              - {{{affine}, from: u, dim: D//2, to: u}}
              - down: {{op: linear, from: u, width: D, to: y}}
              - {{op: linear, from: y, width: D, bias: false, to: y}}
              - {{op: add, from: [n, y], to: h}}
outputs: [h]
""")
    found = witness(load(spec), device="cpu")
    assert found.exact, str(found)


def test_verify_names_the_gaps_of_a_skeleton(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "gap.yaml"
    spec.write_text("""language: 2
name: gap
streams: {audio: [t]}
inputs: {x: {stream: audio, width: 4}}
graph:
  - up: {op: conv, from: x, width: 2, kernel: 4, stride: 2, transposed: true, to: y}
outputs: [y]
""")
    main(["verify", str(spec)])
    assert "gap: the skeleton has a gap: up: a convolution that is transposed" in capsys.readouterr().err


def test_a_skeleton_trains() -> None:
    """A few steps on one batch lower the loss."""
    torch.manual_seed(0)
    found = written(loaded("cross_layer_attention"), config_of("cross_layer_attention", 2))
    with imported(found.skeleton) as made:
        model, given = made(), inputs_of(found, {"n": 8})
        given["tokens"] = torch.randint(8, (2, 8))
        optimizer, losses = torch.optim.Adam(model.parameters(), 0.01), []
        for _ in range(8):
            losses.append(functional.cross_entropy(model(**given).flatten(0, 1), given["tokens"].flatten()))
            optimizer.zero_grad()
            losses[-1].backward()
            assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in model.parameters())
            optimizer.step()
        assert losses[-1] < losses[0]


def test_structure_that_is_not_known_is_a_gap(capsys: pytest.CaptureFixture[str]) -> None:
    """The sizes of this class have no defaults, and which of its weights exist depends on them."""
    assert main(["skeleton", "multihead_attention"]) == 0
    printed = capsys.readouterr()
    assert "D = ...  # width" in printed.out and "# gap: makes q" in printed.out
    assert "gap: the structure depends on D, K, V" in printed.err
    compile(printed.out, "skeleton.py", "exec")


def drawn(random: Random, depth: int) -> Expr:
    """A whole number made of sizes, in functions of the language, sums, products and quotients without a rest."""
    if depth == 0:
        return random.choice([*LETTERS, Integer(random.randint(1, 9))])
    one, two, three = (drawn(random, depth - 1) for _ in range(3))
    of_two = random.choice([fn.FloorDiv, fn.CeilDiv, fn.Modulo, fn.Least, fn.Most, fn.AtLeast, fn.Equal])
    number = Integer(random.randint(2, 5))
    return random.choice([
        one + two, one * two, one - two * three, one**2, one * number + two, fn.Excess(one - two), of_two(one, two + number),
        fn.Together(Str("images"), one), fn.Longest(one), (60 * one * LETTERS[0] + 60 * two * LETTERS[0]) / (number * LETTERS[0]),
    ])  # fmt: skip


def test_code_has_the_value_of_its_expression() -> None:
    for seed in range(120):
        random = Random(seed)
        expr, values = drawn(random, 3), dict(zip(LETTERS, random.sample(range(1, 20), 3), strict=True))
        counted = expr.replace(fn.Together, lambda items, one: 7 * one).replace(fn.Longest, lambda one: one)
        value = counted.xreplace({letter: Integer(number) for letter, number in values.items()})
        given = {letter.name: number for letter, number in values.items()} | {"n_images": 7}
        assert eval(code(expr), given) == int(value), (seed, expr, code(expr))


def helpers() -> dict[str, Any]:
    """The functions that skeletons call."""
    found: dict[str, Any] = {"torch": torch, "nn": torch.nn, "functional": functional, "math": import_module("math")}
    for source in helper_names().values():
        exec(source, found)
    return found


def test_attention_is_that_of_pytorch() -> None:
    """Causal, and with a window, over all pairs and over those of the mask alone."""
    torch.manual_seed(0)
    own, (q, k, v) = helpers(), torch.randn(3, 2, 7, 12)
    for bounds in ({"causal": True}, {"causal": True, "sliding": 3}, {"local": 2}):
        mask = own["sees"](7, 7, **bounds)
        split = [x.unflatten(-1, (3, 4)).transpose(1, 2) for x in (q, k, v)]
        expected = functional.scaled_dot_product_attention(*split, attn_mask=mask).transpose(1, 2).flatten(2)
        torch.testing.assert_close(own["attention"](q, k, v, 3, 3, mask=mask), expected)
        torch.testing.assert_close(own["sparse_attention"](q, k, v, 3, 3, 2 * int(mask.sum()), mask=mask), expected)


def test_rows_go_through_the_experts_that_are_chosen() -> None:
    torch.manual_seed(0)
    own, x, scores, weights = helpers(), torch.randn(2, 5, 3), torch.randn(2, 5, 4), torch.randn(4, 6, 3)
    chosen = own["chosen_experts"](scores, 5, 4, 2)
    found = own["routed"](lambda rows, expert: rows @ weights[expert].T, x.repeat(1, 2, 1), chosen, 4).unflatten(1, (2, 5))
    best = scores.topk(2).indices
    for item in range(2):
        for row in range(5):
            for copy in range(2):
                torch.testing.assert_close(found[item, copy, row], weights[best[item, row, copy]] @ x[item, row])


def test_the_command_writes_it_and_verify_runs_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A spec without a class has its skeleton as a witness."""
    spec = tmp_path / "plain.yaml"
    spec.write_text(
        "language: 2\nname: plain\nsizes: {D: {key: width, default: 8, doc: width}}\nstreams: {text: [x]}\n"
        "inputs: {t: {stream: text, width: D}}\ngraph:\n  - a: {op: linear, from: t, width: 2*D, to: a}\noutputs: [a]\n",
        "utf-8",
    )
    assert main(["skeleton", str(spec), "-o", str(tmp_path / "plain.py")]) == 0
    text = (tmp_path / "plain.py").read_text("utf-8")
    assert 'put(self, "a", nn.Linear(D, 2*D))' in text and "D = 8  # width" in text and "class Plain(nn.Module):" in text
    assert main(["verify", str(spec)]) == 0
    assert "plain: skeleton: parameters, forward and backward are equal" in capsys.readouterr().err
    assert main(["skeleton", str(spec), "--variant", "none"]) == 2
