"""Programs that are derived on the spot and kept: of a project's specs, and of structures and regimes that no stored program has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from symflops import __version__
from symflops.api import load
from symflops.cli.main import main
from symflops.emit.emit import emit
from symflops.evaluate.typical import example_of
from symflops.library import cache as spot, naming
from tests.sampling import sampled
from tests.standalone import published

ROOT = Path(__file__).resolve().parents[2]
SPEC = """language: 2
name: stages
title: Stages of a list
sizes:
  C: {key: channels, default: 3}
  W: {key: widths, default: "[8, 16]"}
variants:
  deep: {widths: [4, 4, 6]}
streams: {latent: [h, w]}
inputs:
  x: {stream: latent, width: C, layout: "b c h w"}
graph:
  - down:
      repeat: W
      index: i
      item: c
      graph:
        - conv: {block: three, from: x, width: c, to: y}
        - skip: {op: push, from: y, stack: s}
  - all: {op: gather, stack: s, like: x, to: z}
outputs: [z]
"""
BLOCK = """language: 2
params: {width: null}
inputs: [x]
outputs: [y]
graph:
  - three: {op: conv, from: x, width: width, kernel: '[3, 3]', padding: 1, bias: false, to: y}
"""
BATCH = {"latent": [[4, 5]]}


@pytest.fixture
def project(tmp_path, monkeypatch):
    for path, text in (("nn/stages.yaml", SPEC), ("blocks/three.yaml", BLOCK)):
        (tmp_path / "specs" / path).parent.mkdir(parents=True)
        (tmp_path / "specs" / path).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def forward(widths: list[int], side: int = 3) -> int:
    return 2 * side**2 * 20 * 3 * sum(widths)


def estimate(widths: list[int], **asked: str) -> tuple[dict, list[str]]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = naming.estimate({"widths": widths}, BATCH, spec="stages", **asked)
    return found, [str(warning.message) for warning in told]


def entries(project: Path) -> list[Path]:
    """What is kept of programs; the headers of local specs are beside them."""
    return sorted((project / "cache").rglob("*-*/*.json"))


def test_the_config_chooses_the_variant(project):
    for widths, variant in (([8, 16], "default"), ([4, 4, 6], "deep"), ([5], "derived")):
        found, told = estimate(widths)
        assert (found["variant"], found["forward"], len(told)) == (variant, forward(widths), 1)
        assert estimate(widths) == (found, [])
    assert len(entries(project)) == 3
    assert main(["generate"]) == 0
    assert sorted(path.name for path in (project / "generated" / "nn").glob("*.py")) == ["stages.py", "stages_deep.py"]
    catalog = json.loads((project / "generated" / "catalog.json").read_text())
    assert catalog["specs"]["stages"]["structures"] == {"default": {"widths": "(8, 16)"}, "deep": {"widths": "(4, 4, 6)"}}


def test_another_structure_is_derived_once_and_said_once(project):
    first, told = estimate([5])
    (entry,) = entries(project)
    assert (first["variant"], first["forward"]) == ("derived", forward([5]))
    assert told == [f"'stages' of {project / 'specs'}: derived on the spot, kept in {entry}"]
    assert estimate([5]) == (first, []) and entries(project) == [entry]
    assert estimate([6])[0]["forward"] == forward([6]) and len(entries(project)) == 2


def test_what_no_stored_program_has_is_derived_once(project):
    """Of a shipped spec: another structure, another regime."""
    batch, deep = {"images": [[224, 224]]}, {"depths": [2, 4], "num_heads": [2, 4]}
    for config, regime, why in (({}, "full:freeze=classifier.*", "knows regime 'full:freeze=classifier.*'"), (deep, "full", "has its structure")):
        found = []
        for _ in range(2):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                found.append((naming.estimate(config, batch, spec="swin", regime=regime), [str(one.message) for one in told]))
        (first, said), again = found
        assert again == (first, []) and len(said) == 1 and f"no stored program of 'swin' {why}" in said[0]
        one = load("swin").estimator(config, regime)
        assert first["forward"] == one.forward(one.moments(**batch))
    assert len(entries(project)) == 2


def test_a_regime_that_no_module_knows_is_derived_once(project):
    for widths, variant in (([8, 16], "default"), ([7], "derived")):
        first, told = estimate(widths, regime="full:freeze=down.0.*")
        assert first["variant"] == variant and first["trainable_parameters"] == 27 * sum(widths[1:]) and len(told) == 1
        assert estimate(widths, regime="full:freeze=down.0.*") == (first, [])
    page = project / "mine.yaml"
    page.write_text("name: mine\ntrain: []\n")  # a page of one's own may change: nothing is kept
    kept = entries(project)
    assert estimate([5], regime=str(page))[0]["trainable_parameters"] == 0 and entries(project) == kept


def test_the_command_says_it_once(project, capsys):
    (project / "config.json").write_text(json.dumps({"widths": [5]}))
    for told in (1, 0):
        assert main(["estimate", "stages", "--config", "config.json", "--batch", json.dumps(BATCH), "--json"]) == 0
        out, err = capsys.readouterr()
        assert json.loads(out)["forward"] == forward([5]) and err.count("derived on the spot") == told


@pytest.mark.parametrize("damage", ["", "x = 1\n", "\0\0", "{}\n{}", "[]", '{"program": 0}\n', "half", "turned", "\ud800"])
def test_a_damaged_entry_is_written_anew(project, damage):
    first, _ = estimate([5])
    (entry,) = entries(project)
    whole = entry.read_text()
    texts = {"half": whole[: len(whole) // 2], "turned": whole.replace('["*",', '["+",')}
    entry.write_bytes(texts.get(damage, damage).encode("utf-8", "surrogatepass"))
    assert entry.read_bytes() != whole.encode()
    again, told = estimate([5])
    assert again == first and len(told) == 1 and entry.read_text() == whole


@pytest.mark.parametrize("path", ["nn/stages.yaml", "blocks/three.yaml"])
def test_an_entry_of_another_spec_or_block_is_written_anew(project, path):
    """Also where the module of the defaults is as old."""
    estimate([5])
    (entry,) = entries(project)
    old = entry.read_text()
    source = project / "specs" / path
    source.write_text(source.read_text().replace("[3, 3]", "[5, 5]").replace("padding: 1", "padding: 2") + "# changed\n")
    found, told = estimate([5])
    assert len(told) == 1 and entry.read_text() != old
    assert found["forward"] == forward([5], 5 if path.startswith("blocks") else 3)


def test_an_entry_of_another_package_is_written_anew(project, monkeypatch):
    estimate([5])
    monkeypatch.setattr(spot, "package_digest", lambda: "another")
    assert len(estimate([5])[1]) == 1
    assert estimate([5])[1] == []


def test_where_nothing_can_be_kept_the_estimate_is_the_same(project):
    (project / "cache").write_text("a file, not a folder")
    for _ in range(2):
        found, told = estimate([5])
        assert found["forward"] == forward([5]) and len(told) == 1 and "not kept" in told[0]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_many_at_once_agree(project):
    """Threads that derive, write and read the same and other entries."""
    widths = [[5], [6], [5], [7], [6], [5], [5], [7]]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda row: naming.estimate({"widths": row}, BATCH, spec="stages"), widths))
    assert [item["forward"] for item in found] == [forward(row) for row in widths]
    assert len(entries(project)) == 3 and all(estimate(row)[1] == [] for row in widths)
    assert [path for path in (project / "cache").rglob("*") if path.suffix == ".tmp"] == []


@pytest.mark.thorough
def test_processes_at_once_agree(project):
    words = [sys.executable, "-m", "symflops.cli.main", "estimate", "stages", "--config", "config.json", "--batch", json.dumps(BATCH), "--json"]
    (project / "config.json").write_text(json.dumps({"widths": [5]}))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = [subprocess.Popen(words, cwd=project, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    assert {json.loads(process.communicate()[0])["forward"] for process in running} == {forward([5])}
    assert len(entries(project)) == 1 and estimate([5])[1] == []


@pytest.mark.parametrize(("said", "where"), [("/somewhere", "/somewhere/symflops"), ("relative", "~/.cache/symflops"), ("", "~/.cache/symflops")])
def test_the_folder_is_that_of_the_platform(monkeypatch, said, where):
    monkeypatch.setenv("XDG_CACHE_HOME", said)
    monkeypatch.setattr(spot.sys, "platform", "linux")
    assert spot.folder() == Path(where).expanduser()


@pytest.mark.parametrize(("platform", "where"), [("darwin", "Library/Caches/symflops"), ("win32", "AppData/Local/symflops/Cache")])
def test_other_platforms_have_folders_of_their_own(monkeypatch, platform, where):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setattr(spot.sys, "platform", platform)
    assert spot.folder() == Path.home() / where


@pytest.mark.thorough
def test_neither_a_variant_nor_an_entry_needs_sympy(project):
    for widths in ([8, 16], [4, 4, 6], [5]):
        estimate(widths)
    text = (
        "import sys\nfrom symflops import lookup\n"
        f"print([lookup.estimate({{'widths': w}}, {BATCH!r}, spec='stages')['variant'] for w in ([8, 16], [4, 4, 6], [5])])\n"
        "print([name for name in ('sympy', 'networkx', 'jinja2', 'ruamel.yaml', 'numpy', 'torch') if name in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=project, env=environment)
    assert done.stdout.splitlines() == ["['default', 'deep', 'derived']", "[]"], done.stdout + done.stderr


@pytest.mark.parametrize("spec", sampled(["llama", "mixtral", "whisper", "swin"], 4, 1))
def test_a_derived_module_says_what_the_interpreter_says(spec):
    """Under every shipped regime that the model has."""
    config = {"depths": [2, 4]} | {"num_heads": [2, 4]} if spec == "swin" else {}
    for regime in ("full", "lora", "checkpointed", "grpo", "dpo", "reward", "reference", "decode", "generate"):
        try:
            one = load(spec).estimator(config, regime, "torch")
        except Exception as error:
            assert type(error).__name__ in ("SpecError", "ConfigError"), error
            continue
        program = load(spec).program([regime], ["torch"], config)
        made = generated(program, config)
        batch = json.loads(example_of(one))
        ours, theirs = made.moments(**batch), one.moments(**batch)
        assert (made.parameters, made.trainable_parameters) == (one.parameters, one.trainable_parameters)
        assert (made.forward(ours), made.backward(ours), made.recomputed(ours)) == (one.forward(theirs), one.backward(theirs), one.recomputed(theirs))


def generated(program, config):
    """The estimator of a module that is printed from ``program``."""
    module = published(program, emit(program, __version__, (), ["py"])["py"])
    return module.Estimator(module.Sizes.from_config(config), regime=module.REGIMES[0], convention=module.CONVENTIONS[0])


def test_a_convention_with_lengths_or_a_unit_of_its_own_is_interpreted():
    """Megatron-Bridge counts linears on padded lengths and attention on real ones, which no generated module does."""
    for name, batch in (("megatron-bridge", {"text": {"lengths": [3, 5], "padded": [8, 8]}}), ("latte", {"text": [3, 5]})):
        one = load("llama").estimator({}, "full", name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = naming.estimate({}, batch, convention=name, spec="llama")
        assert (found["forward"], found["backward"]) == (one.forward(one.moments(**batch)), one.backward(one.moments(**batch)))
        assert found["unit"] == ("macs_as_flops" if name == "latte" else "flops")


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_an_entry_that_others_can_write_is_not_read(project, level):
    first, _ = estimate([5])
    (entry,) = entries(project)
    path = [entry, *entry.parents][level]
    path.chmod(path.stat().st_mode | 0o022)
    forged = entry.read_text()
    again, told = estimate([5])
    assert again == first and len(told) == 1, "derived anew"
    assert ("not kept" in told[0]) == (level > 0) and (level == 0 or entry.read_text() == forged)
    path.chmod(0o700 if path.is_dir() else 0o600)
    assert estimate([5])[1] == []


def test_folders_are_for_the_user_alone_whatever_the_umask(project):
    before = os.umask(0)
    try:
        assert "kept in" in estimate([5])[1][0] and estimate([5])[1] == []
    finally:
        os.umask(before)
    (entry,) = entries(project)
    assert all(path.stat().st_mode & 0o077 == 0 for path in entry.parents if path.is_relative_to(project / "cache" / "symflops"))


def test_without_a_home_nothing_is_kept(project, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    found, told = estimate([5])
    assert found["forward"] == forward([5]) and "no home folder" in told[0]
    assert main(["cache"]) == 2


def test_the_cache_is_bounded_and_can_be_cleared(project, monkeypatch, capsys):
    for width in (5, 6, 7):
        estimate([width])
    size = max(path.stat().st_size for path in entries(project))
    monkeypatch.setattr(spot, "MOST_BYTES", 2 * size + 10)
    estimate([8])
    assert len(entries(project)) == 2 and estimate([8])[1] == []
    monkeypatch.setattr(spot, "MOST_SECONDS", -1)
    estimate([9])
    assert entries(project) == []
    monkeypatch.setattr(spot, "MOST_SECONDS", 3600)
    estimate([5])
    assert main(["cache"]) == 0 and "2 entries" in capsys.readouterr().out
    assert main(["cache", "--clear"]) == 0 and entries(project) == []
