"""What a program that uses symflops calls: load a spec, derive it, estimate with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from symflops.build.build import build
from symflops.catalog.library import NotFoundError, SpecFile, find_spec, page
from symflops.compiler import AS_DERIVED, compile_graphs, derived
from symflops.derive.derive import derive
from symflops.diagnostics.findings import SpecError, did_you_mean
from symflops.emit.markdown.notebook import Shown
from symflops.frontend.conventions import read_convention
from symflops.frontend.read import read
from symflops.frontend.regimes import inline_regime, read_regime
from symflops.frontend.variants import DEFAULT, config_of, fixed_by, needless_sizes, value_in
from symflops.model.convention import Convention
from symflops.model.derivation import Derivation
from symflops.model.graph import Graph
from symflops.model.needs_size import NeedsSize
from symflops.model.patterns import cutting
from symflops.model.program import Case, Program
from symflops.model.regime import Regime
from symflops.model.spec import SizeSpec, Spec, VariantSpec
from symflops.runtime.interpreted import InterpretedEstimator
from symflops.syntax.expression import names

T = TypeVar("T")

REGIMES, CONVENTIONS = ("full", "forward"), ("symflops", "torch")
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
class Derived(Shown):
    """The closed forms of a model under one regime and convention.

    ``forward`` and ``backward`` map the name of each moment to its coefficient as text; ``program`` is what they are
    printed from.
    """

    program: Program
    case: Case

    def _texts(self, form: Sequence[tuple[int, Any]]) -> dict[str, str]:
        from symflops.emit.python.printer import PythonPrinter

        return {self.program.moments[position].name: PythonPrinter().text(formula) for position, formula in form}

    @property
    def forward(self) -> dict[str, str]:
        """FLOPs of the forward pass, as moment -> coefficient."""
        return self._texts(self.case.forward)

    @property
    def backward(self) -> dict[str, str]:
        """FLOPs of the backward pass, as moment -> coefficient."""
        return self._texts(self.case.backward)

    def estimator(self, config: Mapping[str, Any]) -> InterpretedEstimator:
        """The estimator of these forms for one config."""
        return InterpretedEstimator(self.program, config, regime=self.case.regime, convention=self.case.convention)


@dataclass(frozen=True)
class Model:
    """A loaded spec."""

    file: SpecFile
    spec: Spec
    builder: Callable[..., Graph | NeedsSize] = field(default=build, repr=False, compare=False)
    _graphs: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def partial(self) -> bool:
        """Whether it is what could be made of a spec that is not valid, or not finished."""
        return self.builder is not build

    @property
    def variants(self) -> dict[str, dict[str, Any]]:
        """The variants by name, each with what its config says that makes its structure another one."""
        return {variant.name.text: config_of(variant, self.spec.sizes) for variant in self.spec.variants}

    def graph(self, config: Mapping[str, Any] | None = None, variant: str = "") -> Graph:
        """The graph; sizes that decide the structure are taken from ``config``, or from a variant.

        Raises:
            SpecError: the spec is not valid, or its structure needs a size that is not given.
        """
        config, fixed = self._known(config, variant)
        return self._settled(config, lambda made: made.graph(Regime("")), fixed)

    def _settled(self, config: Mapping[str, Any] | None, use: Callable[[_Made], T | NeedsSize], fixed: Mapping[str, Any]) -> T:
        """What ``use`` makes of the graphs for its regimes; sizes that the structure must know are taken from ``config``."""
        while True:
            found = use(_Made(self, fixed))
            if not isinstance(found, NeedsSize):
                return found
            wanted = self.asked(found.size, fixed)
            size = next((size for size in self.spec.sizes if size.name.text == wanted), None)
            value = self.value_of(size, config) if config is not None and size else None
            null = value is None and not (size and size.optional and config is not None)
            if null or wanted in fixed:
                span = found.diagnostic.span or (size.name.span if size else None)
                raise SpecError([replace(found.diagnostic, span=span)])
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
        return value_in(self.spec.sizes, wanted.name.text, config)

    def check_regime(self, regime: str | Path | Regime, config: Mapping[str, Any] | None = None, variant: str = "") -> None:
        """Derive both passes under ``regime``, of a config or of a variant.

        Raises:
            SpecError: its patterns do not fit the model.
        """
        config, fixed = self._known(config, variant)
        self._derivation(regime_of(regime), AS_DERIVED, config, fixed)

    def variant(self, name: str) -> VariantSpec:
        """A variant by name."""
        known = {variant.name.text: variant for variant in self.spec.variants}
        if name not in known:
            hint = did_you_mean(name, known, f"it has {', '.join(known) or 'none'}")
            raise NotFoundError(f"'{self.spec.name}' has no variant '{name}': {hint}")
        return known[name]

    def _known(self, config: Mapping[str, Any] | None, variant: str) -> tuple[Mapping[str, Any] | None, dict[str, Any]]:
        """A config, or that of a variant, and the sizes that are fixed from the start."""
        if not variant:
            return config, {}
        found = self.variant(variant)
        return config_of(found, self.spec.sizes), fixed_by(found, self.spec.sizes)

    def program(
        self,
        regimes: Sequence[str | Path | Regime] = REGIMES,
        conventions: Sequence[str | Path | Convention] = CONVENTIONS,
        config: Mapping[str, Any] | None = None,
        variant: str = "",
    ) -> Program:
        """The program under several regimes and conventions, of a config or of a variant."""
        steps = [phases_of(regime_of(regime)) for regime in regimes]
        counted = [convention_of(name) for name in conventions]

        def compiled(made: _Made) -> Program | NeedsSize:
            found = [made.step(phases) for phases in steps]
            ready = [step for step in found if not isinstance(step, NeedsSize)]
            needs = next((step for step in found if isinstance(step, NeedsSize)), None)
            return needs or compile_graphs(ready, counted, made.derive)

        config, fixed = self._known(config, variant)
        return self._settled(config, compiled, fixed)

    def derivation(
        self,
        regime: str | Path | Regime = "full",
        convention: str | Path | Convention = "symflops",
        config: Mapping[str, Any] | None = None,
    ) -> Derivation:
        """What a convention counts of both passes, contraction by contraction."""
        return self._derivation(regime_of(regime), convention_of(convention).of(self.spec.name), config, {})

    def _derivation(
        self, regime: Regime, counted: Convention, config: Mapping[str, Any] | None, fixed: Mapping[str, Any]
    ) -> Derivation:
        def derived_for(made: _Made) -> list[Derivation] | NeedsSize:
            step = made.step(phases_of(regime))
            return step if isinstance(step, NeedsSize) else derived([step], counted, made.derive)

        return self._settled(config, derived_for, fixed)[0]

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
            return replace(self.program(regimes, conventions, {}), variant=DEFAULT)

    def published(
        self,
        variant: str,
        regimes: Sequence[str | Path | Regime] = REGIMES,
        conventions: Sequence[str | Path | Convention] = CONVENTIONS,
    ) -> Program:
        """The program of a variant.

        Raises:
            SpecError: the structure needs a size that has no default and that the variant does not say, or does not need one
                that it says.
        """
        program = self.program(regimes, conventions, variant=variant)
        needless = needless_sizes(self.variant(variant), program.fixed)
        if needless:
            raise SpecError(needless)
        return replace(program, variant=variant)

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


class _Made:
    """Graphs and derivations of a spec in which some sizes are known, each made once, or found once to need another size."""

    def __init__(self, model: Model, fixed: Mapping[str, Any]) -> None:
        self.spec, self.fixed, self.kept, self.builder = model.spec, fixed, model._graphs, model.builder
        self.key = tuple(sorted((name, repr(value)) for name, value in fixed.items()))

    def graph(self, regime: Regime) -> Graph | NeedsSize:
        """The graph, cut as the patterns of ``regime`` ask."""
        patterns = cutting(regime.patterns)
        return self._once(patterns, lambda: self.builder(self.spec, self.fixed, patterns))

    def step(self, phases: Sequence[tuple[Regime, int]]) -> list[tuple[Graph, Regime, int]] | NeedsSize:
        """The phases of a step with their graphs, and how often each runs."""
        found = [(self.graph(phase), phase, times) for phase, times in phases]
        needs = next((graph for graph, _, _ in found if isinstance(graph, NeedsSize)), None)
        return needs or [(graph, phase, times) for graph, phase, times in found if isinstance(graph, Graph)]

    def derive(self, graph: Graph, regime: Regime, elements: frozenset[str]) -> Derivation | NeedsSize:
        """Both passes of a graph of this spec under ``regime``, with elements of its values."""
        return self._once((cutting(regime.patterns), regime, elements), lambda: derive(graph, regime, elements))

    def _once(self, what: Any, make: Callable[[], T]) -> T:
        key = (self.key, what)
        if key not in self.kept:
            self.kept[key] = make()
        made: T = self.kept[key]
        return made


def load(spec: str | Path | SpecFile) -> Model:
    """Load a spec by name, by path, or as it was found.

    Raises:
        NotFoundError: there is no such spec.
        SpecError: it is not valid in form.
    """
    file = spec if isinstance(spec, SpecFile) else find_spec(spec)
    return Model(file, read(file.source(), file.blocks(), file.bases()))
