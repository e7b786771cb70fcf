"""Names in a program: moments after their lengths, sizes after their config fields, symbols as papers print them."""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import count
from types import MappingProxyType
from typing import Any

from sympy import Expr

from symflops.build.build import size_names
from symflops.formula.domain import Choice, Setting, python_value, sizes_behind
from symflops.formula.evaluate import evaluate
from symflops.formula.expression import Expression
from symflops.formula.formula import Formula, symbols
from symflops.formula.functions import (
    CeilDiv,
    Excess,
    FloorDiv,
    Least,
    Longest,
    Most,
    Together,
    is_bracket,
    unpadded,
)
from symflops.formula.identifiers import latex_symbol
from symflops.formula.polynomial import Polynomial, sorted_atoms
from symflops.formula.sparse import Monomial
from symflops.formula.truth import Truth, UnknownSizeError
from symflops.ir.batch import Moment
from symflops.ir.graph import Work
from symflops.ir.index_sets import ONCE, SAMPLES
from symflops.ir.nodes import Value
from symflops.ir.program import Field, Program
from symflops.ir.spec import Spec
from symflops.lower.formulas import Formulas
from symflops.support.findings import Diagnostic

LONGEST_NAME, LONGEST_CONDITION, LONGEST_ATOM = 96, 80, 24
"""Longest unshortened name in characters: of a moment, of a moment with a condition, of one factor."""
KINDS: Mapping[type, str] = {Least: "min", Most: "max", FloorDiv: "over", CeilDiv: "up", Excess: "above"}


def moment_name(items: str, monomial: Monomial, rows: Mapping[Monomial, str]) -> str:
    """The name of a moment: ``n`` for the number of items, ``xx`` or ``xy`` for a product of lengths.

    Names of other functions are longer. ``rows`` has names for products of lengths that are the rows of a value, such as the
    patches of a video.
    """
    if not monomial:
        return "calls" if items == ONCE else "n" if items == SAMPLES else f"n_{items}"
    powers, words = dict(monomial), []
    for product, name in rows.items():
        while all(powers.get(atom, 0) >= exponent for atom, exponent in product):
            words.append(name)
            powers = {atom: exponent - dict(product).get(atom, 0) for atom, exponent in powers.items()}
    words += [atom_name(atom, rows) for atom, exponent in sorted_atoms(powers.items()) for _ in range(exponent)]
    name = ("" if all(len(word) == 1 for word in words) else "_").join(words)
    return name if name.isidentifier() else f"m_{name}"


def concise(name: str, monomial: Monomial) -> str:
    """``name`` if it is short enough, else names of its factors in short form, such as ``min_B_g_n``."""
    conditional = any(is_bracket(atom) for atom, _ in monomial)
    if len(name) <= (LONGEST_CONDITION if conditional else LONGEST_NAME):
        return name
    return "_".join(concise_atom(atom) for atom, exponent in sorted_atoms(monomial) for _ in range(exponent))


def concise_atom(atom: Expr) -> str:
    """The name of a function of lengths; if that is too long, its kind and the letters in it."""
    name = atom_name(atom)
    if len(name) <= LONGEST_ATOM:
        return name
    letters = sorted({re.sub(r"\W+", "_", symbol.name).strip("_") for symbol in atom.free_symbols})
    return "_".join([KINDS.get(type(atom), type(atom).__name__.lower()), *letters])


def row_names(
    works: Iterable[Work], products_in: Callable[[str, Expr], Collection[Monomial]], values: Sequence[Value]
) -> dict[Monomial, str]:
    """Product of lengths -> the name of a value with that many rows; products of few lengths come first.

    ``products_in`` returns the products in the number of runs of work over an index set. ``values`` are the values by id.
    """
    rows: dict[Monomial, str] = {}
    taken: set[str] = set()
    for work in works:
        items = work.contraction.items
        products = products_in(items, unpadded(work.contraction.extent.executed, items != ONCE))
        value = values[work.operator.results[0]].name.replace(".", "_")
        for product in products:
            letters_alone = all(atom.is_Symbol for atom, _ in product)
            if not letters_alone and len(products) == 1 and value.strip("_").isidentifier() and product not in rows:
                rows[product] = value if value not in taken else f"{value}_{len(rows)}"
                taken.add(rows[product])
    return dict(sorted(rows.items(), key=lambda item: len(item[0])))


def last_words(path: str) -> str:
    """The part of a module path after its last loop index, as part of an identifier.

    >>> last_words("layers.*.mlp.up-proj")
    'mlp_up_proj'
    """
    return path.replace("*", "").replace(".", "_").replace("-", "_").strip("_").split("__")[-1]


def distinct(moments: Iterable[Moment]) -> tuple[Moment, ...]:
    """``moments`` with distinct names: a name that repeats gets a number."""
    names = Names()
    return tuple(replace(moment, name=names.unused(moment.name)) for moment in moments)


class Names:
    """Makes names that differ from each other and from the names ``taken``."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)
        self.numbers: dict[str, Iterator[int]] = {}

    def unused(self, name: str) -> str:
        """``name``, or the first unused one of ``name_2``, ``name_3`` ...; the result counts as used from then on."""
        found, numbers = name, self.numbers.setdefault(name, count(2))
        while found in self.taken:
            found = f"{name}_{next(numbers)}"
        self.taken.add(found)
        return found


def atom_name(atom: Expr, rows: Mapping[Monomial, str] | None = None) -> str:
    """A name for a function of lengths; ``rows`` has names for products of lengths."""
    if atom.is_Symbol:
        return re.sub(r"\W+", "_", atom.name).strip("_")  # a bracket is a symbol such as ?cached
    if isinstance(atom, Together):
        return f"all_{atom.args[0].name}_{sum_name(Polynomial.of(atom.args[1]), rows or {})}"
    if isinstance(atom, Longest):
        return f"padded_{sum_name(Polynomial.of(atom.args[0]), rows or {})}"
    if isinstance(atom, (FloorDiv, CeilDiv)):
        kind = "over" if isinstance(atom, FloorDiv) else "up"
        return f"{atom_name(atom.args[0])}_{kind}_{atom_name(atom.args[1])}"
    if atom.is_Integer:
        return str(atom).replace("-", "m")
    if atom.is_Add:
        constant, rest = atom.as_coeff_Add()
        if constant.is_Integer and constant < 0:
            return f"{atom_name(rest)}_less_{-constant}"
        return "_plus_".join(sorted(atom_name(arg) for arg in atom.args))
    if isinstance(atom, Excess):
        return atom_name(atom.args[0])
    word = {Least: "min", Most: "max"}.get(type(atom), type(atom).__name__.lower())
    return "_".join([word, *(atom_name(arg) for arg in atom.args)])


def sum_name(length: Polynomial, rows: Mapping[Monomial, str]) -> str:
    """A name for a sum of products of lengths; ``rows`` has names for such products."""
    words = []
    for monomial, factor in length.terms.items():
        number = [str(factor).replace("-", "m").replace("/", "_over_")] if factor != 1 or not monomial else []
        words.append("_".join([*number, *([moment_name("", monomial, rows)] if monomial else [])]))
    return "_plus_".join(sorted(words))


def size_fields(
    spec: Spec, formulas: Formulas, counts: Collection[str] = (), fixed: Mapping[str, Any] = MappingProxyType({})
) -> tuple[Field, ...]:
    """The sizes of a program, with an attribute name for generated code.

    That is the last word of the config key, or all words if several sizes have the same last word.

    Args:
        spec: The spec.
        formulas: Prints defaults.
        counts: Letters of sizes that decide how often loops run.
        fixed: Letter -> value of the sizes that decided the structure.
    """
    words = [size.keys[0].split(".") for size in spec.sizes]
    names = [word[-1] for word in words]
    uses = Counter(names)
    for position, word in enumerate(words):
        if uses[word[-1]] > 1 and len(word) > 1:
            uses[word[-1]] -= 1
            names[position] = "_".join(part.removesuffix("_config") for part in word)
            uses[names[position]] += 1
    known: dict[str, Any] = {}
    lacking = {size.name.text for size in spec.sizes if not size.optional and fixed.get(size.name.text, ()) is None}
    values = size_names(spec, {letter: value for letter, value in fixed.items() if letter not in lacking})
    found = []
    for size, name in zip(spec.sizes, names, strict=True):
        attribute = name if uses[name] == 1 and not keyword.iskeyword(name) else f"{name}_{size.name.text}"
        default, null = (formula_of(formula, known, formulas) for formula in (size.default, size.null))
        required = size.default is None and not size.optional
        latex = size.latex or latex_symbol(size.name.text)
        kind = "count" if size.kind == "number" and size.name.text in counts else size.kind
        letter = size.name.text
        found.append(Field(
            letter, attribute, size.keys, kind, default, required, size.doc, latex, size.optional, null, size.items, size.part
        ))  # fmt: skip
        known[letter] = values[letter]
    return tuple(found)


def formula_of(text: Expression | None, known: dict[str, Any], formulas: Formulas) -> Any:
    """The value or formula that the expression ``text``, such as a default, stands for; None for None.

    ``known`` has the values of earlier sizes by letter.
    """
    if text is None:
        return None
    value = evaluate(text, known)
    if isinstance(value, (Choice, tuple)) and (sizes := sizes_behind(value)):
        message, hint = f"which value '{text.text}' is must be known here", f"'{sizes[0]}' decides that"
        raise UnknownSizeError(sizes[0], Diagnostic("structural-size", message, text.span, hint))
    if isinstance(value, Setting):
        return formulas.of(value.symbol)
    if isinstance(value, Truth):
        return formulas.of(value.expr) if value.expr not in (0, 1) else bool(value.expr)
    if isinstance(value, Expr):
        return formulas.of(value)
    if isinstance(value, tuple):
        return tuple(python_value(item) for item in value)
    return value


def read_fields(program: Program) -> tuple[Field, ...]:
    """Those sizes that the structure, the formulas, or defaults in use of ``program`` depend on."""
    rest = replace(program, fields=())
    known: dict[int, Any] = {}
    wanted = {letter for letter, _ in program.fixed} | set(_letters_in(rest, known))
    kept = []
    for field in reversed(program.fields):
        if field.letter in wanted:
            kept.append(field)
            wanted |= set(_letters_in(field.default, known))
    return tuple(reversed(kept))


def _letters_in(value: Any, known: dict[int, Any]) -> Iterator[str]:
    """Yield the letters in all formulas inside of ``value``, except in objects visited before.

    ``known`` has these objects by id, and is extended.
    """
    if id(value) in known:
        return
    known[id(value)] = value
    if isinstance(value, Formula):
        yield from symbols(value)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _letters_in(item, known)
    elif is_dataclass(value):
        for each in fields(value):
            yield from _letters_in(getattr(value, each.name), known)
