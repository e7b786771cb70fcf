"""What a class or a module costs by its own code: closed forms, their domain and their proof."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import sympy

from symflops.support.errors import SymflopsError
from symflops.verify.symbolic import shadows
from symflops.verify.symbolic.explore import example_of
from symflops.verify.symbolic.forms import FIGURES, Forms, compiled, forms_of
from symflops.verify.symbolic.inputs import Given
from symflops.verify.symbolic.printing import in_terminal, neat, text_of, tree
from symflops.verify.symbolic.process import in_process
from symflops.verify.symbolic.prove import Proof, Prover
from symflops.verify.symbolic.target import LiveTarget, Target, dotted, places
from symflops.verify.symbolic.tracer import Example

SECONDS = 120.0
"""Time of a whole trace, by default."""


@dataclass(frozen=True)
class Field:
    """An integer field of a config, or a length of the inputs.

    Attributes:
        name: Its name in the config, with dots between nested ones.
        kind: ``symbolic``, ``derived``, ``specialised``, ``dropped`` or ``unused``.
        value: Its value in the example.
        note: The equation of a derived field, the source line of a specialised one, the reason of a dropped one.
    """

    name: str
    kind: str
    value: int
    note: str = ""


@dataclass(frozen=True)
class Traced:
    """Closed forms of a class or a module, in the fields of its config and the lengths of its inputs.

    Attributes:
        name: The name of the class.
        parameters: Number of parameter elements.
        forward: FLOPs of the forward pass, as PyTorch's counter multiplies them: 2 per multiply-add.
        backward: FLOPs of the backward pass from the sum of the main output.
        modules: Forward FLOPs by module path, with ``*`` for indices; a module includes those inside it.
        domain: Conditions on fields and lengths under which the forms hold.
        lines: The source line of each condition, in the same order.
        fields: The integer fields and lengths by name.
        numbers: ``parameters``, ``forward`` and ``backward`` at the example.
        missed: (operator, times) that may do counted work and have no rule.
        exact: Number of unseen configs of the real class at which all figures were equal.
        unproven: Why the forms are not proven; empty if they are.
        shapes: Output shape by module path.
        fixed: Further fields of the config, which are as in the example wherever the forms hold.
    """

    name: str
    parameters: sympy.Expr
    forward: sympy.Expr
    backward: sympy.Expr
    modules: Mapping[str, sympy.Expr]
    domain: tuple[sympy.Basic, ...]
    lines: tuple[str, ...]
    fields: Mapping[str, Field]
    numbers: Mapping[str, int]
    missed: Mapping[str, int] = field(default_factory=dict)
    exact: int = 0
    unproven: str = ""
    shapes: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def proven(self) -> bool:
        """Whether the forms were exact at three or more unseen configs."""
        return not self.unproven

    def symbols(self) -> list[str]:
        """Names of the fields and lengths that are symbols."""
        return [name for name, one in self.fields.items() if one.kind == "symbolic"]

    def at(self, values: Mapping[str, int]) -> dict[str, int]:
        """``parameters``, ``forward`` and ``backward`` with other fields and lengths, the rest as in the example.

        Raises:
            SymflopsError: a name is unknown or no symbol, or a value is outside of the domain.
        """
        for name in values:
            kind = self.fields[name].kind if name in self.fields else "unknown"
            if kind not in ("symbolic", "unused"):
                raise SymflopsError(f"'{name}' is {kind}: {', '.join(self.symbols())} are symbols")
        point = {name: one.value for name, one in self.fields.items()} | dict(values)
        symbols = [symbol(name) for name in point]
        for condition in self.domain:
            if not compiled(symbols, condition)(*point.values()):
                raise SymflopsError(f"outside of the domain of {self.name}: {text_of(condition)}")
        found = compiled(symbols, [getattr(self, name) for name in FIGURES])(*point.values())
        return {name: int(value) for name, value in zip(FIGURES, found, strict=True)}

    def rows(self, short: Mapping[sympy.Symbol, sympy.Symbol] = MappingProxyType({})) -> list[dict[str, str]]:
        """Path, output shape and forward FLOPs of each module that does counted work, outermost first.

        The list is the data of a pandas DataFrame. ``short`` replaces symbols.
        """
        found = []
        for path in sorted(self.modules, key=lambda path: path.split(".")):
            if self.modules[path] != 0 and path != "Global":
                below = path.partition(".")[2]
                sides = ", ".join(text_of(sympy.sympify(side).xreplace(short)) for side in self.shapes.get(below, ()))
                text = text_of(neat(self.modules[path].xreplace(short)))
                found.append({"path": below, "shape": f"[{sides}]" if sides else "", "forward": text})
        return found

    def table(self) -> str:
        """The module tree with output shapes and forward FLOPs, in 80 columns."""
        return "\n".join(tree(self))

    def estimator(self, config: Mapping[str, Any] | None = None) -> TracedEstimator:
        """Parameters and FLOPs of one config of the class, for any lengths.

        Raises:
            SymflopsError: the forms do not hold for the config: trace the class with it.
        """
        return TracedEstimator(self, dict(config or {}))

    def __str__(self) -> str:
        return in_terminal(self)


class TracedEstimator:
    """Figures of one config by the closed forms of a trace.

    Args:
        traced: The forms.
        config: Fields of the config that differ from the example's.

    Raises:
        SymflopsError: the forms do not hold for the config.
    """

    def __init__(self, traced: Traced, config: Mapping[str, Any]) -> None:
        self.traced, self.values = traced, dict[str, int]()
        for name, value in flat(config):
            known = traced.fields.get(name)
            if known is not None and known.kind in ("symbolic", "unused"):
                self.values[name] = value
            elif (known.value if known else traced.fixed.get(name, value)) != value:
                what = f"{known.kind} ({known.note})" if known else "of the example"
                raise SymflopsError(
                    f"'{name}' is {what}: the forms of {traced.name} hold for another value; trace it with this config"
                )
        self.parameters = traced.at(self.values)["parameters"]

    def forward(self, **lengths: int) -> int:
        """FLOPs of the forward pass at these lengths."""
        return self.traced.at({**self.values, **lengths})["forward"]

    def backward(self, **lengths: int) -> int:
        """FLOPs of the backward pass at these lengths."""
        return self.traced.at({**self.values, **lengths})["backward"]


def flat(config: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (name with dots, value) of the fields of a config."""
    for key, value in config.items() if isinstance(config, Mapping) else enumerate(config):
        name = f"{before}{key}"
        if isinstance(value, (Mapping, list, tuple)):
            yield from flat(value, f"{name}.")
        else:
            yield name, value


def trace(
    what: Any, *args: Any, config: Mapping[str, Any] | None = None, inputs: Mapping[str, Any] | None = None,
    seconds: float = SECONDS, **kwargs: Any,
) -> Traced:  # fmt: skip
    """Trace a module class with symbols in its config and its inputs, or a live module with symbols in its inputs.

    The tracing runs in processes of their own; the module and PyTorch stay as they are.

    Args:
        what: A module class, or a module.
        args: Of a module: positional arguments of a call.
        config: Of a class: fields of its config, or arguments of its constructor; defaults complete them.
        inputs: Of a class: keyword arguments of a call, tensors or ``{"shape": [2, 24], "dtype": "int64"}``; by default those
            that the class is known to take.
        seconds: Limit of the trace.
        kwargs: Of a module: keyword arguments of a call. Of a class: arguments of its constructor.

    Returns:
        Closed forms of parameters (elements) and FLOPs of both passes, their domain, and the numbers of the example.

    Raises:
        SymflopsError: it cannot be built, run or traced, or not in time.
    """
    if isinstance(what, type):
        given = Given((), inputs) if inputs is not None else None
        target: Target | LiveTarget = Target(what, {**(config or {}), **kwargs})
        if args:
            raise SymflopsError(f"a class takes its config by keyword: trace({what.__name__}, config={{...}}, inputs={{...}})")
    else:
        target, given = LiveTarget(what), Given(args, kwargs)
    name = target.kind.__name__
    return in_process(partial(_trace, partial(example_of, target, given), seconds), 1.5 * seconds, f"tracing {name}")  # type: ignore[no-any-return]


def _trace(make: Callable[[], Example], seconds: float) -> Traced:
    """Find an example, trace it in a further process, and prove the forms in this one, whose PyTorch is unchanged."""
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    until = time.monotonic() + seconds
    example = make()
    forms = in_process(partial(_forms, example, seconds / 2), 0.75 * seconds, f"tracing {example.name}")
    forms.example = example
    return published(forms, Prover(forms).run(until))


def _forms(example: Example, seconds: float) -> Forms:
    """Closed forms by a process that does nothing else; without the example, whose class may not be picklable."""
    shadows.install((example.module,))
    found = forms_of(example, seconds)
    found.example = copy.copy(None)  # type: ignore[assignment]
    return found


def published(forms: Forms, proof: Proof) -> Traced:
    """The result of a trace and its proof, with the numbers of the config as it was given."""
    used = {one.name for one in forms.symbols}
    derived = {one.name: expression for one, expression in forms.derived.items()}
    lines = forms.lines
    fields = {}
    example = forms.example
    origins = example.given.origins if example.given else {}
    traced = {dotted(place): number for place, number in {**example.fields, **example.depths}.items()} | dict(example.lengths)
    own = {dotted(place): number for place, number in places(example.target.settings({}))}
    values = {name: own.get(name, number) for name, number in traced.items()}
    try:
        counts = replace(example, depths={}, fields={}).real({}, example.lengths)
    except Exception:  # the config as given runs with fewer layers or other numbers only
        counts, values = example.real(example.fields, example.lengths), traced
    for name, value in values.items():
        if name in derived:
            fixed = derived[name].is_number
            fields[name] = Field(
                name,
                "specialised" if fixed else "derived",
                value,
                lines.get(name, "") if fixed else f"{name} = {derived[name]}",
            )
        elif name in forms.dropped:
            fields[name] = Field(name, "dropped", value, forms.dropped[name])
        else:
            fields[name] = Field(name, "symbolic" if name in used else "unused", value, origins.get(name, ""))
    conditions = proof.domain
    plain = partial(divided, conditions=[one for one, _ in conditions])
    return Traced(
        example.name, plain(forms.parameters), plain(forms.forward), plain(forms.backward),
        {path: plain(one) for path, one in forms.modules.items()},
        tuple(one for one, _ in conditions), tuple(line for _, line in conditions), fields,
        {name: int(getattr(counts, name)) for name in FIGURES}, counts.missed, proof.exact,
        proof.why_not, forms.shapes, example.fixed(),
    )  # fmt: skip


def divided(found: sympy.Expr, conditions: Sequence[sympy.Basic]) -> sympy.Expr:
    """An expression without floors of quotients that a condition makes whole."""
    for one in conditions:
        remainder = next(iter(one.args), None) if isinstance(one, sympy.Eq) else None
        if isinstance(remainder, sympy.Mod) and one.rhs == 0:
            above, below = remainder.args
            for part in (below, *(below / factor for factor in sympy.Mul.make_args(below) if factor != below)):
                found = found.xreplace({sympy.floor(above / part): above / part})
    return sympy.expand(found) if found.has(sympy.Pow) else found


def symbol(name: str) -> sympy.Symbol:
    """The symbol of a field or a length: a positive integer."""
    return sympy.Symbol(name, integer=True, positive=True)
