"""What the theory pages state, counted one by one."""

from __future__ import annotations

from itertools import product
from math import lcm

import pytest

from tests.docs.pages import DOCS
from tests.shipped import load

MLP = """language: 2
name: mlp
sizes: {D: width}
streams: {text: [x]}
inputs: {t: {stream: text, width: D}}
graph:
  - first: {op: linear, from: t, width: D, bias: false, to: h}
  - second: {op: linear, from: h, width: D, bias: false, to: o}
outputs: [o]
"""


def runs(length: int, a: int, p: int, b: int, q: int) -> int:
    """Theorem 4 as the page has it."""
    rest = length - 1 - a - b
    if p == q == 1:
        return max(0, length - a - b)
    m = lcm(p, q)
    if 1 in (p, q):
        return max(0, rest // m + 1)
    total = 0
    for one, two in product(range(a, a + m, p), range(b, b + m, q)):
        rest = length - 1 - one - two
        total += max(0, rest // m + 1) * (rest % m == 0)
    return total


@pytest.mark.parametrize(("p", "q"), [(1, 1), (1, 3), (2, 1), (2, 2), (2, 3), (4, 6)])
def test_theorem_4(p, q):
    for length, a, b in product(range(14), range(4), range(4)):
        met = sum(1 for i in range(length) if i >= a and (i - a) % p == 0 and (length - 1 - i) >= b and (length - 1 - i - b) % q == 0)
        assert runs(length, a, p, b, q) == met, (length, a, b)


def test_theorem_5():
    """Sets of cut points cut the iterations into disjoint parts."""
    for length, cuts in product(range(6), product(range(-1, 7), repeat=3)):
        for i in range(length):
            inside = []
            for chosen in product((True, False), repeat=3):
                low = max([0, *(cut for cut, mine in zip(cuts, chosen, strict=True) if mine)])
                high = min([length, *(cut for cut, mine in zip(cuts, chosen, strict=True) if not mine)])
                if low <= i < high:
                    inside.append(chosen)
            assert inside == [tuple(cut <= i for cut in cuts)]


@pytest.mark.parametrize(("trains", "units"), [("*", 3), ("second.*", 1), ("first.*", 2), ("", 0)])
def test_the_two_linears(trains, units, tmp_path):
    path = tmp_path / "mlp.yaml"
    path.write_text(MLP, "utf-8")
    model = load(path)
    regime = f"full:train={trains}" if trains else "forward"
    estimator = model.estimator({"width": 5}, regime)
    moments = estimator.moments(text=[3, 4])
    unit = 2 * 5 * 5 * 7
    assert (estimator.forward(moments), estimator.backward(moments)) == (2 * unit, units * unit)
    rows = [line for line in (DOCS / "theory" / "gradients.md").read_text("utf-8").splitlines() if line.startswith("| ")]
    name = {"*": "both", "second.*": "the second", "first.*": "the first", "": "none"}[trains]
    (row,) = (line for line in rows if line.startswith(f"| {name} |"))
    assert row.endswith({3: "$3u$ |", 1: "$u$ |", 2: "$2u$ |", 0: "0 |"}[units])


def test_pairs_that_a_mask_leaves():
    """The closed forms of the page, for lengths on both sides of the window."""
    for n, w in product(range(9), range(1, 7)):
        s = min(n, w)
        sliding = s * (s + 1) // 2 + w * (n - s)
        assert sliding == sum(1 for i, j in product(range(n), repeat=2) if 0 <= i - j < w)
        local = n + 2 * ((s - 1) * s // 2 + w * (n - s))
        assert local == sum(1 for i, j in product(range(n), repeat=2) if abs(i - j) <= w)
        chunked = n // w * w**2 + (n % w) ** 2
        assert chunked == sum(1 for i, j in product(range(n), repeat=2) if i // w == j // w)
    for q, k in product(range(8), repeat=2):
        rest = max(0, k - q)
        assert k * (k + 1) // 2 - rest * (rest + 1) // 2 == sum(1 for i, j in product(range(q), range(k)) if j <= i + k - q)


SWAP = """language: 2
name: swap
sizes: {D: width, L: layers}
streams: {text: [x]}
inputs: {t: {stream: text, width: D}, s: {stream: text, width: D}}
graph:
  - before: {op: linear, from: t, width: D, bias: false, to: one}
  - same: {op: identity, from: s, to: two}
  - blocks:
      repeat: L
      graph:
        - frozen: {op: linear, from: two, width: D, bias: false, to: new}
        - first: {op: identity, from: one, to: two}
        - second: {op: identity, from: new, to: one}
outputs: [one, two]
"""


def test_a_body_that_swaps_two_values(tmp_path):
    """What came from the trained linear is read in every other iteration, from the second on."""
    path = tmp_path / "swap.yaml"
    path.write_text(SWAP, "utf-8")
    model = load(path)
    for layers in range(7):
        estimator = model.estimator({"width": 3, "layers": layers}, "full:train=before.*")
        moments = estimator.moments(text=[5], **({"s": [5]} if "s" in estimator.streams else {}))
        unit = 2 * 3 * 3 * 5
        assert estimator.backward(moments) == unit * (1 + runs(layers, 1, 2, 0, 1))


def gradients(spec, regime, path, kind):
    """How often the gradients of ``kind`` of the operators at ``path`` are computed."""
    works = load(spec).derivation(regime).work
    return {str(gradient.count) for work in works if str(work.operator.path).endswith(path) for gradient in work.gradients if gradient.kind == kind}


def test_what_real_models_leave_out():
    """The constants that the pages name: Qwen-Image's dead end, and what the first adapter of a decoder reads."""
    assert gradients("qwen_image", "full", "txt_mlp.net.2", "weight") == {"max(0, L - 1)"}
    assert gradients("qwen_image", "full", "img_mlp.net.2", "weight") == {"L"}
    assert gradients("qwen_image", "full", "img_in", "input") == {"0"} and gradients("qwen_image", "full", "txt_in", "input") != {"0"}
    assert gradients("llama", "lora:targets=*.q_proj", "q_proj.lora_A.default", "input") == {"max(0, L - 1)"}
    assert gradients("llama", "lora:targets=*.q_proj", "q_proj.lora_B.default", "input") == {"L"}
