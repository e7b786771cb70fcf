"""Expressions and polynomials as formulas in a fixed order: the same bytes on every machine and under every sympy."""

from __future__ import annotations

from sympy import Add, Expr, Mul, Pow
from sympy.core.symbol import Str

from symflops.formula import functions as fn
from symflops.formula.factoring import FormulaWriter
from symflops.formula.formula import Apply, Bracket, Formula, Power, Sym, TallyOf, Text
from symflops.formula.identities import fewest_terms
from symflops.formula.polynomial import Polynomial
from symflops.formula.written import text_of

APPLY: dict[type, str] = {
    fn.FloorDiv: "floordiv", fn.CeilDiv: "ceildiv", fn.Modulo: "mod", fn.Least: "min", fn.Most: "max", fn.Excess: "excess",
    fn.Item: "item", fn.Each: "each", fn.Length: "len", fn.Occurrences: "count", fn.Total: "total",
}  # fmt: skip
BRACKET: dict[type, str] = {fn.AtLeast: "at_least", fn.Equal: "equal", fn.Given: "given", fn.Contains: "contains"}


class Formulas(FormulaWriter):
    """Converts expressions to formulas, with the letters of a term in a fixed order.

    ``rank`` has the position of each letter in that order, loop counts first; ``counts`` are the factors of run counts, by
    which closed forms are grouped.
    """

    def __init__(self, rank: dict[str, int], counts: frozenset[Expr] = frozenset()) -> None:
        super().__init__(counts)
        self.rank = rank
        self._atoms: dict[Expr, Formula] = {}
        self._known: dict[Expr | int, Formula] = {}
        self._simplified: dict[Polynomial, Formula] = {}

    def place(self, atom: Expr) -> tuple[int, str]:
        if atom.is_Symbol:
            return (self.rank.get(atom.name, len(self.rank)), str(atom.name))
        inner = [self.rank.get(symbol.name, len(self.rank)) for symbol in atom.free_symbols]
        return (min(inner, default=0), text_of(atom))

    def is_choice(self, atom: Expr) -> bool:
        """Whether the factor ``atom`` is a condition, whose value is 0 or 1."""
        return fn.is_bracket(atom)

    def simplified(self, polynomial: Polynomial) -> Formula:
        """The shortest formula found for a cost or a run count."""
        if polynomial not in self._simplified:
            self._simplified[polynomial] = self.shortest(polynomial, fewest_terms(polynomial))
        return self._simplified[polynomial]

    def of(self, expr: Expr | int) -> Formula:
        """The formula of ``expr`` as a sorted sum of products."""
        if expr not in self._known:
            self._known[expr] = self.plain(Polynomial.of(expr))
        return self._known[expr]

    def atom(self, atom: Expr) -> Formula:
        """The formula of a single factor: a symbol, a rounded quotient or a bracket."""
        if atom not in self._atoms:
            self._atoms[atom] = self._atom(atom)
        return self._atoms[atom]

    def assign_letter(self, atom: Expr, letter: str) -> None:
        """Make all later formulas print the factor ``atom`` as ``letter``."""
        self._known.clear()
        self._short.clear()
        self._simplified.clear()
        self._atoms[atom] = Sym(letter)

    def letter(self, atom: Expr) -> str:
        """The letter that formulas print for the factor ``atom``; empty if they print its own form."""
        found = self._atoms.get(atom)
        return found.name if isinstance(found, Sym) else ""

    def _atom(self, atom: Expr) -> Formula:
        if atom.is_Symbol:
            return Bracket("flag", (Sym(atom.name[1:]),)) if atom.name.startswith("?") else Sym(atom.name)
        if isinstance(atom, Str):
            return Text(atom.name)
        if isinstance(atom, fn.Tally):
            index, low, high, bracket = atom.args
            return TallyOf(index.name, self.of(low), self.of(high), self.of(bracket))
        arguments = tuple(self.atom(arg) if isinstance(arg, Str) else self.of(arg) for arg in atom.args)
        for kinds, make in ((APPLY, Apply), (BRACKET, Bracket)):
            if type(atom) in kinds:
                return make(kinds[type(atom)], arguments)
        if isinstance(atom, Pow) and atom.exp.is_Integer:
            return Power(self.of(atom.base), int(atom.exp))
        if isinstance(atom, (Add, Mul)):
            return self.of(atom)
        raise TypeError(f"no formula for {atom!r}")
