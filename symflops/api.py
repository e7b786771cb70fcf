"""The functions that a program calls: load a spec, derive it, estimate with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack

from symflops.build.build import build
from symflops.compiler import (
    AS_DERIVED,
    Builder,
    Compiled,
    Goal,
    Memo,
    NeedsSizeError,
    Request,
    RequestFields,
    Step,
    compile_spec,
)
from symflops.emit.emit import Derived
from symflops.evaluate.assumed import Known, known_of
from symflops.evaluate.config import as_json
from symflops.evaluate.evidence import TRACED
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.misfit import about_config
from symflops.evaluate.module_tree import html_table
from symflops.ir.convention import Convention
from symflops.ir.graph import Derivation, Graph
from symflops.ir.program import Program
from symflops.ir.regime import Regime
from symflops.ir.spec import SizeSpec, Spec, VariantSpec
from symflops.library.records.census import stored_fields
from symflops.library.records.identities import identities
from symflops.library.records.verified import catalogued, measured_rules
from symflops.read.conventions import read_convention
from symflops.read.read import read
from symflops.read.regimes import inline_regime, read_regime
from symflops.read.spec_files import NotFoundError, SpecFile, find_spec, page, shipped
from symflops.read.variants import DEFAULT, config_of, fixed_by, needless_sizes, value_in
from symflops.support.errors import kind_of
from symflops.support.findings import Source, SpecError, SymflopsError, did_you_mean

REGIMES, CONVENTIONS = ("full", "forward"), ("symflops", "torch")
AnyRegime = str | Path | Regime
AnyConvention = str | Path | Convention

__all__ = ["Derived", "Model", "convention_of", "load", "phases_of", "regime_of"]


def regime_of(regime: AnyRegime) -> Regime:
    """Read a regime by name, file, inline text (``lora:r=16,targets=*.to_q|*.to_v``), or JSON text."""
    if isinstance(regime, Regime):
        return regime
    named(regime, "regime")
    if str(regime).startswith("{"):
        return read_regime(Source("--regime", str(regime)))
    name, colon, changes = str(regime).partition(":")
    if colon and not str(regime).endswith((".yaml", ".yml")):
        return inline_regime(changes, read_regime(page("regimes", name)))
    return read_regime(page("regimes", regime))


def phases_of(regime: Regime) -> Step:
    """Return (regime, runs of the model per step) for ``regime`` itself, then for each of its phases."""
    others = ((regime_of(phase.regime), phase.times) for phase in regime.phases)
    return ((regime, 1), *((replace(other, head=regime.head or other.head), times) for other, times in others))


def convention_of(convention: AnyConvention) -> Convention:
    """Read a convention by name or file; a :class:`Convention` is returned unchanged."""
    if isinstance(convention, Convention):
        return convention
    named(convention, "convention")
    return read_convention(page("conventions", convention))


def named(given: Any, kind: str) -> None:
    """Check that a regime or convention is given by a name or a path.

    Raises:
        SymflopsError: it is something else.
    """
    if not isinstance(given, (str, Path)):
        raise SymflopsError(f"a {kind} is a name or a path, not {kind_of(given)}")


@dataclass(frozen=True)
class Model:
    """A loaded spec. ``memo`` keeps graphs and derivations for later calls; ``builder`` builds the graph.

    ``config`` is that of the published model by whose name the spec was loaded, else empty.
    """

    file: SpecFile
    spec: Spec
    builder: Builder = field(default=build, repr=False, compare=False)
    memo: Memo = field(default_factory=Memo, repr=False, compare=False)
    config: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def partial(self) -> bool:
        """Whether the model comes from an invalid or unfinished spec, built as far as possible."""
        return self.builder is not build

    @property
    def census(self) -> dict[str, Any] | None:
        """Map the name of each class to its census, as stored programs contain it; None if the spec has no census."""
        return stored_fields(self.file)

    @property
    def variants(self) -> dict[str, dict[str, Any]]:
        """Variant name -> the config fields, with values, that lead to the structure of this variant."""
        return {variant.name.text: config_of(variant, self.spec.sizes) for variant in self.spec.variants}

    def variant(self, name: str) -> VariantSpec:
        """Find a variant by name.

        Raises:
            NotFoundError: the spec has no such variant.
        """
        known = {variant.name.text: variant for variant in self.spec.variants}
        if name not in known:
            hint = did_you_mean(name, known, f"it has {', '.join(known) or 'none'}")
            raise NotFoundError(f"'{self.spec.name}' has no variant '{name}': {hint}")
        return known[name]

    def value_of(self, wanted: SizeSpec, config: Mapping[str, Any]) -> Any:
        """Read a size from a config, or compute its default, which may depend on earlier sizes."""
        return value_in(self.spec.sizes, wanted.name.text, config, self.spec.reading)

    def compiled(
        self,
        goal: Goal,
        regimes: Sequence[AnyRegime] = (Regime(""),),
        conventions: Sequence[AnyConvention] = (AS_DERIVED,),
        config: Mapping[str, Any] | None = None,
        variant: str = "",
        **more: Unpack[RequestFields],
    ) -> Compiled:
        """Compile this spec up to ``goal``, for a config or a variant; ``more`` sets other request fields.

        Raises:
            SpecError: the spec is not valid, or a regime does not fit it; :class:`NeedsSizeError` if the structure depends on
                a size that is not given.
        """
        sizes = {}
        if variant:
            found = self.variant(variant)
            config, sizes = config_of(found, self.spec.sizes), fixed_by(found, self.spec.sizes)
        config = None if config is None else as_json(config)
        steps = tuple(phases_of(regime_of(regime)) for regime in regimes)
        counted = tuple(convention_of(convention) for convention in conventions)
        fields: RequestFields = {
            "structure": variant,
            "sizes": sizes,
            "build": self.builder,
            "census": self.census,
            "measured": measured_rules(),
            **more,
        }
        request = Request(goal, steps, counted, config=config, **fields)
        return compile_spec(self.spec, request, self.memo)

    def graph(self, config: Mapping[str, Any] | None = None, variant: str = "") -> Graph:
        """Build the graph; ``config`` or a variant supplies the sizes that decide the structure.

        Raises:
            SpecError: the spec is not valid, or its structure needs a size that is not given.
        """
        return self.compiled(Goal.GRAPH, config=config, variant=variant).graph

    def derivation(
        self,
        regime: AnyRegime = "full",
        convention: AnyConvention = "symflops",
        config: Mapping[str, Any] | None = None,
    ) -> Derivation:
        """Derive both passes, contraction by contraction, as the convention counts them."""
        return self.compiled(Goal.DERIVATION, [regime], [convention], config).derivations[0]

    def program(
        self,
        regimes: Sequence[AnyRegime] = REGIMES,
        conventions: Sequence[AnyConvention] = CONVENTIONS,
        config: Mapping[str, Any] | None = None,
        variant: str = "",
    ) -> Program:
        """Derive the program under several regimes and conventions, for a config or a variant."""
        return program_in(self.compiled(Goal.PROGRAM, regimes, conventions, config, variant))

    def lines(
        self, regimes: Sequence[AnyRegime], conventions: Sequence[AnyConvention], config: Mapping[str, Any] | None = None
    ) -> Program:
        """Derive the program without closed forms, which estimators do not need."""
        return program_in(self.compiled(Goal.PROGRAM, regimes, conventions, config, forms=False))

    def check_regime(self, regime: AnyRegime, config: Mapping[str, Any] | None = None, variant: str = "") -> None:
        """Check that ``regime`` fits the model, for a config or a variant, by deriving both passes.

        Raises:
            SpecError: the patterns of the regime do not fit the model.
        """
        self.compiled(Goal.DERIVATION, [regime], config=config, variant=variant)

    def structure(
        self,
        variant: str = "",
        regimes: Sequence[AnyRegime] = REGIMES,
        conventions: Sequence[AnyConvention] = CONVENTIONS,
        **more: Unpack[RequestFields],
    ) -> Compiled:
        """Compile a variant, or without a name all configs at once.

        If the structure depends on the config, the default config is compiled instead. ``more`` are further fields
        of the request, such as ``targets``.

        Raises:
            SpecError: as :meth:`compiled`, or the variant sets a size that its structure does not depend on.
        """
        goal = Goal.TEXTS if more else Goal.PROGRAM
        try:
            found = self.compiled(goal, regimes, conventions, variant=variant, **more)
        except NeedsSizeError:
            fields: RequestFields = {"structure": DEFAULT, **more}
            found = self.compiled(goal, regimes, conventions, {}, variant, **fields)
        needless = needless_sizes(self.variant(variant), program_in(found).fixed) if variant else ()
        if needless:
            raise SpecError(needless)
        return found

    def typical(self, regimes: Sequence[AnyRegime] = REGIMES, conventions: Sequence[AnyConvention] = CONVENTIONS) -> Program:
        """Derive the program for all configs; if a config decides the structure, for the default config."""
        return program_in(self.structure("", regimes, conventions))

    def published(
        self,
        variant: str,
        regimes: Sequence[AnyRegime] = REGIMES,
        conventions: Sequence[AnyConvention] = CONVENTIONS,
    ) -> Program:
        """Derive the program of a variant."""
        return program_in(self.structure(variant, regimes, conventions))

    def derive(
        self,
        regime: AnyRegime = "full",
        convention: AnyConvention = "symflops",
        config: Mapping[str, Any] | None = None,
        assume: str | Mapping[str, Any] = "",
        numeric: bool = False,
    ) -> Derived:
        """Derive closed forms of both passes under one regime and convention.

        ``config`` decides the structure. ``assume`` substitutes sizes as in :meth:`Derived.at`; ``numeric`` substitutes all
        sizes of the config.
        """
        known = self.known(config, assume, numeric)
        with self.about_config(known.config):
            program = known.of(self.program([regime], [convention], known.config)) if assume or numeric else None
            program = program or self.program([regime], [convention], config)
        return Derived(program, program.cases[0])

    def about_config(self, config: Any) -> AbstractContextManager[None]:
        """Return a context that reports errors in a shipped spec as errors of ``config``, not of the spec."""
        own = self.file.root.resolve() == shipped("specs").resolve()
        return about_config(self.spec, config, lambda given: self.graph(given)) if own else nullcontext()

    def known(
        self, config: Mapping[str, Any] | None = None, assume: str | Mapping[str, Any] = "", numeric: bool = False
    ) -> Known:
        """Collect the sizes that a config and assumptions fix; the arguments are those of :meth:`derive`.

        Raises:
            SymflopsError: an assumption names no size.
        """
        return known_of({size.name.text: size.keys for size in self.spec.sizes}, config, assume, numeric)

    def estimator(
        self,
        config: Mapping[str, Any],
        regime: AnyRegime = "full",
        convention: AnyConvention = "symflops",
    ) -> InterpretedEstimator:
        """Create the estimator: ``.parameters``, ``.moments(...)``, ``.forward(m)``, ``.backward(m)``."""
        found = self.derive(regime, convention, config).estimator(config)
        found.path = str(self.file.path)
        found.measured = {**catalogued(self.file), "identities": identities(self.file, self.spec) if regime in TRACED else ()}
        return found

    def _repr_html_(self) -> str:
        """HTML table of the sizes for notebooks: letter, config fields, meaning."""
        rows = [(size.name.text, ", ".join(size.keys), size.doc) for size in self.spec.sizes]
        streams = ", ".join(stream.name.text for stream in self.spec.streams)
        caption = f"{self.spec.title or self.spec.name}; streams of a batch: {streams}"
        return html_table(caption, ("size", "config", "meaning"), rows)

    def __repr__(self) -> str:
        return f"Model('{self.spec.name}', sizes={len(self.spec.sizes)}, classes={len(self.spec.references)})"


def program_in(compiled: Compiled) -> Program:
    """Return the program of a compilation whose goal was at least the program."""
    assert compiled.program is not None
    return compiled.program


def load(spec: str | Path | SpecFile) -> Model:
    """Load a spec by name, by path, or from a :class:`SpecFile`.

    Raises:
        NotFoundError: there is no such spec.
        SpecError: the file breaks the format of specs.
    """
    file = spec if isinstance(spec, SpecFile) else find_spec(spec)
    return Model(file, replace(read(file.source(), file.block, file.base), reading=file.reading()))
