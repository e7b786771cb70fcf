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
from symflops.read.variants import value_in
from symflops.read.yaml_nodes import frozen

Piece = tuple[str, str]
"""A part of a model's work: (path of the module, role of the work)."""
Key = tuple[str, str, Monomial]
"""A moment: (``padded`` or empty, index set, product of lengths)."""
Numbers = dict[Piece, dict[Key, Any]]
"""FLOPs per moment for one config: part of the work -> moment -> number."""


@dataclass(slots=True)
class WorkKind:
    """What kind of work a :data:`Piece` is: its operator, its role, and the attention masks that apply."""

    operator: Operator
    role: str
    masks: dict[str, None] = field(default_factory=dict)

    @property
    def regions(self) -> tuple[str, ...]:
        """The regions of the model in which the operator lies."""
        return regions_of(self.operator)


class Sizes(dict[str, Any]):
    """Values of letters for one config: sizes, derived sizes, and later also loop indices and lengths.

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
        """Evaluate an expression with these values of its letters."""
        return evaluate(self.formulas.of(expr), self)


class Pieces:
    """The work of one model, config, batch and regime under any convention, in pieces.

    A piece is the work of one role in one module, see :data:`Piece`. Results are cached.
    """

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
        """Map each piece to its FLOPs on the batch, forward and backward."""
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
        """Derive one program for several conventions, whose names must differ; :meth:`estimator` uses it."""
        self.lines = self.model.lines([self.regime], tuple(conventions), self.config)

    @property
    def sources(self) -> Mapping[str, str]:
        """Label -> digest of the files that the derivations come from: the spec, its base and its blocks."""
        return dict(self.lines.sources) if self.lines is not None else {}

    def estimator(self, convention: Convention) -> InterpretedEstimator:
        """Build the estimator under ``convention``, from the program of :meth:`prepare` if that includes it."""
        program = self.lines
        if program is None or convention.name not in program.conventions:
            program = self.model.lines([self.regime], [convention], self.config)
        return InterpretedEstimator(program, self.config, regime=self.regime.name, convention=convention.name)

    def numbers(self, convention: Convention) -> Numbers:
        """Map each piece to its FLOPs per moment for this config; moments with 0 FLOPs are omitted."""
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
        """Compute moment -> FLOPs per moment of all ``pieces`` together, as a polynomial over sizes."""
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
        """List the contractions that a convention counts, each with its number of runs.

        Contractions are left out if the convention's counter cannot see them, such as those in fused kernels.
        """
        derivation = self.derivation(convention)
        self.lengths = frozenset(length.symbol for length in derivation.graph.lengths)
        if convention.unseen or not convention.is_plain:
            return derivation.work
        return [part for work in derivation.work for part in sides(work) if part.contraction.seen]

    def piece(self, work: Work) -> Piece:
        """Return the piece that ``work`` belongs to; its kind is recorded in ``about``."""
        role = work.contraction.role or role_of(work.operator)
        piece = str(work.operator.path), role
        about, pairs = self.about.setdefault(piece, WorkKind(work.operator, role)), work.contraction.extent.pairs
        masks = (mask for mask, case in (pairs.masks if pairs else ()) if mask.name and self.may_hold(case.expr))
        about.masks |= dict.fromkeys(map(bound_of, masks))
        return piece

    def may_hold(self, condition: Expr) -> bool:
        """Whether a condition holds for this config; also True if its sizes do not decide that."""
        letters = {size.name.text for size in self.graph.spec.sizes}
        return not {symbol.name.removeprefix("?") for symbol in condition.free_symbols} <= letters or bool(
            self.value(condition)
        )

    def part(self, work: Work, convention: Convention) -> dict[Key, Polynomial]:
        """Split the extent of a contraction: moment -> coefficient as a polynomial over sizes.

        Moments of padded lengths are distinguished only if the batch has padding.
        """
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
        """Evaluate an expression of sizes for this config; values are cached."""
        if expr not in self.values:
            self.values[expr] = self.sizes.value(expr)
        return self.values[expr]

    def evaluated(self, polynomial: Polynomial) -> Polynomial:
        """Replace factors of a polynomial that are not letters, such as conditions, by their values."""
        terms: list[Polynomial] = []
        for monomial, factor in polynomial.terms.items():
            letters = frozenset(pair for pair in monomial if pair[0].is_Symbol and not str(pair[0]).startswith("?"))
            rest = self.value(Polynomial({monomial - letters: 1}).expr)
            terms.append(Polynomial({letters: factor}).scale(Fraction(rest)))
        return Polynomial.total(terms)

    def weights(self, piece: Piece) -> frozenset[object]:
        """Parameters (path, shape) that the operator of a piece has in this config."""
        parameters = self.about[piece].operator.parameters
        return frozenset((one.path, one.shape) for one in parameters if self.value(one.exists.expr))

    def formulas(self, *conventions: Convention) -> Formulas:
        """Build the converter from polynomials of these conventions to formulas, with letters in spec order."""
        derivations = [self.derivation(convention) for convention in conventions]
        letters = letters_in_order(derivations[0].graph)
        return Formulas({letter: rank for rank, letter in reversed(list(enumerate(letters)))}, count_atoms(derivations))


def times(work: Work) -> Expr:
    """The number of times that a contraction runs in both passes, its gradients included."""
    return Add(work.forward, *(gradient.count for gradient in work.gradients))
