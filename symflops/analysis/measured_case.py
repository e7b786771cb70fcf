"""The closed forms with the sizes and the batch of a measured case in them: what they give, beside what was counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from symflops.diagnostics.errors import SymflopsError
from symflops.model.evaluate import ConfigError
from symflops.model.formula import ZERO, Formula, evaluate, symbols
from symflops.model.index_sets import PADDED
from symflops.model.program import Program
from symflops.model.verification import KnownInexact, Verification, VerifiedCase
from symflops.runtime.batch import BatchError
from symflops.runtime.batch_moments import sides_of
from symflops.runtime.interpreted import InterpretedEstimator
from symflops.runtime.stored import Stored, stored_of

COUNTER = "torch"
"""The convention that counts as PyTorch's own counter."""


@dataclass(frozen=True, slots=True)
class Inserted:
    """A measured case: the letters of moments, their values, and the coefficients of both passes at its sizes.

    ``sizes`` are the letters of the closed forms with their values.
    """

    reference: str
    torch: str
    case: VerifiedCase
    regime: str
    sizes: tuple[tuple[str, object], ...]
    terms: tuple[tuple[str, int, int, int], ...]
    known: KnownInexact | None = None

    @property
    def counted(self) -> tuple[int, int]:
        """What PyTorch counted of both passes."""
        more = (self.known.forward, self.known.backward) if self.known else (0, 0)
        return self.case.forward - more[0], self.case.backward - more[1]

    @property
    def forward(self) -> int:
        """What the closed form of the forward pass gives."""
        return sum(value * coefficient for _, value, coefficient, _ in self.terms)

    @property
    def backward(self) -> int:
        """What the closed form of the backward pass gives."""
        return sum(value * coefficient for _, value, _, coefficient in self.terms)


def inserted(program: Program, verified: Sequence[Verification]) -> Inserted | None:
    """The first measured case whose config is recorded, and that ``program`` derives; None if there is none.

    A case that is known to be inexact comes last, with its known difference.
    """
    regime = program.regimes[0].name
    if COUNTER not in program.conventions:
        return None
    stored = stored_of(program)
    exact = ((found, case, None) for found in verified for case in found.cases)
    inexact = ((found, case, known) for found in verified for case, known in found.inexact)
    for found, measured, known in (*exact, *inexact):
        if measured.config is not None and measured.batch is not None:
            try:
                made = _inserted(program, stored, regime, found, measured, known)
            except (SymflopsError, ConfigError, BatchError, KeyError, IndexError):
                continue  # of another structure than this page, or of a batch that leaves out a stream
            if (made.forward, made.backward) == (measured.forward, measured.backward):
                return made  # others were measured on inputs that need gradients, or on some of the outputs
    return None


def _inserted(
    program: Program, stored: Stored, regime: str, found: Verification, measured: VerifiedCase, known: KnownInexact | None
) -> Inserted:
    """A case with the values of its letters."""
    estimator = InterpretedEstimator(stored.document, measured.config or {}, regime=regime, convention=COUNTER)
    sizes, case = estimator.sizes, program.case(regime, COUNTER)
    real, padded = sides_of(stored, dict(measured.batch or {}), sizes, range(len(program.moments)))
    moments = padded if program.row(COUNTER).lengths == PADDED else real
    forward, backward = dict(case.forward), dict(case.backward)

    def times(terms: Mapping[int, Formula], place: int) -> int:
        return int(evaluate(terms.get(place, ZERO), sizes))

    read = {letter for _, formula in (*case.forward, *case.backward) for letter in symbols(formula)}
    for definition in reversed(program.definitions):
        read |= set(symbols(definition.formula)) if definition.letter in read else set()
    return Inserted(
        found.reference, found.torch, measured, regime,
        tuple((field.letter, sizes[field.letter]) for field in program.fields if field.letter in read),
        tuple(
            (program.sum_key(place, COUNTER), moments[place], times(forward, place), times(backward, place))
            for place in sorted({*forward, *backward})
        ),
        known,
    )  # fmt: skip
