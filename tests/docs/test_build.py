"""The documentation builds without a warning and without a network, and what its pages show is what the code does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from symflops.cli.main import COMMANDS
from symflops.ops.table import KINDS
from symflops.read import field_tables as tables
from symflops.read.spec_files import pages
from symflops.support.findings import kinds
from tests.docs.pages import DOCS, ROOT, blocks

EXTENSIONS = DOCS / "_ext"
OFFLINE = """import socket, sys
def refuse(*_): raise OSError("the documentation is built without a network")
socket.socket.connect = refuse
from sphinx.cmd.build import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def html(once) -> Path:
    return once("docs", build) / "html"


def build(out: Path) -> None:
    words = ["-W", "--keep-going", "-n", "-q", "-E", "-d", str(out / "doctrees"), str(DOCS), str(out / "html")]
    done = subprocess.run([sys.executable, "-c", OFFLINE, *words], cwd=out, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert not done.stderr.strip()


def text_of(path: Path) -> str:
    return path.read_text("utf-8")


@pytest.mark.thorough
def test_every_page_is_there(html):
    sources = {path.relative_to(DOCS).with_suffix("") for path in DOCS.rglob("*.md")}
    assert len(sources) >= 16
    for page in sources:
        assert (html / page).with_suffix(".html").is_file()


@pytest.mark.thorough
def test_nothing_is_fetched_when_a_page_is_read(html):
    """Links lead out, but no script, style, font or picture comes from elsewhere."""
    for path in html.rglob("*.html"):
        found = re.findall(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"(?:https?:)?//[^\"]*|<link\b[^>]*\brel=\"stylesheet\"[^>]*href=\"(?:https?:)?//[^\"]*", text_of(path))
        assert not found, (path.name, found)
    for path in html.rglob("*.css"):
        assert not re.search(r"url\([\"']?(https?:)?//", text_of(path)), path.name


@pytest.mark.thorough
def test_the_reference_is_complete(html):
    operators, cli, regimes, conventions, diagnostics, language, parts = (text_of(html / "reference" / f"{name}.html") for name in ("operators", "cli", "regimes", "conventions", "diagnostics", "language", "blocks"))
    library = [path.stem for path in (ROOT / "specs" / "blocks").glob("*.yaml")]
    for page, names in ((operators, KINDS), (parts, library), (cli, [f"symflops {name}" for name in COMMANDS]), (regimes, pages("regimes")), (conventions, pages("conventions"))):
        heads = re.findall(r"<h2>(.*?)<a", page, re.DOTALL)
        shown = [re.sub(r"<[^>]*>", "", head).strip() for head in heads]
        assert [name for name in names if name not in shown] == []
    for kind in KINDS.values():
        for field in kind.fields:
            assert f">{field.name}</span>" in operators
    for field in (*tables.DOCUMENT, *tables.SIZE, *tables.STREAM, *tables.INPUT, *tables.REPEAT, *tables.GROUP, *tables.CALL, *tables.BLOCK):
        assert f">{field.name}</span>" in language
    for code in kinds():
        assert f">{code}</span>" in diagnostics
    assert "x*(x</span> <span class=\"pre\">+</span> <span class=\"pre\">1)/2" in operators  # useful pairs of the causal example


@pytest.mark.thorough
@pytest.mark.thorough
def test_formulas_are_mathml(html):
    for name in ("gradients", "moments", "repeats"):
        page = text_of(html / "theory" / f"{name}.html")
        assert page.count("<math") > 20 and page.count("Proof") >= 2
        assert "$" not in re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL), "a formula is not closed"


@pytest.fixture
def writers(monkeypatch):
    """The modules that write parts of pages."""
    monkeypatch.syspath_prepend(str(EXTENSIONS))
    import operators
    import reference

    return operators, reference


@pytest.mark.thorough
def test_what_comes_from_the_code_is_current():
    done = subprocess.run([sys.executable, str(DOCS / "write.py"), "--check"], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, f"run 'python docs/write.py': stale are\n{done.stdout}{done.stderr}"


def test_a_page_that_is_stale_is_written_anew(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    import write

    marked = "before\n<!-- written by docs/write.py: keys stream -->\nold\n<!-- end -->\nafter\n"
    new = write.written(marked)
    assert "old" not in new and "| `over` |" in new and new.startswith("before\n<!--") and new.endswith("<!-- end -->\nafter\n")
    assert write.written(new) == new
    with pytest.raises(KeyError, match="unknown"):
        write.written(marked.replace("keys stream", "unknown"))


def test_every_page_reads_without_sphinx():
    """The repository's own web view knows no directives, no roles and no definition lists."""
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        found = re.findall(r"^(?:```|:::|~~~)\{[^\n]*|^\([\w-]+\)=$|\{\w+\}`[^`\n]*`|^: [^\n]*|\]\(\)", text_of(page), re.MULTILINE)
        assert not found, (page.name, found)


def test_what_the_code_has_and_the_words_do_not_describe_fails(writers, monkeypatch):
    operators, words = writers
    monkeypatch.setitem(words.FUNCTIONS, "newly", None)
    with pytest.raises(KeyError, match="newly"):
        words.functions()
    monkeypatch.setattr(operators, "ALL", operators.ALL[1:])
    with pytest.raises(KeyError, match="linear"):
        operators.operators()


def test_an_operator_is_described_as_it_is_derived(writers):
    operators, _ = writers
    example = {"inputs": {"h": ["text", "D"]}, "graph": ["up: {op: linear, from: h, width: 3*D, bias: false, to: u}"]}
    told = operators.section(KINDS["linear"], example)
    assert "- Parameter `up.weight` of shape `(3*D, D)`." in told
    assert "- Forward, `y = xW`: `3*D**2` multiply-adds, `x` times in a sample." in told
    assert "input gradient of `h`" in told and "weight gradient of `W`" in told
    cut = {"inputs": {"h": ["text", "D"]}, "graph": ["stop: {op: detach, from: h, to: s}", "up: {op: linear, from: s, width: D, to: u}"]}
    told = operators.section(KINDS["linear"], cut)
    assert "input gradient" not in told and "weight gradient" in told


def test_pages_of_conventions_are_shown_as_they_are():
    """The page of Megatron that is shown is a shortened one: what it says stands in the real one, too."""
    shown = next(block.text for block in blocks(DOCS / "conventions.md") if block.text.startswith("name: megatron"))
    real = text_of(ROOT / "symflops" / "conventions" / "megatron.yaml")
    for line in ("doc: ", "  router: ", "pairs: ", "backward: "):
        (one,) = (row for row in shown.splitlines() if row.startswith(line))
        assert one in real.splitlines()


@pytest.mark.thorough
def test_the_picture_is_small(html):
    picture = DOCS / "images" / "llama.png"
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size < 200_000
    assert 'alt="On the left the YAML of a Llama layer' in text_of(html / "index.html")
