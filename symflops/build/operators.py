"""Places operators: reads their fields, lets the operator kind declare its work, and binds the results."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from symflops.build.scopes import ABSENT, Binding, Frame
from symflops.build.services import Services
from symflops.build.streams import StreamScope
from symflops.formula.expression import Expression
from symflops.formula.functions import sizes_in
from symflops.formula.truth import NO, YES, Truth, UnknownSizeError
from symflops.ir.nodes import Operator, Pop, Push, Value
from symflops.ir.patterns import Path
from symflops.ir.spec import OperatorEntry, Template, Tie
from symflops.ops.kind import Call, Field, Form, Kind, operand_place
from symflops.ops.table import KINDS
from symflops.support.findings import Diagnostic, Span, SpecError

OPTIONAL = ("with", "gate", "bias")
BY_ROW = {"linear": ("from",), "conv": ("from",), "attention": ("query", "key", "value")}
"""Operands, by operator kind, whose rows multiply the work."""
UNREAD = ("like", "axes_of")  # operands that only give a shape


class Fields(NamedTuple):
    """Evaluated fields of an operator.

    Attributes:
        given: Field -> its value, for fields that are not operands.
        operands: Field -> the values that it names.
        faulty: Whether an operand is the result of a faulty entry.
    """

    given: dict[str, Any]
    operands: dict[str, tuple[Value, ...]]
    faulty: bool


@dataclass(frozen=True, slots=True)
class Operators:
    """Evaluates the fields of operators, adds operators to the graph, and binds their results."""

    services: Services

    def place(self, entry: OperatorEntry, frame: Frame) -> None:
        """Evaluate the fields of an operator, let its kind declare its work, and bind its results."""
        services = self.services
        services.limit.grow()
        kind = KINDS[entry.kind.text]
        fields = self._fields(kind, entry, frame)
        if fields.faulty:
            return services.graph.abandon(entry, frame)
        path = services.evaluator.path(entry.path, frame)
        self._check_selectable(path, entry)
        call = Call(
            path, entry.span, fields.given, {**entry.places, **_operand_spans(kind, entry, frame)}, fields.operands,
            services.definitions, lambda *given: self._parameter_paths(entry, frame, *given),
            StreamScope(services.streams, frame, partial(services.evaluator.width, frame)), frame.guard, services.stacks,
            frame.state,
        )  # fmt: skip
        services.binder.combine(entry, frame, call)
        services.stacks.counts = services.graph.counts
        kind.apply(call)
        services.report.extend(call.warnings)
        if call.sequence is not None:
            results = self._handed(call, frame)
        elif call.moved is None:
            results = self._add(kind, entry, call, frame)
        else:
            results = [Binding(*moved) for moved in call.moved]
        if call.moved == ():
            return None
        return services.binder.bind(entry, entry.fields, results, frame)

    def _add(self, kind: Kind, entry: OperatorEntry, call: Call, frame: Frame) -> list[Binding]:
        """Add the operator that ``call`` declares to the graph; return bindings of its results."""
        graph = self.services.graph
        shared = self.services.evaluator.is_shared(entry.fields, frame)
        tied = any(entry.fields.get(name) for name in ("weight", "bias_name", "tie"))
        self.services.parameters.claim(call, frame, tied, shared)
        names = [name.text for name in entry.fields.get("to") or ()]
        names += [entry.path.text] * (len(call.results) - len(names))
        results = [graph.value(name, *result, entry.span) for name, result in zip(names, call.results, strict=False)]
        self._check_tables(entry, call)
        again = shared and graph.number()
        around = frame.as_a(entry.fields.get("role") or "").calling(entry.path, call.path, again)
        role = around.role if around.role == entry.fields.get("role") or entry.kind.text in ("linear", "conv") else ""
        operands = tuple(value.id for name, given in call.values.items() if name not in UNREAD for value in given)
        frame.nodes.append(
            Operator(
                graph.number(), entry.kind.text, call.path, operands, tuple(value.id for value in results),
                tuple(call.parameters), tuple(call.contractions), frame.guard, call.saves or kind.saves,
                call.flows and not frame.no_grad, role, call.caption, entry.span,
                around.visits, around.regions, tuple(call.needs),
                fits=tuple(call.fits), bare=bool(entry.fields.get("weight")), turns=around.turns,
                forces=call.forces, fields=call.fields,
                named={name: tuple(value.id for value in given) for name, given in call.values.items()},
                keeps=tuple(call.keeps) if frame.state.stateful is YES else (),
            )
        )  # fmt: skip
        return [Binding(value) for value in results]

    def _check_tables(self, entry: OperatorEntry, call: Call) -> None:
        """Refuse row-wise work on a parameter that has several rows but no stream: it would count as one row."""
        for name in BY_ROW.get(entry.kind.text, ()):
            for value in call.values.get(name, ()):
                if value.stream.table:
                    message = f"'{value.name}' is a parameter of several rows, and counts as one"
                    hint = (
                        "give the parameter 'stream: table', and 'table: {over: once, axes: {n: N}}' under 'streams'; "
                        "or 'expand' its value before"
                    )
                    call.fail("table-rows", message, name, hint, value, also=value.long)

    def _handed(self, call: Call, frame: Frame) -> list[Binding]:
        """Append the node of a ``push`` or ``pop`` to the graph.

        Returns the binding of the popped value in a list, or an empty list for ``push``.
        """
        name, size = call.sequence.name, call.sequence.size
        if call.moved == ():
            frame.nodes.append(Push(name, call.operand().id, size, frame.guard, call.span))
            return []
        value = self.services.graph.value("taken", call.sequence.stream, call.sequence.width, call.span)
        frame.nodes.append(Pop(name, value.id, size, frame.guard, call.span))
        return [Binding(value, frame.guard)]

    def _check_selectable(self, path: Path, entry: OperatorEntry) -> None:
        """Refuse a path with an index such as ``{2*i + 1}`` if a pattern of the regime selects by that index.

        Which iterations the pattern selects then depends on sizes.
        """
        for position, part in enumerate(path.parts):
            composed = not isinstance(part, str) and not part.is_Symbol and part not in self.services.graph.chosen
            if composed and self.services.graph.selectors(Path(path.parts[:position]).parent):
                message = f"a pattern selects an index, and '{entry.path.text}' is at another one for other sizes"
                diagnostic = Diagnostic("structural-size", message, entry.path.span)
                raise UnknownSizeError(next(iter(sizes_in(part)), ""), diagnostic)

    def _fields(self, kind: Kind, entry: OperatorEntry, frame: Frame) -> Fields:
        """Evaluate the fields of an operator and look up its operands.

        Raises:
            SpecError: with the findings of all fields.
        """
        found = Fields({}, {}, False)
        mistakes: list[Diagnostic] = []
        for field in kind.fields:
            given = entry.fields.get(field.name)
            try:
                if field.form is Form.VALUES and field.name != "fold":
                    optional = field.name in OPTIONAL
                    bindings = [self.services.binder.look_up(name, frame, optional) for name in given or ()]
                    found = found._replace(faulty=found.faulty or None in bindings)
                    values = (binding.value for binding in bindings if binding is not None)
                    found.operands[field.name] = tuple(value for value in values if value is not None)
                else:
                    found.given[field.name] = self._field(field, given, frame)
            except SpecError as error:
                mistakes += error.diagnostics
        if mistakes:
            raise SpecError(mistakes)
        return found

    def _field(self, field: Field, given: Any, frame: Frame) -> Any:
        """Evaluate ``given``, the value of a field whose names are not operands.

        Returns a tuple of names, a mapping of axes to sizes for a window, or the value of an expression; any other form is
        returned as it is.
        """
        evaluator = self.services.evaluator
        if field.form is Form.VALUES:
            return tuple(name.text for name in given or ())
        if field.form is Form.WINDOW:
            return {name.text: size for name, size in given or ()}
        if field.form is not Form.LENGTHS and isinstance(given, Expression):
            return evaluator.value(given, frame)
        return given

    def _parameter_paths(
        self, entry: OperatorEntry, frame: Frame, tie: Tie | None, template: Template | None, default: Path
    ) -> list[tuple[Truth, Path]]:
        """List the paths that a parameter can have, as (condition, path).

        Where the condition of ``tie`` holds, the path is that of the tied parameter; else it follows from ``template``, or
        without a template it is ``default``.
        """
        found = [(YES, default)]
        evaluator = self.services.evaluator
        if template is not None:
            path = evaluator.path(entry.path, frame)
            cases = evaluator.paths(template, frame, path if entry.path.text == "_" else path.parent)
            found = [(truth, path if path.parts else default) for truth, path in cases]
        if tie is None:
            return found
        same = evaluator.condition(tie.when, frame)
        others = evaluator.paths(tie.to, frame, Path(())) if same is not NO else []
        both = [(same & truth, path) for truth, path in others] + [(~same & truth, path) for truth, path in found]
        return [(truth, path) for truth, path in both if truth is not NO]


def _operand_spans(kind: Kind, entry: OperatorEntry, frame: Frame) -> dict[str, Span]:
    """Map each operand, as text of its field and value, to the span of its name in the spec."""
    found: dict[str, Span] = {}
    for field in kind.fields:
        for name in (entry.fields.get(field.name) or ()) if field.form is Form.VALUES else ():
            value = frame.values.get(name.text, ABSENT).value
            if value is not None:
                found[operand_place(field.name, value)] = name.span
    return found
