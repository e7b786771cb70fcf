"""Services that place entries: operands looked up, results bound, branches joined; checkpoints undo a failed attempt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

from symflops.build.graph_builder import GraphBuilder, ParameterTable
from symflops.build.scopes import ABSENT, Binding, Evaluator, Frame, OperatorLimit, Surroundings
from symflops.build.streams import Streams
from symflops.formula.definitions import Definitions
from symflops.formula.domain import either, sizes_behind
from symflops.formula.truth import NO, Truth, UnknownSizeError, unequal_widths
from symflops.formula.words import as_written, said
from symflops.ir.nodes import Operator, Select, Value
from symflops.ir.spec import Entry, Name, OperatorEntry, Spec, Template
from symflops.ops.elementwise import rows_match
from symflops.ops.kind import Call
from symflops.ops.stacks import Stacks
from symflops.support.findings import Diagnostic, Reporter, Span, SpecError, did_you_mean


class EntrySpans(NamedTuple):
    """The path of an entry, its span, and the spans of its fields, for findings about these fields."""

    path: Template
    span: Span
    fields: Mapping[str, Span] = MappingProxyType({})

    def refuse(
        self, code: str, message: str, field: str = "", hint: str = "", about: Value | None = None, **more: Any
    ) -> NoReturn:
        """Raise a finding at ``field``, or at the entry if it lacks the field.

        ``about`` is ignored; other callers of :func:`rows_match` need it. ``more`` are further fields of the finding.
        """
        raise SpecError([Diagnostic(code, message, self.fields.get(field, self.span), hint, **more)])


@dataclass(frozen=True, slots=True)
class NameBinder:
    """Looks up the operands of entries and binds their results."""

    graph: GraphBuilder
    limit: OperatorLimit
    definitions: Definitions
    evaluator: Evaluator

    def look_up(self, name: Name, frame: Frame, optional: bool = False) -> Binding | None:
        """Look up the binding of ``name``; None if it stands in for the result of a faulty entry.

        With ``optional``, such a name counts as absent.

        Raises:
            SpecError: nothing binds the name, or its value may be absent and ``optional`` is false.
        """
        binding = frame.values.get(name.text)
        if binding is None:
            hint = did_you_mean(name.text, frame.values, f"values here: {', '.join(list(frame.values)[-8:])}")
            raise SpecError([Diagnostic("unknown-value", f"value '{name}' is not defined here", name.span, hint)])
        if optional:
            return ABSENT if self.graph.is_poisoned(binding) else binding
        if frame.guard.implies(binding.present):
            return binding
        if self.graph.is_poisoned(binding):
            return None
        hint = f"it is there only if {as_written(binding.present.expr)}"
        hint = hint if binding.present is not NO else "no entry before made it"
        finding = Diagnostic("absent-value", f"value '{name}' is absent here", name.span, hint)
        sizes = sizes_behind(frame.guard.expr)
        if sizes:  # the entry is conditional, too: a config decides whether the value is present
            others = sizes_behind(binding.present.expr)
            raise UnknownSizeError(next((size for size in sizes if size not in others), sizes[-1]), finding)
        raise SpecError([finding])

    def values(self, names: Sequence[Name], frame: Frame) -> list[Binding]:
        """Look up ``names``, each of which may be absent; return the bindings of those that have a value."""
        found = (self.look_up(name, frame, optional=True) for name in names)
        return [binding for binding in found if binding is not None and binding.value is not None]

    def join(self, frame: Frame, condition: Truth, new: Binding, old: Binding) -> Binding:
        """Join two bindings of a name: ``new`` if ``condition``, else ``old``.

        If both have a value and the values differ, a node that selects one of them is added to the graph.
        """
        for binding in (new, old):
            if self.graph.is_poisoned(binding):
                return binding
        present = condition.choose(new.present, old.present)
        if old.value is None or new.value is None or old.value.id == new.value.id:
            return Binding(new.value or old.value, present)
        if not old.value.stream.alike(new.value.stream, self.definitions.equal):
            _refuse_other_rows(condition, new.value, old.value)
        width = new.value.width
        if width is not None and old.value.width is not None and not self.definitions.equal(width, old.value.width):
            width = either(condition, width, old.value.width)
        value = self.graph.value(new.value.name, new.value.stream, width, new.value.span)
        frame.nodes.append(Select(value.id, condition, new.value.id, old.value.id))
        return Binding(value, present)

    def combine(self, entry: OperatorEntry, frame: Frame, call: Call) -> None:
        """Apply ``with``: combine the first operand elementwise with further values before the operator."""
        extra = self.values(entry.fields.get("with") or (), frame)
        if not extra:
            return
        field = next((name for name, values in call.values.items() if values), "")
        if not field:
            call.fail("missing-operand", "'with' needs an operand to combine with", "with")
        first, *rest = call.values[field]
        others = [binding.value for binding in extra if binding.value is not None]
        for value in others:
            rows_match(call.fail, call.definitions.equal, first, value, "with")
        unnamed = entry.path.text == "_" or entry.path.text.startswith("/")
        around = frame if unnamed else frame.inside(path=self.evaluator.path(entry.path, frame).parent)
        joined = self.step("with", entry.span, around, (first, *others), saves="nothing")
        call.values = {**call.values, field: (joined, *rest)}

    def step(self, kind: str, span: Span, frame: Frame, values: Sequence[Value], saves: str) -> Value:
        """Add the elementwise operator of ``with``, ``gate`` or ``add_to``.

        The operator belongs to the module around the entry, as recomputation of modules requires: a block computes the
        gate's product and the residual's sum, and the module around an operator computes ``with`` (``norm1`` modulates
        the result of ``norm1.norm``).
        """
        self.limit.grow()
        first = values[0]
        result = self.graph.value(first.name, first.stream, first.width, span)
        frame.nodes.append(
            Operator(
                self.graph.number(), kind, frame.path, tuple(value.id for value in values), (result.id,),
                guard=frame.guard, saves=saves, flows=not frame.no_grad, span=span, visits=frame.visits, turns=frame.turns,
                regions=frame.regions, role="gate" if kind == "mul" else "",
            )
        )  # fmt: skip
        return result

    def bind(self, entry: Entry, fields: Mapping[str, Any], results: list[Binding], frame: Frame) -> None:
        """Apply ``gate``, ``to`` and ``add_to`` to the results of an entry.

        The first of ``results`` is multiplied by the gates; all are bound to their names under ``to``; and the first is added
        to the values under ``add_to``.
        """
        if any(self.graph.is_poisoned(result) for result in results):
            return self.graph.abandon(entry, frame)
        named = {name: given[0].span for name in ("gate", "add_to") if (given := fields.get(name))}
        spans = EntrySpans(entry.path, entry.span, named)
        gates = self.values(fields.get("gate") or (), frame)
        if results and results[0].value is not None and gates:
            results[0] = self._gated(spans, results[0], gates, frame)
        frame.values.update((name, result) for name, result in _named(entry, fields.get("to") or (), results) if name != "_")
        for name in fields.get("add_to") or ():
            target = self.look_up(name, frame)
            if target is None:
                return self.graph.abandon(entry, frame)
            self._add(spans, name, target, results[0], frame)
        return None

    def _gated(self, spans: EntrySpans, result: Binding, gates: list[Binding], frame: Frame) -> Binding:
        """Apply ``gate``: multiply the first result by the gates that are present."""
        assert result.value is not None
        present = gates[0].present
        for gate in gates[1:]:
            present = present | gate.present
        values = [gate.value for gate in gates if gate.value is not None]
        for value in values:
            rows_match(spans.refuse, self.definitions.equal, result.value, value, "gate")
        if frame.guard.implies(present):
            return Binding(self.step("mul", spans.span, frame, (result.value, *values), "operands"), result.present)
        inner = frame.inside(guard=frame.guard & present)
        product = self.step("mul", spans.span, inner, (result.value, *values), "operands")
        return self.join(frame, present, Binding(product, result.present), result)

    def _add(self, spans: EntrySpans, name: Name, old: Binding, result: Binding, frame: Frame) -> None:
        """Apply ``add_to``: rebind ``name`` to its value plus the result."""
        target = old.value
        if target is None or result.value is None:
            return
        rows_match(spans.refuse, self.definitions.equal, target, result.value, "add_to")
        before, after = target.width, result.value.width
        if before is None or after is None or not self.definitions.equal(before, after):
            message = f"'{name}' has width {said(before)}, the result of '{spans.path.text}' has width {said(after)}"
            unknown = unequal_widths([width for width in (before, after) if width is not None], message, name.span)
            if unknown is not None:
                raise unknown
            hint = (
                f"what is added to '{name}' is as wide: {said(before)}" if before is not None else "indices cannot be added to"
            )
            label, note = f"'{spans.path.text}' adds {said(after)} here", self.definitions.formulas_of(before, after)
            spans.refuse("width-mismatch", message, "add_to", hint, label=label, also=target.wide, note=note)
        frame.values[name.text] = Binding(self.step("add", spans.span, frame, (target, result.value), "nothing"))


def _named(entry: Entry, to: Sequence[Name], results: Sequence[Binding]) -> Iterable[tuple[str, Binding]]:
    """Pairs (name under ``to``, result); without ``to`` the first result has the entry's path as its name."""
    names = [name.text for name in to] or [entry.path.text]
    if len(names) > len(results) or (to and len(names) < len(results)):
        message = f"{_number(len(results), 'result')} for {_number(len(names), 'name')}"
        span = to[0].span if to else entry.span
        raise SpecError([Diagnostic("result-count", message, span, "name each result under 'to', '_' drops one")])
    return zip(names, results, strict=False)


def _refuse_other_rows(condition: Truth, new: Value, old: Value) -> NoReturn:
    """Raise a finding: the rows of a name depend on ``condition``, so its sizes must be known."""
    message = f"'{new.name}' has other rows when {as_written(condition.expr)}"
    sizes = sizes_behind(condition.expr)
    if not sizes:
        raise SpecError([Diagnostic("row-mismatch", message, new.span, "bind a new name", also=old.long)])
    hint = f"'{sizes[0]}' must be known for that; or bind a new name"
    raise UnknownSizeError(sizes[0], Diagnostic("structural-size", message, new.span, hint))


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


PlaceEntries = Callable[[Sequence[Entry], Frame], None]
"""A function that places the entries of a body, such as a block's, in a frame."""


@dataclass(frozen=True, slots=True)
class Services:
    """The objects that together add entries to the graph under construction.

    Attributes:
        report: Collects findings.
        definitions: Compares and divides widths.
        streams: Declared streams and batch variables.
        surroundings: Calls, repeats and entries around the current entry, for findings.
        limit: Counts operators.
        evaluator: Evaluates expressions and paths.
        graph: Creates values, node numbers and indices.
        parameters: Parameters that operators have claimed, by path.
        stacks: The stacks of ``push`` and ``pop``.
        binder: Looks up operands and binds results.
    """

    report: Reporter
    definitions: Definitions
    streams: Streams
    surroundings: Surroundings
    limit: OperatorLimit
    evaluator: Evaluator
    graph: GraphBuilder
    parameters: ParameterTable
    stacks: Stacks
    binder: NameBinder

    def checkpoint(self, frame: Frame) -> Callable[[], None]:
        """Note the state before nodes are added in ``frame``; return a function that restores this state."""
        values, returned, diagnostics = len(self.graph.values), len(self.graph.returned), list(self.report.diagnostics)
        claims, bindings = self.parameters.claims.mark, frame.values.mark
        nodes, stacks, operators = len(frame.nodes), self.stacks.copy(), self.limit.operators

        def go_back() -> None:
            self.graph.truncate(values, returned)
            self.parameters.claims.undo(claims)
            self.report.restore(diagnostics)
            del frame.nodes[nodes:]
            frame.values.undo(bindings)
            self.stacks.restore(stacks)
            self.limit.operators = operators

        return go_back


def services_of(
    spec: Spec, report: Reporter, definitions: Definitions, streams: Streams, patterns: tuple[str, ...]
) -> Services:
    """Create the services for building one graph; ``patterns`` are those of the regime."""
    surroundings, graph = Surroundings(spec), GraphBuilder(spec.apart, patterns)
    evaluator = Evaluator(graph.is_poisoned, spec.renamed)
    limit = OperatorLimit(surroundings)
    parameters, binder = ParameterTable(definitions), NameBinder(graph, limit, definitions, evaluator)
    own = surroundings, limit, evaluator, graph, parameters, Stacks(), binder
    return Services(report, definitions, streams, *own)
