"""Every read of the package is bounded: it goes through ``symflops/support/reading.py``, or is listed here with its reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from symflops.support.errors import SymflopsError
from symflops.support.reading import MOST_BYTES, fits, read_bytes, read_json, read_own

PACKAGE = Path(__file__).resolve().parents[2] / "symflops"
READING = "support/reading.py"
READS = {"open", "fdopen", "read_text", "read_bytes", "load", "loads", "safe_load", "reader", "DictReader", "loadtxt", "mmap"}
MODULES = {"json", "yaml", "pickle", "csv", "np", "numpy", "torch", "marshal", "tomllib", "os", "io"}
REASONS = {
    ("verify/limits.py", "limit_memory"): "a line of the system's own",
    ("cli/draft.py", "report"): "parses a text that was printed just now",
    ("draft/prove/verdict.py", "entry_of"): "copies what is in memory",
    ("cli/main.py", "_exit_for"): "opens the null device",
    ("cli/terminal.py", "__enter__"): "opens the null device",
    ("cli/actions/new.py", "spec_text"): "parses a text that was read with a limit",
    ("cli/mfu.py", "summed"): "parses a text that was read with a limit",
    ("cli/generate.py", "causes"): "parses a text that was printed just now",
    ("cli/render.py", "typeset"): "the PDF that TeX has just made of a page",
    ("library/cache.py", "kept"): "parses the header of an entry of the user's own",
    ("library/cache.py", "read"): "parses an entry of the user's own, whose digest is right",
    ("library/local.py", "_rows"): "parses an entry of the user's own, whose digest is right",
    ("library/catalog.py", "program"): "a stored program",
    ("library/catalog.py", "_parsed"): "a stored program",
    ("library/catalog.py", "changed"): "a spec of the package",
    ("library/catalog.py", "shipped_catalog"): "a catalog",
    ("training/devices/peaks.py", "_rows"): "a table of the package",
    ("support/findings.py", "kinds"): "a page of the package",
    ("cli/actions/site_resources.py", "files"): "assets of the package",
    ("cli/actions/site_resources.py", "within"): "assets of the package",
    ("cli/actions/site_resources.py", "style"): "assets of the package",
    ("cli/actions/site_resources.py", "font"): "assets of the package",
    ("support/files.py", "package_digest"): "files of the package",
    ("generated/__init__.py", "exec_module"): "a stored program of the package itself",
    ("support/files.py", "replace"): "opens a new file to write it",
    ("support/files.py", "locked"): "opens a lock and reads nothing",
    ("support/workers.py", "applied"): "what a process of our own sends",
    ("support/workers.py", "work"): "what the process that started this one sends",
    ("training/introspect/background.py", "_ended"): "what a process of our own sends",
    ("training/introspect/background.py", "main"): "what the process that started this one sends",
    ("training/introspect/proof.py", "proof"): "what a process of our own sends, or an entry of the user's own",
    ("training/introspect/elsewhere.py", "main"): "what the process that started this one sends",
    ("training/introspect/traced.py", "ask"): "what a process of our own sends",
    ("cli/compare.py", "differences"): "an entry of the user's own, whose digest is right",
    ("emit/skeleton/writer.py", "helper_names"): "a file of the package",
    ("verify/symbolic/answers.py", "forms_for"): "an entry of the user's own, whose digest is right",
    ("evaluate/assumed.py", "_value"): "parses a word of the command line",
    ("verify/verdicts.py", "_known"): "parses an entry of the user's own, whose digest is right",
    ("verify/census/summary.py", "default"): "copies what is in memory",
    ("verify/census/take.py", "saved"): "copies what is in memory",
    ("verify/census/take.py", "quiet"): "opens the null device",
}


def reads(path: Path) -> Iterator[str]:
    """The functions of a file that read: by name, one for each call."""
    tree = ast.parse(path.read_text("utf-8"))

    def walk(node: ast.AST, function: str) -> Iterator[str]:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = node.name
        if isinstance(node, ast.Call) and is_read(node.func):
            yield function
        for child in ast.iter_child_nodes(node):
            yield from walk(child, function)

    def is_read(function: ast.expr) -> bool:
        if isinstance(function, ast.Name):
            return function.id == "open"
        if not isinstance(function, ast.Attribute) or function.attr not in READS:
            return False
        if function.attr in ("load", "loads", "reader", "DictReader"):
            return isinstance(function.value, ast.Name) and function.value.id in MODULES
        return True

    yield from walk(tree, "")


@pytest.fixture(scope="module")
def found():
    """Each read of the package, as file and function."""
    names = {path: path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")}
    return {(name, function) for path, name in names.items() if name != READING for function in reads(path)}


def test_every_read_is_bounded_or_has_a_reason(found):
    assert found - REASONS.keys() == set(), "read through symflops/support/reading.py"


def test_every_reason_is_of_a_read(found):
    """``catalog`` changes: what is listed there may be gone."""
    assert {key for key in REASONS.keys() - found if not key[0].startswith("library/")} == set()


@pytest.mark.parametrize("call", ["open(p)", "Path(p).open()", "p.read_text()", "p.read_bytes()", "json.load(f)", "json.loads(t)", "yaml.load(t)", "csv.reader(f)", "os.open(p, 0)"])
def test_a_read_is_seen(tmp_path, call):
    (tmp_path / "a.py").write_text(f"def f():\n    return {call}\n")
    assert list(reads(tmp_path / "a.py")) == ["f"]


def test_a_read_ends(tmp_path):
    with pytest.raises(SymflopsError, match="larger than"):
        read_bytes("/dev/zero")
    sparse = tmp_path / "sparse"
    with sparse.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(SymflopsError, match="larger than"):
        read_json(sparse)


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1, "a": 2}', '{"a": "x"}', "[" * 100, '{"b": 1}', "\udcff"])
def test_what_symflops_wrote_and_others_changed_is_nothing(tmp_path, text):
    (tmp_path / "a.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert read_own(tmp_path / "a.json", {"a": int}) == {}
    assert read_own(tmp_path / "none.json", {"a": int}) == {}


def test_shapes():
    shape = {"a": [int], ...: {...: str}}
    assert fits({"a": [1, 2], "b": {"c": "d"}}, shape) and fits({"a": []}, shape)
    assert not any(fits(value, shape) for value in ({}, {"a": 1}, {"a": ["x"]}, {"a": [], "b": []}, {"a": [], "b": {"c": 1}}, [], None))
