"""The error of an evaluation that cannot go on while a size is a symbol."""

from __future__ import annotations

from collections.abc import Iterable

from sympy import Expr, Symbol

from symflops.algebra.functions import AtLeast, Bracket, Contains, is_bracket, sizes_in
from symflops.algebra.written import text_of
from symflops.diagnostics.findings import Diagnostic, Span


class UnknownSizeError(Exception):
    """The structure of the model depends on a size that is still a symbol.

    Operators such as ``&`` of conditions raise this deep inside an evaluation. The driver answers it with the size of a config.

    Attributes:
        size: The size to fix; empty if no single size would settle it.
        diagnostic: What to report if nobody knows that size.
    """

    def __init__(self, size: str, diagnostic: Diagnostic) -> None:
        super().__init__(size)
        self.size = size
        self.diagnostic = diagnostic


def unequal_widths(widths: Iterable[Expr], message: str, span: Span | None) -> UnknownSizeError | None:
    """The error to raise if ``widths`` are unequal and a condition decides them; None if no condition does."""
    atoms = {atom for width in widths for atom in width.atoms(Bracket, Symbol) if is_bracket(atom)}
    sizes = sizes_in(*atoms)
    if not sizes:
        return None
    return UnknownSizeError(
        sizes[0], Diagnostic("structural-size", message, span, f"'{sizes[0]}' decides that, and must be known")
    )


def tangled(brackets: Iterable[Expr]) -> UnknownSizeError:
    """The error about a condition over too many ``brackets``.

    It asks for a list in one of them first, and for a count last.
    """
    rank: dict[str, int] = {}
    for bracket in sorted(brackets, key=text_of):
        place = 0 if isinstance(bracket, Contains) else 2 if isinstance(bracket, AtLeast) else 1
        for name in sizes_in(bracket.args[-1] if place == 0 else bracket):
            rank[name] = min(place, rank.get(name, place))
    first = min(rank, key=lambda name: (rank[name], name), default="")
    message = f"what exists here, or needs a gradient, depends on too many combinations of '{first}'"
    return UnknownSizeError(
        first, Diagnostic("structural-size", message, None, f"give '{first}' a value in a config, or a variant")
    )
