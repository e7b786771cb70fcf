"""Estimators for live torch modules: finds the spec of a module by class and config, and checks every parameter."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.layouts import inputs_of, sets_of
from symflops.evaluate.parameters import Shape, parameter_differences, trained_of
from symflops.evaluate.sizes import sizes_of
from symflops.evaluate.stored import Stored
from symflops.library.catalog import Catalog
from symflops.library.lookup import interpreted, stores
from symflops.support.findings import SpecError
from symflops.training.introspect.background import Derivation, in_a_line
from symflops.training.introspect.identity import config_of, config_to_trace, identified
from symflops.training.introspect.regime import is_part, plain, read, stored_regime
from symflops.training.introspect.steering import with_fields
from symflops.training.introspect.traced import AwaitedTrace, TokenEstimator, TracedModule
from symflops.training.introspect.tree import LiveModelError, starred, tree_of, unwrapped

LIVE = "live"
"""Name of the regime that is detected from the module."""
CHECKS = ("raise", "warn")
LOGGER = logging.getLogger("symflops")
Parameters = Mapping[str, tuple[Shape, bool]]
"""Name of a parameter -> (shape, whether it trains)."""


class LiveModule:
    """A live module with its spec, config and detected regime; ``fields`` are those of its config by which its modules run.

    Raises:
        SymflopsError: no spec describes the class, or no regime can describe one of its parts.
    """

    def __init__(self, module: Any, spec: str | None = None, fields: Mapping[str, Any] = MappingProxyType({})) -> None:
        self.root = root = unwrapped(module)
        self.catalog: Catalog
        self.catalog, self.name, self.word, config = identified(root, spec)
        self.config = with_fields(config, fields)
        self.reading = read(tree_of(root))
        self.variant, document = self.catalog.of_structure(self.name, self.config)
        self.stored = Stored(document) if document else None
        self.sizes = sizes_of(self.stored, self.config) if self.stored else {}

    def regime(self, **more: list[str]) -> str:
        """The name of the stored regime that matches the module, else a regime page as JSON text.

        ``more`` are further fields of the page: ``input_grad``, ``force_grad`` and ``loss``.
        """
        stored = self.stored
        rows = stored.regimes if stored else {}
        fits = stored if self.variant is not None else None
        known = {name: self.named(trained_of(fits, name, self.sizes)) for name in rows if fits}
        name = stored_regime(self.reading, rows, known)
        if name is not None and not more:
            return name
        loops = {row[0] for row in stored.document["all_tensors"] if "*" in row[0]} if stored else set()
        return self.reading.page(loops, {name for name, (_, trains) in known.get("full", {}).items() if not trains}, more)

    def recomputes_whole(self) -> None:
        """Note that recomputed modules run to their end again, because autograd saves a tensor after the last product."""
        again = self.reading.recomputed
        self.reading = replace(self.reading, recomputed=again and replace(again, early_stop=False))

    def is_stored(self, regime: str, convention: str) -> bool:
        """Whether a stored program exists for this structure, regime and convention."""
        return self.variant is not None and self.stored is not None and stores(self.stored.document, regime, convention)

    def estimator(self, regime: str, convention: str, tell: Callable[[str], object] = LOGGER.info) -> InterpretedEstimator:
        """Build the estimator under a regime; without a stored program one is derived and cached.

        Raises:
            SymflopsError: the config does not fit, or the regime or convention is unknown.
        """
        try:
            return interpreted(self.catalog, self.name, self.config, regime, convention, tell)
        except SpecError as error:
            raise LiveModelError(in_a_line(error)) from error

    @cached_property
    def names(self) -> tuple[set[str], set[str]]:
        """The names of the spec's inputs and outputs; reads the spec's file."""
        from symflops.read.read import read as read_spec

        file = self.catalog.file(self.name)
        spec = read_spec(file.source(), file.block, file.base)
        return {str(one.name) for one in spec.inputs}, set(map(str, spec.outputs))

    def named(self, parameters: Parameters) -> dict[str, tuple[Shape, bool]]:
        """Rename ``parameters`` to the first name that the module has for each (tied weights have several)."""
        return {self.reading.tree.aliases.get(name, name): entry for name, entry in parameters.items()}

    def differences(self, derived: Parameters) -> list[str]:
        """List differences of the module's parameters from derived ones in name, shape or training, as text."""
        real = self.reading.parameters
        named = self.named(derived)
        own = {name: shape for name, (shape, _) in real.items()}
        lines = _lines(parameter_differences(own, unshared(derived, self.reading.tree.aliases), self.reading.tree.aliases))
        if lines:
            return lines
        wrong = [name for name, (_, trains) in real.items() if named[name][1] != trains]
        return [f"{name} {'trains' if real[name][1] else 'does not train'} in the module alone" for name in wrong]

    def base_differences(self, derived: Parameters) -> list[str]:
        """List differences from derived parameters in name or shape, as text; adapters are ignored."""
        tree = self.reading.tree
        own = {plain(name): tree.shapes[name] for name in self.reading.own}
        aliases = {plain(name): plain(first) for name, first in tree.aliases.items()}
        bare = {plain(name): shape for name, shape in unshared(derived, aliases).items() if not is_part(name)}
        return _lines(parameter_differences(own, bare, aliases))

    def check(self, estimator: InterpretedEstimator, whole: bool = True) -> None:
        """Check every parameter against an estimator; with ``whole`` also adapters and ``requires_grad``.

        Raises:
            LiveModelError: the parameters differ; or without a config, FLOPs depend on a size that no shape determines.
        """
        derived = trained_of(estimator.stored, estimator.regime, estimator.sizes)
        self.refuse(self.differences(derived) if whole else self.base_differences(derived))
        unknown = [] if config_of(self.root) else list(sizes_without_shapes(estimator.stored))
        if unknown:
            names = ", ".join(f"'{key}'" for key in unknown)
            hint = f"give the module a 'config', a dict such as {{'{unknown[0]}': ...}}"
            raise LiveModelError(f"{self.word} has no config, and no parameter tells {names}, which FLOPs depend on: {hint}")

    def refuse(self, lines: list[str]) -> None:
        """Refuse the module if ``lines``, differences from its spec as text, are not empty.

        Raises:
            LiveModelError: there are differences; the message has the first three.
        """
        if lines:
            more = f" and {len(lines) - 3} more" if len(lines) > 3 else ""
            raise LiveModelError(f"{self.word} is not what '{self.name}' describes: {'; '.join(lines[:3])}{more}")

    def accounted(self, estimator: InterpretedEstimator, whole: bool, check: str) -> InterpretedEstimator:
        """Check the module as :meth:`check` and return ``estimator``, with ``account`` set to a summary line.

        With ``check="warn"``, a difference only causes a warning.

        Raises:
            LiveModelError: the module differs and ``check`` is ``raise``.
        """
        try:
            self.check(estimator, whole)
            estimator.account = f"{self.word}: {self.reading.count:,} parameters, all accounted for; {self.reading.words}"
        except LiveModelError as error:
            if check == "raise":
                raise
            estimator.account = f"not accounted for: {error}"
            warnings.warn(f"symflops: {error}", stacklevel=2)
        return estimator


def of_model(
    module: Any,
    *,
    regime: str = LIVE,
    convention: str = "symflops",
    spec: str | None = None,
    check: str = "raise",
    log: Callable[[str], object] = LOGGER.info,
) -> InterpretedEstimator | TokenEstimator:
    """The estimator for a live model, after checking every parameter against the spec.

    A class of transformers without a spec is traced (:mod:`symflops.training.introspect.traced`): its number of parameters is
    checked, and its FLOPs are those of convention ``torch``.

    Args:
        module: The model, bare or wrapped by DDP, FSDP2, torch.compile, Accelerate, DeepSpeed or PEFT.
        regime: The training regime; ``live`` detects trained weights, adapters and recomputation from the module.
        convention: Which work counts.
        spec: The name of the spec; by default found by the class.
        check: ``raise``, or ``warn`` for a module that differs from its spec.
        log: Receives the summary line of the parameters, which is also ``estimator.account``.

    Raises:
        SymflopsError: no spec describes the model and it cannot be traced, no regime can describe one of its parts, or it
            differs from its spec.
    """
    if spec is None and (config := config_to_trace(unwrapped(module))):
        estimator = TracedModule(unwrapped(module), config, None if regime == LIVE else regime, convention).estimator()
        log(estimator.account)
        return estimator
    live = checked_module(module, spec, check)
    found = live.estimator(live.regime() if regime == LIVE else regime, convention, log)
    log(live.accounted(found, regime == LIVE, check).account)
    return found


class Reader:
    """Batch reader for a model whose program is still being derived; it has no moments or FLOPs."""

    def __init__(self, live: LiveModule) -> None:
        self.stored, self.sizes = live.stored, live.sizes
        streams = self.stored.streams if self.stored else ()
        self.streams = {stream.name: stream.optional for stream in streams if stream.given}
        self.sets = sets_of(self.stored) if self.stored else {}

    def inputs(self) -> dict[str, tuple[str, str, int | None]]:
        """Map arguments that tell lengths by their shapes to (stream or index set, layout, width)."""
        if self.stored is None:
            return {}
        value = self.stored.formulas.checked
        return inputs_of(self.stored, lambda width: value(width, self.sizes))


class Awaited:
    """An estimator of a live module that is being derived in a subprocess.

    ``poll`` returns the estimator once it is ready; until then, ``estimator`` can read batches but has no FLOPs. ``whole`` and
    ``check`` are those of :meth:`LiveModule.accounted`.
    """

    def __init__(self, live: LiveModule, regime: str, convention: str, whole: bool, check: str) -> None:
        self.live, self.whole, self.check = live, whole, check
        self.estimator = Reader(live)
        self.found: InterpretedEstimator | None = None
        self.derivation = Derivation(live.catalog, live.name, live.config, regime, convention)

    def poll(self) -> InterpretedEstimator | None:
        """The checked estimator, or None while it is being derived; never blocks.

        Raises:
            SymflopsError: the derivation fails, or the module differs from the derived parameters.
        """
        document = None if self.found else self.derivation.poll()
        if document is None:
            return self.found
        stored = Stored(document)
        regime, convention = next(iter(stored.regimes)), stored.conventions[0]
        found = InterpretedEstimator(document, self.live.config, regime=regime, convention=convention)
        found.measured = self.live.catalog.measured(self.live.name)
        self.found = self.live.accounted(found, self.whole, self.check)
        return self.found


class Programs:
    """Estimators of live modules by regime and convention, each read or derived once; ``check`` as for :func:`of_model`."""

    def __init__(self, check: str = "raise") -> None:
        self.check = check
        self.found: dict[tuple[str, ...], InterpretedEstimator | Awaited] = {}

    def of(self, live: LiveModule, regime: str, convention: str, whole: bool = True) -> InterpretedEstimator | Awaited:
        """The estimator of ``live``, or :class:`Awaited` without a stored program; never blocks.

        Raises:
            SymflopsError: as :func:`of_model`.
        """
        key = (live.name, json.dumps(live.config, sort_keys=True, default=str), regime, convention)
        known = self.found.get(key)
        if known is None and live.is_stored(regime, convention):
            known = live.accounted(live.estimator(regime, convention), whole, self.check)
        elif known is None:
            known = Awaited(live, regime, convention, whole, self.check)
            if known.derivation.found is not None:
                known.poll()
        self.found[key] = known
        return (known.found or known) if isinstance(known, Awaited) else known


def estimators_of(
    module: Any, regimes: Mapping[str, str], convention: str, spec: str | None, programs: Programs
) -> dict[str, InterpretedEstimator | Awaited | AwaitedTrace]:
    """Map each phase to its estimator, or without a stored program to one that is awaited; never blocks.

    ``regimes`` maps phases to regimes; ``programs`` keeps the estimators; the other arguments are those of :func:`of_model`.

    Raises:
        SymflopsError: as :func:`of_model`.
    """
    if spec is None and (config := config_to_trace(unwrapped(module))):
        traced = {phase: None if word == LIVE else word for phase, word in regimes.items()}
        return {
            phase: AwaitedTrace(TracedModule(unwrapped(module), config, regime, convention)) for phase, regime in traced.items()
        }
    live = checked_module(module, spec, programs.check)
    words = {phase: live.regime() if word == LIVE else word for phase, word in regimes.items()}
    return {phase: programs.of(live, word, convention, regimes[phase] == LIVE) for phase, word in words.items()}


def sizes_without_shapes(program: Stored) -> Iterator[str]:
    """Yield config keys that affect FLOPs but no parameter shape, such as that of an attention window."""
    letters, definitions = program.formulas.letters, {row["letter"]: row["formula"] for row in program.document["definitions"]}

    def closed(found: set[str]) -> set[str]:
        inner = {letter for name in found & set(definitions) for letter in letters(definitions[name])} - found
        return closed(found | inner) if inner else found

    rows = program.document["shapes"]
    shaping = closed(
        {letter for row in rows for place in (*row["shape"], row["copies"], row["count"]) for letter in letters(place)}
    )
    work = [place for row in program.document["cases"] for kind in ("forward", "backward") for _, place in row[kind]]
    batch = (*program.moments, *program.statistics, *program.inner)
    places = (*work, *(row["formula"] for row in batch if "formula" in row))
    spent = {letter for place in places for letter in letters(place)}
    chosen = {letter for letter, value in program.fixed if not isinstance(value, int) or isinstance(value, bool)}
    for row in program.document["fields"]:
        if row["letter"] in (closed(spent) | chosen) - shaping:
            yield row["keys"][0]


def checked_module(module: Any, spec: str | None, check: str, fields: Mapping[str, Any] = MappingProxyType({})) -> LiveModule:
    """Read a live module; with ``check="raise"`` also check its parameters without adapters.

    Raises:
        SymflopsError: no spec describes the module, or its parameters differ.
        ValueError: ``check`` is neither ``raise`` nor ``warn``.
    """
    if check not in CHECKS:
        raise ValueError(f"'check' is 'raise' or 'warn', not {check!r}")
    live = LiveModule(module, spec, fields)
    if check == "raise" and live.variant is not None and live.stored is not None:
        live.refuse(live.base_differences(trained_of(live.stored, next(iter(live.stored.regimes)), live.sizes)))
    return live


def unshared(derived: Parameters, aliases: Mapping[str, str]) -> dict[str, Shape]:
    """The shapes of ``derived`` parameters, without those that are another layer's in the module, as in replicated layers.

    ``aliases`` maps each name of a real parameter to its first name.
    """
    shapes = {name: shape for name, (shape, _) in derived.items()}
    firsts = ((name, aliases.get(name, name)) for name in shapes)
    twice = {
        name
        for name, first in firsts
        if first != name and starred(first) == starred(name) and shapes.get(first) == shapes[name]
    }
    return {name: shape for name, shape in shapes.items() if name not in twice}


def _lines(found: Mapping[str, Any]) -> list[str]:
    """Format what :func:`parameter_differences` found, as a line per parameter."""
    lines = [f"{name} {list(shape)} is not in the spec" for name, shape in found["missing"]]
    lines += [f"{name} {list(shape)} is not in the module" for name, shape in found["extra"]]
    return lines + [
        f"{name} is {list(shape)} in the module, {list(other)} in the spec" for name, shape, other in found["wrong"]
    ]
