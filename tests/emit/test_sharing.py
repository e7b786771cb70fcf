"""Tables with shared blocks: no row is lost, order is kept, and modules stay small."""

from __future__ import annotations

import ast
import textwrap
from fractions import Fraction
from pathlib import Path

from hypothesis import given, strategies as st

from symflops.emit.code.sharing import LEAST, Row, Table, Use, columns_aligned, named_parts, shared
from symflops.emit.python.printer import PythonPrinter
from symflops.formula.formula import Apply, Bracket, Num, Power, Prod, Sum, Sym, Text, evaluate
from symflops.lower.names import last_words

ROOT = Path(__file__).resolve().parents[2]
paths = st.lists(st.sampled_from(["a", "b", "0", "1", "x-y"]), min_size=1, max_size=4).map(".".join)
rows_of = st.lists(st.tuples(paths, st.integers(0, 2)), max_size=40)


def expanded(table: Table) -> list[tuple[str, int]]:
    blocks: dict[str, list[tuple[str, int]]] = {}

    def rows(entries) -> list[tuple[str, int]]:
        found = []
        for entry in entries:
            inside = [("", entry.cells)] if isinstance(entry, Row) else blocks[entry.block]  # a block stands before its uses
            found += [(f"{entry.path}.{path}" if path else entry.path, cells) for path, cells in inside]
        return found

    for name, entries in table.blocks:
        assert name not in blocks
        blocks[name] = rows(entries)
    return rows(table.rows)


@given(rows_of)
def test_no_row_is_lost_and_none_moves(rows):
    assert expanded(shared(rows, set())) == rows


@given(rows_of.filter(lambda rows: len(rows) > 1), st.integers(2, 5))
def test_equal_modules_are_printed_once(rows, copies):
    table = shared([(f"layers.{number}.{path}", cells) for number in range(copies) for path, cells in rows], set())
    assert len(table.cells()) <= len(rows)


def test_blocks_are_named_after_their_modules():
    block = [("q", 1), ("k", 2)]
    rows = [("in", 0)] + [(f"down.{stage}.attention.{path}", cells) for stage in range(3) for path, cells in block]
    table = shared(rows, {"down_1"})
    assert table.blocks == (("attention_1", (Row("q", 1), Row("k", 2))),)
    assert table.rows == (Row("in", 0), *(Use(f"down.{stage}.attention", "attention_1") for stage in range(3)))
    assert shared(rows, {"attention_1"}).blocks[0][0] == "attention_2"


def test_long_parts_have_names():
    kind = Bracket("equal", (Sym("kind"), Text("b")))
    quotient = Apply("floordiv", (Sum((Sym("a"), Prod((Sym("b"), Sym("c"), Sym("e"))))), Sym("d")))
    half = Power(Sym("h"), -1)
    formulas = [Prod((Sym("D"), kind)), Sum((Prod((quotient, kind)), half)), Prod((quotient, half))]
    taken = {"part_1"}
    printer = PythonPrinter()
    statements = named_parts(formulas, printer, taken)
    assert statements == [("case_1", 'kind == "b"'), ("part_2", "(a + b*c*e)//d")]
    assert taken == {"part_1", "part_2", "case_1"}
    assert [printer.text(formula) for formula in formulas[::2]] == ["D*case_1", "part_2//h"]


@given(st.data())
def test_names_do_not_change_a_value(data):
    letters = {"a_letter": 3, "another_letter": 7, "b": 2}
    leaf = st.sampled_from(sorted(letters)).map(Sym) | st.integers(1, 9).map(lambda value: Num(Fraction(value)))
    formula = st.recursive(
        leaf,
        lambda inner: (
            st.lists(inner, min_size=2, max_size=3).map(lambda terms: Sum(tuple(terms)))
            | st.lists(inner, min_size=2, max_size=3).map(lambda factors: Prod(tuple(factors)))
            | inner.map(lambda over: Apply("ceildiv", (over, Sym("b"))))
            | st.tuples(inner, inner).map(lambda pair: Bracket("at_least", pair))
        ),
        max_leaves=8,
    )
    formulas = data.draw(st.lists(formula, min_size=1, max_size=4))
    formulas += data.draw(st.lists(st.sampled_from(formulas), max_size=4))
    printer = PythonPrinter()
    names = dict(letters)
    for name, text in named_parts(formulas, printer, set(letters)):
        assert len(text) >= LEAST
        names[name] = value(text, names)
    for found in formulas:
        assert value(printer.text(found), names) == evaluate(found, letters)


def value(text: str, names: dict[str, int]) -> int:
    """What an expression of the printer is, by a walk over its own tree."""
    operators = {
        ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b,
        ast.FloorDiv: lambda a, b: a // b, ast.Pow: lambda a, b: a**b,
    }  # fmt: skip

    def walk(node: ast.AST) -> int:
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return names[node.id]
            case ast.UnaryOp(op=ast.USub()):
                return -walk(node.operand)
            case ast.BinOp():
                return operators[type(node.op)](walk(node.left), walk(node.right))
            case ast.Compare(ops=[ast.GtE()]):
                return int(walk(node.left) >= walk(node.comparators[0]))
        raise AssertionError(textwrap.shorten(ast.dump(node), 80))

    return walk(ast.parse(text, mode="eval").body)


def test_a_wide_cell_pushes_its_own_row_only():
    assert columns_aligned([["a", "b"], ["ccc", "d"], ["eeeeeeee", "f"]], 4) == ["a    b", "ccc  d", "eeeeeeee  f"]


def test_what_a_path_says_can_be_part_of_a_name():
    assert last_words("layers.*.all_x.2-1.proj") == "all_x_2_1_proj" and last_words("*") == ""
