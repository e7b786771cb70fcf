"""JavaScript without a browser: expressions evaluate to their values, and rows equal those of Python."""

from __future__ import annotations

import json
import re
from fractions import Fraction

import pytest
from hypothesis import given, settings, strategies as st

from symflops.api import load
from symflops.emit.code.infix import Fractions, in_whole_numbers
from symflops.emit.javascript import script as javascript
from symflops.emit.javascript.printer import WORDS, JavaScriptPrinter, LengthsPrinter
from symflops.formula.formula import Apply, Bracket, Num, Power, Prod, Sum, Sym, TallyOf, Text, evaluate, walk
from symflops.formula.terms import NODES
from tests.emit.javascript import value

LETTERS = {"L": 3, "D": 7, "b": 2, "in": 5, "r": Fraction(5, 2)}
SIZES = [name for name in LETTERS if name != "r"]


def formulas(letters):
    leaf = st.sampled_from(letters).map(Sym) | st.integers(1, 9).map(lambda number: Num(Fraction(number)))

    def larger(inner):
        several = st.lists(inner, min_size=2, max_size=3).map(tuple)
        negative = st.tuples(st.integers(-9, -1).map(lambda number: Num(Fraction(number))), inner).map(Prod)
        rounded = st.tuples(st.sampled_from(("floordiv", "ceildiv", "mod")), inner, st.integers(1, 9).map(lambda n: Num(Fraction(n))))
        tally = st.tuples(inner, inner).map(lambda pair: TallyOf("i@1", Num(Fraction(0)), pair[0], Bracket("at_least", (Sym("i@1"), pair[1]))))
        summed = st.tuples(inner, inner).map(lambda pair: TallyOf("i@1", Num(Fraction(1)), pair[0], Sum((Power(Sym("i@1"), 2), pair[1]))))
        return (
            several.map(Sum) | several.map(Prod) | negative
            | rounded.map(lambda found: Apply(found[0], found[1:]))
            | st.tuples(st.sampled_from(("min", "max")), several).map(lambda found: Apply(*found))
            | inner.map(lambda one: Apply("excess", (one,)))
            | st.tuples(inner, st.integers(2, 3)).map(lambda found: Power(*found))
            | st.tuples(st.sampled_from(("at_least", "equal")), inner, inner).map(lambda found: Bracket(found[0], found[1:]))
            | (tally | summed if letters == SIZES else st.nothing())
        )  # fmt: skip

    return st.recursive(leaf, larger, max_leaves=8)


@given(formulas(SIZES))
@settings(max_examples=200, deadline=None)
def test_an_expression_has_the_value_of_its_formula(formula):
    bound = evaluate(formula, LETTERS)
    for printer in (JavaScriptPrinter(), LengthsPrinter()):
        assert value(printer.text(formula), {"in$" if name == "in" else name: number for name, number in LETTERS.items()}) == bound


@given(formulas(list(LETTERS)))
@settings(max_examples=200, deadline=None)
def test_a_fraction_is_two_whole_numbers(formula):
    whole = Fractions({"r": "r_under"}).whole(formula)
    assert evaluate(whole, {**LETTERS, "r": 5, "r_under": 2}) == evaluate(formula, LETTERS)
    text = JavaScriptPrinter().text(whole)
    known = {**LETTERS, "in$": 5, "r": 5, "r_under": 2}
    found = value(text, known)
    assert found == evaluate(formula, LETTERS) or Fraction(evaluate(formula, LETTERS)).denominator != 1


def test_lists_texts_and_nulls():
    printed = JavaScriptPrinter().text
    assert printed(Bracket("equal", (Sym("kind"), Text('"')))) == r'$equal(kind, "\"")'
    assert printed(Bracket("contains", (Num(Fraction(2)), Sym("list")))) == "$contains(list, 2n)"
    assert printed(Bracket("given", (Sym("q"),))) == "has_q"
    assert JavaScriptPrinter({"q": "s.q"}).text(Bracket("given", (Sym("q"),))) == "$given(s.q)"
    assert printed(Apply("item", (Sym("list"), Num(Fraction(0))))) == "$item(list, 0n)"
    assert printed(Prod((Num(Fraction(-1)), Power(Sym("x"), 2)))) == "-(x**2n)"
    assert all(printed(Sym(word)) == f"{word}$" for word in WORDS)


@pytest.mark.parametrize("name", ["flux2", "cosmos", "lumina2"])
def test_a_program_without_fractions_has_the_same_values(name):
    program = load(name).typical()
    whole = in_whole_numbers(program)
    rational = {field.letter for field in program.fields if field.kind == "rational"}
    assert rational and len(whole.fields) == len(program.fields) + len(rational)

    def parts(found):
        if type(found) in NODES:
            yield from walk(found)
        elif isinstance(found, tuple):
            for item in found:
                yield from parts(item)
        elif hasattr(found, "__slots__") and not isinstance(found, Fraction):
            for slot in found.__slots__:
                yield from parts(getattr(found, slot))

    shown = [*parts(whole.regimes), *parts(whole.definitions), *parts(whole.tensors)]
    assert all(node.value.denominator == 1 for node in shown if isinstance(node, Num))
    assert {f"{letter}_under" for letter in rational} <= {node.name for node in shown if isinstance(node, Sym)}


def test_a_script_is_one_expression_per_line_and_small():
    program = load("llama").typical(("full", "forward", "lora"))
    text = javascript.render(program, "0.1.0")
    assert len(text) < 40_000
    rows = re.findall(r'^ +\["(model\.[^"]+)",  ', text, re.MULTILINE)
    assert rows.count("model.layers.*.self_attn.q_proj") == 1
    assert json.loads(re.search(r"const REGIMES = (.*);", text)[1]) == ["full", "forward", "lora"]
    assert "undefined, " not in re.search(r"const FIELDS = \[(.*?)\n  \];", text, re.DOTALL)[1]
