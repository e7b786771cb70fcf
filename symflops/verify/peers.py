"""Compares the figures of other frameworks with derivations under the conventions named after them.

A record holds the arguments of a framework's own code and the figure that it returned. The page of its system
(``conventions/peers``) maps the record to a spec, config, batch and convention; the derived figure comes from those alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any

from sympy import Integer

from symflops.api import Model, convention_of, load
from symflops.evaluate.classes import NAMING, class_name, of_class
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.ir.program import Program
from symflops.read.peer_pages import PeerCase, PeerPage, read_peers
from symflops.read.spec_files import PACKAGE, read_source, there
from symflops.support.findings import SpecError, SymflopsError
from symflops.support.reading import read_json
from symflops.verify.record_expressions import Names, batch_of, config_of, names_of, regime_of, value_of

Record = Mapping[str, Any]
TOLERANCE = Fraction(1, 10**12)


@dataclass(frozen=True, slots=True)
class Conformance:
    """Result of comparing one record of a framework with the derived figure.

    Attributes:
        system: The name of the framework.
        id: The name of the record.
        status: ``equal``, ``different``, ``refused`` (only the framework returns a figure) or ``unmapped`` (no case fits).
        expected: The figure or figures that the framework returned; None if it refused.
        derived: The derived figure or figures; None without a derivation.
        equal: Whether they agree; also True if both sides refuse.
        explanation: Why they differ.
    """

    system: str
    id: str
    status: str
    expected: Any
    derived: Any
    equal: bool
    explanation: str = ""

    def as_json(self) -> dict[str, Any]:
        """Convert the result to the JSON object that ``symflops conform --json`` prints."""
        shown = {name: getattr(self, name) for name in self.__slots__}
        return {name: float(value) if isinstance(value, Fraction) else value for name, value in shown.items()}


def systems(folder: Path) -> Iterator[tuple[str, list[Record]]]:
    """Yield (system, records) for each JSON file in ``folder``; the system, a framework, is named by it.

    Raises:
        SymflopsError: the folder does not exist, or a file is not JSON.
    """
    if not folder.is_dir():
        raise SymflopsError(f"there is no folder {folder}")
    for path in sorted(folder.glob("*.json")):
        found = read_json(path)
        if not isinstance(found, list) or not all(isinstance(record, dict) for record in found):
            raise SymflopsError(f"{path}: not a list of records")
        records: list[Record] = [record for record in found if ("flops" in record or "state" in record)]
        if not all(map(has_figure, records)):
            raise SymflopsError(f"{path}: a record whose figure is no number, no table of numbers, and not null")
        if records:
            yield path.stem, records


@cache
def page_of(system: str) -> PeerPage | None:
    """Read the page that says how a system's records map to specs and conventions; None if there is none."""
    path = PACKAGE / "conventions" / "peers" / f"{system}.yaml"
    page = read_peers(read_source(path)) if system.isidentifier() and there(path) else None
    return page_of(page.same_as) if page is not None and page.same_as else page


@dataclass
class Conforming:
    """Derives the figures of framework records, and caches the programs needed."""

    models: dict[str, Model] = field(default_factory=dict)
    programs: dict[tuple[Any, ...], Program] = field(default_factory=dict)

    def judge(self, system: str, position: int, record: Record) -> Conformance:
        """Derive the figure of a record and compare it; a record without a name gets its ``position``."""
        page = page_of(str(record.get("system", system))) or page_of(system)
        identity = str(record.get("id") or record.get("case") or position)
        record = completed(page, record)
        expected = expected_of(record)
        try:
            case, names = case_of(page, record)
            if case is None:
                return Conformance(system, identity, "unmapped", expected, None, False, unmapped(page))
            derived = self.derive(case, record, names)
        except SpecError as error:
            return refused(system, identity, expected, error.diagnostics[0].message if error.diagnostics else str(error))
        except SymflopsError as error:
            return refused(system, identity, expected, str(error))
        equal = same(expected, derived)
        fails = f"the framework fails: {record['error']}" if expected is None and "error" in record else ""
        explanation = "" if equal else fails or explain(expected, derived, case)
        return Conformance(system, identity, "equal" if equal else "different", expected, derived, equal, explanation)

    def derive(self, case: PeerCase, record: Record, names: Names) -> Any:
        """Derive the figure of a record, or name -> figure if the case has several."""
        config = config_of(case, record, names)
        if not case.spec:
            return {key: value_of(tell, names) for key, tell in case.tells}
        named = "" if case.named is None else str(value_of(case.named, names))
        estimator = self.estimator(case.spec, case.convention, regime_of(case, names), config, named)
        moments = estimator.moments(**batch_of(case, record, names))
        if case.figures or case.tells:
            modules = {name: Integer(flops.forward) for name, flops in estimator.by_module(moments).items()}
            derived = {key: value_of(figure, modules) for key, figure in case.figures}
            others = {key: value_of(tell, names) for key, tell in case.tells}
            return {**derived, **{key: value for key, value in others.items() if value is not None}}
        forward, backward = estimator.forward(moments), estimator.backward(moments)
        passes = {"forward": Integer(forward), "backward": Integer(backward)}
        word = "total" if case.figure is None else value_of(case.figure, Names({**names, **passes}))
        figure = {"forward": forward, "total": forward + backward}[word] if isinstance(word, str) else word
        figure = Fraction(figure * (1 if case.times is None else value_of(case.times, names)))
        return figure.numerator if figure.denominator == 1 else figure

    def estimator(
        self, spec: str, convention: str, regime: str, config: Mapping[str, Any], named: str = ""
    ) -> InterpretedEstimator:
        """Build the estimator of a model under a convention; configs of one structure share a program.

        The class in the record's config is ignored, because a framework may count one model as another. ``named`` is the class
        whose rules apply.
        """
        config = {key: value for key, value in config.items() if key not in NAMING}
        if spec not in self.models:
            self.models[spec] = load(spec)
        if viewed := named in map(class_name, self.models[spec].spec.references):
            config = of_class(config, named)
        rules = convention_of(convention).of((named,)) if named else convention
        key = (spec, rules, regime, named if viewed else "")
        fixed = (*key, repr(config))  # a program whose structure the config decides
        program = self.programs.get(key) or self.programs.get(fixed)
        if program is None:
            program = self.models[spec].program([regime], [rules], config)
            self.programs[fixed if program.fixed else key] = program
        found = InterpretedEstimator(program, config, regime=program.regimes[0].name, convention=program.conventions[0])
        found.any_length = True  # a framework's figure is arithmetic
        return found


def completed(page: PeerPage | None, record: Record) -> Record:
    """Return the record with fields that the page lists for its model added to its config, where missing."""
    known = page.models.get(str(record.get("model"))) if page is not None else None
    if known is None:
        return record
    config = record.get("config")
    given = {key: value for key, value in config.items() if value is not None} if isinstance(config, Mapping) else {}
    return {**record, "config": {**known, **given}}


def case_of(page: PeerPage | None, record: Record) -> tuple[PeerCase | None, Names]:
    """Return (first case of the page whose condition holds, or None; names of the record for expressions)."""
    names = names_of(record)
    for case in page.cases if page is not None else ():
        if case.when is None or value_of(case.when, names):
            return case, names
    return None, names


def expected_of(record: Record) -> Any:
    """The figure, or the table of figures, that the framework returned for a record; None if it refused."""
    found = record.get("flops") if "state" not in record else record["state"]
    return float(found) if isinstance(found, str) else found


def has_figure(record: Record) -> bool:
    """Whether what a framework returned is valid: null, a finite number, or a table."""
    try:
        found = expected_of(record)
    except ValueError:
        return False
    return found is None or isinstance(found, (dict, int)) or (isinstance(found, float) and isfinite(found))


def same(expected: Any, derived: Any) -> bool:
    """Whether two figures are equal: whole numbers exactly, floats within ``TOLERANCE``."""
    if isinstance(expected, dict) or isinstance(derived, dict):
        return bool(expected == derived)
    if expected is None:
        return False
    if isinstance(expected, float) and isinstance(derived, (int, float, Fraction)):
        theirs, ours = Fraction(expected), Fraction(derived)  # any size of number
        return abs(theirs - ours) <= TOLERANCE * max(abs(theirs), abs(ours))
    return bool(expected == derived)


def refused(system: str, identity: str, expected: Any, why: str) -> Conformance:
    """Build the result of a record that cannot be derived; it is equal if the framework refuses as well."""
    equal = expected is None
    return Conformance(system, identity, "equal" if equal else "refused", expected, None, equal, "" if equal else why)


def unmapped(page: PeerPage | None) -> str:
    """Explain why no case matches a record."""
    if page is None:
        return "no page says what the records of this system are about"
    return page.notes or "no spec describes this model"


def explain(expected: Any, derived: Any, case: PeerCase) -> str:
    """Describe a difference of two figures: the reason that ``case`` states, if any, and its size."""
    if not isinstance(expected, (int, float)) or not isinstance(derived, (int, float, Fraction)):
        return case.because or "the figures differ"
    theirs, ours = Fraction(expected), Fraction(derived)
    ratio = f"derived is {Decimal(round(ours / theirs * 10**6)).scaleb(-6):.6f} of it" if theirs else f"derived is {derived}"
    return f"{case.because + '; ' if case.because else ''}{ratio} (difference {round(ours - theirs):+,})"


def shares(found: Sequence[Conformance]) -> dict[str, tuple[int, int]]:
    """Map each system to (number of equal records, number of records)."""
    counts: dict[str, tuple[int, int]] = {}
    for one in found:
        equal, total = counts.get(one.system, (0, 0))
        counts[one.system] = (equal + one.equal, total + 1)
    return counts
