"""``symflops render``: pages as generated, and fragments with matching formulas, tables and symbols."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from symflops import __version__
from symflops.cli.actions.stored_rules import baked
from symflops.cli.main import main
from symflops.emit.emit import emit
from symflops.emit.latex import fragments as latex
from symflops.emit.markdown import document as markdown
from symflops.emit.math.printer import letters
from symflops.emit.page.fragments import PIECES, fragments
from symflops.formula.formula import evaluate
from symflops.ir.program import Program
from symflops.library.records.verified import verifications
from symflops.read.spec_files import shipped, specs_in
from tests.emit.math_reader import TOKEN, read
from tests.emit.programs import SPECS, program, sizes_of
from tests.emit.test_latex import displayed, printed_values
from tests.sampling import amount, draws, sampled
from tests.shipped import load, typical

TARGETS = (latex, markdown)
ALL = sorted(file.name for file in specs_in(shipped("specs")))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*words: str) -> tuple[int, str, str]:
        return (main(words), *capsys.readouterr())

    return call


@pytest.mark.parametrize(("form", "ending"), [("latex", "tex"), ("markdown", "md")])
def test_a_page_is_the_generated_one(run: Any, tmp_path: Path, form: str, ending: str) -> None:
    model = load("llama")
    expected = emit(model.typical(baked(model)), __version__, verifications(model.file))[ending]
    assert run("render", "llama", "--full", "--format", form) == (0, expected, "")
    path = tmp_path / "deep/er" / f"llama.{ending}"
    assert run("render", "llama", "--full", "--format", form, "-o", str(path.parent)) == (0, "", f"{path}\n")
    assert path.read_bytes() == expected.encode()


@pytest.mark.parametrize(("form", "ending"), [("latex", "tex"), ("markdown", "md")])
def test_fragments_have_files_of_their_own_or_follow_each_other(run: Any, tmp_path: Path, form: str, ending: str) -> None:
    assert run("render", "qwen_image", "--format", form, "--fragment", "-o", str(tmp_path))[:2] == (0, "")
    names = [f"qwen_image-{piece}.{ending}" for piece in PIECES]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    texts = [(tmp_path / name).read_text() for name in names]
    assert run("render", "qwen_image", "--format", form, "--fragment")[1] == "\n".join(texts)
    assert not any(line != line.rstrip() for text in texts for line in text.splitlines())
    assert all("moment@" not in text and "<<" not in text for text in texts)


@pytest.mark.parametrize("form", ["latex", "markdown"])
def test_a_structure_that_the_config_decides_has_the_pieces_of_its_defaults(run: Any, form: str) -> None:
    code, text, _ = run("render", "swin", "--format", form, "--fragment", "--regime", "lora")
    assert code == 0 and "classifier" in text and "/ 1" not in text


def test_regimes_and_conventions_are_chosen(run: Any, tmp_path: Path) -> None:
    frozen = tmp_path / "head.yaml"
    frozen.write_text("name: head\ntrain: [lm_head.*]\n")
    words = ("render", "llama", "--format", "latex", "--fragment")
    one = run(*words, "--regime", "full", "--convention", "torch")[1]
    assert one.count(r"\mathrm{forward}") == 1 and r"\texttt{torch}" not in one and "% Regime full, convention torch." in one
    two = run(*words, "--regime", "full", "--regime", str(frozen), "--regime", "full", "--convention", "torch")[1]
    assert two.count(r"\mathrm{forward}") == 1 and two.count(r"\mathrm{backward}") == 2
    assert "The forward FLOPs are those of equation \\eqref{eq:llama-1}." in two and r"\texttt{head}" in two
    page = run("render", "llama", "--full", "--format", "markdown", "--regime", "forward")[1]
    assert "Regime `full`" not in page and "Regime `forward`" in page


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("lama", "--format", "latex"), "did you mean 'llama'"),
        (("llama", "--format", "latex", "--regime", "ful"), "regime 'ful'"),
        (("llama", "--format", "latex", "--convention", "torhc"), "did you mean 'torch'"),
        (("llama", "--format", "latex", "--config", "/nowhere.json"), "No such file"),
        (("llama", "--format", "latex", "-o", __file__), Path(__file__).name),
    ],
)
def test_what_a_user_did_wrong(run: Any, words: tuple[str, ...], told: str) -> None:
    code, out, err = run("render", *words)
    assert (code, out) == (2, "") and told in err and err.startswith("symflops render: ")


def body(text: str) -> str:
    """A fragment without comments, labels and what only places rows."""
    text = re.sub(r"^%.*$|<!--.*?-->", "", text, flags=re.MULTILINE)
    return re.sub(r"\\label\{[^}]*\}|\\notag|\\penalty900", "", text)


def counted(model: Program, found: Any, sizes: dict[str, Any], moments: list[int]) -> int:
    values = {**sizes, **{f"moment@{place}": value for place, value in enumerate(moments)}}
    return sum(evaluate(module.term, values) for module in found.modules)


@pytest.mark.parametrize("path", sampled(SPECS, 12))
@given(data=st.data())
@draws(3, 6, 20)
def test_fragments_read_back(path: str, data: st.DataObject) -> None:
    model = program(path)
    sizes = sizes_of(model, data)
    moments = data.draw(st.lists(st.integers(0, 10**6), min_size=len(model.moments), max_size=len(model.moments)))
    values = printed_values(model, sizes, moments)
    for target in TARGETS:
        forms = body(target.render_fragments(model, "0")["forms"])
        rows = re.sub(r"&|\\\\|\\cr\b|\\tag\{\d+\}", " ", forms)
        shown = re.findall(r"\\mathrm\{(\w+)\} =\{\}(.*?)(?=\\mathrm\{\w+\} =|\\end\{align)", rows, re.DOTALL)
        expected: dict[tuple[str, object], int] = {("parameters", None): evaluate(model.parameters, sizes)}
        for case in model.cases:
            for name in ("forward", "backward"):
                if terms := getattr(case, name):
                    expected[name, terms] = sum(evaluate(formula, sizes) * moments[place] for place, formula in terms)
        assert [(name, read(text, values)) for name, text in shown] == [(name, value) for (name, _), value in expected.items()]


@pytest.mark.parametrize("convention", ["symflops", "torch"])
@pytest.mark.parametrize("name", ["llama", pytest.param("qwen_image", marks=pytest.mark.nightly)])
@given(data=st.data())
@draws(2, 5, 10)
def test_the_modules_add_up_to_the_closed_form_of_their_convention(name: str, convention: str, data: st.DataObject) -> None:
    model = typical(name, convention)
    sizes = sizes_of(model, data)
    moments = data.draw(st.lists(st.integers(0, 10**6), min_size=len(model.moments), max_size=len(model.moments)))
    forward = sum(evaluate(formula, sizes) * moments[place] for place, formula in model.cases[0].forward)
    assert counted(model, fragments(model), sizes, moments) == forward
    values = printed_values(model, sizes, moments)
    for target in TARGETS:
        text = body(target.render_fragments(model, "0")["modules"])
        cells = [line.removesuffix(r" \\").removesuffix(" |") for line in text.splitlines() if line.endswith(("$ \\\\", "$ |"))]
        terms = [re.split(r"(?<!\\)[&|]", line)[-1].strip()[1:-1] for line in cells]
        assert len(terms) == len(fragments(model).modules)
        assert sum(read(term, values) for term in terms) == forward


@cache
def modules_of(name: str) -> Any:
    """The rows of the table of modules."""
    return fragments(typical(name, "symflops")).modules


@pytest.mark.parametrize("name", sampled(ALL, 150, 20))
@given(data=st.data())
@settings(max_examples=amount(5, 50), deadline=None)
def test_the_modules_hold_their_tensors(name: str, data: st.DataObject) -> None:
    model = typical(name, "symflops")
    sizes = {field.letter: data.draw(st.integers(1, 9)) for field in model.fields if field.kind in ("number", "count", "entries", "number or list", "position", "any")}
    sizes |= {field.letter: data.draw(st.booleans()) for field in model.fields if field.kind == "flag"}
    sizes |= {field.letter: (1, 2, 3) * 4 for field in model.fields if field.kind == "list"}
    sizes |= {field.letter: field.default for field in model.fields if field.kind == "text"}
    sizes |= {field.letter: Fraction(3, 2) for field in model.fields if field.kind == "rational"}
    sizes |= dict(model.fixed)
    for definition in model.definitions:
        sizes[definition.letter] = evaluate(definition.formula, sizes)
    for module in modules_of(name):
        path = f"{module.group}.{module.module}" if module.group else module.module
        own = [tensor for tensor in model.tensors if tensor.name.rpartition(".")[0] == path]
        assert evaluate(module.parameters, sizes) == sum(evaluate(tensor.count, sizes) for tensor in own), path


@cache
def printed(name: str, target: Any) -> dict[str, str]:
    """The fragments of a shipped spec."""
    return dict(target.render_fragments(typical(name), "0"))


@pytest.mark.parametrize("name", sampled(ALL, 150, 21))
def test_every_letter_is_in_the_table_of_symbols(name: str) -> None:
    model = typical(name)
    names = set(letters(model).values())
    for target in TARGETS:
        pieces = {piece: body(text) for piece, text in printed(name, target).items()}
        table = pieces["symbols"]
        formulas = displayed(pieces["forms"], "(?:forward|backward|parameters)")
        formulas += re.findall(r"(?<!\\)\$([^$]+)\$", re.sub("`[^`]*`", "", pieces["modules"]))
        text = " ".join(formulas)
        used = {found.group() for found in TOKEN.finditer(text) if found.lastgroup == "letter"} & names
        assert used
        first = re.findall(r"^\|? ?((?:\$[^$]+\$(?:, )?)+) [&|]", table, re.MULTILINE)
        listed = {sign for cell in first for sign in re.findall(r"\$([^$]+)\$", cell)}
        assert used <= listed
        assert len(first) == len(set(first))
        for sign, mark in (("[", "[\\"), ("^{+}", "(a)^{+}")):
            assert sign not in text or mark in table


@pytest.mark.parametrize("name", sampled(ALL, 150, 21))
def test_latex_fragments_are_fragments(name: str) -> None:
    for text in printed(name, latex).values():
        code = body(text)
        assert "documentclass" not in code and "usepackage" not in code and r"\thin " not in code
        assert text.startswith("% ") and r"% Needs \usepackage" in text
        for block in re.findall(r"\\begin\{align\}(.*?)\\end\{align\}", text, re.DOTALL):
            assert "\n\n" not in block
            rows = block.strip().split("\\\\\n")
            assert all((r"\notag" in row) != (r"\label" in row) for row in rows)
        labels, wanted = re.findall(r"\\label\{([^}]*)\}", text), re.findall(r"\\eqref\{([^}]*)\}", text)
        assert len(labels) == len(set(labels)) and set(wanted) <= set(labels)
