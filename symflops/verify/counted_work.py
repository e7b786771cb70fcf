"""Splits the work that a convention counts into pieces: their costs by moment for one config, and their FLOPs on a batch.

A piece is the work of one module in one role: the product of a linear, its bias, the products of an attention, its softmax.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sympy import Add, Expr

from symflops.api import Model
from symflops.derive.decode import sides
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.formula.formula import evaluate
from symflops.formula.functions import Whole
from symflops.formula.masks import bound_of
from symflops.formula.polynomial import Polynomial
from symflops.formula.sparse import Monomial
from symflops.ir.convention import Convention, regions_of, role_of
from symflops.ir.graph import Derivation, Graph, Work
from symflops.ir.nodes import Operator
from symflops.ir.program import Program
from symflops.ir.regime import Regime
from symflops.lower.formulas import Formulas
from symflops.lower.lower import count_atoms, letters_in_order
from symflops.read.plain_values import frozen
from symflops.read.variants import value_in

Piece = tuple[str, str]
"""The path of a module, and the role of its work."""
Key = tuple[str, str, Monomial]
"""A moment: ``padded`` or empty, an index set, and a product of lengths."""
Numbers = dict[Piece, dict[Key, Any]]
"""The coefficient of each moment, evaluated for a config, by piece."""


@dataclass(slots=True)
class WorkKind:
    """Description of a piece: its operator, its role, and the masks of its pairs."""

    operator: Operator
    role: str
    masks: dict[str, None] = field(default_factory=dict)

    @property
    def regions(self) -> tuple[str, ...]:
        """The regions of its module."""
        return regions_of(self.operator)


class Sizes(dict[str, Any]):
    """Values of letters for one config: sizes, derived sizes, and letters set later (indices, lengths).

    A missing letter is read from the config, or derived, on first access.
    """

    def __init__(self, graph: Graph, config: Mapping[str, Any]) -> None:
        self.graph, self.config, self.formulas = graph, config, Formulas({})
        self.definitions = {symbol.name: formula for symbol, formula in graph.definitions}

    def __missing__(self, letter: str) -> Any:
        formula, spec = self.definitions.get(letter), self.graph.spec
        found = frozen(value_in(spec.sizes, letter, self.config, spec.reading)) if formula is None else self.value(formula)
        self[letter] = found
        return found

    def value(self, expr: Expr) -> Any:
        """Evaluate an expression with these values."""
        return evaluate(self.formulas.of(expr), self)


class Pieces:
    """Work of one model, config, batch and regime under any convention, by piece; results are cached."""

    def __init__(self, model: Model, config: Mapping[str, Any], batch: Mapping[str, Any], regime: Regime) -> None:
        self.model, self.config, self.batch, self.regime = model, config, batch, regime
        self.about: dict[Piece, WorkKind] = {}
        self.sizes: Sizes
        self.ragged = False
        self.values: dict[Expr, Any] = {}
        self.lengths: frozenset[Expr] = frozenset()
        self.graph: Graph
        self.parts: dict[tuple[bool, str, Expr], dict[Key, Polynomial]] = {}
        self.counted: dict[Convention, Numbers] = {}
        self.lines: Program | None = None
        self.derivations: dict[Convention, Derivation] = {}
        self.totals: dict[Convention, dict[Piece, Any]] = {}

    def flops(self, convention: Convention) -> dict[Piece, Any]:
        """FLOPs of both passes on the batch, by piece; they sum to those of the estimator."""
        if convention not in self.totals:
            estimator, works = self.estimator(convention), self.works(convention)
            moments = estimator.moments(**self.batch)
            self.sizes.update(estimator.sizes)
            self.ragged = moments.padded_values != moments.values
            places = {(str(work.operator.path), work.contraction.name): self.piece(work) for work in works}
            found: dict[Piece, Any] = {}
            for place, flops in estimator.by_contraction(moments).items():
                if flops or place in places:  # contractions that the convention does not see have no FLOPs
                    found[places[place]] = found.get(places[place], 0) + flops
            self.totals[convention] = found
        return self.totals[convention]

    def prepare(self, conventions: Iterable[Convention]) -> None:
        """Derive the work of several conventions in one program; their names must differ."""
        self.lines = self.model.lines([self.regime], tuple(conventions), self.config)

    def estimator(self, convention: Convention) -> InterpretedEstimator:
        """Build the estimator under ``convention``, from the prepared program if that has it."""
        program = self.lines
        if program is None or convention.name not in program.conventions:
            program = self.model.lines([self.regime], [convention], self.config)
        return InterpretedEstimator(program, self.config, regime=self.regime.name, convention=convention.name)

    def numbers(self, convention: Convention) -> Numbers:
        """Map each piece to its FLOPs per moment for this config; moments without FLOPs are omitted."""
        if convention not in self.counted:
            found: Numbers = {}
            for work in self.works(convention):
                own = found.setdefault(self.piece(work), {})
                unit = 2 * self.value(work.contraction.size) * self.value(times(work))
                for key, part in self.part(work, convention).items():
                    own[key] = own.get(key, 0) + unit * self.value(part.expr)
            self.counted[convention] = {
                piece: kept for piece, own in found.items() if (kept := {key: value for key, value in own.items() if value})
            }
        return self.counted[convention]

    def cost(self, convention: Convention, pieces: Iterable[Piece]) -> dict[Key, Polynomial]:
        """Sum the cost of ``pieces``: for each moment, a coefficient as a polynomial over sizes."""
        wanted, found = set(pieces), dict[Key, list[Polynomial]]()
        for work in self.works(convention):
            if self.piece(work) in wanted:
                unit = Polynomial.of(2 * work.contraction.size) * Polynomial.of(times(work))
                for key, part in self.part(work, convention).items():
                    found.setdefault(key, []).append(part * unit)
        return {key: Polynomial.total(parts) for key, parts in found.items()}

    def derivation(self, convention: Convention) -> Derivation:
        """Derive the work that a convention counts."""
        if convention not in self.derivations:
            found = self.model.derivation(self.regime, convention, self.config)
            if not self.derivations:
                self.graph, self.sizes = found.graph, Sizes(found.graph, self.config)
            self.derivations[convention] = found
        return self.derivations[convention]

    def works(self, convention: Convention) -> Iterable[Work]:
        """List the work that a convention counts, without contractions that it does not see."""
        derivation = self.derivation(convention)
        self.lengths = frozenset(length.symbol for length in derivation.graph.lengths)
        if convention.unseen or not convention.is_plain:
            return derivation.work
        return [part for work in derivation.work for part in sides(work) if part.contraction.seen]

    def piece(self, work: Work) -> Piece:
        """Return the piece that a contraction belongs to, and record the piece in ``about``."""
        role = work.contraction.role or role_of(work.operator)
        piece = str(work.operator.path), role
        about, pairs = self.about.setdefault(piece, WorkKind(work.operator, role)), work.contraction.extent.pairs
        masks = (mask for mask, case in (pairs.masks if pairs else ()) if mask.name and self.may_hold(case.expr))
        about.masks |= dict.fromkeys(map(bound_of, masks))
        return piece

    def may_hold(self, condition: Expr) -> bool:
        """Whether a condition holds for this config, or depends on more than its sizes."""
        letters = {size.name.text for size in self.graph.spec.sizes}
        return not {symbol.name.removeprefix("?") for symbol in condition.free_symbols} <= letters or bool(
            self.value(condition)
        )

    def part(self, work: Work, convention: Convention) -> dict[Key, Polynomial]:
        """Split the extent of a contraction by moment; padded lengths are separate only in a ragged batch."""
        contraction = work.contraction
        useful = convention.pairs == "useful" or not convention.is_plain
        extent = contraction.extent.useful if useful else contraction.extent.executed
        side = (contraction.side or convention.length) if self.ragged else ""
        known = side == "padded", contraction.items, extent
        if known not in self.parts:
            split = Polynomial.of(extent).split_whole(lambda atom: bool(atom.free_symbols & self.lengths) or atom.has(Whole))
            name = "padded" if side == "padded" else ""
            self.parts[known] = {(name, contraction.items, monomial): part for monomial, part in split.items()}
        return self.parts[known]

    def value(self, expr: Expr) -> Any:
        """Evaluate an expression of sizes for this config, with a cache."""
        if expr not in self.values:
            self.values[expr] = self.sizes.value(expr)
        return self.values[expr]

    def settled(self, polynomial: Polynomial) -> Polynomial:
        """Evaluate all factors that are not letters, such as conditions, in a polynomial over sizes."""
        terms: list[Polynomial] = []
        for monomial, factor in polynomial.terms.items():
            letters = frozenset(pair for pair in monomial if pair[0].is_Symbol and not str(pair[0]).startswith("?"))
            rest = self.value(Polynomial({monomial - letters: 1}).expr)
            terms.append(Polynomial({letters: factor}).scale(Fraction(rest)))
        return Polynomial.total(terms)

    def weights(self, piece: Piece) -> frozenset[object]:
        """Parameters (path, shape) that the module of a piece reads and that exist in this config."""
        parameters = self.about[piece].operator.parameters
        return frozenset((one.path, one.shape) for one in parameters if self.value(one.exists.expr))

    def formulas(self, *conventions: Convention) -> Formulas:
        """Build the formula writer for coefficients of ``conventions``, with letters in the spec's order."""
        derivations = [self.derivation(convention) for convention in conventions]
        letters = letters_in_order(derivations[0].graph)
        return Formulas({letter: rank for rank, letter in reversed(list(enumerate(letters)))}, count_atoms(derivations))


def times(work: Work) -> Expr:
    """Count how often a contraction and its gradients run in both passes."""
    return Add(work.forward, *(gradient.count for gradient in work.gradients))
