"""A parameter of several rows is no single row where rows are work; what is there once comes to the items by ``expand``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from symflops.api import Model
from symflops.cli.main import main
from symflops.read.read import read
from symflops.read.spec_files import SpecFile
from symflops.support.findings import Source, SpecError, SymflopsError

HEAD = """language: 2
name: latents
sizes: {N: {key: latents, default: 16}, D: {key: width, default: 32}, H: {key: heads, default: 2}}
streams: {text: [x], table: {over: once, axes: {n: N}}}
inputs: {h: {stream: text, width: D}}
graph:
"""


def model(*entries: str) -> Model:
    source = Source("latents.yaml", HEAD + "".join(f"  - {entry}\n" for entry in entries) + "outputs: [y]\n")
    return Model(SpecFile(Path("."), Path("latents.yaml"), "latents.yaml"), read(source, lambda name: None))


def forward(*entries: str, **config: int) -> int:
    estimator = model(*entries).estimator(config, "full", "torch")
    return estimator.forward(estimator.moments(text=[5, 7]))


def finding(*entries: str) -> tuple[str, str]:
    with pytest.raises(SpecError) as error:
        model(*entries).program(["full"], ["torch"])
    (first,) = error.value.diagnostics
    return first.code, first.hint


TABLE = "latents: {op: parameter, shape: [N, D], to: t}"
WORK = (
    "q: {op: linear, from: t, width: D, to: y}", "{op: attention, heads: H, query: t, key: t, value: t, to: y}",
)  # fmt: skip


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("between", [(), ("n: {op: layer_norm, from: t, to: t}",), ("{op: mul, from: t, to: t}",)])
def test_work_over_its_rows_needs_them(work: str, between: tuple[str, ...]) -> None:
    code, hint = finding(TABLE, *between, work)
    assert code == "table-rows" and "stream: table" in hint


def test_with_its_rows_each_counts() -> None:
    assert forward(TABLE.replace("to: t", "stream: table, to: t"), WORK[0]) == 2 * 16 * 32 * 32
    assert forward("one: {op: parameter, shape: [1, 1, D], to: t}", WORK[0]) == 2 * 32 * 32
    assert forward("one: {op: parameter, shape: [D], to: t}", WORK[0]) == 2 * 32 * 32


def test_what_only_adds_or_is_copied_needs_none() -> None:
    assert forward(TABLE, "{op: add, from: [h, t], to: h}", "q: {op: linear, from: h, width: D, to: y}") == 2 * 12 * 32 * 32
    assert forward(TABLE, "{op: expand, from: t, like: h, stream: {n: N}, to: t}", WORK[0]) == 2 * 2 * 16 * 32 * 32


@pytest.mark.parametrize(
    "meeting",
    ["{op: concat, along: tokens, from: [cls, h], to: y}", "{op: concat, along: tokens, from: [h, cls], to: y}", "{op: attention, heads: H, query: cls, key: h, value: h, to: y}"],
)
def test_a_class_token_comes_to_each_item_as_the_hint_says(meeting: str) -> None:
    token = "cls: {op: parameter, shape: [1, D], to: cls}"
    code, hint = finding(token, meeting)
    assert code == "index-set-mismatch" and hint.startswith("{op: expand")
    assert forward(token, hint[: hint.index("}") + 1], meeting) >= 0


class TestHeads:
    """A width that is a product of sizes divides into heads if the config says so."""

    @pytest.mark.parametrize("width", ["4*D", "D", "D*N", "2*D*N"])
    def test_a_product(self, width: str) -> None:
        entries = (f"q: {{op: linear, from: h, width: {width}, to: q}}", "{op: attention, heads: H, query: q, key: q, value: q, to: y}")
        assert forward(*entries, width=6, latents=1, heads=3) > 0
        with pytest.raises(SymflopsError, match="does not divide into H heads"):
            forward(*entries, width=8, latents=1, heads=3)

    @pytest.mark.parametrize("width", ["D + 1", "H*D + N"])
    def test_a_sum_is_a_slip(self, width: str) -> None:
        code, _ = finding(f"q: {{op: linear, from: h, width: {width}, to: q}}", "{op: attention, heads: H, query: q, key: q, value: q, to: y}")
        assert code == "head-mismatch"


def test_where_no_length_varies_the_queries_are_the_tokens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Columns of a table are tokens: as many for each row, of two kinds."""
    text = """language: 2
name: table
sizes: {D: {key: width, default: 16}, N: {key: numbers, default: 5}, C: {key: categories, default: 2}}
streams: {sample: [], columns: {over: samples, axes: {c: C}}}
inputs: {a: {stream: sample, width: N}, b: {stream: columns, width: D}}
graph:
  - {op: reshape, from: a, stream: {c: N}, width: 1, to: h}
  - up: {op: linear, from: h, width: D, to: h}
  - {op: concat, along: tokens, from: [h, b], to: h}
  - {op: attention, heads: 1, query: h, key: h, value: h, to: o}
outputs: [o]
"""
    (tmp_path / "table.yaml").write_text(text)
    assert main(["estimate", str(tmp_path / "table.yaml"), "--batch", '{"sample": 2}', "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tokens"] == 14
