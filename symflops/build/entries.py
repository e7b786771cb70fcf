"""Places entries in a region, under their conditions; after a faulty entry the next ones are still checked.

Repeats become segments of equal iterations, or are unrolled if iterations differ and their number is known. Inside a block only
its inputs and parameters are visible. Each parameter of routed experts exists once per expert, and each row runs through some
experts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sympy import Expr, Integer

from symflops.build.iterations import unroll
from symflops.build.operators import Operators
from symflops.build.scopes import ABSENT, MAX_UNROLLED, Ahead, Binding, Frame, Journaled
from symflops.build.segments import Segments, is_same
from symflops.build.services import EntrySpans, PlaceEntries, Services
from symflops.formula.domain import Choice, Setting, sizes_behind
from symflops.formula.expression import Expression, names
from symflops.formula.functions import PerToken, sizes_in
from symflops.formula.truth import NO, YES, Truth, UnknownSizeError
from symflops.formula.words import said
from symflops.ir.convention import ROLES
from symflops.ir.nodes import CHOICE, Operator, Part, Stream, Value
from symflops.ir.patterns import Path
from symflops.ir.spec import BlockCall, Entry, Faulty, Group, Name, OperatorEntry, Repeat
from symflops.ops.elementwise import Equality, rows_match
from symflops.read.definition_order import assigned
from symflops.support.findings import Diagnostic, Label, SpecError


@dataclass(frozen=True, slots=True)
class Repeats:
    """Adds the nodes of repeats to the graph; ``place_entries`` does so for the body of one iteration."""

    services: Services
    place_entries: PlaceEntries

    def place(self, entry: Repeat, frame: Frame) -> None:
        """Add the nodes of a repeat to the graph: a loop for each segment, or unrolled iterations."""
        self._check_names(entry, frame)
        if entry.count is not None:
            count = self._count(entry.count, frame)
        elif (count := self._axis_length(entry, frame)) is None:
            return self.services.graph.abandon(entry, frame)
        if count == () and is_same(entry):
            count = Integer(0)
        if count == 0 and not is_same(entry):
            return self.services.graph.leave_out(name for name, _ in (names(entry.count) if entry.count else ()))
        start = self.services.evaluator.value(entry.start, frame) if entry.start else Integer(0)
        if isinstance(count, tuple):
            return self._unroll(entry, frame, count, start)
        if entry.count is not None and not (isinstance(count, Expr) and count.is_integer):
            whole = f"'repeat' is {said(count)}, which need not be a whole number"
            message = whole if isinstance(count, Expr) else "this is no number"
            hint = "a repeat is of a whole number, a list or an axis; // rounds down"
            raise SpecError([Diagnostic("bad-repeat", message, entry.count.span, hint)])
        if entry.count is not None:
            self.services.graph.demand_count(count, frame.guard, f"'repeat: {entry.count.text}' is negative")
        go_back = self.services.checkpoint(frame)
        try:
            return Segments(self.services, self.place_entries, entry, frame, count, start).place()
        except UnknownSizeError as error:
            if not (count.is_Integer and start.is_Integer and _is_about_index(error, entry)):
                raise UnknownSizeError(error.size or next(iter(sizes_in(count)), ""), error.diagnostic) from None
        go_back()
        return self._unroll(entry, frame, (None,) * min(int(count), MAX_UNROLLED + 1), start)

    def _unroll(self, entry: Repeat, frame: Frame, items: tuple[Any, ...], start: Expr) -> None:
        unrolled = self.services.surroundings.unrolled
        unrolled.append((entry, len(items)))
        try:
            unroll(self.services, self.place_entries, entry, frame, items, start)
        finally:
            unrolled.pop()

    def _check_names(self, entry: Repeat, frame: Frame) -> None:
        """Refuse a repeat whose index or item has the name of a size, a parameter or a batch variable."""
        for name in (entry.index, entry.item):
            if name is not None and (name.text in frame.names or name.text in self.services.streams.lengths):
                message = f"index '{name}' hides a name of the same spelling"
                raise SpecError([Diagnostic("index-hides", message, name.span, "choose another letter")])

    def _count(self, expression: Expression, frame: Frame) -> Any:
        """Evaluate what a repeat runs over: the number of iterations, or a tuple with an item for each."""
        value = self.services.evaluator.value(expression, frame)
        if isinstance(value, Choice) or (isinstance(value, Setting) and value.kind == "list"):
            message = f"the list '{expression.text}' decides how often this repeats"
            size = next(iter(sizes_behind(value)), "")
            hint = f"give '{size}' a default, or name variants" if size else "its sizes must be known"
            raise UnknownSizeError(size, Diagnostic("structural-size", message, expression.span, hint))
        value = value.symbol if isinstance(value, Setting) and value.kind == "item" else value
        return value.expr if isinstance(value, Truth) else value

    def _axis_length(self, entry: Repeat, frame: Frame) -> Expr | None:
        """The length of the axis that a repeat iterates over; None if ``of`` names a faulty entry's result."""
        assert entry.axis is not None
        streams = list(self.services.streams.declared.values())
        holder = "no stream has"
        if entry.of is not None:
            binding = self.services.binder.look_up(entry.of, frame)
            if binding is None:
                return None
            assert binding.value is not None
            streams, holder = [binding.value.stream], f"'{binding.value.name}' has not"
        found = (part.get(entry.axis.text) for stream in streams for part in stream.parts)
        length: Expr | None = next((length for length in found if length is not None), None)
        if length is None:
            raise SpecError([Diagnostic("unknown-axis", f"{holder} an axis '{entry.axis}'", entry.axis.span)])
        return length


def _is_about_index(needs: UnknownSizeError, entry: Repeat) -> bool:
    """Whether unrolling the repeat removes the cause of ``needs``.

    It does if ``needs`` asks for the repeat's index, or for no size in particular.
    """
    return not needs.size or (entry.index is not None and needs.size == entry.index.text)


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
        terms = [_result(entry, inner, chosen, self.services.definitions.equal)]
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
            rows_match(spans.refuse, self.services.definitions.equal, operand, terms[1], "weights")
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


def _result(entry: Group, inner: Frame, chosen: Stream, equal: Equality) -> Value:
    """The value ``y`` of the body; its rows must match the experts' input, as ``equal`` compares them."""
    result = inner.values.get("y", ABSENT)
    if result.value is None or not inner.guard.implies(result.present):
        hint = "name its result with 'to: y'"
        raise SpecError([Diagnostic("unknown-value", "the body of experts must always make 'y'", entry.span, hint)])
    if not result.value.stream.alike(chosen, equal):
        message = f"'y' has rows {result.value.stream}, the experts have {chosen}"
        raise SpecError([Diagnostic("row-mismatch", message, result.value.span or entry.span, "experts work row by row")])
    return result.value


class EntryPlacer:
    """Adds the nodes of entries of all kinds to the graph."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.operators = Operators(services)
        self.repeats = Repeats(services, self.place)
        self.experts = Experts(services, self.place)

    def place(self, entries: Sequence[Entry], frame: Frame) -> None:
        """Add the nodes of ``entries``, and of those inside them, to the graph in order.

        A faulty entry is reported. Its results are bound to stand-ins, so that their readers are not reported, too.
        """
        services, ahead = self.services, self.services.surroundings.ahead
        for position, entry in enumerate(entries):
            if services.limit.exceeded or services.report.full:
                services.graph.abandon(entry, frame)
                continue
            ahead.append(Ahead(entries, position + 1))
            try:
                self._entry(entry, frame)
            except SpecError as error:
                services.report.extend(services.surroundings.explained(found, entry, frame) for found in error.diagnostics)
                services.graph.abandon(entry, frame)
            finally:
                ahead.pop()

    def _entry(self, entry: Entry, frame: Frame) -> None:
        """Add the nodes of one entry to the graph, under its ``when`` condition."""
        if isinstance(entry, Faulty):
            return self.services.graph.abandon(entry, frame)
        fields = getattr(entry, "fields", None) or getattr(entry, "common", None) or {}
        when = entry.when if isinstance(entry, (Repeat, Group)) else fields.get("when")
        condition = self.services.evaluator.condition(when, frame)
        if condition is YES:
            return self._unconditional(entry, frame)
        return self._under(condition, frame, assigned([entry]), lambda inner: self._unconditional(entry, inner))

    def _unconditional(self, entry: Entry, frame: Frame) -> None:
        """Add the nodes of one entry to the graph, without its condition, in the region that its role names."""
        if not isinstance(entry, OperatorEntry):
            frame = frame.as_a(_role_of_several(entry))
        match entry:
            case OperatorEntry():
                self.operators.place(entry, frame)
            case BlockCall():
                self._block(entry, frame)
            case Repeat():
                self.repeats.place(entry, frame)
            case Group():
                self._group(entry, frame)

    def _under(self, condition: Truth, frame: Frame, names: frozenset[str], place: Callable[[Frame], None]) -> None:
        """Call ``place`` with a frame that runs only under ``condition``.

        Afterwards each name that it binds has the new value under ``condition``, else the one it had before. ``names`` are the
        names that ``place`` may bind: if ``condition`` never holds, those without a value become absent.
        """
        if condition is YES:
            return place(frame)
        if condition is NO:
            frame.values.update((name, ABSENT) for name in sorted(names) if name not in frame.values)
            return None
        inner = frame.inside(guard=frame.guard & condition)
        for name, new in frame.values.assigned_by(lambda: place(inner)).items():
            old = frame.values.get(name, ABSENT)
            if new is not old:
                frame.values[name] = self.services.binder.join(frame, condition, new, old)
        return None

    def _block(self, entry: BlockCall, frame: Frame) -> None:
        """Add the nodes of one block call to the graph, and bind its results.

        Expressions of a block that the spec itself defines may use the sizes of the spec.
        """
        block, services = entry.block, self.services
        values = Journaled((name.text, ABSENT) for name in block.inputs)
        for name, given in zip(block.inputs, entry.arguments, strict=False):
            binding = services.binder.look_up(given[0], frame, name in block.optional)
            if binding is None:
                return services.graph.abandon(entry, frame)
            values[name.text] = binding
        names = self._parameters(entry, values, frame)
        path, shared = services.evaluator.path(entry.path, frame), services.evaluator.is_shared(entry.common, frame)
        around = frame.calling(entry.path, path, shared and services.graph.number())
        inner = around.inside(path=path, names=names, values=values)
        services.parameters.sharing += shared
        try:
            results = self._block_body(entry, inner)
        finally:
            services.parameters.sharing -= shared
        return services.binder.bind(entry, entry.common, results, frame)

    def _parameters(self, entry: BlockCall, values: Journaled[str, Binding], frame: Frame) -> dict[str, Any]:
        """Map the names that the block's expressions may use to values; a default may use earlier parameters."""
        evaluator = self.services.evaluator
        names: dict[str, Any] = {**frame.state.words, **(frame.sizes if entry.block.local else {})}
        for parameter, default in entry.block.parameters:
            if parameter.text in entry.parameters:
                names[parameter.text] = evaluator.argument(entry.parameters[parameter.text], frame)
            elif default is not None:
                names[parameter.text] = evaluator.value(default, frame.inside(names=names, values=values))
        return names

    def _block_body(self, entry: BlockCall, inner: Frame) -> list[Binding]:
        """Add the nodes of a block's body, in the frame of the call; return the bindings of the outputs."""
        block, surroundings = entry.block, self.services.surroundings
        surroundings.calls.append(Label(entry.span, f"in this call of block '{block.name}'"))
        around, surroundings.ahead = surroundings.ahead, []
        try:
            self.place(block.body, inner)
        finally:
            surroundings.calls.pop()
            surroundings.ahead = around
        for output in block.outputs:
            if output.text not in inner.values:
                message = f"block '{block.name}' never makes its output '{output}'"
                self.services.report.error("unknown-value", message, output.span)
        return [inner.values.get(output.text, ABSENT) for output in block.outputs]

    def _group(self, entry: Group, frame: Frame) -> None:
        """Add the nodes of a group; if ``no_grad`` depends on sizes, once with and once without gradients."""
        without = NO
        if entry.no_grad is not None and not frame.no_grad:
            without = self.services.evaluator.condition(entry.no_grad, frame)
        if without is NO:
            return self._group_body(entry, frame)
        for condition, no_grad in ((~without, frame.no_grad), (without, True)):
            if condition is not NO:
                around = frame.inside(no_grad=no_grad)
                self._under(condition, around, assigned([entry]), lambda inner: self._group_body(entry, inner))
        return None

    def _group_body(self, entry: Group, frame: Frame) -> None:
        """Add the nodes of a group's entries, at paths below the group's, or those of its routed experts."""
        path = self.services.evaluator.path(entry.path, frame)
        if entry.experts is not None:
            return self.experts.place(entry, frame, path)
        return self.place(entry.body, frame.inside(path=path))


def _role_of_several(entry: Entry) -> str:
    """The role of a block call, repeat or group: a region, or a role for its linears and convolutions.

    Empty for an entry without a role, and for an operator.

    Raises:
        SpecError: the role is for single operators only.
    """
    role = entry.role if isinstance(entry, (BlockCall, Repeat, Group)) else ""
    if role and ROLES[role].group == "elements":
        hint = "give it to the operators inside; an entry with several takes a region, or a role of linears and convolutions"
        raise SpecError([Diagnostic("bad-field", f"'{role}' is the role of a single operator", entry.span, hint)])
    return role
