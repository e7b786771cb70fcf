"""Traces a class or a live module: an example is found, traced in a process of its own, and proven at unseen configs."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from symflops.api import AnyRegime, regime_of
from symflops.evaluate.config import as_json
from symflops.support.errors import SymflopsError, kind_of
from symflops.verify.applied import refuse
from symflops.verify.limits import in_process
from symflops.verify.symbolic import shadows
from symflops.verify.symbolic.explore import example_of
from symflops.verify.symbolic.forms import Forms, forms_of, released
from symflops.verify.symbolic.inputs import ADAPTERS, Given, ranks
from symflops.verify.symbolic.prove import Proof, Prover
from symflops.verify.symbolic.target import LiveTarget, Place, Target, dotted, places
from symflops.verify.symbolic.traced import FIGURES, Field, Traced, divided, text_of
from symflops.verify.symbolic.tracer import Example

SECONDS = 120.0
"""CPU time of a whole trace, by default."""


def trace(
    what: Any, *args: Any, config: Any = None, inputs: Mapping[str, Any] | None = None,
    outputs: Sequence[str] = (), regime: AnyRegime = "full", seconds: float = SECONDS, **kwargs: Any,
) -> Traced:  # fmt: skip
    """Trace a module class with symbols in its config and its inputs, or a live module with symbols in its inputs.

    The tracing runs in processes of their own; the module and PyTorch stay as they are.

    Args:
        what: A module class, or a module.
        args: Of a module: positional arguments of a call.
        config: Of a class: fields of its config, a config object, or arguments of its constructor; defaults complete them.
        inputs: Of a class: keyword arguments of a call, tensors or ``{"shape": [2, 24], "dtype": "int64"}``; by default those
            that the class is known to take.
        outputs: Of a class with ``inputs``: names of the outputs that the loss sums; by default the main output.
        regime: What trains, is adapted and recomputed: ``full``, ``forward``, ``lora``, ``checkpointed``, or any other that has
            nothing else. The rank of adapters is a symbol.
        seconds: CPU seconds of the trace; it may take three times as long on a busy machine.
        kwargs: Of a module: keyword arguments of a call. Of a class: arguments of its constructor.

    Returns:
        Closed forms of parameters (elements) and FLOPs of both passes, their domain, and the numbers of the example.

    Raises:
        SymflopsError: it cannot be built, run or traced, or not in time.
    """
    live = not isinstance(what, type)
    if live and not hasattr(what, "named_parameters"):
        raise SymflopsError(f"a trace is of a module class or a module, not of {kind_of(what)}")
    chosen = regime_of(regime)
    refuse(chosen)
    target: Target | LiveTarget = LiveTarget(what) if live else Target(what, {**fields_of(config), **kwargs})
    name = target.kind.__name__
    if args and not live:
        raise SymflopsError(f"a class takes its config by keyword: trace({name}, config={{...}}, inputs={{...}})")

    def run(given: Given | None) -> Traced:
        make = partial(example_of, target, given, chosen)
        return in_process(partial(_trace, make, seconds), 3 * seconds, f"tracing {name}")

    if not live and inputs is None:
        return run(None)
    taken = {dotted(place) for place, _ in places(target.settings({}))}
    given, plain = (
        Given(args, kwargs, (), numbers) if live else Given((), inputs or {}, outputs, numbers, taken)
        for numbers in (True, False)
    )
    if given.lengths == plain.lengths:
        return run(plain)
    with suppress(SymflopsError):  # integers in lists may be lengths, or not
        if (found := run(given)).proven:
            return found
    return run(plain)


def fields_of(config: Any) -> Mapping[str, Any]:
    """The fields of a config that were given: of transformers' objects those that are no defaults.

    Raises:
        SymflopsError: it has no fields.
    """
    if config is None or isinstance(config, Mapping):
        return config or {}
    found = config.to_diff_dict() if hasattr(config, "to_diff_dict") else as_json(config)
    if not isinstance(found, Mapping):
        raise SymflopsError(f"a config has fields; {kind_of(config)} has none")
    return found


def _trace(make: Callable[[], Example], seconds: float) -> Traced:
    """Find an example, trace it in a further process, and prove the forms in this one, whose PyTorch is unchanged.

    If the forms are wrong somewhere or for the config as given, as the example has other numbers, it is the example; then it is
    without symbols for fields that may choose kinds of layers.
    """
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    until = time.process_time() + seconds
    example = make()
    first = [] if example.fields == example.own else [(example.fields, False)]
    for fields, careful in (*first, (example.own, False), (example.own, True)):
        example.fields, left = dict(fields), until - time.process_time()
        make_forms = partial(_forms, example, left / 2, careful)
        forms, example.fields = in_process(make_forms, 2 * left, f"tracing {example.name}")
        forms.example = example
        freer = released(forms, until - left / 4)
        proof = Prover(freer).run(until)
        if freer is not forms and not proof.proven:
            freer, proof = forms, Prover(forms).run(until)
        found = published(freer, proof)
        if (found.holds and not proof.wrong) or time.process_time() > until - seconds / 2:
            break
    return found


def _forms(example: Example, seconds: float, careful: bool) -> tuple[Forms, dict[Place, int]]:
    """Closed forms and example values of fields, by a process that does nothing else.

    The forms come without the example, whose class may not be picklable.
    """
    shadows.install((example.module,))
    found = forms_of(example, seconds, careful)
    found.example = None  # type: ignore[assignment]
    return found, example.fields


def published(forms: Forms, proof: Proof) -> Traced:
    """The result of a trace and its proof, with the numbers of the config as it was given."""
    used = {one.name for one in forms.symbols} | {one.name for condition, _ in proof.domain for one in condition.free_symbols}
    derived = {one.name: expression for one, expression in forms.derived.items()}
    lines = forms.lines
    fields = {}
    example = forms.example
    adapters = {name: ADAPTERS[name] for name, _ in ranks(example.regime)}
    origins = {**example.given.origins, **adapters} if example.given else {}
    traced = {dotted(place): number for place, number in {**example.fields, **example.depths}.items()} | dict(example.lengths)
    own = {dotted(place): number for place, number in places(example.target.settings({}))}
    values = {name: own.get(name, number) for name, number in traced.items()}
    numbers = forms.dropped.keys() | {name for name, one in derived.items() if one.is_number}
    try:
        if any(values[name] != traced[name] for name in numbers & values.keys()):
            raise ValueError("the forms hold for other numbers than those of the config")
        counts = replace(example, depths={}, fields={}).real({}, example.lengths)
    except Exception:  # the config as given runs with fewer layers or other numbers only
        counts, values = example.real(example.fields, example.lengths), traced
    for name, value in values.items():
        if name in derived:
            fixed = derived[name].is_number
            note = lines.get(name, "") if fixed else f"{name} = {text_of(derived[name])}"
            fields[name] = Field(name, "specialised" if fixed else "derived", value, note, origins.get(name, ""))
        elif name in forms.dropped:
            fields[name] = Field(name, "dropped", value, forms.dropped[name])
        else:
            fields[name] = Field(name, "symbolic" if name in used else "unused", value, "", origins.get(name, ""))
    conditions = proof.domain
    plain = partial(divided, conditions=[one for one, _ in conditions])
    found = Traced(
        example.name, plain(forms.parameters), plain(forms.forward), plain(forms.backward),
        {path: plain(one) for path, one in forms.modules.items()},
        tuple(one for one, _ in conditions), tuple(line for _, line in conditions), fields,
        {name: int(getattr(counts, name)) for name in FIGURES}, counts.missed, proof.exact,
        proof.why_not, forms.shapes, example.fixed(), derived, tuple(proof.points), dict(forms.depths),
        tuple(proof.far), tuple(proof.beyond), tuple(proof.outside), counts.idle,
        tuple(map(text_of, forms.masks)),
    )  # fmt: skip
    return replace(found, unproven=wrong) if found.proven and (wrong := wrong_as_given(found)) else found


def wrong_as_given(found: Traced) -> str:
    """The first figure in which forms differ from the class with the config as it was given; empty inside of no domain."""
    try:
        mine = found.at({})
    except SymflopsError:
        return ""
    differing = (name for name in FIGURES if mine[name] != found.numbers[name])
    return next((f"{name}: {mine[name]} by the formula, {found.numbers[name]} counted as given" for name in differing), "")
