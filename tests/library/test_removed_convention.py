"""Without the page of a convention there is no number under its name: not stored, not cached, not derived."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from symflops.api import load
from symflops.cli.actions.generate import output_of
from symflops.cli.actions.stored_rules import ALL, stored
from symflops.cli.main import main
from symflops.library import lookup
from symflops.read import spec_files as library
from symflops.read.spec_files import PACKAGE, find_spec
from symflops.support import files

BATCH = {"text": [5, 9]}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Pages of conventions that a test may remove."""
    own = tmp_path / "symflops"
    for kind in ("conventions", "regimes"):
        (own / kind).mkdir(parents=True)
        for page in (PACKAGE / kind).glob("*.yaml"):
            (own / kind / page.name).write_bytes(page.read_bytes())
    for folder in ("specs", "generated"):
        (tmp_path / folder).symlink_to(library.shipped(folder))
    monkeypatch.setattr(library, "PACKAGE", own)
    monkeypatch.setattr(lookup, "PACKAGE", str(own))
    monkeypatch.setattr(files, "PACKAGE", own)  # what caches are compared by
    for kept in (stored, files.package_digest):
        kept.cache_clear()
    yield own
    for kept in (stored, files.package_digest):
        kept.cache_clear()


@pytest.fixture
def program() -> dict[str, object]:
    """A program as a library stores it."""
    files = output_of(find_spec("llama")).files
    return json.loads(files["language/llama.json"])


@pytest.mark.parametrize("convention", ["megatron-bridge", "palm"])
def test_a_removed_convention_has_no_number(package: Path, convention: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("llama", "--batch", json.dumps(BATCH), "--convention", convention)
    assert main(["estimate", *words]) == 0  # stored, or in the cache
    capsys.readouterr()
    (package / "conventions" / f"{convention}.yaml").unlink()
    files.package_digest.cache_clear()
    for command in ("estimate", "explain"):
        assert main([command, *words]) == 2
        assert f"there is no convention '{convention}'" in capsys.readouterr().err
    assert main(["compare", "llama", "--conventions", f"symflops,{convention}"]) == 2
    assert main(["render", "llama", "--format", "latex", "--convention", convention]) == 2
    assert main(["generate", "llama", "--standalone", "--convention", convention]) == 2
    assert convention not in stored() and convention not in ALL.stored(load("llama"))


def test_a_stored_convention_is_used_while_its_page_is_the_same(package: Path, program: dict[str, object]) -> None:
    assert {"symflops", "torch", "megatron-bridge"} <= set(program["conventions"])
    assert lookup.stores(program, "full", "megatron-bridge") and not lookup.stores(program, "full", "palm")
    page = package / "conventions/megatron-bridge.yaml"
    page.write_text("# changed\n" + page.read_text())
    assert not lookup.stores(program, "full", "megatron-bridge")
    page.unlink()
    assert not lookup.stores(program, "full", "megatron-bridge") and lookup.stores(program, "full", "symflops")
