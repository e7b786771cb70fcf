"""One step of a model at some sizes: the values of closed forms on a batch, as exact integers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from symflops.analysis.parts import ATTENTION, part_of
from symflops.model.formula import Formula, evaluate
from symflops.model.index_sets import PADDED
from symflops.model.program import Case, Program
from symflops.runtime.batch_moments import sides_of
from symflops.runtime.stored import Stored, stored_of


class Step:
    """Values under the first regime and convention of ``program``, or of any of its closed forms.

    Raises:
        SymflopsError: the model does not accept the batch.
    """

    def __init__(
        self, program: Program, sizes: Mapping[str, Any], batch: Mapping[str, Any], stored: Stored | None = None
    ) -> None:
        self.program, self.sizes, self.batch = program, sizes, batch
        self.stored = stored or stored_of(replace(program, regimes=(), cases=(), tensors=(), amounts=()))
        self.real, self.padded = sides_of(self.stored, batch, sizes, range(len(program.moments)))

    @cached_property
    def case(self) -> Case:
        """The closed forms of the first regime under the first convention."""
        return self.program.case(self.program.regimes[0].name, self.program.conventions[0])

    @property
    def total(self) -> int:
        """The work of both passes."""
        return int(self.value(self.case, (*self.case.forward, *self.case.backward)))

    @property
    def tokens(self) -> int:
        """The tokens of the batch, 0 if the program does not say."""
        parts = self.program.regimes[0].tokens
        return sum(int(evaluate(part, self.sizes)) * self.real[place] for place, part in parts)

    def value(self, case: Case, terms: Iterable[tuple[int, Formula]]) -> Any:
        """The value of a closed form."""
        moments = self.moments(case.convention)
        return sum(evaluate(formula, self.sizes) * moments[place] for place, formula in terms)

    def moments(self, convention: str) -> tuple[int, ...]:
        """The moments that a convention counts."""
        return self.padded if dict(self.program.lengths)[convention] == PADDED else self.real

    def at(self, sizes: Mapping[str, Any] | None = None, batch: Mapping[str, Any] | None = None) -> Step:
        """The step with other sizes, or on another batch."""
        return Step(self.program, self.sizes if sizes is None else sizes, self.batch if batch is None else batch, self.stored)

    def attention(self) -> dict[int, Any]:
        """What attention does in both passes per unit of each moment, by its position."""
        name = self.case.convention
        pairs, unseen = dict(self.program.pairs)[name], dict(self.program.unseen)[name]
        found: dict[int, Any] = {}
        for line in self.program.regimes[0].under(name):
            if part_of(line) == ATTENTION and (line.seen or unseen):
                counts = (line.forward, *line.backward)
                each = evaluate(line.unit, self.sizes) * sum(evaluate(count, self.sizes) for count in counts)
                for place, factor in line.amount.under(pairs):
                    found[place] = found.get(place, 0) + each * evaluate(factor, self.sizes)
        return found
