"""The closed forms of a model under one regime and convention, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from symflops.emit.markdown.notebook import Shown
from symflops.emit.python.printer import PythonPrinter
from symflops.model.program import Case, Program
from symflops.runtime.interpreted import InterpretedEstimator


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

    def estimator(self, config: Mapping[str, Any]) -> InterpretedEstimator:
        """The estimator of these forms for one config."""
        return InterpretedEstimator(self.program, config, regime=self.case.regime, convention=self.case.convention)
