"""Specs below ``./specs``: data of a stranger, derived from YAML and never believed from ``./generated``; one answer for all commands."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import symflops
from symflops.api import load
from symflops.cli.main import main
from symflops.library import lookup, pipelines
from symflops.library.catalog import Catalog, by_name, catalogs
from symflops.library.local import local_specs, read
from symflops.read.spec_files import find_spec, shipped, specs_in
from symflops.support.files import digest
from symflops.support.findings import SymflopsError
from symflops.training.frameworks import verl
from symflops.training.introspect import older
from tests.sampling import amount

ROOT = Path(__file__).resolve().parents[2]
SPEC = """language: 2
name: llama
title: A local decoder
reference: transformers.LlamaForCausalLM
model_type: llama
pipelines: [MyPipeline]
sizes:
  D: {key: hidden_size, default: 8}
streams: {text: [x]}
inputs:
  x: {stream: text, width: D}
graph:
  - one: {block: twice, from: x, width: D, to: y}
outputs: [y]
"""
BLOCK = """language: 2
params: {width: null}
inputs: [x]
outputs: [y]
graph:
  - a: {op: linear, from: x, width: width, bias: false, to: z}
  - b: {op: linear, from: z, width: width, bias: false, to: y}
"""
CLASSES = """language: 2
name: llama
title: Two classes
reference:
  my.First: {}
  my.Second: {head: none}
sizes:
  D: {key: hidden_size, default: 8}
  head: {type: text, default: "'more'", doc: whether there is a second linear}
streams: {text: [x]}
inputs:
  x: {stream: text, width: D}
graph:
  - a: {op: linear, from: x, width: D, to: y}
  - b: {op: linear, from: y, width: D, when: "head == 'more'", to: y}
outputs: [y]
"""
CONFIG = {"architectures": ["LlamaForCausalLM"], "hidden_size": 4, "num_attention_heads": 1}
BATCH = {"text": [10]}
FORWARD = 2 * 10 * 2 * 4 * 4
pytestmark = pytest.mark.filterwarnings("ignore:.*derived on the spot:UserWarning")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project whose spec describes a class that a shipped one also describes, under the same name."""
    for path, text in (("nn/llama.yaml", SPEC), ("blocks/twice.yaml", BLOCK)):
        (tmp_path / "specs" / path).parent.mkdir(parents=True)
        (tmp_path / "specs" / path).write_text(text)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def said(capsys, *words: str) -> str:
    """What a command prints that ends well."""
    assert main(list(words)) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def answers(capsys) -> dict[str, int]:
    """The FLOPs of a forward pass, as every way to ask for them gives it."""
    batch = json.dumps(BATCH)
    one = symflops.load("llama").estimator(CONFIG)
    adapter = verl.estimator_of(CONFIG, "full", "symflops")
    rows = json.loads(said(capsys, "compare", "llama", "--config", "config.json", "--batch", batch, "--regimes", "full", "--json"))
    share = said(capsys, "explain", "--config", "config.json", "--batch", batch).splitlines()
    meter = symflops.MFUMeter.of_config(CONFIG, devices=1, peak_tflops=1)
    meter.add(**BATCH)
    return {
        "load": one.forward(one.moments(**BATCH)),
        "symflops.estimate": symflops.estimate(CONFIG, BATCH)["forward"],
        "estimate": json.loads(said(capsys, "estimate", "--config", "config.json", "--batch", batch, "--json"))["forward"],
        "estimate by name": json.loads(said(capsys, "estimate", "llama", "--config", "config.json", "--batch", batch, "--json"))["forward"],
        "explain": FORWARD if share[0] == "A local decoder" and any("4*D**2" in line for line in share) else 0,
        "compare": rows["regimes"][0]["forward"],
        "adapter": adapter.forward(adapter.moments(**BATCH)),
        "meter": meter.step(seconds=1.0)["flops_total"] // 5 * 2,
    }


def test_every_command_uses_the_local_spec(project, capsys):
    """Generated or not; the second time from the cache."""
    for turn in range(3):
        found = answers(capsys)
        assert set(found.values()) == {FORWARD}, found
        if turn == 1:
            assert main(["generate"]) == 0
            capsys.readouterr()


COMMANDS = (
    "estimate W --batch 10 --json", "explain W --batch 10 --json", "compare W --batch 10 --regimes full --json", "mfu W --batch 10 --seconds 1 --peak 9 --json", "growth W --batch 10 --json",
    "budget W --batch 10 --tokens 1e6 --mfu 0.4 --peak 9 --json", "render W --format markdown --numeric", "solve W --for tokens --flops 1e9 --json",
)  # fmt: skip


@pytest.mark.parametrize("word", ["llama", "specs/nn/llama.yaml", "config.json"])
def test_settings_reach_every_command(project, capsys, word):
    """A spec without a stored program by its name, its path, and through a config: other figures in every command."""
    for command in COMMANDS:
        words = [word if one == "W" else one for one in command.split()]
        assert said(capsys, *words) != said(capsys, *words, "--set", "hidden_size=16"), command
    assert json.loads(said(capsys, *COMMANDS[0].replace("W", word).split(), "--set", "hidden_size=16"))["parameters"] == 2 * 16 * 16
    assert json.loads(said(capsys, "diff", word, "--set", "hidden_size=16", "--json"))["parameters"]["second"] == 2 * 16 * 16
    assert main(["estimate", word, "--set", "hidden=3"]) == 2
    assert "no field 'hidden'" in capsys.readouterr().err


def test_a_meter_takes_the_path_of_a_spec(project):
    meter = symflops.MFUMeter.of_config({"hidden_size": 4}, spec="specs/nn/llama.yaml", devices=1, peak_tflops=1)
    meter.add(**BATCH)
    assert meter.step(seconds=1.0)["flops_total"] // 5 * 2 == FORWARD


def test_settings_reach_every_function(project):
    model = symflops.load("specs/nn/llama.yaml")
    made = [model, model.estimator({}, "forward", "torch"), "llama", "specs/nn/llama.yaml", CONFIG]
    for given in made:
        for found in (symflops.explain(given, BATCH, settings={"hidden_size": 16}).estimate, symflops.estimate(given, BATCH, settings={"hidden_size": 16})):
            assert found["parameters"] == 2 * 16 * 16 and (found["regime"] == "forward") == (given is made[1]) == (found["convention"] == "torch")
        (row,) = symflops.compare(given, BATCH, regimes=["full"], settings={"hidden_size": 16})
        assert row["trainable_parameters"] == 512 and (row["forward"] == 2 * 512 * 10)


def test_it_is_listed_in_place_of_its_namesake(project, capsys):
    listed = json.loads(said(capsys, "list", "--json"))["specs"]
    assert listed["llama"]["title"] == "A local decoder" and listed["llama"]["group"] == "nn"
    assert listed["llama"]["references"] == ["transformers.LlamaForCausalLM"] and listed["llama"]["streams"] == {"text": ["x"]}
    assert "qwen_image" in listed and "A local decoder" not in (said(capsys, "list").splitlines()[0])
    for config in ({"_class_name": "MyPipeline"}, {"model_type": "llama"}, CONFIG):
        catalog, name = lookup.by_config(config)
        assert not catalog.shipped and name == "llama"


def test_a_class_finds_the_local_spec_under_another_name(project):
    (project / "specs/nn/llama.yaml").rename(project / "specs/nn/mine.yaml")
    (project / "specs/nn/mine.yaml").write_text(SPEC.replace("name: llama", "name: mine"))
    assert symflops.estimate(CONFIG, BATCH)["spec"] == "mine"
    assert symflops.estimate(CONFIG, BATCH, spec="llama")["parameters"] > 10**5, "the name is that of the shipped one"


def test_classes_of_a_local_spec_are_kept_apart(project):
    """One class has a second linear, the other has not; a third is refused."""
    (project / "specs/nn/llama.yaml").write_text(CLASSES)
    for _ in range(2):
        for name, count in (("First", 2), ("Second", 1)):
            config = {"architectures": [name], "hidden_size": 4, "num_attention_heads": 1}
            assert symflops.estimate(config, BATCH)["parameters"] == count * 20 == symflops.load("llama").estimator(config).parameters
            assert lookup.interpreter("llama", config).parameters == count * 20
    with pytest.raises(SymflopsError, match="Third"):
        symflops.estimate({"architectures": ["Third"]}, BATCH, spec="llama")


def planted(project: Path) -> None:
    """A generated folder that lies: its program is that of another model, with a digest that fits, beside Python that must not run."""
    (project / "generated" / "nn").mkdir(parents=True, exist_ok=True)
    program = (ROOT / "generated/language/llama.json").read_text()
    entry = json.loads((ROOT / "generated/catalog.json").read_text())["specs"]["llama"] | {"group": "nn"}
    from zlib import crc32

    entry["crc32"] = crc32((project / "specs/nn/llama.yaml").read_bytes())
    names = {"llama": entry, "../../evil": entry, "gpt2": entry}
    (project / "generated/catalog.json").write_text(json.dumps({"schema": 1, "specs": names}))
    (project / "generated/nn/llama.json").write_text(program)
    (project / "generated/nn/llama.py").write_text("raise SystemExit('planted')\n")
    (project / "generated/__init__.py").write_text("raise SystemExit('planted')\n")


def test_what_is_generated_in_a_folder_is_not_believed(project, capsys):
    planted(project)
    found = answers(capsys)
    assert set(found.values()) == {FORWARD}, found
    assert lookup.by_name("gpt2").shipped
    assert "../../evil" not in said(capsys, "list", "--json")
    for damage in ("", "[]", "{", '{"specs": 3}'):
        (project / "generated/catalog.json").write_text(damage)
        assert symflops.estimate(CONFIG, BATCH)["forward"] == FORWARD


def test_a_folder_without_specs_changes_nothing(project, capsys):
    planted(project)
    for path in ("nn/llama.yaml", "blocks/twice.yaml"):
        (project / "specs" / path).unlink()
    (project / "specs/api").mkdir()
    (project / "specs/api/open-api.yaml").write_text("openapi: 3.0.0\n")
    catalogs = lookup.catalogs()
    assert len(catalogs) == 1 and catalogs[0].specs.keys() == json.loads((ROOT / "generated/catalog.json").read_text())["specs"].keys()
    assert symflops.estimate(CONFIG, BATCH)["parameters"] > 10**5


def test_yaml_of_another_kind_disturbs_no_config(project):
    (project / "specs/nn/llama.yaml").unlink()
    for name, text in (("petstore", "openapi: 3.0.0\npaths: {}\n"), ("chart", "a: {{ .Values.x }}\n\tb: 1\n"), ("text", "llama LlamaForCausalLM\n"), ("raw", "\0")):
        (project / f"specs/nn/{name}.yaml").write_text(text)
    (project / "specs/nn/bytes.yaml").write_bytes(b"\xff\xfe")
    (project / "specs/nn/folder.yaml").mkdir()
    os.mkfifo(project / "specs/nn/pipe.yaml")
    assert symflops.estimate(CONFIG, BATCH)["parameters"] > 10**5


@pytest.mark.parametrize(("path", "old", "new", "times"), [("nn/llama.yaml", "block: twice", "block: thrice", 3), ("blocks/twice.yaml", "", "", 3)])
def test_a_changed_spec_or_block_is_derived_anew(project, capsys, path, old, new, times):
    assert symflops.estimate(CONFIG, BATCH)["forward"] == FORWARD
    three = BLOCK.replace("to: y", "to: w") + "  - c: {op: linear, from: w, width: width, bias: false, to: y}\n"
    (project / "specs/blocks/thrice.yaml").write_text(three)
    (project / "specs" / path).write_text(SPEC.replace(old, new) if old else three)
    assert symflops.estimate(CONFIG, BATCH)["forward"] == FORWARD // 2 * times
    assert symflops.load("llama").estimator(CONFIG).forward(symflops.load("llama").estimator(CONFIG).moments(**BATCH)) == FORWARD // 2 * times


def test_changed_facts_beside_a_spec_count(project):
    symflops.estimate(CONFIG, BATCH)
    (project / "specs/nn/llama.reading.json").write_text("{}")
    for told in (1, 0):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            assert symflops.estimate(CONFIG, BATCH)["forward"] == FORWARD
        assert len(found) == told


def test_a_base_that_comes_nearer_is_read(project):
    """A spec extends a shipped one; then a local base of that name appears."""
    child = "language: 2\nname: child\ntitle: A child\nextends: gpt2\nreference: my.Child\n"
    (project / "specs/nn/child.yaml").write_text(child)
    whole = symflops.estimate({"architectures": ["Child"]}, BATCH)
    assert whole["parameters"] == load("gpt2").estimator({}).parameters
    (project / "specs/nn/gpt2.yaml").write_text(SPEC.replace("name: llama", "name: gpt2").replace("LlamaForCausalLM", "Mine"))
    assert symflops.estimate({"architectures": ["Child"]}, BATCH)["parameters"] == 2 * 8 * 8
    assert lookup.by_config({"architectures": ["Child"]})[0].specs["child"]["streams"] == {"text": ["x"]}


@pytest.mark.parametrize("damage", ["graph: [\n", "outputs: [nothing]\n", "\tx: 1\n", "sizes: 3\n"])
def test_a_damaged_spec_gives_its_diagnostic(project, capsys, damage):
    assert symflops.estimate(CONFIG, BATCH)["forward"] == FORWARD
    (project / "specs/nn/llama.yaml").write_text(SPEC + damage)
    batch = json.dumps(BATCH)
    for words in (["estimate", "--config", "config.json", "--batch", batch], ["estimate", "llama", "--batch", batch], ["explain", "--config", "config.json"], ["compare", "llama"]):
        assert main(words) == 1
        out, err = capsys.readouterr()
        assert out == "" and "specs/nn/llama.yaml" in err and "error[" in err, err
    with pytest.raises(SymflopsError):
        symflops.estimate(CONFIG, BATCH)
    assert main(["list"]) == 0


@pytest.mark.parametrize("reference", ["transformers.LlamaForCausalLM", "[other.X, transformers.LlamaForCausalLM]", "\n  - transformers.LlamaForCausalLM", "\n  transformers.LlamaForCausalLM: {}"])
def test_a_text_that_is_no_yaml_still_names_its_classes(project, reference):
    (project / "specs/nn/llama.yaml").rename(project / "specs/nn/mine.yaml")
    (project / "specs/nn/mine.yaml").write_text(f"language: 2\nname: mine\nreference: {reference}\ngraph: [\n")
    assert lookup.by_config(CONFIG)[1] == "mine"
    with pytest.raises(SymflopsError, match="mine.yaml"):
        symflops.estimate(CONFIG, BATCH)
    assert lookup.by_name("gpt2").shipped


def test_entries_with_forged_digests_of_others_are_not_read(project):
    """Whoever can write an entry can seal it; so who owns it counts, of headers as of programs."""
    symflops.estimate(CONFIG, BATCH)
    for path in (project / "cache").rglob("*.json"):
        head, _, text = path.read_text().partition("\n")
        forged = text.replace("LlamaForCausalLM", "Nothing").replace("hidden_size", "other")
        path.write_text(json.dumps(json.loads(head) | {"text": digest(forged)}, sort_keys=True) + "\n" + forged)
        path.chmod(0o666)
    assert symflops.estimate(CONFIG, BATCH)["forward"] == FORWARD


@pytest.mark.parametrize("key", ["package", "sympy"])
def test_another_package_or_sympy_reads_anew(project, monkeypatch, key):
    from symflops.library import cache

    symflops.estimate(CONFIG, BATCH)
    monkeypatch.setattr(cache, "package_digest" if key == "package" else "sympy_release", lambda: "another")
    with pytest.warns(UserWarning, match="derived on the spot"):
        symflops.estimate(CONFIG, BATCH)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        symflops.estimate(CONFIG, BATCH)


QUIET = """
import sys
import symflops, symflops.cli.main as main
symflops.estimate({config!r}, {batch!r})
assert main.main(["list"]) == 0 and main.main(["estimate", "llama", "--config", "config.json", "--batch", {text!r}]) == 0
print([name for name in ("sympy", "networkx", "jinja2", "ruamel.yaml", "numpy", "torch") if name in sys.modules])
"""


def test_the_second_run_needs_neither_yaml_nor_sympy(project):
    symflops.estimate(CONFIG, BATCH)
    assert main(["list"]) == 0
    text = QUIET.format(config=CONFIG, batch=BATCH, text=json.dumps(BATCH))
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr


@pytest.mark.thorough
def test_many_processes_on_a_cold_cache_agree(project):
    words = [sys.executable, "-m", "symflops.cli.main", "estimate", "--config", "config.json", "--batch", json.dumps(BATCH), "--json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = [subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(amount(10, 20))]
    done = [(*process.communicate(timeout=300), process.returncode) for process in running]
    assert {(json.loads(out)["forward"], code) for out, _, code in done} == {(FORWARD, 0)}
    assert not any("not kept" in err for _, err, _ in done), done
    assert len(list((project / "cache").rglob("*.json"))) == 2 and not list((project / "cache").rglob("*.tmp"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert symflops.estimate(CONFIG, BATCH)["forward"] == FORWARD


@pytest.mark.parametrize(("name", "group"), [("../evil", "language"), ("evil", "../.."), ("a.b", "language"), ("evil", ""), ("evil", None), ("/etc/x", "nn"), ("x\0", "nn")])
def test_names_of_a_catalog_are_checked(tmp_path, name, group):
    (tmp_path / "evil.json").write_text("{}")
    catalog = Catalog(str(tmp_path), {name: {"group": group, "structures": {"../x": {}}}})
    for ask in (catalog.program, catalog.module, catalog.file, catalog.changed):
        with pytest.raises(SymflopsError, match="is not a name"):
            ask(name)
    with pytest.raises(SymflopsError, match="is not a name"):
        Catalog(str(tmp_path), {"evil": {"group": "nn"}}).program("evil", "../x")


def test_the_installed_package_is_no_local_folder(monkeypatch):
    monkeypatch.chdir(ROOT)
    (only,) = lookup.catalogs()
    assert only.shipped and not only.changed("llama")


def test_a_new_spec_of_a_checkout_is_found_before_it_is_generated(tmp_path, monkeypatch, capsys):
    """By name and by class, with and without other specs in the catalog; one that the catalog knows is not read."""
    text = SPEC.replace("name: llama", "name: novel").replace("LlamaForCausalLM", "NovelModel").replace("block: twice", "op: linear")
    (tmp_path / "specs/nn").mkdir(parents=True)
    (tmp_path / "generated").mkdir()
    (tmp_path / "specs/nn/novel.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("symflops.library.catalog.PACKAGE", str(tmp_path / "symflops"))
    for known in ({}, {"other": {"group": "nn", "references": [], "model_types": [], "pipelines": [], "streams": {}, "title": ""}}):
        (tmp_path / "generated/catalog.json").write_text(json.dumps({"specs": known}))
        assert json.loads(said(capsys, "estimate", "novel", "--batch", '{"text": [3]}', "--json"))["parameters"] == 8 * 8 + 8
        assert lookup.by_config({"architectures": ["NovelModel"]})[1] == "novel" and "novel" in said(capsys, "list")
    (tmp_path / "generated/catalog.json").write_text(json.dumps({"specs": {"novel": known["other"]}}))
    monkeypatch.setattr("symflops.library.local.read", None)
    assert [sorted(catalog.specs) for catalog in catalogs()] == [["novel"]]


def test_a_changed_spec_of_the_package_is_derived(tmp_path, monkeypatch):
    """Somebody who works on the package sees what the spec says, not what was stored of an earlier one."""
    catalog = lookup.by_name("gpt2")
    stale = Catalog(catalog.folder, {"gpt2": {**catalog.specs["gpt2"], "crc32": 0}})
    assert stale.of_structure("gpt2", {}) == (None, {}) and catalog.of_structure("gpt2", {})[0] == ""


def test_headers_say_what_the_catalog_says():
    """Those of local specs are read without deriving."""
    known = lookup.catalogs()[-1].specs
    files = [file for file in specs_in(shipped("specs")) if file.name in known]
    for file in files[:: amount(9, 1)]:
        entry = {key: value for key, value in known[file.name].items() if key not in ("records", "inexact", "digest")}
        found = read(file)["entry"]
        assert found.keys() | {"structures"} == entry.keys() | {"structures"}
        assert found.pop("structures").keys() == entry.pop("structures", {}).keys() - {"default"}
        assert found == entry, file.name


COPIED = ("language/llama", "language/gpt2", "language/clip_text", "diffusion/wan", "papers/bigbird")


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A folder that has copies of shipped specs, as a clone of the repository has where the package is installed elsewhere."""
    library = shipped("specs")
    for path in (path for name in COPIED for path in library.glob(f"{name}.*")):
        (tmp_path / "specs" / path.parent.name).mkdir(parents=True, exist_ok=True)
        shutil.copy(path, tmp_path / "specs" / path.parent.name)
    shutil.copytree(library / "blocks", tmp_path / "specs" / "blocks")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def local_names() -> set[str]:
    return {name for catalog in catalogs() if not catalog.shipped for name in catalog.specs}


def test_copies_of_shipped_specs_are_the_shipped_ones(clone, capsys):
    """Their programs are stored and their records are known; the witness of a paper is no class of a config."""
    assert local_names() == set() and by_name("llama").shipped and by_name("bigbird").shipped
    found = json.loads(said(capsys, "estimate", "llama", "--batch", '{"text": [7]}', "--json"))["evidence"]
    assert found["records"] > 0
    assert load("bigbird").spec.references == load(specs_in(shipped("specs"), name="bigbird").__next__()).spec.references
    with pytest.raises(SymflopsError, match="no spec describes"):
        lookup.by_config({"architectures": ["Model"]})


@pytest.mark.parametrize(
    ("path", "local"),
    [
        ("language/gpt2.yaml", {"gpt2"}),
        ("language/gpt2.reading.json", {"gpt2"}),
        ("blocks/gated_mlp.yaml", {"llama"}),
        ("blocks/plain_mlp.yaml", {"clip_text"}),
        ("papers/bigbird.yaml", {"bigbird"}),
    ],
)
def test_a_changed_copy_is_the_users_own(clone, path, local):
    """A changed spec, block or fact makes the specs that use it local, and no other."""
    changed = clone / "specs" / path
    changed.write_text(changed.read_text() + (" " if path.endswith("json") else "# mine\n"))
    assert local_names() == local
    assert by_name(next(iter(local))).shipped is False


def test_too_many_specs_are_refused(project, monkeypatch):
    """All but a spec's path; what is read of shipped specs, such as the rules of pipelines, needs no local ones."""
    monkeypatch.setattr("symflops.library.local.MOST_SPECS", 0)
    pipelines.rules.cache_clear()
    older.table.cache_clear()
    assert older.table() and pipelines.rule_for(symflops.load(find_spec("wan").path).estimator({}))
    with pytest.raises(SymflopsError, match="by its path"):
        symflops.estimate(CONFIG, BATCH)
    assert main(["estimate", "specs/nn/llama.yaml", "--config", "config.json", "--batch", json.dumps(BATCH)]) == 0


def test_without_a_cache_headers_are_read_each_time(project):
    (project / "cache").write_text("a file")
    assert local_specs(str(project / "specs"))[1] == local_specs(str(project / "specs"))[1]
    for _ in range(2):
        with pytest.warns(UserWarning, match="not kept"):
            assert symflops.estimate(CONFIG, BATCH)["forward"] == FORWARD
