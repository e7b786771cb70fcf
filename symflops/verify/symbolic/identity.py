"""Compares a spec with the forms that its real class tells, for all sizes at once: their difference is zero as a polynomial."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from typing import Any

import sympy

from symflops.api import Model
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.library.records.census import spec_digest
from symflops.library.records.identities import ENTRY
from symflops.support.findings import SymflopsError
from symflops.verify.cases import LiveCase
from symflops.verify.classes import class_of, complete, plain_lists
from symflops.verify.live import outputs_of, reference_of
from symflops.verify.running import arguments_of
from symflops.verify.symbolic.comparison import Comparison, Identity, OpaqueError
from symflops.verify.symbolic.target import Target, assign_given, at, place_of, switches
from symflops.verify.symbolic.traced import FIGURES, text_of
from symflops.verify.symbolic.tracing import SECONDS, trace

POINTS = 3
"""Fewest points at which a spec must have the figures of its class in place of an identity of expressions."""


def identity_of(model: Model, case: LiveCase, seconds: float = SECONDS) -> Identity:
    """Trace the class of a case, and subtract its forms from the spec's, in total and module by module.

    Where a formula of the spec cannot be written in the fields of the class, the figures of both are compared at large random
    sizes instead.
    """
    found = Identity(case.label)
    try:
        found.reference = reference_of(model, case)
        kind = class_of(found.reference, model.file.path.parent)
        config, settings = complete(kind, case.config), Target(kind, case.config).settings({})
        for place in switches(settings):
            assign_given(config, place, False)
        comparison = comparison_of(found, model, kind, case, config, None, outputs_of(model), seconds)
        found.held = comparison.held()
        try:
            comparison.run()
        except OpaqueError as error:
            found.gaps["forward"], found.numbers["a formula"] = sympy.nan, str(error)
        if comparison.traced.proven:
            own = settings if isinstance(settings, dict) else {
                name: value for name, value in vars(settings).items() if isinstance(value, (list, tuple))
            }  # fmt: skip
            moved = {name.rpartition(".")[0] for name in comparison.traced.symbols()} | case.config.keys()
            given = {
                name: value for name, value in {**plain_lists(own), **config}.items()
                if name in moved or not isinstance(value, (list, tuple))  # the class derives the other lists
            }  # fmt: skip
            sampled = Sampled(model, comparison, given)
            if found.gaps or comparison.depths:
                sampled.run()
            found.lacking = list(sampled.lacking())
        found.gaps = {name: gap for name, gap in found.gaps.items() if gap is not sympy.nan}
    except SymflopsError as error:
        found.failed = str(error).splitlines()[0]
    return found


def stored(model: Model, found: Identity) -> dict[str, Any]:
    """A comparison as :mod:`symflops.library.records.identities` keeps it; conditions are those of an identity."""
    return {
        **{name: value for name, value in found.as_json().items() if name in ENTRY},
        "where": found.where if found.grade == "identity" else [],
        "spec": spec_digest(model.spec, alone=True),
    }


def comparison_of(
    found: Identity, model: Model, kind: Any, case: LiveCase, config: Mapping[str, Any], inputs: Mapping[str, Any] | None,
    outputs: Sequence[str], seconds: float,
) -> Comparison:  # fmt: skip
    """Trace a class, and make the comparison of its forms with those of a spec, which :meth:`Comparison.run` subtracts.

    Args:
        found: Where the trace and the differences are kept.
        model: The spec.
        kind: The class.
        case: The config and batch of the example.
        config: The complete config.
        inputs: Arguments of a call; None for those that the spec describes.
        outputs: Names of the outputs that the loss sums.
        seconds: Limit of the trace.

    Raises:
        SymflopsError: the class cannot be traced, or a formula of the spec has no polynomial.
    """
    derived = model.derive("full", "torch", config=config)
    program = replace(derived.at(config).program, fields=derived.program.fields)  # whose defaults are formulas
    estimator = InterpretedEstimator(model.program(["full"], ["torch"], config), config, regime="full", convention="torch")
    given = arguments_of(program, case.batch, estimator.sizes, case.arguments) if inputs is None else inputs
    found.traced = trace(kind, config=case.config, inputs=given, outputs=outputs, seconds=seconds)
    return Comparison(found, found.traced, program, estimator.sizes, case, given)


def is_given(config: Any, place: Sequence[str | int]) -> bool:
    """Whether JSON data has something at a place."""
    with suppress(KeyError, IndexError, TypeError, AttributeError):
        at(config, tuple(place))
        return True
    return False


class Sampled:
    """Compares a spec with forms at random points: a polynomial that is not zero has few zeros among large numbers.

    J. T. Schwartz, Fast probabilistic algorithms for verification of polynomial identities, J. ACM 27 (1980), lemma 1.

    Args:
        model: The spec.
        comparison: The comparison of expressions, which knows the lengths; its differences are replaced.
        config: The config of the case, complete.
    """

    def __init__(self, model: Model, comparison: Comparison, config: Mapping[str, Any]) -> None:
        self.model, self.comparison, self.config = model, comparison, config
        self.found, self.traced = comparison.found, comparison.traced
        self.refused = ""

    def run(self) -> None:
        """Replace the differences of expressions by what differs at points, if at least three can be compared."""
        compared = [(point, self.compared(point)) for point in self.traced.points()]
        points = [point for point, gaps in compared if gaps is not None]
        if len(points) < POINTS:
            self.found.numbers["a length"] = f"the spec refuses points of the domain: {self.refused}"
            self.found.gaps = {}  # which may come of letters that are numbers
            return
        gaps = {name: sympy.Integer(gap) for _, some in compared for name, gap in (some or {}).items()}
        still = sorted(
            name for name in self.traced.symbols() if all(point[name] == self.traced.fields[name].value for point in points)
        )
        written_out = {f"{name} == {number}" for name, number in self.comparison.depths.items() if not gaps}
        self.found.assumed = [one for one in self.found.assumed if one not in written_out]  # any number of layers was compared
        if not gaps or any(gap is sympy.nan for gap in self.found.gaps.values()):  # an expression says more than a number
            self.found.gaps = gaps
        self.found.points = len(points)
        self.found.numbers = {
            **{name: why for name, why in self.found.numbers.items() if name in self.comparison.known},
            **dict.fromkeys(still, "the spec was compared with its traced value only"),
        }

    def lacking(self) -> Iterator[str]:
        """Yield each condition of the class outside of which the spec answers, with a point at which it does."""
        for condition, point in zip(self.traced.domain, self.traced.outside, strict=False):
            start = {name: one.value for name, one in self.traced.fields.items()}
            if point and self.answer({**start, **point}) is not None:
                names = sorted(one.name for one in condition.free_symbols)
                yield f"{text_of(condition)}: answers " + ", ".join(f"{name}={point.get(name, start[name])}" for name in names)

    def compared(self, point: Mapping[str, int]) -> dict[str, int] | None:
        """The surplus of the spec at a point, by figure; None if it refuses the config or the lengths."""
        point = self.comparison.tie(point)
        mine = self.answer(point)
        chosen = {name: value for name, value in point.items() if self.traced.fields[name].kind in ("symbolic", "unused")}
        real = None if mine is None else self.traced.at(chosen)
        return real and {
            name: value - real[name] for name, value in zip(FIGURES, mine or (), strict=True) if value != real[name]
        }

    def answer(self, point: Mapping[str, int]) -> tuple[int, int, int] | None:
        """The figures of the spec at a point; None if it refuses the config or the lengths."""
        fields = {name: value for name, value in point.items() if name not in self.traced.lengths}
        changed = deepcopy(dict(self.config))
        for name, value in fields.items():
            *above, last = place_of(name)
            if not isinstance(last, int) or is_given(changed, above):  # an item of a list that the class does not derive
                assign_given(changed, place_of(name), value)
        try:
            estimator = InterpretedEstimator(
                self.model.program(["full"], ["torch"], changed), changed, regime="full", convention="torch"
            )
            moments = estimator.moments(**self.comparison.batch_at(point))
            return estimator.parameters, estimator.forward(moments), estimator.backward(moments)
        except (SymflopsError, RecursionError) as error:  # thousands of convolutions, one after another
            self.refused = str(error).splitlines()[0]
            return None
