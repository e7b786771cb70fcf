"""The formulas of a LaTeX page equal the program: a parser reads them back from the printed text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from symflops.emit.latex import document as latex
from symflops.emit.markdown import document as markdown
from symflops.emit.math.definitions import abbreviated, with_plain_words
from symflops.emit.math.printer import LatexPrinter, fold, letters, width
from symflops.formula.formula import Apply, Bracket, Formula, Power, Prod, Sum, Sym, TallyOf, Text, evaluate, number, walk
from symflops.ir.program import Program
from symflops.ir.verification import Verification, VerifiedCase
from tests.emit.math_reader import TOKEN, read
from tests.emit.programs import SPECS, latex_page, page_text, program, sizes_of
from tests.sampling import draws


def displayed(page: str, head: str) -> list[str]:
    """The right sides of every displayed ``head = ...`` of a page, in order, without what only places them."""
    found = re.findall(rf"\\mathrm\{{{head}\}} =\{{\}}& (.*?)\n?\\end\{{align", page, re.DOTALL)
    return [re.sub(r"\\\\|\\cr|&|\\(?:tag|label)\{[^}]*\}", " ", text) for text in found]


def printed_values(program: Program, sizes: Mapping[str, Any], moments: Sequence[int], padded: Sequence[int] = ()) -> dict[str, Any]:
    """The same values under the letters that a page prints; moments are those of real lengths unless ``padded`` are given, too."""
    short = abbreviated(program)
    names, known = letters(short), dict(sizes)
    for definition in short.definitions:
        known[definition.letter] = evaluate(definition.formula, known)
    values = {names[letter]: value for letter, value in known.items()}
    kinds = {"real": moments, "padded": padded} if padded else {"moment": moments}
    return values | {names[f"{kind}@{position}"]: value for kind, sums in kinds.items() for position, value in enumerate(sums)}


@pytest.mark.parametrize("path", SPECS)
@given(data=st.data())
@draws(2, 8, 30)
def test_the_page_adds_up_to_the_program(path: str, data: st.DataObject) -> None:
    model = program(path)
    sizes = sizes_of(model, data)
    moments = data.draw(st.lists(st.integers(0, 10**6), min_size=len(model.moments), max_size=len(model.moments)))
    values = printed_values(model, sizes, moments)
    for render in (latex_page, page_text):
        page = render(model, "0")
        for name in ("forward", "backward"):
            expected: dict[object, int] = {}
            for case in model.cases:
                if terms := getattr(case, name):
                    expected[terms] = sum(evaluate(formula, sizes) * moments[position] for position, formula in terms)
            shown, wanted = [read(text, values) for text in displayed(page, name)], list(expected.values())
            assert shown in (wanted, [wanted[0], *wanted])  # the first one once more, where letters shorten it
        assert [read(text, values) for text in displayed(page, "parameters")] == [evaluate(model.parameters, sizes)]
        trainable = [regime.trainable for regime in model.regimes if any(regime.trains) and not all(regime.trains)]
        assert [read(text, values) for text in displayed(page, "trainable")] == [evaluate(form, sizes) for form in trainable]


@pytest.mark.parametrize("path", SPECS)
@given(data=st.data())
@draws(2, 8, 30)
def test_every_formula_reads_back(path: str, data: st.DataObject) -> None:
    model = with_plain_words(program(path))
    sizes = sizes_of(model, data)
    values = printed_values(model, sizes, [0] * len(model.moments))
    printer = LatexPrinter(letters(model))
    formulas = [formula for case in model.cases for terms in (case.forward, case.backward) for _, formula in terms]
    formulas += [tensor.count for tensor in model.tensors] + [line.unit for regime in model.regimes for line in regime.lines]
    formulas += [count for regime in model.regimes for line in regime.lines for count in (line.forward, *line.backward)]
    for formula in dict.fromkeys(formulas):
        assert read(printer.text(formula), values) == evaluate(formula, sizes)


LEAVES = st.one_of(st.integers(0, 12).map(number), st.sampled_from("LDH").map(Sym))


def deeper(inner: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
    """Sums, products, powers, rounded quotients, excesses and brackets of smaller formulas."""
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    signed = st.tuples(st.sampled_from([-3, -1]).map(number), inner).map(Prod)
    divisor = st.one_of(st.integers(2, 5).map(number), st.just(Sym("D")))
    return st.one_of(
        several.map(Prod),
        st.lists(st.one_of(inner, signed), min_size=2, max_size=3).map(lambda terms: Sum(tuple(terms))),
        st.builds(Power, inner, st.just(2)),
        st.builds(lambda top, bottom: Prod((top, Power(bottom, -1))), inner, divisor),
        st.builds(lambda kind, *pair: Apply(kind, pair), st.sampled_from(["floordiv", "ceildiv"]), inner, divisor),
        inner.map(lambda formula: Apply("excess", (formula,))),
        st.tuples(inner, inner).map(lambda pair: Bracket("at_least", pair)),
    )


@given(st.recursive(LEAVES, deeper, max_leaves=8), st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
@settings(max_examples=400, deadline=None)
def test_any_formula_reads_back(formula: Formula, first: int, second: int, third: int) -> None:
    values = {"L": first, "D": second, "H": third}
    text = LatexPrinter().text(formula)
    assert read(text, values) == evaluate(formula, values)
    assert read(" ".join(fold(text, 60.0)), values) == evaluate(formula, values)


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (Prod((number(24), Sym("L"), Power(Sym("D"), 2))), "24 L D^{2}"),
        (Bracket("at_least", (Sym("L"), number(1))), r"[L \ge 1]"),
        (Bracket("flag", (Sym("tied"),)), r"[\mathit{tied}]"),
        (Bracket("given", (Sym("x"),)), r"[x \ne \varnothing]"),
        (Bracket("equal", (Sym("a"), Text("b_c"))), r"[a = \text{b-c}]"),
        (Bracket("contains", (Sym("i"), Sym("S"))), r"[i \in S]"),
        (Apply("excess", (Sum((Sym("L"), number(-1))),)), "(L - 1)^{+}"),
        (Apply("floordiv", (Sym("a"), Sym("b"))), r"\lfloor a / b \rfloor"),
        (Apply("ceildiv", (Sym("a"), Sym("b"))), r"\lceil a / b \rceil"),
        (Apply("mod", (Sym("a"), Sym("b"))), r"a \bmod b"),
        (Apply("min", (Sym("a"), Sym("w"))), r"\min(a, w)"),
        (Prod((Sym("a"), Power(Sym("b"), -2))), r"\frac{a}{b^{2}}"),
        (Sum((Prod((number(-1), Sym("a"))), number(1))), "1 - a"),
        (
            TallyOf("i@2", number(0), Sym("L"), Bracket("equal", (Apply("mod", (Sym("i@2"), number(4))), number(3)))),
            r"\sum_{i=0}^{L - 1} [i \bmod 4 = 3]",
        ),
    ],
)
def test_notation(formula: Formula, text: str) -> None:
    assert LatexPrinter().text(formula) == text


def test_lines_fit() -> None:
    long = " + ".join(f"{number} L D^{{2}}" for number in range(10, 60))
    assert all(width(line) <= 200 for line in fold(long, 200.0))
    assert " ".join(fold(long, 200.0)) == long


def test_text_is_escaped() -> None:
    assert latex.escape(r"50% of {a_b} & #1 \input $x$ ~^") == (
        r"50\% of \{a\_b\} \& \#1 \textbackslash{}input \$x\$ \textasciitilde{}\textasciicircum{}"
    )
    assert latex.escape("\u4e2d") == "U+4E2D"
    assert latex.code("a_b.*") == r"\texttt{a\_\allowbreak{}b.\allowbreak{}*}"
    assert markdown.escape("a|b_c <i> $x$\n*") == r"a\|b\_c \<i\> \$x\$ \*"
    assert markdown.code("a|b`") == r"`` a\|b` ``"


def test_no_text_of_a_spec_reaches_a_page_unescaped() -> None:
    evil = r"\input{/etc/passwd} %_$|<script>" + "\n-->"
    model = program(SPECS[0])
    fields = tuple(replace(field, doc=evil) for field in model.fields)
    case = VerifiedCase(evil, 1, 2, 3)
    changed = replace(model, title=evil, references=(evil,), fields=fields, sources=((evil, "0" * 64),))
    page = latex_page(changed, "0", [Verification(evil, evil, evil, (case,))])
    page = "\n".join(line for line in page.splitlines() if not line.startswith("%"))
    assert r"\input{" not in page
    assert not re.search(r"(?<!\\)%_", page)
    page = page_text(changed, "0", [Verification(evil, evil, evil, (case,))])
    assert page.replace("`" + evil.replace("\n", " ").replace("|", r"\|") + "`", "").count("-->") == 2
    outside = re.sub(r"`[^`\n]*`", "", page)
    assert "<script" not in re.sub(r"\\<", "", outside.partition("-->")[2].rpartition("<!--")[0])


@pytest.mark.parametrize("path", SPECS)
def test_every_letter_is_named(path: str) -> None:
    model = program(path)
    names = letters(abbreviated(model))
    for render in (latex_page, page_text):
        page = render(model, "0")
        head, _, rest = page.partition("Steps 1 and 2")
        shown = displayed(page, "forward") + displayed(page, "backward")
        rest = re.sub(r"\$\$.*?\$\$|\\begin\{align\*\}.*?\\end\{align\*\}|`[^`]*`", "", rest, flags=re.DOTALL)
        formulas = [text for text in re.findall(r"(?<!\\)\$([^$]+)\$", rest) if r"\times" not in text] + shown
        assert len(formulas) > 50
        used = {found.group() for text in formulas for found in TOKEN.finditer(text) if found.lastgroup == "letter"}
        lengths = set(re.findall(r"Let \$(\\ell)", rest))  # all streams of one length
        widths = {"a", "b"} if "of width $a$ to $b$" in rest else set()  # of any linear layer
        assert used - {r"\mathrm{backward}"} - lengths - widths <= set(names.values())
        for letter in used & set(names.values()):
            assert f"${letter}$" in head or f"{letter} =" in head, letter


@pytest.mark.parametrize("path", SPECS)
def test_tables_of_the_markdown_page_have_even_rows(path: str) -> None:
    columns = 0
    for line in page_text(program(path), "0").splitlines():
        if not line.startswith("|"):
            columns = 0
            continue
        cells = len(re.findall(r"(?<!\\)\|", line))
        columns = columns or cells
        assert cells == columns, line
        assert r"\," not in line


@pytest.mark.parametrize("path", SPECS)
def test_header_and_bytes(path: str) -> None:
    model = program(path)
    for render in (latex_page, page_text):
        page = render(model, "9.9")
        assert f"Generated by symflops 9.9 from {path}; do not edit" in page.splitlines()[0 if render is latex_page else 1]
        assert all(digest in page for _, digest in model.sources)
        assert page == render(model, "9.9")
        assert not any(line != line.rstrip() for line in page.splitlines())
        assert "<<" not in page


def test_a_page_leaves_out_parameters_of_other_activations() -> None:
    """Llama's activation is a word of its config; a page is of words without parameters, and says so."""
    model = program("specs/language/llama.yaml")
    assert {"prelu", "xielu"} <= {part.value for part in walk(model.parameters) if isinstance(part, Text)}
    page = page_text(model, "0")
    assert "act_fn" not in page and "parameters of prelu and xielu are left out here" in page
    learned = replace(model, fields=tuple(replace(field, default="xielu") if field.letter == "act" else field for field in model.fields))
    page = page_text(learned, "0")
    assert "act_fn.alpha_p" in page and "act_fn.weight" not in page
