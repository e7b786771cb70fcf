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
from symflops.read.classes import view_of_config
from symflops.read.entries import BlockText
from symflops.read.parts import view_of_regime
from symflops.read.read import read
from symflops.read.variants import value_in
from symflops.support.findings import Diagnostic, Source, SpecError

T = TypeVar("T")
Step = tuple[tuple[Regime, int], ...]
"""One step of training: its phases, the one that trains first, each with the number of times that it runs."""
Builder = Callable[[Spec, Mapping[str, Any], Sequence[str]], Graph]
AS_DERIVED = Convention("")
"""The convention that counts all derived work."""


class Goal(IntEnum):
    """The last thing that a compilation makes."""

    GRAPH = 1
    DERIVATION = 2
    PROGRAM = 3
    TEXTS = 4


@dataclass(frozen=True, slots=True)
class Request:
    """What to compile a spec for.

    Attributes:
        goal: Where to stop.
        steps: The regimes, each as the phases of its step.
        conventions: What is counted; without one, all derived work.
        targets: Endings of the texts to print, as :data:`symflops.emit.emit.ENDINGS` lists them.
        shown: The conventions that modules and pages have; without one, those of the program, which is stored with all.
        config: Where sizes that decide the structure are read, defaults applied; None leaves them open.
        sizes: Sizes, by letter, that are known from the start.
        structure: The name of the program's structure, if sizes decide it.
        version: The version of symflops that texts name.
        verified: The records that pages show.
        against: What pages show of the model beside its baseline.
        census: What is known of the fields of the classes' configs.
        measured: The operator kinds on which each rule of a regime was measured; None says nothing of it.
        forms: Whether the program has closed forms; estimators need none.
        build: The build stage; another one builds unfinished specs as far as they go.
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
    """Further fields of a :class:`Request`."""

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
    """What the stages made, up to the goal: the graph of the first phase, a derivation per step, the program, its texts."""

    spec: Spec
    graph: Graph
    derivations: tuple[Derivation, ...] = ()
    program: Program | None = None
    texts: Mapping[str, str] = field(default_factory=dict)


class Memo:
    """Graphs and derivations of one spec by what they were made from, so that later requests find them."""

    def __init__(self) -> None:
        self.known: dict[Hashable, Any] = {}

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What ``make`` returned for ``key`` the first time.

        Raises:
            UnknownSizeError: ``make`` raised it then.
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
        request: What to compile it for.
        memo: Graphs and derivations of earlier requests for the same spec.
        blocks: Finds the text of a block by its name, for a source.

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
    """The value of a size in a config.

    Raises:
        NeedsSizeError: the config does not give it.
    """
    declared = next((size for size in spec.sizes if size.name.text == name), None)
    value = value_in(spec.sizes, name, config, spec.reading) if config is not None and declared else None
    if name in known or (value is None and not (declared and declared.optional and config is not None)):
        span = error.diagnostic.span or (declared.name.span if declared else None)
        raise NeedsSizeError([replace(error.diagnostic, span=span)], error.size) from None
    return value


def _stages(spec: Spec, sizes: Mapping[str, Any], request: Request, memo: Memo) -> Compiled:
    """The stages after reading, with ``sizes`` known."""
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
    """The program with what the request knows of its structure, of the classes' configs, and of measured rules."""
    census, measured, regimes = _census_of(spec, request.census), request.measured, program.regimes
    if measured is not None:
        pairs = zip(regimes, derivations, strict=True)
        regimes = tuple(replace(row, unmeasured=unmeasured(one.rules, measured)) for row, one in pairs)
    demanded = (*program.requirements, *least(program.fields, census or {}))
    structure = request.structure if program.fixed else ""
    return replace(program, variant=structure, census=census, requirements=demanded, regimes=regimes)


def _graph(spec: Spec, sizes: Mapping[str, Any], regime: Regime, build: Builder, known: Hashable, memo: Memo) -> Graph:
    """The graph that a regime runs; patterns that select no iteration of any repeat leave that of the regimes without."""
    whole = view_of_regime(spec, regime)
    own = {letter: value for letter, value in sizes.items() if letter not in dict(whole.constants)}

    def built(cuts: tuple[str, ...]) -> Graph:
        return memo.once((known, cuts, regime.parts), partial(build, whole, own, cuts))

    uncut, cuts = built(()), cutting(regime.patterns)
    return built(cuts) if any(selectors(cuts, path) for path in uncut.lists) else uncut


def _census_of(spec: Spec, census: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The census of the classes that a program is of, else that of the first class, which has the same fields."""
    known = census or {}
    own = {class_name(name): known[class_name(name)] for name in spec.alike if class_name(name) in known}
    return own or dict(list(known.items())[:1]) or None


def _ways_to_count(conventions: Sequence[Convention]) -> Iterator[Convention]:
    """The conventions that need a derivation of their own, first the one of all work unless each needs its own."""
    if any(convention.is_plain for convention in conventions):
        yield AS_DERIVED
    yield from (convention for convention in conventions if not convention.is_plain)


def next_size(spec: Spec, name: str, given: Mapping[str, Any]) -> str:
    """The size to fix next for ``name``: itself, or the first unknown one that a derived size is made of."""
    formulas = {letter.text: expression for letter, expression in spec.derived}
    decided = dict(spec.constants)

    def sizes(letter: str) -> Iterator[str]:
        if letter not in formulas:
            yield letter
            return
        for inner, _ in names(formulas[letter]):
            yield from sizes(inner)

    return next((size for size in sizes(name) if size not in given and size not in decided), name)
