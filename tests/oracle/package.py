"""The package on a case of the oracle: the only module here that imports it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from symflops.api import CONVENTIONS, Model
from symflops.emit.python.module import render
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.formula.formula import Formula, evaluate as value_of
from symflops.ir.index_sets import PADDED
from symflops.ir.patterns import any_matches
from symflops.ir.program import Program
from symflops.ir.regime import Regime
from symflops.read.read import read
from symflops.read.spec_files import SpecFile
from symflops.support.findings import Source, SpecError, SymflopsError
from tests.standalone import alone, figures, sizes_for

from .interpreter import Result
from .specs import Case, to_yaml

__all__ = ["CONVENTIONS", "SymflopsError", "closed_form", "generated", "interpreted", "program_of", "symbolic"]

REGIME = "case"


def program_of(case: Case, freeze: Sequence[str] = (), *, symbolic: bool = False) -> Program:
    """The program of a case under both conventions; ``symbolic`` gives it no config to decide its structure with.

    Raises:
        SpecError: the structure needs a config.
    """
    file = SpecFile(Path("."), Path("case.yaml"), "case.yaml")
    model = Model(file, read(Source("case.yaml", to_yaml(case.document)), lambda name: None))
    config = None if symbolic else case.config
    paths = {parameter.path for operator in model.graph(config).operators() for parameter in operator.parameters}
    train, frozen = (tuple(p for p in patterns if p == "*" or any(any_matches([p], path, {}) for path in paths)) for patterns in (case.train, freeze))
    return model.program([Regime(REGIME, train=tuple(p for p in train if p not in frozen), freeze=frozen)], CONVENTIONS, config)


def symbolic(case: Case) -> Program | None:
    """The program of a case without any config; None where the structure needs one."""
    try:
        return program_of(case, symbolic=True)
    except SpecError as error:
        if all(item.code in ("structural-size", "alternating-repeat") for item in error.diagnostics):
            return None
        raise


def interpreted(program: Program, case: Case, convention: str) -> Result:
    """The four numbers of the estimator that reads the program."""
    estimator = InterpretedEstimator(program, case.config, regime=REGIME, convention=convention)
    m = estimator.moments(**case.batch)
    return Result(estimator.parameters, estimator.trainable_parameters, estimator.forward(m), estimator.backward(m))


def closed_form(program: Program, case: Case, convention: str) -> tuple[int, int]:
    """Forward and backward by the coefficients that are printed."""
    estimator = InterpretedEstimator(program, case.config, regime=REGIME, convention=convention)
    moments = estimator.moments(**case.batch).values
    (form,) = (item for item in program.cases if item.convention == convention)

    def total(terms: Sequence[tuple[int, Formula]]) -> int:
        return int(sum(value_of(formula, estimator.sizes) * moments[position] for position, formula in terms))

    return total(form.forward), total(form.backward)


def generated(program: Program, case: Case, convention: str) -> Result:
    """The four numbers of the generated module alone."""
    module = alone(render(program, "0"), f"generated_{convention}")
    estimator = InterpretedEstimator(program, case.config, regime=REGIME, convention=convention)
    streams = {stream.name for stream in program.streams if stream.variables}
    side = "padded" if dict(program.lengths)[convention] == PADDED else "lengths"
    batch = {name: given[side] if isinstance(given, dict) else given for name, given in case.batch.items() if name in streams}
    return Result(*figures(module, sizes_for(module, estimator.stored, estimator.sizes), batch, REGIME, convention))
