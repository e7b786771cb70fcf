"""The pipeline, from the text of a spec to the text of its estimators and its derivation.

    read    Source                      -> Spec         what the author wrote, and where
    build   Spec, known sizes           -> Graph        blocks expanded, names resolved, widths and streams checked
    derive  Graph, Regime               -> Derivation   every contraction of both passes, and why
    count   Derivation, Convention      -> Derivation   what a convention counts of the derived work
    lower   Derivations, Conventions    -> Program      coefficients in sizes, moments in lengths
    emit    Program, targets            -> texts        data, code and formulas: printings of one program

:func:`compile_spec` calls the stages in this order, up to the goal of a :class:`Request`. A stage that cannot go on while a
size is a symbol raises :class:`~symflops.formula.truth.UnknownSizeError`; :func:`compile_spec` alone catches it, takes
the size from the request's config and begins again.

Nothing here touches the disk: sources come in as text, files go out as text.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import partial
from typing import Any, TypedDict, TypeVar, cast

from symflops.build.build import build
from symflops.count.count import count
from symflops.derive.derive import derive, step_of
from symflops.derive.regime_checks import unmeasured
from symflops.emit.emit import emit
from symflops.evaluate.classes import class_name
from symflops.evaluate.item_analysis import Against
from symflops.formula.expression import names
from symflops.formula.state import State, state_of
from symflops.formula.truth import UnknownSizeError
from symflops.ir.convention import Convention
from symflops.ir.graph import Derivation, Graph
from symflops.ir.patterns import cutting, selectors
from symflops.ir.program import Program
from symflops.ir.regime import Regime
from symflops.ir.spec import Spec
from symflops.ir.verification import Verification
from symflops.lower.lower import lower
from symflops.lower.requirements import least
from symflops.read.entries import BlockText
from symflops.read.read import read
from symflops.read.variants import value_in, view_of_config, view_of_regime
from symflops.support.findings import Diagnostic, Source, SpecError

T = TypeVar("T")
Step = tuple[tuple[Regime, int], ...]
"""One training step: (regime, number of runs) per phase, the phase that trains first."""
Builder = Callable[[Spec, Mapping[str, Any], Sequence[str], State], Graph]
AS_DERIVED = Convention("")
"""The convention that counts all derived work."""


class Goal(IntEnum):
    """Last stage of a compilation."""

    GRAPH = 1
    DERIVATION = 2
    PROGRAM = 3
    TEXTS = 4


@dataclass(frozen=True, slots=True)
class Request:
    """Goal and options of one compilation.

    Attributes:
        goal: Where to stop.
        steps: One step per regime, as its phases.
        conventions: Conventions to count under; by default all derived work counts.
        targets: Endings of the texts to print, as :data:`symflops.emit.emit.ENDINGS` lists them.
        shown: Conventions of modules and pages (default: all); a stored program contains all.
        config: Source of the sizes that decide the structure, defaults applied; None leaves them symbolic.
        sizes: Sizes known from the start, by letter.
        structure: The name of the program's structure, if sizes decide it.
        version: Version of symflops to print in the texts.
        verified: Measured records to print on pages.
        against: Comparison with the model's baseline, for pages.
        census: Config fields that each class reads.
        measured: Operator kinds on which each rule of a regime was measured; None skips this check.
        forms: Whether the program has closed forms; estimators need none.
        build: The build stage; another builder accepts unfinished specs.
    """

    goal: Goal = Goal.PROGRAM
    steps: tuple[Step, ...] = (((Regime(""), 1),),)
    conventions: tuple[Convention, ...] = (AS_DERIVED,)
    targets: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    config: Mapping[str, Any] | None = None
    sizes: Mapping[str, Any] = field(default_factory=dict)
    structure: str = ""
    version: str = ""
    verified: tuple[Verification, ...] = ()
    against: Against | None = None
    census: Mapping[str, Any] | None = None
    measured: Mapping[str, Sequence[str]] | None = None
    forms: bool = True
    build: Builder = build


class RequestFields(TypedDict, total=False):
    """Keyword arguments for the optional fields of a :class:`Request`."""

    targets: tuple[str, ...]
    shown: tuple[str, ...]
    sizes: Mapping[str, Any]
    structure: str
    version: str
    verified: tuple[Verification, ...]
    against: Against | None
    census: Mapping[str, Any] | None
    measured: Mapping[str, Sequence[str]] | None
    forms: bool
    build: Builder


@dataclass(frozen=True, slots=True)
class Compiled:
    """Results up to the goal: graph of the first phase, a derivation per step, program, texts."""

    spec: Spec
    graph: Graph
    derivations: tuple[Derivation, ...] = ()
    program: Program | None = None
    texts: Mapping[str, str] = field(default_factory=dict)


class Memo:
    """Cache of the graphs and derivations of one spec, keyed by their inputs."""

    def __init__(self) -> None:
        self.known: dict[Hashable, Any] = {}

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the cached result for ``key``; call ``make`` if there is none.

        Raises:
            UnknownSizeError: ``make`` raises it, or raised it for this key before.
        """
        if key not in self.known:
            try:
                self.known[key] = make()
            except UnknownSizeError as error:
                self.known[key] = error
        made = self.known[key]
        if isinstance(made, UnknownSizeError):
            raise made
        return cast(T, made)


class NeedsSizeError(SpecError):
    """The structure of a model depends on a ``size`` that the request does not give."""

    def __init__(self, diagnostics: Iterable[Diagnostic], size: str = "") -> None:
        super().__init__(diagnostics)
        self.size = size


def compile_spec(
    source: Source | Spec, request: Request, memo: Memo | None = None, blocks: BlockText = lambda name: None
) -> Compiled:
    """Run the stages up to the request's goal.

    Args:
        source: The text of a spec, or a spec that was read.
        request: Goal and options.
        memo: Cache of earlier requests for the same spec.
        blocks: Returns the text of a block by name; only a ``source`` text needs it.

    Raises:
        SpecError: the spec is not valid, or a regime does not fit it.
        NeedsSizeError: the structure depends on a size that the request does not give.
    """
    whole = read(source, blocks) if isinstance(source, Source) else source
    spec = view_of_config(whole, request.config)
    sizes = dict(request.sizes)
    while True:
        try:
            return _stages(spec, sizes, request, memo or Memo())
        except UnknownSizeError as error:
            name = next_size(spec, error.size, sizes)
            sizes[name] = _size(spec, name, sizes, request.config, error)


def _size(spec: Spec, name: str, known: Mapping[str, Any], config: Mapping[str, Any] | None, error: UnknownSizeError) -> Any:
    """Read a structural size from a config.

    Raises:
        NeedsSizeError: the config does not contain the size.
    """
    declared = next((size for size in spec.sizes if size.name.text == name), None)
    value = value_in(spec.sizes, name, config, spec.reading) if config is not None and declared else None
    if name in known or (value is None and not (declared and declared.optional and config is not None)):
        span = error.diagnostic.span or (declared.name.span if declared else None)
        raise NeedsSizeError([replace(error.diagnostic, span=span)], error.size) from None
    return value


def _stages(spec: Spec, sizes: Mapping[str, Any], request: Request, memo: Memo) -> Compiled:
    """Run the stages after reading, with ``sizes`` known."""
    known = (spec.constants, spec.renamed, *sorted((name, repr(value)) for name, value in sizes.items()))
    regimes = dict.fromkeys(regime for step in request.steps for regime, _ in step)
    graphs = {regime: _graph(spec, sizes, regime, request.build, known, memo) for regime in regimes}
    made = Compiled(spec, next(iter(graphs.values())))
    if request.goal is Goal.GRAPH:
        return made

    def counted(convention: Convention) -> list[Derivation]:
        work = {}
        for regime, graph in graphs.items():
            once = partial(derive, graph, regime, convention.elements)
            work[regime] = count(memo.once((known, regime, convention.elements), once), convention)
        return [step_of([(work[regime], times) for regime, times in step]) for step in request.steps]

    conventions = [convention.of(spec.called) for convention in request.conventions]
    ways = {convention.name: counted(convention) for convention in _ways_to_count(conventions)}
    made = replace(made, derivations=tuple(next(iter(ways.values()))))
    if request.goal is Goal.DERIVATION:
        return made

    own = {convention.name: ways[convention.name] for convention in conventions if not convention.is_plain}
    lowered = lower(made.derivations, [convention.plain for convention in conventions], own, request.forms)
    program = _described(lowered, spec, made.derivations, request)
    if request.goal is Goal.PROGRAM:
        return replace(made, program=program)
    texts = emit(program, request.version, request.verified, request.targets, request.shown, request.against)
    return replace(made, program=program, texts=texts)


def _described(program: Program, spec: Spec, derivations: Sequence[Derivation], request: Request) -> Program:
    """Add the request's metadata to ``program``: structure name, census, requirements, unmeasured rules."""
    census, measured, regimes = _census_of(spec, request.census), request.measured, program.regimes
    if measured is not None:
        pairs = zip(regimes, derivations, strict=True)
        regimes = tuple(replace(row, unmeasured=unmeasured(one.rules, measured)) for row, one in pairs)
    demanded = (*program.requirements, *least(program.fields, census or {}))
    structure = request.structure if program.fixed else ""
    return replace(program, variant=structure, census=census, requirements=demanded, regimes=regimes)


def _graph(spec: Spec, sizes: Mapping[str, Any], regime: Regime, build: Builder, known: Hashable, memo: Memo) -> Graph:
    """Build or reuse the graph of a regime; repeats are split only if a pattern selects iterations."""
    whole = view_of_regime(spec, regime)
    own = {letter: value for letter, value in sizes.items() if letter not in dict(whole.constants)}

    def built(cuts: tuple[str, ...]) -> Graph:
        key = (known, cuts, regime.parts, regime.decode, regime.head)
        return memo.once(key, partial(build, whole, own, cuts, state_of(regime.decode, regime.head)))

    uncut, cuts = built(()), cutting(regime.patterns)
    return built(cuts) if any(selectors(cuts, path) for path in uncut.lists) else uncut


def _census_of(spec: Spec, census: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Census of the spec's classes; if none has an entry, the first entry; None if the census is empty."""
    known = census or {}
    own = {class_name(name): known[class_name(name)] for name in spec.alike if class_name(name) in known}
    return own or dict(list(known.items())[:1]) or None


def _ways_to_count(conventions: Sequence[Convention]) -> Iterator[Convention]:
    """Conventions that need a separate derivation; plain ones share :data:`AS_DERIVED`, which comes first."""
    if any(convention.is_plain for convention in conventions):
        yield AS_DERIVED
    yield from (convention for convention in conventions if not convention.is_plain)


def next_size(spec: Spec, name: str, given: Mapping[str, Any]) -> str:
    """Choose the size to fix next: ``name``, or the first unknown size in the formula of a derived one."""
    formulas = {letter.text: expression for letter, expression in spec.derived}
    decided = dict(spec.constants)

    def sizes(letter: str) -> Iterator[str]:
        if letter not in formulas:
            yield letter
            return
        for inner, _ in names(formulas[letter]):
            yield from sizes(inner)

    return next((size for size in sizes(name) if size not in given and size not in decided), name)
