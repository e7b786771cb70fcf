"""Explains why two conventions differ: compares their work piece by piece, and sums pieces with the same cause.

Opposite changes within a piece cancel before causes are searched, so the shares of the causes add up to the total difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from symflops.api import Model, convention_of
from symflops.emit.python.printer import PythonPrinter
from symflops.formula.functions import Whole
from symflops.formula.polynomial import Polynomial
from symflops.ir.convention import Convention
from symflops.ir.index_sets import ONCE, SAMPLES
from symflops.ir.regime import Regime
from symflops.verify.causes import Cause, Causes
from symflops.verify.counted_work import Key, Piece, Pieces


@dataclass(frozen=True, slots=True)
class Step:
    """One cause of a difference between two conventions, with its amount (second minus first).

    Attributes:
        words: The cause in words.
        terms: The amount as pairs (moment, coefficient), both as text.
        flops: The amount in FLOPs on the batch.
        share: The amount as a share of the whole difference; None if the totals of both conventions are equal.
    """

    words: str
    terms: tuple[tuple[str, str], ...]
    flops: Any
    share: Fraction | None = None

    def sentence(self, first: str, second: str) -> str:
        """Say in a sentence how much more or less the second convention counts, and why; both given by name."""
        amount = " and ".join(f"{coefficient} {moment}" for moment, coefficient in self.terms)
        more = "more" if self.flops >= 0 else "less"
        return f"{second} counts {amount} {more} than {first}: {self.words}"


@dataclass(frozen=True, slots=True)
class Difference:
    """How many FLOPs more the second of two conventions counts on a batch, with the causes, largest first."""

    first: str
    second: str
    flops: Any
    steps: tuple[Step, ...]


class Comparison:
    """Compares conventions on one model, config, batch and regime."""

    def __init__(self, model: Model, config: Mapping[str, Any], batch: Mapping[str, Any], regime: Regime) -> None:
        self.model = model
        self.pieces = Pieces(model, config, batch, regime)

    def difference(self, first: str, second: str) -> Difference:
        """Explain the difference between two conventions, given by name."""
        one, two = (convention_of(name).of(self.model.spec.called) for name in (first, second))
        total = self.total(two) - self.total(one)
        steps = []
        for cause, changed in self.causes(one, two).items():
            flops = sum(changed.values())
            roles = [role for _, role in sorted(changed, key=lambda piece: -abs(changed[piece]))]
            terms = self.terms(one, two, tuple(changed), flops < 0)
            steps.append(Step(cause.words(roles, first, second), terms, flops, Fraction(flops) / total if total else None))
        return Difference(first, second, total, tuple(sorted(steps, key=lambda step: -abs(step.flops))))

    def main_cause(self, first: str, second: str) -> str:
        """Describe the largest cause of the difference between two conventions; empty if they agree."""
        one, two = (convention_of(name).of(self.model.spec.called) for name in (first, second))
        causes = self.causes(one, two)
        if not causes:
            return ""
        cause, changed = max(causes.items(), key=lambda item: abs(sum(item[1].values())))
        return cause.words([role for _, role in sorted(changed, key=lambda piece: -abs(changed[piece]))], first, second)

    def causes(self, one: Convention, two: Convention) -> dict[Cause, dict[Piece, Any]]:
        """Map each cause to {(module path, role): FLOPs} that the second convention counts more."""
        before, after = self.pieces.flops(one), self.pieces.flops(two)
        changed = {piece: after.get(piece, 0) - before.get(piece, 0) for piece in {**before, **after}}
        groups = self.netted({piece: flops for piece, flops in changed.items() if flops})
        found: dict[Cause, dict[Piece, Any]] = {}
        for main, cause in Causes(self.pieces, one, two).of(groups).items():
            found.setdefault(cause, {}).update((piece, changed[piece]) for piece in groups[main])
        return found

    def total(self, convention: Convention) -> Any:
        """The FLOPs that a convention counts on the batch, forward and backward."""
        return sum(self.pieces.flops(convention).values())

    def netted(self, changed: Mapping[Piece, Any]) -> dict[Piece, tuple[Piece, ...]]:
        """Group work that moves from one role or module to another: largest member -> all members.

        ``changed`` maps (module path, role) to the difference in FLOPs. Members of a group read the same weight and differ with
        opposite signs. A group whose differences sum to 0 is left out.
        """
        groups: dict[Piece, tuple[Piece, ...]] = {}
        for piece in sorted(changed, key=lambda piece: -abs(changed[piece])):
            weights = self.pieces.weights(piece)
            other = next(
                (main for main in groups if changed[main] * changed[piece] < 0 and weights & self.pieces.weights(main)), None
            )
            groups[other or piece] = (*groups.get(other or piece, ()), piece)
        return {main: group for main, group in groups.items() if sum(changed[piece] for piece in group)}

    def terms(self, one: Convention, two: Convention, pieces: Sequence[Piece], negative: bool) -> tuple[tuple[str, str], ...]:
        """Write the difference of ``pieces`` as pairs (moment, coefficient) of text; ``negative`` flips signs."""
        before, after = self.pieces.cost(one, pieces), self.pieces.cost(two, pieces)
        formulas, found = self.pieces.formulas(one, two), []
        for key in dict.fromkeys([*after, *before]):
            change = after.get(key, Polynomial({})) - before.get(key, Polynomial({}))
            if change := self.pieces.settled(change).scale(Fraction(-1 if negative else 1)):
                found.append((self.moment_in_words(key), PythonPrinter().text(formulas.factored(change))))
        return tuple(sorted(found, key=lambda term: term[1].startswith("-")))

    def moment_in_words(self, key: Key) -> str:
        """Describe a moment in words: a token, a pair of tokens, an item, or a function of lengths."""
        side, items, monomial = key
        product = Polynomial({monomial: Fraction(1)})
        if not monomial:
            return {ONCE: "a step", SAMPLES: "a sample"}.get(items, f"an item of {items}")
        for name, stream in self.pieces.graph.streams:
            rows = Polynomial.of(stream.rows)
            for words, wanted in (("token", rows), ("pair of tokens", rows * rows)):
                if product == wanted:
                    return " ".join(filter(None, ("a", side, words, "of", name)))
        lengths = product.expr if product.expr.has(Whole) else PythonPrinter().text(self.pieces.sizes.formulas.plain(product))
        return f"times {lengths}" + (f" of {side} lengths" if side else "")


def percent(share: Fraction | None) -> str:
    """Format a share as a percentage; ``-`` if it is None."""
    return "-" if share is None else f"{float(100 * share):.2f} %"
