"""Masks with blocks of unequal lengths and with a number of keys for each query, against counting pair by pair."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from symflops.api import load
from symflops.evaluate.batch import BatchError
from symflops.support.findings import SpecError

HEAD = """language: 2
name: small
sizes:
  D: {key: width, default: 4}
  B: {key: size, default: 3}
  k: {key: picked, default: 2}
  W: {key: most, type: int, optional: true}
  sides: {key: sides, type: ints, default: [1, 2, 3]}
"""
GRAPH = """inputs: {h: {stream: text, width: D}, m: {stream: memory, width: D}}
graph:
  - k: {op: linear, from: h, width: D, to: k}
  - {op: concat, along: tokens, from: [m, k], to: past}
  - a: {op: attention, heads: 1, query: h, FIELDS, to: a}
outputs: [a]
"""
LENGTHS = [7, 6, 12]


def spec(folder: Path, fields: str, text: str = "[x]", more: str = "", keys: str = "key: k, value: k") -> Any:
    """A spec with one attention."""
    streams = f"streams: {{text: {text}, memory: [y]{more}}}\n"
    (folder / "small.yaml").write_text(HEAD + streams + GRAPH.replace("FIELDS", f"{keys}, {fields}"), "utf-8")
    return load(folder / "small.yaml")


def pairs_of(model: Any, config: dict[str, Any], **batch: Any) -> tuple[int, int]:
    """Useful and executed pairs of a batch."""
    found = []
    for convention in ("symflops", "torch"):
        estimator = model.estimator(config, convention=convention)
        moments = estimator.moments(**batch)
        rows = sum(1 for length in batch["text"] for _ in range(length)) if isinstance(batch["text"], list) else 0
        found.append((estimator.forward(moments) - 2 * 16 * rows) // 16)
    return found[0], found[1]


def blocks(lengths: list[int], tokens: int) -> list[int]:
    """The block of each token."""
    named = [place for place, length in enumerate(lengths) for _ in range(length)]
    return named + [-1 - place for place in range(tokens - len(named))]


def within(lengths: list[int], tokens: int, causal: bool, past: int = 0) -> int:
    """Pairs of a token and one of its block, or before it."""
    of = blocks(lengths, tokens)
    return tokens * past + sum(of[i] == of[j] or (causal and j <= i) for i in range(tokens) for j in range(tokens))


@pytest.mark.parametrize("sides", [[1, 2, 3], [3, 2, 1], [6], [], [2, 0, 2]])
@pytest.mark.parametrize("causal", [True, False])
def test_blocks_of_a_list(tmp_path: Path, sides: list[int], causal: bool) -> None:
    """Rising, falling, one, none: the order of blocks does not matter; what is left over are blocks of one token."""
    model = spec(tmp_path, f"mask: {'causal' if causal else 'block'}, blocks: sides")
    want = sum(within(sides, length, causal) for length in LENGTHS)
    assert pairs_of(model, {"sides": sides}, text=LENGTHS, memory=[0, 0, 0]) == (want, sum(n * n for n in LENGTHS))


def test_blocks_after_a_cache(tmp_path: Path) -> None:
    """Queries are the last of the keys: all see what stands before the blocks."""
    model = spec(tmp_path, "mask: causal, blocks: sides", keys="key: past, value: past")
    want = sum(within([1, 2, 3], length, True, past) for length, past in zip(LENGTHS, [0, 5, 2], strict=True))
    assert pairs_of(model, {}, text=LENGTHS, memory=[0, 5, 2])[0] == want


def test_scales_of_the_config(tmp_path: Path) -> None:
    """The tokens are all blocks, whose lengths are a formula of a list; the list stays open."""
    model = spec(tmp_path, 'mask: causal, blocks: "[s**2 for s in sides]"', "{x: sum(s**2 for s in sides)}")
    assert model.program().fixed == ()
    for sides in ([1, 2, 3], [4, 1], []):
        tokens = sum(side**2 for side in sides)
        estimator = model.estimator({"sides": sides})
        moments = estimator.moments(memory=[0, 0])
        assert estimator.forward(moments) == 2 * (2 * 16 * tokens + 16 * within([side**2 for side in sides], tokens, True))
    texts = model.structure(targets=("py", "md", "tex")).texts
    assert "range(len(sides))" in texts["py"] and r"\sum" in texts["tex"] and r"\sum" in texts["md"]


def test_blocks_that_do_not_fit(tmp_path: Path) -> None:
    """A sequence shorter than its blocks is refused with the least length."""
    estimator = spec(tmp_path, "mask: causal, blocks: sides").estimator({})
    with pytest.raises(BatchError, match="needs at least 6"):
        estimator.moments(text=[5], memory=[0])


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
def test_spans_are_items_of_their_own(tmp_path: Path, causal: bool, sparse: bool) -> None:
    """Causal text in which images are spans that see all of themselves, any number in a sample."""
    fields = f"mask: {'causal' if causal else 'block'}, blocks: spans{', sparse: true' if sparse else ''}"
    model = spec(tmp_path, fields, more=", spans: {over: images, axes: [s]}")
    want = within([3, 4], 7, causal) + within([], 6, causal) + within([5], 12, causal)
    every = want if sparse else sum(n * n for n in LENGTHS)
    assert pairs_of(model, {}, text=LENGTHS, memory=[0, 0, 0], spans=[3, 4, 5]) == (want, every)
    small = model.estimator({})
    one, two = (small.moments(text=[n], memory=[0], spans=[s]) for n, s in ((7, 3), (9, 4)))
    assert small.backward(one + two) == small.backward(small.moments(text=[7, 9], memory=[0, 0], spans=[3, 4]))


SEEN: list[tuple[str, Callable[[int, int], int]]] = [
    ("mask: causal, sees: k", lambda row, x: min(2, row + 1)),
    ("sees: k", lambda row, x: min(2, x)),
    ("mask: causal, sees: 'row % B + 1 + min(row//B, k - 1)*B'", lambda row, x: min(row % 3 + 1 + min(row // 3, 1) * 3, row + 1)),
    ("sees: 'x if row < k else k + 3'", lambda row, x: x if row < 2 else min(x, 5)),
    ("mask: causal, sees: '(row + 1)//B'", lambda row, x: (row + 1) // 3),
    ("mask: causal, sees: W", lambda row, x: row + 1),
    ("sees: 'k - row'", lambda row, x: min(x, max(0, 2 - row))),
    ("sees: '0'", lambda row, x: 0),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "seen"), SEEN)
def test_each_query_sees_a_number_of_keys(tmp_path: Path, fields: str, seen: Callable[[int, int], int]) -> None:
    """At most as many as the mask allows; null is no limit."""
    want = sum(seen(row, length) for length in LENGTHS for row in range(length))
    assert pairs_of(spec(tmp_path, fields), {}, text=LENGTHS, memory=[0, 0, 0]) == (want, sum(n * n for n in LENGTHS))
    assert pairs_of(spec(tmp_path, f"{fields}, sparse: true"), {}, text=LENGTHS, memory=[0, 0, 0]) == (want, want)


def test_a_tree_of_drafts(tmp_path: Path) -> None:
    """One number for each query, and all tokens of the cache; or the pairs of a tree that comes with the batch."""
    tree = spec(tmp_path, "sees: sides", "{n: len(sides)}")
    estimator = tree.estimator({"sides": [1, 2, 2, 3]})
    assert estimator.forward(estimator.moments(memory=[0])) == 2 * 16 * 4 + 16 * 8
    given = spec(tmp_path, "sees: paths", more=", paths: {over: paths, axes: [e]}")
    assert pairs_of(given, {}, text=[4, 5], memory=[0, 0], paths=[8, 9]) == (17, 41)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("blocks: sides", "does not go with this mask"),
        ("mask: causal, sliding: k, blocks: sides", "does not go with this mask"),
        ("mask: prefix, prefix: k, sees: k", "does not go with this mask"),
        ("mask: causal, blocks: sides, sees: k", "not both"),
        ("mask: causal, blocks: k", "no list of numbers"),
        ("sees: sides", "queries"),
        ("sees: 'row**2//B'", "no closed form"),
        ("sees: nothing", "not declared"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, fields: str, message: str) -> None:
    """One finding that says why."""
    with pytest.raises(SpecError, match=message):
        spec(tmp_path, fields).estimator({})


def test_blocks_of_other_queries(tmp_path: Path) -> None:
    """Blocks belong to queries that are among the keys."""
    with pytest.raises(SpecError, match="among the keys"):
        spec(tmp_path, "mask: causal, blocks: sides", keys="key: m, value: m").estimator({})


LAYERS = """language: 2
name: layers
sizes: {L: {key: layers, default: 4}, K: {key: last, default: 1}, D: {key: width, default: 4}, B: {key: size, default: 3}}
streams: {text: [x]}
inputs: {t: {stream: text, width: D}}
graph:
  - blocks:
      repeat: L
      index: i
      graph:
        - q: {op: linear, from: t, width: D, to: q}
        - {op: select, from: q, stream: {m: ROWS}, to: s}
        - attn: {op: attention, heads: 1, query: q, key: s, value: s, FIELDS, to: t}
outputs: [t]
"""


@pytest.mark.parametrize(
    ("fields", "rows", "pairs"),
    [
        ("mask: causal, sees: 'min(row + 1, B) if i < L - K else null'", "x", lambda i, layers, n: sum(min(row + 1, 3) if i < layers - 1 else row + 1 for row in range(n))),
        ("sees: 'B if i % 2 == 0 else row + 1'", "x", lambda i, layers, n: sum(min(n, 3) if i % 2 == 0 else row + 1 for row in range(n))),
        ("mask: full", "'x//2 if i < L - K else x'", lambda i, layers, n: n * (n // 2 if i < layers - 1 else n)),
        ("mask: full", "'x//2 if i % 3 == 1 else x'", lambda i, layers, n: n * (n // 2 if i % 3 == 1 else n)),
    ],
)
def test_a_condition_on_the_layer_divides_the_loop(fields: str, rows: str, pairs: Callable[[int, int, int], int], tmp_path: Path) -> None:
    """An operator's own expressions of lengths and masks decide conditions on the index as all others do."""
    (tmp_path / "layers.yaml").write_text(LAYERS.replace("FIELDS", fields).replace("ROWS", rows), "utf-8")
    model = load(tmp_path / "layers.yaml")
    assert not model.graph({}).fixed
    for layers in (1, 2, 3, 7):
        estimator = model.estimator({"layers": layers})
        expected = sum(2 * 16 * n + 2 * 2 * 4 * pairs(i, layers, n) for n in LENGTHS for i in range(layers))
        assert estimator.forward(estimator.moments(text=LENGTHS)) == expected


def test_a_mask_that_is_another_in_each_layer_is_written_out(tmp_path: Path) -> None:
    (tmp_path / "layers.yaml").write_text(LAYERS.replace("FIELDS", "mask: causal, sees: 'row + 1 - i'").replace("ROWS", "x"), "utf-8")
    estimator = load(tmp_path / "layers.yaml").estimator({"layers": 3})
    expected = sum(2 * 16 * n + 16 * sum(max(0, row + 1 - i) for row in range(n)) for n in LENGTHS for i in range(3))
    assert estimator.forward(estimator.moments(text=LENGTHS)) == expected
