"""Programs for pages: without the parameters of activations that few configs choose."""

from __future__ import annotations

from dataclasses import replace

from symflops.model.formula import ZERO, Bracket, Formula, Prod, Sum, Sym, Text, parts, walk
from symflops.model.program import Field, Program
from symflops.model.rewriting import Rewriting
from symflops.model.terms import plus, times
from symflops.ops.activation import LEARNED


def with_plain_words(program: Program) -> Program:
    """``program`` without the parameters of activations that are no default; its sizes say so."""
    defaults = {field.letter: field.default for field in program.fields}
    left_out: dict[str, dict[str, None]] = {}

    def absent(formula: Formula) -> bool:
        match formula:
            case Bracket("equal", (Sym(letter), Text(word)) | (Text(word), Sym(letter))) if word in LEARNED:
                return word != defaults.get(letter) and left_out.setdefault(letter, {}).setdefault(word) is None
        return False

    def plainly(formula: Formula) -> Formula:
        if not any(map(absent, walk(formula))):
            return formula
        match formula:
            case Sum(terms):
                return plus([plainly(term) for term in terms])
            case Prod(factors):
                return times(*map(plainly, factors))
        return ZERO if absent(formula) else Rewriting(lambda part: None if part is formula else plainly(part))(formula)

    plain: Program = Rewriting(lambda formula: plainly(formula) if parts(formula) else None)(program)
    if not left_out:
        return program
    tensors = tuple(tensor for tensor in plain.tensors if tensor.count != ZERO)
    return replace(plain, tensors=tensors, fields=tuple(noted(field, left_out.get(field.letter)) for field in plain.fields))


def noted(field: Field, words: dict[str, None] | None) -> Field:
    """A size with a note on the words whose parameters are left out."""
    return replace(field, doc=f"{field.doc}; parameters of {' and '.join(words)} are left out here") if words else field
