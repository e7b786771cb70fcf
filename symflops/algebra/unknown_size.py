"""What is raised where the structure of a model depends on a size that is still a symbol."""

from __future__ import annotations

from collections.abc import Iterable

from sympy import Expr, Symbol

from symflops.algebra.functions import AtLeast, Bracket, Contains, is_bracket
from symflops.diagnostics.findings import Diagnostic, Span


class UnknownSizeError(Exception):
    """The structure of the model depends on a size that is still a symbol: it must be fixed to go on."""

    def __init__(self, size: str, diagnostic: Diagnostic) -> None:
        super().__init__(size)
        self.size = size
        self.diagnostic = diagnostic


def undecided(values: Iterable[Expr], message: str, span: Span | None) -> UnknownSizeError | None:
    """What to raise where ``values`` should be equal and a condition decides what they are; None where none does."""
    atoms = {atom for value in values for atom in value.atoms(Bracket, Symbol) if is_bracket(atom)}
    names = {symbol.name.removeprefix("?") for atom in atoms for symbol in atom.free_symbols}
    sizes = sorted(name for name in names if "@" not in name)
    if not sizes:
        return None
    return UnknownSizeError(
        sizes[0], Diagnostic("structural-size", message, span, f"'{sizes[0]}' decides that, and must be known")
    )


def tangled(brackets: Iterable[Expr]) -> UnknownSizeError:
    """A condition over too many ``brackets`` to go on with: a list that they ask is to be known first, a count last."""
    rank: dict[str, int] = {}
    for bracket in sorted(brackets, key=str):
        place = 0 if isinstance(bracket, Contains) else 2 if isinstance(bracket, AtLeast) else 1
        for symbol in bracket.args[-1].free_symbols if place == 0 else bracket.free_symbols:
            name = symbol.name.removeprefix("?")
            if "@" not in name:
                rank[name] = min(place, rank.get(name, place))
    first = min(rank, key=lambda name: (rank[name], name), default="")
    message = f"what exists here, or needs a gradient, depends on too many combinations of '{first}'"
    return UnknownSizeError(
        first, Diagnostic("structural-size", message, None, f"give '{first}' a value in a config, or a variant")
    )
