"""Places routed experts: every parameter exists once per expert, and each row runs through some of the experts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sympy import Expr

from symflops.build.journal import Journaled
from symflops.build.name_binding import EntrySpans
from symflops.build.scopes import ABSENT, Binding, Frame
from symflops.build.services import PlaceEntries, Services
from symflops.formula.functions import PerToken
from symflops.ir.nodes import Operator, Part, Stream, Value
from symflops.ir.patterns import Path
from symflops.ir.spec import Group, Name
from symflops.ops.elementwise import rows_match
from symflops.support.findings import Diagnostic, SpecError

CHOICE = "expert_choice"


@dataclass(frozen=True, slots=True)
class Experts:
    """Adds the nodes of groups of routed experts to the graph; ``place_entries`` does so for the body."""

    services: Services
    place_entries: PlaceEntries

    def place(self, entry: Group, frame: Frame, path: Path) -> None:
        """Add the nodes of the experts: the body, on ``choose`` times as many rows as the operand has.

        Each parameter gets a leading dimension of ``experts``, or exists in each module of a list. Inside, ``x`` is the
        operand, and the body must bind ``y``. At the end ``y`` is multiplied by the router's ``weights``, which gives the
        router its gradient, and the chosen rows are summed back into those of the operand.
        """
        graph, binder = self.services.graph, self.services.binder
        copies = self._number(entry, frame, "experts")
        choose = self._number(entry, frame, "choose") if entry.choose is not None else copies
        if entry.routed is not None:
            choose = PerToken(choose, self._number(entry, frame, "routed"))
        operand = self._value(entry, entry.arguments, frame)
        if operand is None:
            return graph.abandon(entry, frame)
        chosen = Stream(operand.stream.items, tuple(Part(((CHOICE, choose), *part.axes)) for part in operand.stream.parts))
        routed = graph.value("x", chosen, operand.width, entry.span)
        self._step(entry, frame, path, "map", (operand,), routed)
        parameters = self._parameters(entry, frame, path, copies)
        inner = frame.inside(values=Journaled({"x": Binding(routed)}), regions=(*frame.regions, "experts"), **parameters)
        self.place_entries(entry.body, inner)
        if graph.is_poisoned(inner.values.get("y", ABSENT)):
            return graph.abandon(entry, frame)
        terms = [_result(entry, inner, chosen)]
        if entry.weights is not None:
            weights = self._value(entry, (entry.weights,), frame)
            if weights is None:
                return graph.abandon(entry, frame)
            terms.append(weights)
        result = self._combine(entry, frame, path, operand, terms)
        return binder.bind(entry, {"to": entry.to}, [Binding(result)], frame)

    def _value(self, entry: Group, names: Sequence[Name], frame: Frame) -> Value | None:
        """Look up the single value of ``names``; None if a faulty entry should have bound it."""
        if len(names) != 1:
            raise SpecError([Diagnostic("operand-count", "experts take one value", entry.span, "name it under 'from'")])
        binding = self.services.binder.look_up(names[0], frame)
        return None if binding is None else binding.value

    def _combine(self, entry: Group, frame: Frame, path: Path, operand: Value, terms: list[Value]) -> Value:
        """Add the operator that sums the outputs of the chosen experts per row.

        ``terms`` are the experts' outputs and, if the group has ``weights``, those of the router, by which it multiplies.
        """
        if entry.weights is not None:
            spans = EntrySpans(entry.path, entry.span, {"weights": entry.weights.span})
            rows_match(spans.refuse, operand, terms[1], "weights")
        result = self.services.graph.value("y", operand.stream, terms[0].width, entry.span)
        self._step(entry, frame, path, "mul" if entry.weights else "add", terms, result, "combine")
        return result

    def _parameters(self, entry: Group, frame: Frame, path: Path, copies: Expr) -> dict[str, Any]:
        """Changes to the frame for the experts' parameters, by field of :class:`Frame`.

        The parameters get a leading dimension of ``copies`` at one path, or belong to the modules of a list.
        """
        if not entry.listed:
            return {"path": path, "copies": (*frame.copies, copies)}
        index = self.services.graph.index(path, "experts", copies)
        return {"path": path.extend((index,)), "lists": (*frame.lists, (index, copies))}

    def _number(self, entry: Group, frame: Frame, field: str) -> Expr:
        expression = getattr(entry, field)
        value = self.services.evaluator.value(expression, frame)
        if not isinstance(value, Expr) or not value.is_integer:
            raise SpecError([Diagnostic("bad-field", f"'{field}' must be a whole number", expression.span)])
        return value

    def _step(
        self, entry: Group, frame: Frame, path: Path, kind: str, values: Sequence[Value], result: Value, role: str = ""
    ) -> None:
        """Append an operator that routes rows, or that combines them with the router's weights."""
        frame.nodes.append(
            Operator(
                self.services.graph.number(), kind, path, tuple(value.id for value in values), (result.id,),
                guard=frame.guard, saves="operands" if kind == "mul" else "nothing", flows=not frame.no_grad,
                span=entry.span, visits=frame.visits, turns=frame.turns, role=role, regions=frame.regions,
            )
        )  # fmt: skip


def _result(entry: Group, inner: Frame, chosen: Stream) -> Value:
    """The value ``y`` of the body; its rows must match the experts' input."""
    result = inner.values.get("y", ABSENT)
    if result.value is None or not inner.guard.implies(result.present):
        hint = "name its result with 'to: y'"
        raise SpecError([Diagnostic("unknown-value", "the body of experts must always make 'y'", entry.span, hint)])
    if not result.value.stream.alike(chosen):
        message = f"'y' has rows {result.value.stream}, the experts have {chosen}"
        raise SpecError([Diagnostic("row-mismatch", message, result.value.span or entry.span, "experts work row by row")])
    return result.value
