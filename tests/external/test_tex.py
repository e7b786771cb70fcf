"""The LaTeX pages compile, and nothing sticks out of a page."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from symflops.cli.main import main
from symflops.cli.render import typeset
from symflops.emit.emit import page_of
from symflops.emit.latex.document import LatexPage, render_page
from symflops.emit.latex.fragments import render_fragments
from symflops.emit.math.definitions import defined
from symflops.emit.math.printer import letters
from symflops.emit.page.sections import document
from symflops.emit.page.tree import Line, Scaled
from symflops.emit.page.writing import letter
from symflops.formula.formula import Apply, Bracket, Power, Prod, Sum, Sym, number, symbols
from symflops.ir.batch import Moment
from symflops.ir.index_sets import ONCE
from symflops.ir.program import Program
from symflops.ir.verification import Verification, VerifiedCase
from symflops.library.records.verified import verifications
from symflops.support.errors import SymflopsError
from tests import shipped
from tests.emit.programs import SPECS, latex_page, program
from tests.sampling import sampled
from tests.shipped import load

pytestmark = pytest.mark.system


@pytest.fixture(autouse=True)
def tools() -> None:
    """These run only when asked for (``-m system``), so a missing tool is a failure and not a skip."""
    missing = [tool for tool in ("latexmk", "pdflatex") if not shutil.which(tool)]
    assert not missing, f"install TeX Live: {', '.join(missing)} not found"


ALL = (
    "llama", "qwen_image", "wan", "sd3", "flux", "qwen3_moe", "deepseek_v3", "gemma3", "mamba2", "swin", "unet_2d", "qwen2_vl", "rnn",
    "ltx2_video", "whisper",
)  # fmt: skip
CASES = (VerifiedCase("diffusers/QwenImageTransformer2DModel/tiny-a", 127216, 4084480, 7587328),) * 3


def crowded() -> Program:
    """A program with everything long: texts, paths, symbols, coefficients and moments of every shape."""
    model = program(SPECS[1])
    line, *lines = model.regimes[0].lines
    flags = [Prod((number(12345), Power(Sym("D"), 2), Bracket("flag", (Sym("mlp_biased"),)))) for _ in range(20)]
    wide = Prod((Sym("L"), Sum((*flags, Apply("floordiv", (Sum((Sym("D"), number(-1))), Sym("H")))))))
    windows = Apply("min", (Sum((Sym("x"), number(1))), Apply("ceildiv", (Sym("x"), Sym("H")))))
    more = (Moment("w", "samples", windows, ("H",)), Moment("i", "images", number(1)))
    moments = (Moment("calls", ONCE, number(1)), *model.moments, *more)
    path = "model.layers.*." + ".".join(["VeryLongModuleNamesHere", "and_a_few_more_words"] * 3)
    amounts = (replace(line.amount, useful=((0, number(1)), *line.amount.useful)), *model.amounts[1:])
    cases = tuple(replace(case, forward=tuple((place, wide) for place in range(len(moments)))) for case in model.cases)
    changed = replace(line, module=path, unit=wide, amount=amounts[0])
    return replace(
        model, title="A title that is much longer than a line, " * 4,
        moments=moments, parameters=wide, cases=cases, amounts=amounts,
        fields=tuple(replace(field, doc="what it means, at length, " * 9, keys=(path,)) for field in model.fields),
        regimes=(replace(model.regimes[0], lines=(changed, *lines)), *model.regimes[1:]),
        tensors=(replace(model.tensors[0], name=f"{path}.weight", count=wide), *model.tensors[1:]),
    )  # fmt: skip


@pytest.mark.parametrize("path", [*sampled([*SPECS, *ALL], 3), "crowded"])
def test_page_compiles(path: str, tmp_path: Path) -> None:
    model = crowded() if path == "crowded" else program(path) if path in SPECS else load(path).typical()
    source = tmp_path / f"{model.name}.tex"
    source.write_text(latex_page(model, "0.1.0", [Verification(model.references[0], "1.0", "2.13.0+cpu", CASES)]))
    assert not re.search(r"moment@|\$\$", source.read_text())
    compiled(source)


def compiled(source: Path) -> str:
    """The log of a document that compiles, with nothing wider or higher than its place and nothing undefined."""
    command = ["latexmk", "-pdf", "-interaction=nonstopmode", "-halt-on-error", source.name]
    done = subprocess.run(command, cwd=source.parent, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert source.with_suffix(".pdf").stat().st_size > 10_000
    log = source.with_suffix(".log").read_text(errors="replace")
    wide = [float(points) for points in re.findall(r"Overfull \\hbox \(([0-9.]+)pt too wide\)", log)]
    assert all(points <= 5 for points in wide), wide
    assert "undefined" not in log
    return log


@pytest.mark.parametrize("options", ["10pt", "11pt,a4paper"])
@pytest.mark.parametrize("name", [*ALL, "crowded"])
def test_fragments_compile_in_a_paper(name: str, options: str, tmp_path: Path) -> None:
    """The packages are those that the fragments ask for, the text as narrow as an article's (345 points, at 11pt 360)."""
    model = crowded() if name == "crowded" else load(name).typical()
    pieces = render_fragments(model, "0.1.0")
    for piece, text in pieces.items():
        (tmp_path / f"{model.name}-{piece}.tex").write_text(text)
    needed = {line for text in pieces.values() for line in re.findall(r"\\usepackage(?:\[\w+\])?\{[\w,]+\}", text)}
    body = [rf"\input{{{model.name}-forms}}", r"\clearpage"]
    for piece in ("symbols", "modules"):
        table = rf"\input{{{model.name}-{piece}}}"
        body.append(table if "longtable" in pieces[piece] else rf"\begin{{table}}[p]\centering{table}\caption{{{piece}}}\end{{table}}")
    source = tmp_path / "paper.tex"
    lines = [rf"\documentclass[{options}]{{article}}", *sorted(needed), r"\begin{document}", "Some words.", *body, r"\end{document}"]
    source.write_text("\n".join(lines) + "\n")
    log = compiled(source)
    assert "Float too large" not in log and "multiply defined" not in log
    assert name == "crowded" or not re.search(r"Overfull \\vbox", log)


def test_render_writes_a_pdf(tmp_path: Path) -> None:
    assert main(["render", "llama", "--format", "pdf", "-o", str(tmp_path)]) == 0
    assert (tmp_path / "llama.pdf").read_bytes().startswith(b"%PDF-")
    assert [path.name for path in tmp_path.iterdir()] == ["llama.pdf"]


DECODERS = tuple(name for name in shipped.NAMES if shipped.FILES[name].group == "language")
NINE = 336.0  # points of a line of an article in nine points, as the width of ten points is estimated


def closed_form(name: str) -> tuple[str, int]:
    """The forward form of a model with the definitions that it reads, as an alignment, and its number of lines."""
    plain = load(name).typical(["full"], ["symflops"])
    short = defined(plain)
    read = {letter for _, formula in short.cases[0].forward for letter in symbols(formula)}
    made = []
    for definition in reversed(short.definitions[len(plain.definitions) :]):
        if definition.letter in read:
            read |= set(symbols(definition.formula))
            made.insert(0, definition)
    printer = LatexPage(letters(short))
    printer.line = NINE
    form = Line("forward", tuple(Scaled(formula, Sym(f"moment@{place}")) for place, formula in short.cases[0].forward))
    text = printer.display([form, *(Line(letter(each.letter), (Scaled(each.formula),)) for each in made)])
    return text, text.count(r"\\") + 1


def test_every_decoder_is_eight_lines_of_a_paper(tmp_path: Path) -> None:
    """In nine points, in an article's text of 345 points, definitions and their cases counted.

    DeepSeek-V3's are at most six; in Llama 4 five fields say which layers have chunks and which have experts, and it has ten; Kimi Linear
    has nine, since its convolutions run over a kernel of tokens at least.
    """
    forms = {name: closed_form(name) for name in DECODERS}
    most = {"deepseek_v3": 6, "kimi_linear": 9, "llama4": 10}
    long = {name: lines for name, (_, lines) in forms.items() if lines > most.get(name, 8)}
    assert not long and len(forms) > 50
    head = [r"\documentclass[10pt]{article}", r"\usepackage{amsmath,amssymb}", r"\begin{document}\small"]
    source = tmp_path / "forms.tex"
    source.write_text("\n".join([*head, *(text for text, _ in forms.values()), r"\end{document}"]) + "\n")
    compiled(source)


@pytest.mark.parametrize("name", sampled(DECODERS, 9))
def test_the_derivation_of_a_decoder_is_a_page_and_six_sheets(name: str, tmp_path: Path) -> None:
    """The first page, then the proof, all parameters and a measured case; Kimi Linear has two kinds of attention, and one more."""
    source = tmp_path / f"{name}.tex"
    source.write_text(render_page(document(page_of(load(name).typical(), verifications(shipped.FILES[name]))), "0"))
    sheets = re.search(r"Output written on .*\((\d+) pages", compiled(source).replace("\n", ""))
    assert sheets and int(sheets[1]) <= (8 if name == "kimi_linear" else 7)


HOSTILE = r"""\documentclass{article}
\begin{document}
\immediate\write18{touch SENTINEL}
\newread\file \openin\file=/etc/passwd \ifeof\file closed\else \read\file to\line open\fi
\input{|"touch SENTINEL"}
\end{document}
"""


def test_a_hostile_document_runs_nothing_and_reads_nothing(tmp_path, monkeypatch):
    """Neither by TeX's escape to a shell, nor by latexmk's rc file, nor by a file outside of its folder."""
    sentinel = tmp_path / "touched"
    (tmp_path / ".latexmkrc").write_text(f"system('touch {sentinel}');\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for body in (HOSTILE, HOSTILE.replace("\\input{|\"touch SENTINEL\"}", "fine")):
        try:
            made = typeset(body.replace("SENTINEL", str(sentinel)), "page")
        except SymflopsError:
            continue
        (tmp_path / "page.pdf").write_bytes(made)
        text = subprocess.run(["pdftotext", str(tmp_path / "page.pdf"), "-"], capture_output=True, text=True, check=True).stdout
        assert "closed" in text and "open" not in text
    assert not sentinel.exists()
