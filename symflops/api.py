"""What a program that uses symflops calls: load a spec, derive it, estimate with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from symflops.algebra.evaluate import evaluate
from symflops.algebra.structural import Structural
from symflops.compiler import compile_graphs, derived
from symflops.ground.diagnostics import SpecError
from symflops.ground.expression import names
from symflops.library import SpecFile, find_spec, page
from symflops.model.convention import Convention
from symflops.model.derivation import Derivation
from symflops.model.graph import Graph
from symflops.model.patterns import cutting
from symflops.model.program import Case, Program
from symflops.model.regime import Regime
from symflops.model.spec import SizeSpec, Spec
from symflops.runtime.interpreted import InterpretedEstimator
from symflops.runtime.sizes import is_null, look_up
from symflops.stages.build import build, known
from symflops.stages.conventions import read_convention
from symflops.stages.data import inline_regime, read_regime
from symflops.stages.derive import derive
from symflops.stages.naming import plain
from symflops.stages.read import read

T = TypeVar("T")

REGIMES = ("full", "forward")
CONVENTIONS = ("symflops", "torch")
STRUCTURAL = ("structural-size", "alternating-repeat", "bad-pattern")  # what a known size would settle


def regime_of(regime: str | Path | Regime) -> Regime:
    """A regime by name, by file, as one line (``lora:r=16,targets=*.to_q|*.to_v``), or as it is."""
    if isinstance(regime, Regime):
        return regime
    name, colon, changes = str(regime).partition(":")
    if colon and not str(regime).endswith((".yaml", ".yml")):
        return inline_regime(changes, read_regime(page("regimes", name)))
    return read_regime(page("regimes", regime))


def phases_of(regime: Regime) -> list[tuple[Regime, int]]:
    """The runs of the model in one step of ``regime``: its own first."""
    return [(regime, 1), *((regime_of(phase.regime), phase.times) for phase in regime.phases)]


def convention_of(convention: str | Path | Convention) -> Convention:
    """A convention by name, by file, or as it is."""
    return convention if isinstance(convention, Convention) else read_convention(page("conventions", convention))


@dataclass(frozen=True)
class Derived:
    """The closed forms of a model under one regime and convention.

    ``forward`` and ``backward`` map the name of each moment to its coefficient as text; ``program`` is what they are
    printed from.
    """

    program: Program
    case: Case

    def _texts(self, form: Sequence[tuple[int, Any]]) -> dict[str, str]:
        from symflops.targets.python_printer import PythonPrinter

        return {self.program.moments[position].name: PythonPrinter().text(formula) for position, formula in form}

    @property
    def forward(self) -> dict[str, str]:
        """FLOPs of the forward pass: moment -> coefficient."""
        return self._texts(self.case.forward)

    @property
    def backward(self) -> dict[str, str]:
        """FLOPs of the backward pass: moment -> coefficient."""
        return self._texts(self.case.backward)

    def estimator(self, config: Mapping[str, Any]) -> InterpretedEstimator:
        """The estimator of these forms for one config."""
        return InterpretedEstimator(self.program, config, regime=self.case.regime, convention=self.case.convention)


@dataclass(frozen=True)
class Model:
    """A loaded spec."""

    file: SpecFile
    spec: Spec
    _graphs: dict[Any, Graph] = field(default_factory=dict, repr=False, compare=False)

    def graph(self, config: Mapping[str, Any] | None = None) -> Graph:
        """The graph; sizes that decide the structure are taken from ``config``.

        Raises:
            SpecError: the spec is not valid, or its structure needs a size that ``config`` does not give.
        """
        return self._settled(config, lambda build_for: build_for(Regime("")))

    def _settled(self, config: Mapping[str, Any] | None, use: Callable[[Callable[[Regime], Graph]], T]) -> T:
        """What ``use`` makes of the graphs for its regimes; sizes that the structure must know are taken from ``config``."""
        fixed: dict[str, Any] = {}
        while True:
            key = tuple(sorted((name, repr(value)) for name, value in fixed.items()))

            def build_for(regime: Regime, key: Any = key, fixed: dict[str, Any] = fixed) -> Graph:
                patterns = cutting(regime.patterns)
                if (key, patterns) not in self._graphs:
                    self._graphs[key, patterns] = build(self.spec, fixed, patterns)
                return self._graphs[key, patterns]

            try:
                return use(build_for)
            except Structural as structural:
                wanted = self.asked(structural.size, fixed)
                size = next((size for size in self.spec.sizes if size.name.text == wanted), None)
                value = self.value_of(size, config) if config is not None and size else None
                null = value is None and not (size and size.optional and config is not None)
                if null or wanted in fixed:
                    found = structural.diagnostic
                    raise SpecError([replace(found, span=found.span or (size.name.span if size else None))]) from None
                fixed = {**fixed, wanted: value}

    def asked(self, name: str, given: Mapping[str, Any]) -> str:
        """The size that is to be known next for ``name``: itself, or the first of those that a derived one is made of."""
        derived = {letter.text: expression for letter, expression in self.spec.derived}

        def sizes(letter: str) -> Iterator[str]:
            if letter not in derived:
                yield letter
                return
            for inner, _ in names(derived[letter]):
                yield from sizes(inner)

        return next((size for size in sizes(name) if size not in given), name)

    def value_of(self, wanted: SizeSpec, config: Mapping[str, Any]) -> Any:
        """A size of a config, or its default, which may depend on the sizes above it."""
        scope: dict[str, Any] = {}
        for size in self.spec.sizes:
            value = look_up(config, size.keys)
            null = size.optional and is_null(config, size.keys)
            if value is None and size.default is not None and not null:
                value = plain(evaluate(size.default, scope))
            if size is wanted:
                return value
            scope[size.name.text] = known(value)
        return None

    def check_regime(self, regime: str | Path | Regime, config: Mapping[str, Any] | None = None) -> None:
        """Derive both passes under ``regime`` and forget them.

        Raises:
            SpecError: its patterns do not fit the model.
        """
        phases = phases_of(regime_of(regime))
        self._settled(config, lambda build_for: [derive(build_for(phase), phase) for phase, _ in phases])

    def program(
        self,
        regimes: Sequence[str | Path | Regime] = REGIMES,
        conventions: Sequence[str | Path | Convention] = CONVENTIONS,
        config: Mapping[str, Any] | None = None,
    ) -> Program:
        """The program under several regimes and conventions."""
        steps = [phases_of(regime_of(regime)) for regime in regimes]
        counted = [convention_of(name) for name in conventions]

        def compiled(build_for: Callable[[Regime], Graph]) -> Program:
            return compile_graphs([[(build_for(phase), phase, times) for phase, times in step] for step in steps], counted)

        return self._settled(config, compiled)

    def derivation(
        self,
        regime: str | Path | Regime = "full",
        convention: str | Path | Convention = "symflops",
        config: Mapping[str, Any] | None = None,
    ) -> Derivation:
        """What a convention counts of both passes, contraction by contraction."""
        phases, counted = phases_of(regime_of(regime)), convention_of(convention).of(self.spec.name)

        def derived_for(build_for: Callable[[Regime], Graph]) -> Derivation:
            return derived([[(build_for(phase), phase, times) for phase, times in phases]], counted)[0]

        return self._settled(config, derived_for)

    def typical(
        self,
        regimes: Sequence[str | Path | Regime] = REGIMES,
        conventions: Sequence[str | Path | Convention] = CONVENTIONS,
    ) -> Program:
        """The program of all configs; where a config decides the structure, that of the structure which the defaults have."""
        try:
            return self.program(regimes, conventions)
        except SpecError as error:
            if any(diagnostic.code not in STRUCTURAL for diagnostic in error.diagnostics):
                raise
            return self.program(regimes, conventions, {})

    def derive(
        self,
        regime: str | Path | Regime = "full",
        convention: str | Path | Convention = "symflops",
        config: Mapping[str, Any] | None = None,
    ) -> Derived:
        """Both passes under one regime and convention, as closed forms."""
        program = self.program([regime], [convention], config)
        return Derived(program, program.cases[0])

    def estimator(
        self,
        config: Mapping[str, Any],
        regime: str | Path | Regime = "full",
        convention: str | Path | Convention = "symflops",
    ) -> InterpretedEstimator:
        """An estimator for one config: ``.parameters``, ``.moments(...)``, ``.forward(m)``, ``.backward(m)``."""
        return self.derive(regime, convention, config).estimator(config)


def load(spec: str | Path) -> Model:
    """Load a spec by name or path.

    Raises:
        NotFoundError: there is no such spec.
        SpecError: it is not valid in form.
    """
    file = find_spec(spec)
    return Model(file, read(file.source(), file.blocks(), file.bases()))
