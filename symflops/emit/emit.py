"""Print a :class:`~symflops.ir.program.Program` as files, or derive closed forms (:class:`Derived`).

To add a language, add a line to a table below.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from symflops.emit.latex import document as latex
from symflops.emit.markdown import document as markdown
from symflops.emit.markdown.document import Shown
from symflops.emit.math.definitions import abbreviated
from symflops.emit.page.page import page
from symflops.emit.page.sections import document
from symflops.emit.page.tree import Document
from symflops.emit.page.types import Page
from symflops.emit.python import module as python
from symflops.emit.python.printer import PythonPrinter
from symflops.evaluate.assumed import Known, known_of
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.item_analysis import Against
from symflops.evaluate.worked_figures import ConventionFigures, worked
from symflops.ir.program import Case, Program
from symflops.ir.serialise import document_of, text_of
from symflops.ir.verification import Verification

ON_PAGES = ("full", "forward")
"""Regimes that a generated page derives; its table lists all (others: ``symflops render --regime``)."""

STORED = "json"
"""The ending of a stored program."""

CODE: Mapping[str, Callable[[Program, str, Sequence[Verification]], str]] = {
    STORED: lambda program, version, verified: text_of(document_of(program)),
    "py": python.render,
}
PAGES: Mapping[str, Callable[[Document, str], str]] = {"tex": latex.render_page, "md": markdown.render_page}
ENDINGS = (*CODE, *PAGES)


def emit(
    program: Program,
    version: str,
    verified: Sequence[Verification] = (),
    endings: Collection[str] = ENDINGS,
    shown: Sequence[str] = (),
    against: Against | None = None,
) -> dict[str, str]:
    """Print ``program`` in each format; map each file ending in ``endings`` to its text.

    ``verified`` are the measured records of the spec, ``against`` is the comparison of the model with its baseline.
    Modules and pages contain the
    conventions ``shown`` (default: all); a stored program contains all conventions.
    """
    whole, program = program, program.counting(shown) if shown else program
    texts = {ending: CODE[ending](program, version, verified) for ending in endings if ending in CODE and ending != STORED}
    if STORED in endings:
        texts[STORED] = CODE[STORED](whole, version, verified)
    if PAGES.keys() & set(endings):
        names = [regime.name for regime in program.regimes]
        found = document(page_of(program, verified, [name for name in ON_PAGES if name in names] or names, (), against))
        texts |= {ending: PAGES[ending](found, version) for ending in endings if ending in PAGES}
    return {ending: texts[ending] for ending in endings}


def page_of(
    program: Program,
    verified: Sequence[Verification] = (),
    regimes: Sequence[str] = ON_PAGES,
    conventions: Sequence[ConventionFigures] = (),
    against: Against | None = None,
) -> Page:
    """Build the page that derives ``regimes``; its table of figures has all regimes of ``program``.

    ``conventions`` are figures under several conventions, to be shown on the page.
    """
    chosen = program.showing(regimes).first()
    shown = page(abbreviated(chosen), verified, worked(program, conventions), program, chosen)
    return replace(shown, against=against)


@dataclass(frozen=True)
class Derived(Shown):
    """The closed forms of a model under one regime and convention.

    ``forward`` and ``backward`` map the name of each moment to its coefficient as text, printed from ``program``.
    """

    program: Program
    case: Case

    def _texts(self, form: Sequence[tuple[int, Any]]) -> dict[str, str]:
        name = self.case.convention
        return {self.program.sum_name(position, name): PythonPrinter().text(formula) for position, formula in form}

    @property
    def forward(self) -> dict[str, str]:
        """FLOPs of the forward pass: the name of each moment mapped to its coefficient, as text."""
        return self._texts(self.case.forward)

    @property
    def backward(self) -> dict[str, str]:
        """FLOPs of the backward pass: the name of each moment mapped to its coefficient, as text."""
        return self._texts(self.case.backward)

    def at(
        self, config: Mapping[str, Any] | None = None, assume: str | Mapping[str, Any] = "", numeric: bool = False
    ) -> Derived:
        """Return the closed forms with known sizes substituted and known conditions decided.

        Args:
            config: Values that decide all conditions; sizes stay symbolic.
            assume: Sizes to substitute, such as ``"qk_norm=null, K=0"``; they vanish from the formulas.
            numeric: Whether to substitute all sizes, from the config or by default.

        Raises:
            SymflopsError: an assumed size is unknown, a value does not fit, or the structure was derived for other values.
        """
        return self.under(known_of(self.program.keys, config, assume, numeric))

    def under(self, known: Known) -> Derived:
        """Return the closed forms with the ``known`` sizes substituted and conditions on them decided.

        Raises:
            SymflopsError: as :meth:`at`.
        """
        program = known.of(self.program.counting([self.case.convention]))
        return Derived(program, program.case(self.case.regime, self.case.convention))

    @cached_property
    def document(self) -> dict[str, Any]:
        """The program as plain data (the stored form), the input of estimators."""
        return document_of(self.program)

    def estimator(self, config: Mapping[str, Any]) -> InterpretedEstimator:
        """Build the estimator of these forms for one config."""
        return InterpretedEstimator(self.document, config, regime=self.case.regime, convention=self.case.convention)

    def __repr__(self) -> str:
        return f"Derived('{self.program.name}', regime='{self.case.regime}', convention='{self.case.convention}')"
