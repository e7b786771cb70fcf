"""The checkpoints beside the specs are the published configs."""

from __future__ import annotations

from symflops.library.records.verified import CHECKPOINTS as FILE, checkpoints
from symflops.read.spec_files import shipped, specs_in
from tests.library.checkpoints import text


def test_checkpoints_are_the_published_configs() -> None:
    assert (shipped("specs") / FILE).read_text("utf-8") == text()


def test_every_checkpoint_names_its_source() -> None:
    found = [item for file in specs_in(shipped("specs")) for item in checkpoints(file)]
    assert len(found) > 30 and all("config.json" in item.source and item.parameters > 0 for item in found)
