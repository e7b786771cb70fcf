"""A wheel holds everything, works from an empty folder as an editable install does, and runs on every Python that it names."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from symflops import __version__
from symflops.cli.actions.generate import output_of
from symflops.read.spec_files import find_spec

ROOT = Path(__file__).resolve().parents[2]
BATCH = '{"latent": [4096], "prompt": [256]}'
MODULES = sorted(path for path in (ROOT / "generated").glob("*/*.py"))


def members() -> Iterator[str]:
    """What belongs in the wheel: the package, and specs and generated files within it."""
    for folder, inside in (("symflops", "symflops"), ("specs", "symflops/specs"), ("generated", "symflops/generated")):
        for path in (ROOT / folder).rglob("*"):
            name = path.relative_to(ROOT / folder)
            if path.is_file() and "__pycache__" not in name.parts and not path.name.startswith(".") and path.suffix != ".tex":
                yield f"{inside}/{name.as_posix()}"


def environment(**more: str) -> dict[str, str]:
    """The environment without what would let a checkout be found."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
    return {**{name: value for name, value in os.environ.items() if name not in hidden}, **more}


def call(*words: str | Path, cwd: Path, **more: str) -> str:
    done = subprocess.run([str(word) for word in words], cwd=cwd, env=environment(**more), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(once) -> Path:
    def build(folder: Path) -> None:
        call(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)

    (found,) = once("wheel", build).glob("*.whl")
    return found


@pytest.fixture(scope="module")
def unpacked(wheel: Path, once) -> Path:
    def unpack(folder: Path) -> None:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)

    return once("unpacked", unpack)


@dataclass
class Install:
    """How to run an installed symflops, and where its files must lie."""

    python: Path
    command: list[str]
    home: Path
    cwd: Path

    def symflops(self, *words: str) -> str:
        return call(*self.command, *words, cwd=self.cwd)


@pytest.fixture(scope="module")
def installed(wheel: Path, once) -> Path:
    return once("installed", lambda folder: install_wheel(wheel, folder / "venv")) / "venv"


def install_wheel(wheel: Path, venv: Path) -> None:
    """A virtual environment with the wheel; what it depends on comes from the environment of the tests."""
    call(sys.executable, "-m", "venv", "--without-pip", venv, cwd=wheel.parent)
    python = venv / "bin/python"
    pip = ("-m", "pip", "--disable-pip-version-check", "--python", python)
    call(sys.executable, *pip, "install", "-q", "--no-deps", "--no-index", wheel, cwd=wheel.parent)
    (packages,) = venv.glob("lib/python*/site-packages")
    folders = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (packages / "dependencies.pth").write_text("\n".join(folders) + "\n")  # .pth files in those folders are not read


@pytest.fixture(params=["wheel", pytest.param("editable", marks=pytest.mark.nightly)])
def install(request: pytest.FixtureRequest, tmp_path: Path) -> Install:
    if request.param == "editable":
        return Install(Path(sys.executable), [sys.executable, "-m", "symflops.cli.main"], ROOT, tmp_path)
    venv = request.getfixturevalue("installed")
    return Install(venv / "bin/python", [str(venv / "bin/symflops")], venv, tmp_path)


def test_the_wheel_holds_exactly_what_it_should(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        entry = archive.read(f"symflops-{__version__}.dist-info/entry_points.txt").decode()
    assert len(names) == len(set(names))
    assert sorted(name for name in names if ".dist-info/" not in name) == sorted(members())
    assert "symflops = symflops.cli.main:main" in entry
    for name in (
        "specs/verified.json", "specs/blocks/self_attention.yaml", "specs/language/llama.yaml", "specs/language/llama.cases.yaml",
        "conventions/torch.yaml", "regimes/full.yaml", "emit/templates/derivation.tex.jinja", "emit/templates/html/calculator.html.jinja",
        "generated/__init__.py", "generated/language/llama.py", "generated/language/llama.json", "generated/language/llama.md",
        "generated/catalog.json", "generated/manifest.json", "py.typed",
    ):  # fmt: skip
        assert f"symflops/{name}" in names


@pytest.mark.thorough
def test_it_lies_where_it_was_installed(install: Install) -> None:
    text = "import symflops, symflops.generated.language.llama as llama; print(symflops.__file__, llama.__file__, llama.NAME, sep='\\n')"
    package, module, name = call(install.python, "-c", text, cwd=install.cwd).splitlines()
    assert Path(package).is_relative_to(install.home) and Path(module).is_relative_to(install.home)
    assert name == "llama"
    assert install.symflops("--version") == f"symflops {__version__}\n"


@pytest.mark.thorough
def test_estimate(install: Install) -> None:
    found = json.loads(install.symflops("estimate", "qwen_image", "--batch", BATCH, "--convention", "torch", "--json"))
    assert (found["parameters"], found["forward"], found["backward"]) == (20430401088, 73128218198016, 146167851122688)
    (install.cwd / "config.json").write_text('{"_class_name": "QwenImageTransformer2DModel"}')
    words = ("--config", "config.json", "--batch", BATCH, "--convention", "torch", "--json")
    assert json.loads(install.symflops("estimate", *words)) == {**found, "evidence": {**found["evidence"], "named_by": "_class_name"}}


@pytest.mark.thorough
@pytest.mark.thorough
def test_explain_list_and_graph(install: Install) -> None:
    told = install.symflops("explain", "llama")
    assert "closed form" in told and "layers.*" in told
    assert json.loads(install.symflops("list", "--json"))["specs"]["llama"]["streams"] == {"text": ["x"]}
    assert install.symflops("graph", "llama").startswith("flowchart TD")


@pytest.mark.thorough
def test_generate_and_render(install: Install) -> None:
    expected = output_of(find_spec("llama")).files
    install.symflops("generate", "llama", "--out", "out")
    for name, text in expected.items():
        assert (install.cwd / "out" / name).read_bytes() == text.encode(), name
    assert install.symflops("render", "llama", "--full", "--format", "latex") == expected["language/llama.tex"]
    install.symflops("render", "llama", "--format", "markdown", "--fragment", "-o", "paper")
    assert sorted(path.name for path in (install.cwd / "paper").iterdir()) == ["llama-forms.md", "llama-modules.md", "llama-symbols.md", "llama-where.md"]


@pytest.mark.thorough
def test_check_and_verify(install: Install) -> None:
    install.symflops("check", "llama")
    shutil.copy(ROOT / "tests/data/truth/LlamaForCausalLM.json", install.cwd / "records.json")
    verdicts = json.loads(install.symflops("verify", "llama", "--records", ".", "--json"))
    assert verdicts and {verdict["status"] for verdict in verdicts} == {"exact"}


def interpreters(*versions: str) -> dict[str, Path]:
    """The interpreters of these versions that this machine has and that run (a shim of pyenv may not)."""
    found = {}
    for version in versions:
        name = f"python{version}"
        folders = [*os.get_exec_path(), *sorted((Path.home() / ".pyenv/versions").glob("*/bin"))]
        for path in (Path(folder) / name for folder in folders):
            if path.is_file() and os.access(path, os.X_OK):
                test = [str(path), "-c", "import sys, json, decimal; print('%d.%d' % sys.version_info[:2])"]
                if subprocess.run(test, capture_output=True, text=True).stdout.strip() == version:
                    found[version] = path
                    break
    return found


SUPPORTED = {**interpreters("3.12", "3.13"), "{}.{}".format(*sys.version_info): Path(sys.executable)}
FORWARD = 13214416896 * 7 + 262144 * 7**2
LLAMA = "m = llama.Estimator(llama.Sizes.from_config({})); print(m.parameters, m.forward(llama.moments(text=[7])))"


@pytest.mark.parametrize("version", sorted(SUPPORTED))
def test_estimating_needs_no_dependency_on_any_python(version: str, unpacked: Path, tmp_path: Path) -> None:
    bare = (SUPPORTED[version], "-S", "-W", "error")  # without site-packages
    names = [f"symflops.generated.{path.parent.name}.{path.stem}" for path in MODULES]
    text = f"import importlib, sys\nfor name in {names}: importlib.import_module(name)\nfrom symflops.generated.language import llama\n{LLAMA}"
    parameters, forward = call(*bare, "-c", text, cwd=tmp_path, PYTHONPATH=str(unpacked)).split()
    words = ("-m", "symflops.cli.main", "estimate", "llama", "--batch", '{"text": [7]}', "--json")
    found = json.loads(call(*bare, *words, cwd=tmp_path, PYTHONPATH=str(unpacked)))
    assert (found["parameters"], found["forward"]) == (int(parameters), int(forward)) == (6738415616, FORWARD)


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "python"), sorted(interpreters("3.10").items()))
def test_generated_modules_run_alone_on_an_older_python(version: str, python: Path, tmp_path: Path) -> None:
    for path in MODULES:
        (tmp_path / path.name).write_text(path.read_text("utf-8"))
    names = [path.stem for path in MODULES]
    text = f"import importlib, sys\nsys.path.insert(0, '.')\nfor name in {names}: importlib.import_module(name)\nimport llama\ns = llama.Sizes(); print(llama.parameters(s)[0], llama.forward(s, llama.moments(text=[7])))"
    assert call(python, "-S", "-W", "error", "-c", text, cwd=tmp_path) == f"6738415616 {FORWARD}\n"
