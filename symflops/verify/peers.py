"""Compares the figures of other frameworks with derivations under the conventions named after them.

A record holds the arguments of a framework's own code and the figure that it returned. The page of its system
(``conventions/peers``) maps the record to a spec, config, batch and convention; the derived figure comes from those alone.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Any

from sympy import Integer, Rational

from symflops.api import Model, convention_of, load
from symflops.evaluate.classes import NAMING, class_name, of_class
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.formula.domain import known, python_value
from symflops.formula.evaluate import evaluate
from symflops.formula.expression import Expression
from symflops.ir.program import Program
from symflops.read.peer_pages import Lengths, PeerCase, PeerPage, read_peers
from symflops.read.spec_files import PACKAGE, read_source, there
from symflops.support.findings import SpecError, SymflopsError
from symflops.support.reading import read_json
from symflops.verify.classes import with_value

Record = Mapping[str, Any]
TOLERANCE = Fraction(1, 10**12)
MOST_ITEMS = 100_000
PARTS = ("config", "seqlens", "other_args", "args")
"""Fields of a record whose own fields are names without a prefix."""


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
                why = "no page says what the records of this system are about"
                why = why if page is None else page.notes or "no spec describes this model"
                return Conformance(system, identity, "unmapped", expected, None, False, why)
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
        """Derive the figure of a record, or if the case has several a dict: name -> figure."""
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
    found = record.get("state", record.get("flops"))
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


def explain(expected: Any, derived: Any, case: PeerCase) -> str:
    """Describe a difference of two figures: the reason that ``case`` states, if any, and its size."""
    if not isinstance(expected, (int, float)) or not isinstance(derived, (int, float, Fraction)):
        return case.because or "the figures differ"
    theirs, ours = Fraction(expected), Fraction(derived)
    ratio = f"derived is {Decimal(round(ours / theirs * 10**6)).scaleb(-6):.6f} of it" if theirs else f"derived is {derived}"
    return f"{case.because + '; ' if case.because else ''}{ratio} (difference {round(ours - theirs):+,})"


def shares(found: Sequence[Conformance]) -> dict[str, tuple[int, int]]:
    """Map each system to (number of equal records, number of records)."""
    equal, total = Counter(one.system for one in found if one.equal), Counter(one.system for one in found)
    return {system: (equal[system], count) for system, count in total.items()}


class Names(dict[str, Any]):
    """Name in expressions over a record -> value; every other name has the value None."""

    def __missing__(self, name: str) -> None:
        return None

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str)


def names_of(record: Record) -> Names:
    """Collect the fields of a record as names; nested ones are prefixed: ``text_config_hidden_size``."""
    words: dict[str, Any] = {}
    for part in (record, *(record.get(name) for name in PARTS)):
        words.update(_flat(part, "") if isinstance(part, Mapping) else ())
    return Names(words)


def _flat(part: Mapping[str, Any], before: str) -> Iterator[tuple[str, Any]]:
    for name, value in part.items():
        if isinstance(value, Mapping):
            yield before + name, len(value)
            if name not in PARTS:
                yield from _flat(value, f"{before}{name}_")
        else:
            yield before + name, _known(value)


def _known(value: Any) -> Any:
    """Convert a value of a record to the domain of expressions: exact numbers and tuples."""
    if isinstance(value, float):
        return Rational(repr(value)) if isfinite(value) else None
    return tuple(_known(item) for item in value) if isinstance(value, (list, tuple)) else known(value)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    # a list unchanged; for a number n a list with 1 for every n-th layer from the first on, and 0 for the others
    "every": lambda step, count: (
        step if isinstance(step, tuple) else tuple(Integer(int(i % int(step) == 0)) for i in range(_number(count)))
    ),
    "steps": lambda ends: tuple(after - before for before, after in pairwise(ends)),  # lengths of documents from boundaries
    "copies": lambda value, count: (value,) * _number(count),
    "count": lambda values, value: Integer(values.count(value)),  # how often a list has a value
    "indices": lambda count: tuple(Integer(number) for number in range(_number(count))),
    "modules": lambda names: tuple(f"*{name}" for name in names),  # patterns of modules by their last names
    "letters": lambda text: tuple(str(text)),
    # the lengths of a pack without its empty documents, on which no model runs alone
    "nonzero": lambda lengths: tuple(length for length in lengths if length != 0),
}
"""Functions that expressions over a record may call."""


def _number(count: Any) -> int:
    """Return a number of items as an int, if it is from 0 to ``MOST_ITEMS``."""
    if not 0 <= int(count) <= MOST_ITEMS:
        raise ValueError(f"{count} items")
    return int(count)


def _call(function: Callable[..., Any]) -> Callable[[Any, ast.Call], Any]:
    def called(walker: Any, node: ast.Call) -> Any:
        arguments = [walker.visit(argument) for argument in node.args]
        try:
            return function(*arguments)
        except (TypeError, ValueError, ArithmeticError) as error:
            raise SymflopsError(f"the record has no fitting value for '{ast.unparse(node):.60}': {error!s:.80}") from None

    return called


def value_of(expression: Expression, names: Mapping[str, Any]) -> Any:
    """Evaluate an expression over a record to a plain Python value."""
    value = python_value(evaluate(expression, names, {name: _call(function) for name, function in FUNCTIONS.items()}))
    return value.numerator if isinstance(value, Fraction) and value.denominator == 1 else value


def regime_of(case: PeerCase, names: Names) -> str:
    """Return the regime of a record as text: its name, or ``name:key=value,...`` with changed fields."""
    changes = []
    for key, expression in case.changes:
        value = value_of(expression, names)
        changes.append(f"{key}={'|'.join(map(str, value)) if isinstance(value, tuple) else value}")
    return f"{case.regime}:{','.join(changes)}" if changes else case.regime


def config_of(case: PeerCase, record: Record, names: Names) -> dict[str, Any]:
    """Convert the config of a record to the spec's fields: rename, drop and set some."""
    renamed, given = dict(case.rename), record.get("config")
    kept: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    config = {renamed.get(key, key): value for key, value in kept.items() if key not in case.drop}
    for key, expression in case.put:
        config = with_value(config, key, value_of(expression, names))
    return config


def batch_of(case: PeerCase, record: Record, names: Names) -> dict[str, Any]:
    """Map each stream to its lengths, in the form that ``moments`` takes, computed from a record as ``case`` says."""
    lists = {lengths.stream: value_of(lengths.source, names) for lengths in case.batch}
    longest = max((len(entries) for entries in lists.values() if isinstance(entries, tuple)), default=0)
    return {lengths.stream: _entries(lengths, lists[lengths.stream], longest, names) for lengths in case.batch}


def _entries(lengths: Lengths, given: Any, longest: int, names: Names) -> Any:
    if given is None:
        given = ()
    if not isinstance(given, tuple):
        raise SymflopsError(f"the record has no list for '{lengths.stream}'")
    if not given and lengths.empty is not None:
        given = (value_of(lengths.empty, names),) * longest
    if lengths.entry is not None:
        given = tuple(value_of(lengths.entry, {**names, "n": _known(entry)}) for entry in given)
    if lengths.padded is not None:
        return {"lengths": list(given), "padded": list(value_of(lengths.padded, names))}
    return [list(entry) if isinstance(entry, tuple) else entry for entry in given]
