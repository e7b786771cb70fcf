"""The closed forms of a model under one regime and convention, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from symflops.emit.markdown.document import Shown
from symflops.emit.python.printer import PythonPrinter
from symflops.model.program import Case, Program
from symflops.model.serialise import document_of
from symflops.runtime.interpreted import InterpretedEstimator
from symflops.specialise.assumed import Known, known_of


@dataclass(frozen=True)
class Derived(Shown):
    """The closed forms of a model under one regime and convention.

    ``forward`` and ``backward`` map the name of each moment to its coefficient as text; ``program`` is what they are
    printed from.
    """

    program: Program
    case: Case

    def _texts(self, form: Sequence[tuple[int, Any]]) -> dict[str, str]:
        name = self.case.convention
        return {self.program.sum_name(position, name): PythonPrinter().text(formula) for position, formula in form}

    @property
    def forward(self) -> dict[str, str]:
        """FLOPs of the forward pass, as moment -> coefficient; ``Moments.sums`` has the moments by these names."""
        return self._texts(self.case.forward)

    @property
    def backward(self) -> dict[str, str]:
        """FLOPs of the backward pass, as moment -> coefficient."""
        return self._texts(self.case.backward)

    def at(
        self, config: Mapping[str, Any] | None = None, assume: str | Mapping[str, Any] = "", numeric: bool = False
    ) -> Derived:
        """These forms with what is known substituted and folded.

        Args:
            config: Decides all conditions; sizes stay letters.
            assume: Sizes with their values, such as ``"qk_norm=null, K=0"``; formulas no longer have them.
            numeric: Whether formulas have numbers for all sizes: those of the config, or the defaults.

        Raises:
            SymflopsError: no size has that name, a value does not fit, or the structure is of other values.
        """
        return self.under(known_of(self.program.keys, config, assume, numeric))

    def under(self, known: Known) -> Derived:
        """These forms with what is known of the sizes substituted and folded.

        Raises:
            SymflopsError: as :meth:`at`.
        """
        program = known.of(self.program.counting([self.case.convention]))
        return Derived(program, program.case(self.case.regime, self.case.convention))

    @cached_property
    def document(self) -> dict[str, Any]:
        """The program as plain data, which estimators read."""
        return document_of(self.program)

    def estimator(self, config: Mapping[str, Any]) -> InterpretedEstimator:
        """The estimator of these forms for one config."""
        return InterpretedEstimator(self.document, config, regime=self.case.regime, convention=self.case.convention)

    def __repr__(self) -> str:
        return f"Derived('{self.program.name}', regime='{self.case.regime}', convention='{self.case.convention}')"
