"""What is compared if no regime is named: those usual ones that fit the model, stored or not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import symflops
from symflops.cli.main import main
from symflops.library.catalog import catalogs
from symflops.support.errors import SymflopsError
from tests.sampling import sampled

BARE = """
language: 2
name: bare
sizes: {D: {key: width, default: 4}}
streams: {text: [x]}
inputs: {x: {stream: text, width: D}}
graph:
  - up: {op: linear, from: x, width: D, to: y}
outputs: [y]
"""
CATALOG = catalogs()[-1]
STORED = {
    name: [row["name"] for row in program["regimes"]]
    for name, program in ((name, CATALOG.program(name)) for name, entry in CATALOG.specs.items() if not entry.get("structures"))
    if not any(field["required"] for field in program["fields"])
}


@pytest.mark.parametrize("name", sampled(sorted(STORED), 12))
def test_every_model_is_compared_under_the_regimes_that_fit(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = symflops.compare(name)
    assert [row["regime"] for row in found] == [one for one in ("full", "lora", "checkpointed") if one in STORED[name]]
    assert main(["compare", name, "--json"]) == 0
    told = capsys.readouterr()
    assert [row["regime"] for row in json.loads(told.out)["regimes"]] == [row["regime"] for row in found]
    assert ("left out" in told.err) == (len(found) < 3)


def test_a_model_without_blocks_is_compared_by_what_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "bare.yaml"
    spec.write_text(BARE)
    assert main(["compare", str(spec), "--json", "--batch", '{"text": [3]}']) == 0
    told = capsys.readouterr()
    assert [row["regime"] for row in json.loads(told.out)["regimes"]] == ["full"]
    assert "left out: lora, checkpointed, which do not fit" in told.err


@pytest.mark.thorough
def test_a_regime_that_is_named_is_never_left_out() -> None:
    with pytest.raises(SymflopsError, match="none of the 7 patterns under 'recompute groups'"):
        symflops.compare("sdxl", regimes=["full", "checkpointed"])
