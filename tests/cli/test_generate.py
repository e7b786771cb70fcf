"""What is committed is what is derived: bytes, hash seeds, drift of every input, whole files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from symflops.cli.main import main
from tests.sampling import amount, sampled

ROOT = Path(__file__).resolve().parents[2]


def symflops(*words: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(cwd if (cwd / "symflops").is_dir() else ROOT), **environment}
    return subprocess.run([sys.executable, "-m", "symflops.cli.main", *words], cwd=cwd, env=env, capture_output=True, text=True)


@pytest.fixture(scope="module")
def small(once) -> Path:
    return once("small", write_small)


def write_small(folder: Path) -> None:
    """A copy of the project with two specs, to be quick, and what is generated from them."""
    for name in ("symflops", "specs", "generated"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".stamp.json"))
    for path in (folder / "specs").glob("*/*.yaml"):
        if path.parent.name != "blocks" and path.name.split(".")[0] not in ("llama", "qwen_image"):
            path.unlink()
    done = symflops("generate", cwd=folder)
    assert done.returncode == 0, done.stderr
    for path in sorted((folder / "generated").rglob("*.*")):
        if path.is_file() and path.parent.parent == folder / "generated" and path.name.partition(".")[0] not in ("llama", "qwen_image"):
            path.unlink()
    assert symflops("generate", "--check", cwd=folder).returncode == 0


@pytest.fixture
def copy(small: Path, tmp_path: Path) -> Path:
    """The small project, for one test to damage."""
    return Path(shutil.copytree(small, tmp_path / "copy", ignore=shutil.ignore_patterns("__pycache__")))


@pytest.mark.nightly  # the task check compares all
def test_committed_files_are_what_is_derived():
    """One spec in forty; the task ``check`` compares all."""
    catalog = json.loads((ROOT / "generated" / "catalog.json").read_text())["specs"]
    done = symflops("generate", "--check", "--cold", *list(catalog)[:: amount(40, 1)])
    assert done.returncode == 0, done.stderr


@pytest.mark.thorough
def test_two_hash_seeds_give_the_same_bytes(tmp_path):
    for seed in ("1", "4242"):
        done = symflops("generate", "llama", "qwen_image", "--out", str(tmp_path / seed), PYTHONHASHSEED=seed)
        assert done.returncode == 0, done.stderr
    names = sorted(path.relative_to(tmp_path / "1") for path in (tmp_path / "1").rglob("*.*") if path.is_file())
    assert {path.suffix for path in names} == {".json", ".py", ".md", ".tex", ""} and len(names) == 15
    for name in names:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "4242" / name).read_bytes(), name


OUTPUTS = ("generated/language/llama.py", "generated/diffusion/qwen_image.tex", "generated/catalog.json", "generated/verified.md")
INPUTS = (
    "specs/verified.json", "specs/inexact.yaml", "specs/blocks/gated_mlp.yaml", "specs/language/llama.yaml",
    "symflops/emit/templates/python/module.py.jinja", "symflops/emit/templates/derivation.tex.jinja", "symflops/conventions/torch.yaml",
)  # fmt: skip


def add_a_byte(path: Path) -> None:
    """Change a file, not what it says."""
    comment = {".jinja": "<# x #>", ".yaml": "# x\n", ".json": " ", ".py": "# x\n", ".tex": "% x\n", ".md": "x\n"}[path.suffix]
    path.write_text(path.read_text("utf-8") + comment, "utf-8")


@pytest.mark.thorough
@pytest.mark.thorough
@pytest.mark.parametrize("names", sampled([list(OUTPUTS), *([name] for name in INPUTS)][::-1], 99, 2), ids=lambda names: names[0])
def test_one_byte_is_noticed_and_named(copy, names):
    for name in names:
        add_a_byte(copy / name)
    done = symflops("generate", "--check", cwd=copy)
    assert done.returncode == 1
    assert [name for name in names if name not in done.stderr] == []


@pytest.mark.thorough
@pytest.mark.parametrize("names", [OUTPUTS, INPUTS], ids=["outputs", "inputs"])
def test_what_was_noticed_is_written_anew(copy, names):
    for name in names:
        add_a_byte(copy / name)
    assert symflops("generate", cwd=copy).returncode == 0
    assert symflops("generate", "--check", cwd=copy).returncode == 0


def test_a_missing_and_an_orphan_file_are_named(copy):
    (copy / "generated/language/llama.md").unlink()
    (copy / "generated/language/old.py").write_text("x = 1\n")
    done = symflops("generate", "--check", cwd=copy)
    assert done.returncode == 1
    assert "generated/language/llama.md: missing" in done.stderr
    assert "generated/language/old.py: belongs to no spec" in done.stderr


@pytest.mark.thorough
def test_a_latex_page_may_be_missing_if_its_digest_is_right(copy):
    for path in (copy / "generated").rglob("*.tex"):
        path.unlink()
    assert symflops("generate", "--check", cwd=copy).returncode == 0
    manifest = copy / "generated/manifest.json"
    known = json.loads(manifest.read_text())
    known["outputs"]["language/llama.tex"] = known["outputs"]["diffusion/qwen_image.tex"]
    manifest.write_text(json.dumps(known))
    done = symflops("generate", "--check", "llama", cwd=copy)
    assert done.returncode == 1 and "generated/language/llama.tex: missing" in done.stderr


@pytest.mark.thorough
def test_a_module_that_stands_alone(tmp_path):
    printed = symflops("generate", "llama", "--standalone", cwd=tmp_path)
    assert printed.returncode == 0 and "import symflops" not in printed.stdout and printed.stdout == (ROOT / "generated/language/llama.py").read_text("utf-8")
    (tmp_path / "mine.py").write_text(printed.stdout)
    text = "import mine; one = mine.Sizes(); print(mine.parameters(one)[0], mine.forward(one, mine.moments(text=[7])))"
    done = subprocess.run([sys.executable, "-S", "-I", "-c", f"import sys; sys.path.insert(0, '.'); {text}"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.split() == ["6738415616", "92513763328"], done.stderr
    assert symflops("generate", "llama", "swin", "--standalone", "--out", "all", cwd=tmp_path).returncode == 0
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == ["llama.py", "swin.py", "swin_small.py"]
    done = symflops("generate", "llama", "swin", "--standalone", cwd=tmp_path)
    assert done.returncode == 2 and "--out DIR" in done.stderr


@pytest.mark.thorough
def test_diff_shows_the_lines(copy):
    path = copy / "generated/language/llama.py"
    path.write_text(path.read_text("utf-8").replace("2*L*H*d", "3*L*H*d"), "utf-8")
    done = symflops("generate", "--diff", cwd=copy)
    assert done.returncode == 1
    assert "-" in done.stdout and "3*L*H*d" in done.stdout and "+++" in done.stdout


@pytest.mark.thorough
def test_unchanged_specs_are_skipped(copy):
    assert "2 derived" in symflops("generate", cwd=copy).stderr or "2 unchanged" in symflops("generate", cwd=copy).stderr
    again = symflops("generate", cwd=copy)
    assert "0 derived, 2 unchanged, 0 files written" in again.stderr
    assert "with 2 specs, 2 of them unchanged" in symflops("generate", "--check", cwd=copy).stderr
    assert "unchanged" not in symflops("generate", "--check", "--cold", cwd=copy).stderr
    spec = copy / "specs/language/llama.yaml"
    spec.write_text(spec.read_text("utf-8") + "# another\n", "utf-8")
    assert "1 derived, 1 unchanged" in symflops("generate", cwd=copy).stderr


@pytest.mark.thorough
def test_what_was_verified_is_a_table_and_stands_on_the_pages(copy):
    assert symflops("generate", cwd=copy).returncode == 0
    known = json.loads((copy / "specs/verified.json").read_text())
    llama = known["specs"]["llama"][0]
    case = llama["cases"].pop()
    llama["inexact"] = [{"id": "transformers/LlamaForCausalLM/odd", **case, "name": "odd"}]
    (copy / "specs/verified.json").write_text(json.dumps(known))
    entry = "- {id: transformers/LlamaForCausalLM/odd, reason: 12 | 13 bits, difference: {forward: -6, modules: {lm_head: -6}}}\n"
    (copy / "specs/inexact.yaml").write_text((copy / "specs/inexact.yaml").read_text() + entry)
    done = symflops("generate", cwd=copy)
    assert "1 derived, 1 unchanged" in done.stderr, done.stderr
    table = (copy / "generated/verified.md").read_text()
    rows = [line for line in table.splitlines() if line.startswith("| `LlamaForCausalLM`")]
    assert len(rows) == len(llama["cases"]) + 1
    figures = f"{case['parameters']:,} | {case['forward']:,} | {case['backward']:,} | \N{MINUS SIGN}6 forward, +0 backward"
    assert f"| `LlamaForCausalLM` | [llama](language/llama.md) | `odd` | {figures} | transformers {llama['version']}, torch {llama['torch']} |" in rows
    assert "| `transformers/LlamaForCausalLM/odd` | \N{MINUS SIGN}6 | +0 | `lm_head` \N{MINUS SIGN}6 | 12 \\| 13 bits |" in table
    assert r"12 \| 13 bits" in (copy / "generated/language/llama.md").read_text()
    assert "odd: 12" in (copy / "generated/language/llama.tex").read_text().replace(r"\texttt{odd}", "odd")
    assert symflops("generate", "--check", cwd=copy).returncode == 0
    (copy / "specs/inexact.yaml").write_text("[]")
    done = symflops("generate", cwd=copy)
    assert done.returncode == 2 and "verified.json" in done.stderr


@pytest.mark.thorough
def test_a_library_without_records_has_no_table(copy):
    for name in ("verified.json", "inexact.yaml"):
        (copy / "specs" / name).unlink()
    assert "verified.md: belongs to no spec" in symflops("generate", "--check", cwd=copy).stderr


def test_elsewhere_generate_needs_a_folder(tmp_path):
    done = symflops("generate", cwd=tmp_path)
    assert done.returncode == 2 and "--out" in done.stderr
    assert symflops("generate", "llama", "--out", "x", cwd=tmp_path).returncode == 0
    assert sorted(path.name for path in (tmp_path / "x/language").iterdir()) == ["llama.compared.json", "llama.json", "llama.md", "llama.py", "llama.tex"]
    assert set(json.loads((tmp_path / "x/catalog.json").read_text())["specs"]) == {"llama"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a spec of its own, ``specs/nn/mine.yaml``, as the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert main(["new", "mine", "--like", "llama", "--with", "window", "-o", "specs/nn"]) == 0
    return tmp_path


def test_a_spec_outside_of_the_library_writes_what_is_asked_for(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its module, by options its pages and programs, and nothing else; with its programs, the figures that move."""
    spec, out = project / "mine.yaml", project / "out"
    shutil.move(project / "specs/nn/mine.yaml", spec)
    shutil.rmtree(project / "specs")
    before = {path.name for path in project.iterdir()}
    words = ("generate", str(spec), "--convention", "symflops", "--regime", "full")
    assert main([*words]) == 0 and {path.name for path in project.iterdir()} - {"cache"} == {*before, "mine.py"} - {"cache"}
    assert main([*words, "--check"]) == 0
    assert main([*words, "--pages", "--out", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["mine.md", "mine.py", "mine.tex"]
    assert main([*words, "--data", "--out", str(out)]) == 0 and (out / "mine.json").is_file()
    assert (out / "mine.py").read_bytes() == (project / "mine.py").read_bytes()
    assert f"symflops generate {spec}" in " ".join((project / "mine.py").read_text().split()).replace("' ", "'")
    text = spec.read_text()
    spec.write_text(text.replace("hidden: F", "hidden: 2*F"))
    capsys.readouterr()
    assert spec.read_text() != text and main([*words, "--check"]) == 1
    told, errors = capsys.readouterr()
    assert "mine.py: differs" in errors and "  forward: + " in told
    assert main([*words, "--data", "--out", str(out)]) == 0 and capsys.readouterr().out == told
    assert main([*words]) == 0 and capsys.readouterr().out == told
    (project / "mine.py").write_text("# another's\n")
    assert main([*words]) == 0 and "mine.py: which figures move is not known" in capsys.readouterr().err


def test_a_path_writes_what_the_name_writes(project: Path) -> None:
    """Below the folder of the spec, and the manifest knows one spec."""
    assert main(["generate", "specs/nn/mine.yaml", "--convention", "symflops", "--regime", "full"]) == 0
    assert (project / "generated/nn/mine.json").is_file() and not (project / "generated/mine.json").exists()
    assert main(["generate", "mine", "--check", "--convention", "symflops", "--regime", "full"]) == 0


@pytest.mark.nightly  # the task types checks them all
def test_generated_modules_are_clean(tmp_path):
    """One template writes them all: the types of one in twelve are checked here, those of all by the task ``types``."""
    files = [str(path) for path in sorted((ROOT / "generated").rglob("*.py"))]
    some = files[:: amount(12, 1)]
    for command in (["ruff", "check", "--isolated", *files], ["mypy", "--strict", "--python-version", "3.10", "--cache-dir", str(tmp_path), *some]):
        done = subprocess.run([sys.executable, "-m", *command], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0 and len(some) > 10, done.stdout + done.stderr


@pytest.mark.thorough
def test_many_specs_are_derived_by_several_processes_and_a_mistake_is_told_as_by_one(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "specs" / "many"
    folder.mkdir(parents=True)
    text = "language: 2\nname: {name}\nsizes: {{D: {{key: width}}}}\nstreams: {{text: [x]}}\ninputs: {{t: {{stream: text, width: D}}}}\ngraph:\n  - a: {{op: {op}, from: t, width: D}}\noutputs: [a]\n"
    for number in range(20):
        (folder / f"one{number}.yaml").write_text(text.format(name=f"one{number}", op="linear"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert main(["generate"]) == 0
    several = {path.name: path.read_bytes() for path in sorted((tmp_path / "generated").rglob("one*"))}
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    assert main(["generate", "--check", "--cold"]) == 0 and len(several) == 100
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    (folder / "one7.yaml").write_text(text.format(name="one7", op="lineer"))
    capsys.readouterr()
    assert main(["generate", "--check"]) == 1
    assert "there is no operator 'lineer'" in capsys.readouterr().err
