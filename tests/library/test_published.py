"""Sizes and batches of published models: what records say, kept for the presets of pages."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from symflops.cli.main import main
from symflops.library.records.verified import PUBLISHED as FILE, published
from symflops.read.spec_files import find_spec, shipped, specs_in
from symflops.support.errors import SymflopsError
from symflops.verify.records import published_of
from tests.shipped import load

ROOT = Path(__file__).resolve().parents[2]
TRUTH = ROOT / "tests/data/truth"
CLASSES = (
    "LlamaForCausalLM", "WanTransformer3DModel", "SD3Transformer2DModel", "WhisperForConditionalGeneration", "SwinForImageClassification",
    "Qwen2VLForConditionalGeneration", "CLIPModel", "Linear", "GRU", "MultiheadAttention",
)  # fmt: skip


def records(name: str) -> list[dict]:
    return json.loads((TRUTH / f"{name}.json").read_text())


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A library of one spec, with a folder for records of it."""
    shutil.copytree(shipped("specs") / "blocks", tmp_path / "specs/blocks")
    (tmp_path / "specs/language").mkdir()
    shutil.copy(shipped("specs") / "language/llama.yaml", tmp_path / "specs/language")
    (tmp_path / "records").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_records_of_published_size_are_kept_else_the_first(project: Path) -> None:
    tiny = next(record for record in records("LlamaForCausalLM") if record["tag"] == "tiny-c")
    large = tiny | {"id": "transformers/LlamaForCausalLM/pub-8b", "published_size": True}
    for found, name in (([tiny, tiny | {"id": "x/y/other"}], "tiny-c"), ([tiny, large], "pub-8b")):
        (project / "records/records.json").write_text(json.dumps(found))
        assert main(["verify", "--records", "records", "--save", "specs/verified.json"]) == 0
        (item,) = published(find_spec("llama"))
        assert (item.name, item.reference) == (name, "transformers.LlamaForCausalLM")
        assert item.config["num_hidden_layers"] == 3
        assert "pad_token_id" not in item.config  # no size
        assert item.batch == {"text": [33, 33, 33]}


def test_a_damaged_file_is_told(project: Path) -> None:
    foreign = "not what 'symflops verify --save' writes"
    for text, told in (("{", "not JSON: "), ("[]", foreign), ('{"specs": {"llama": [{"name": "x"}]}}', foreign)):
        (project / "specs" / FILE).write_text(text)
        with pytest.raises(SymflopsError, match=rf"published\.json: {told}"):
            published(find_spec("llama"))
    (project / "specs" / FILE).unlink()
    assert published(find_spec("llama")) == ()


@pytest.mark.thorough
def test_what_is_kept_is_what_the_records_say() -> None:
    kept = json.loads((shipped("specs") / FILE).read_text())["specs"]
    specs = {reference.rpartition(".")[2]: file for file in specs_in(shipped("specs")) for reference in load(file.path).spec.references}
    models = {name: load(specs[name].path) for name in CLASSES}
    for name in CLASSES:
        spec = models[name].spec
        mine = [other for other, file in specs.items() if file.name == spec.name]
        found = [record for other in mine if (TRUTH / f"{other}.json").is_file() for record in records(other)]
        assert kept[spec.name] == json.loads(json.dumps(published_of(found, dict.fromkeys(mine, models[name]))))[spec.name]


def test_every_measured_class_has_presets() -> None:
    kept = json.loads((shipped("specs") / FILE).read_text())["specs"]
    measured = {path.stem for path in TRUTH.glob("*.json")}
    for file in specs_in(shipped("specs")):
        if measured & {reference.rpartition(".")[2] for reference in load(file.path).spec.references}:
            assert kept[file.name], file.name
