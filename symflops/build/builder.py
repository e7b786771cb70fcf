"""Places entries in a region: operators, block calls and groups; repeats are placed by :mod:`symflops.build.repeats`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from symflops.algebra.functions import is_index
from symflops.algebra.truth import NO, YES, Truth
from symflops.algebra.unknown_size import UnknownSizeError
from symflops.build import repeats as loops
from symflops.build.block_reuse import Replays
from symflops.build.elementwise import Steps
from symflops.build.experts import place_experts
from symflops.build.scopes import ABSENT, Binding, Frame
from symflops.build.streams import Streams, StreamScope
from symflops.diagnostics.findings import Diagnostic, Label, Reporter, Span, SpecError
from symflops.frontend.bound_names import assigned, made
from symflops.frontend.definition_order import early_value
from symflops.model.nodes import Operator, Value
from symflops.model.path import Path, Visit
from symflops.model.patterns import selectors
from symflops.model.spec import BlockCall, Entry, Faulty, Group, OperatorEntry, Repeat, Template
from symflops.ops.fields import Form
from symflops.ops.kind import Call, Definitions, Kind, operand_place
from symflops.ops.table import KINDS
from symflops.syntax.expression import Expression

MAX_CALLS = 4
OPTIONAL = ("with", "gate", "bias")
LOOKED_AT = ("like", "axes_of")  # values that are looked at, and not read


class Builder(Steps):
    """Collects the nodes of a graph while entries are placed."""

    def __init__(self, report: Reporter, definitions: Definitions, streams: Streams, patterns: Sequence[str] = ()) -> None:
        super().__init__(report, definitions, streams, patterns)
        self.replays = Replays(self)

    def entries(self, entries: Sequence[Entry], frame: Frame) -> None:
        """Place entries in order; a mistake in one does not hide those in the next."""
        for position, entry in enumerate(entries):
            self.ahead.append(entries[position + 1 :])
            try:
                self.entry(entry, frame)
            except SpecError as error:
                for diagnostic in error.diagnostics:
                    self.report.add(self.explained(diagnostic, entry, frame))
                self.recover(entry, frame)
            finally:
                self.ahead.pop()

    def explained(self, found: Diagnostic, entry: Entry, frame: Frame) -> Diagnostic:
        """A finding with what is known where it stands: who makes a value later, and which calls lead here."""
        if found.code == "unknown-value":
            found = early_value(found, entry, frame.values, self.ahead[::-1])
        if found.code == "unknown-size" and found.span is not None and found.span.text in self.keys:
            hint = f"the config's '{found.span.text}' is the size '{self.keys[found.span.text]}' here"
            found = replace(found, hint=hint)
        return replace(found, also=(*found.also, *self.calls[:-MAX_CALLS:-1])) if self.calls else found

    def recover(self, entry: Entry, frame: Frame) -> None:
        """Bind what a faulty entry would have made to nothing in particular."""
        self.poison((made(entry) & frame.values.keys()) | (assigned([entry]) - frame.values.keys()), frame)

    def entry(self, entry: Entry, frame: Frame) -> None:
        """Place one entry, under its condition."""
        if isinstance(entry, Faulty):
            return self.recover(entry, frame)
        fields = getattr(entry, "fields", None) or getattr(entry, "common", None) or {}
        when = entry.when if isinstance(entry, (Repeat, Group)) else fields.get("when")
        condition = self.condition(when, frame)
        if condition is YES:
            return self.place(entry, frame)
        return self.conditional(frame, condition, assigned([entry]), lambda inner: self.place(entry, inner))

    def place(self, entry: Entry, frame: Frame) -> None:
        """Place one entry whose condition is seen to; the role of all but an operator is a region."""
        region = entry.role if isinstance(entry, (BlockCall, Repeat, Group)) else ""
        frame = frame.inside(regions=(*frame.regions, region)) if region else frame
        match entry:
            case OperatorEntry():
                self.operator(entry, frame)
            case BlockCall():
                self.block(entry, frame)
            case Repeat():
                loops.place(self, entry, frame)
            case Group():
                self.group(entry, frame)

    def conditional(self, frame: Frame, condition: Truth, names: frozenset[str], body: Callable[[Frame], None]) -> None:
        """Run ``body`` under ``condition`` and join what it binds with what was there."""
        if condition is YES:
            return body(frame)
        if condition is NO:
            for name in names - frame.values.keys():
                frame.values[name] = ABSENT
            return None
        inner = frame.inside(guard=frame.guard & condition, values=dict(frame.values))
        body(inner)
        for name, new in inner.values.items():
            old = frame.values.get(name, ABSENT)
            if new is not old:
                frame.values[name] = self.join(frame, condition, new, old)
        return None

    def group(self, entry: Group, frame: Frame) -> None:
        """Entries under one path, perhaps without gradients, perhaps as routed experts."""
        without = NO if frame.no_grad else self.condition(entry.no_grad, frame) if entry.no_grad is not None else NO
        if without is NO:
            return self.under(entry, frame, frame.no_grad)
        names = assigned([entry])
        for condition, no_grad in ((~without, frame.no_grad), (without, True)):
            if condition is not NO:
                self.conditional(frame, condition, names, lambda inner, stop=no_grad: self.under(entry, inner, stop))  # type: ignore[misc]
        return None

    def under(self, entry: Group, frame: Frame, no_grad: bool) -> None:
        """The entries of a group whose conditions are seen to."""
        path, inner = self.path(entry.path, frame), frame.inside(no_grad=no_grad)
        if entry.experts is not None:
            return place_experts(self, entry, inner, path)
        return self.entries(entry.body, inner.inside(path=path))

    def block(self, entry: BlockCall, frame: Frame) -> None:
        """A block: only its inputs and parameters are visible inside (a local one also sees the sizes)."""
        block = entry.block
        values: dict[str, Binding] = {name.text: ABSENT for name in block.inputs}
        for name, given in zip(block.inputs, entry.arguments, strict=False):
            values[name.text] = self.look_up(given[0], frame, name in block.optional)
        names: dict[str, Any] = dict(frame.sizes) if block.local else {}
        for parameter, default in block.parameters:
            if parameter.text in entry.parameters:
                names[parameter.text] = self.value(entry.parameters[parameter.text], frame)
            elif default is not None:
                inner = frame.inside(names=names, values=values)
                names[parameter.text] = self.value(default, inner)
        path, shared = self.path(entry.path, frame), self.shares(entry.common, frame)
        inner = frame.inside(path=path, names=names, values=values, visits=self.visits(entry, path, shared, frame))
        self.sharing += shared
        try:
            results = self.replays.place(block, inner, lambda: self.body_of(entry, inner))
        finally:
            self.sharing -= shared
        self.finish(entry.common, entry.path, entry.span, results, frame)

    def body_of(self, entry: BlockCall, inner: Frame) -> list[Binding]:
        """What a block makes in the frame of its call: its results."""
        block = entry.block
        self.calls.append(Label(entry.span, f"in this call of block '{block.name}'"))
        around, self.ahead = self.ahead, []
        try:
            self.entries(block.body, inner)
        finally:
            self.calls.pop()
            self.ahead = around
        results = []
        for output in block.outputs:
            binding = inner.values.get(output.text, ABSENT)
            if output.text not in inner.values:
                self.report.error("unknown-value", f"block '{block.name}' never makes its output '{output}'", output.span)
            results.append(binding)
        return results

    def visits(self, entry: BlockCall | OperatorEntry, path: Path, shared: bool, frame: Frame) -> tuple[Visit, ...]:
        """The calls that ``entry`` stands in: one more where it uses a module of another place a second time."""
        return (*frame.visits, Visit(frame.path, path)) if shared and entry.path.text.startswith("/") else frame.visits

    def operator(self, entry: OperatorEntry, frame: Frame) -> None:
        """An operator: evaluate its fields, let its kind declare what it does, and bind its results."""
        self.grow()
        kind = KINDS[entry.kind.text]
        fields, values = self.read_fields(kind, entry, frame)
        places = {**entry.places, **self.operand_places(kind, entry, frame)}
        path = self.path(entry.path, frame)
        self.selectable(path, entry)
        call = Call(
            path, entry.span, fields, places, values, self.definitions,
            lambda template, default: self.named(template, default, entry, frame),
            StreamScope(self.streams, frame.names), frame.guard, self.stacks,
        )  # fmt: skip
        self.combine(entry, frame, call)
        self.stacks.depth = self.depth
        kind.apply(call)
        if call.moved is not None:
            if call.moved:
                self.finish(entry.fields, entry.path, entry.span, [Binding(*moved) for moved in call.moved], frame)
            return
        self.declare(entry, frame, call)
        names = [name.text for name in entry.fields.get("to") or ()]
        names += [entry.path.text] * (len(call.results) - len(names))
        results = [self.new_value(name, *made, entry.span) for name, made in zip(names, call.results, strict=False)]
        operands = tuple(value.id for name, given in call.values.items() if name not in LOOKED_AT for value in given)
        frame.nodes.append(
            Operator(
                self.number(), entry.kind.text, path, operands, tuple(value.id for value in results),
                tuple(call.parameters), tuple(call.contractions), frame.guard, call.saves or kind.saves,
                call.flows and not frame.no_grad, entry.fields.get("role") or "", call.caption, entry.span,
                self.visits(entry, path, self.shares(entry.fields, frame), frame), frame.regions,
            )
        )  # fmt: skip
        self.finish(entry.fields, entry.path, entry.span, [Binding(value) for value in results], frame)

    def selectable(self, path: Path, entry: OperatorEntry) -> None:
        """Where a regime selects an index of a list, one that is made up of others must be known."""
        for position, part in enumerate(path.parts):
            made_up = not isinstance(part, str) and not part.is_Symbol and part not in self.chosen
            if made_up and selectors(self.patterns, Path(path.parts[:position]).parent):
                sizes = sorted(symbol.name for symbol in part.free_symbols if not is_index(symbol.name))  # type: ignore[union-attr]
                message = f"a pattern selects an index, and '{entry.path.text}' is at another one for other sizes"
                raise UnknownSizeError(sizes[0] if sizes else "", Diagnostic("structural-size", message, entry.path.span))

    def read_fields(
        self, kind: Kind, entry: OperatorEntry, frame: Frame
    ) -> tuple[dict[str, Any], dict[str, tuple[Value, ...]]]:
        """The evaluated fields and the operand values of an operator; the mistakes of all its fields are told together."""
        fields: dict[str, Any] = {}
        values: dict[str, tuple[Value, ...]] = {}
        mistakes: list[Diagnostic] | None = None
        for field in kind.fields:
            given = entry.fields.get(field.name)
            try:
                if given is None and field.form is not Form.VALUES and field.form is not Form.WINDOW:
                    fields[field.name] = None
                elif field.form is Form.VALUES and field.name != "fold":
                    bindings = [self.look_up(name, frame, field.name in OPTIONAL) for name in given or ()]
                    values[field.name] = tuple(binding.value for binding in bindings if binding.value is not None)
                elif field.form is Form.VALUES:
                    fields[field.name] = tuple(name.text for name in given or ())
                elif field.form is Form.WINDOW:
                    fields[field.name] = {name.text: self.value(size, frame) for name, size in given or ()}
                elif field.form is Form.LENGTHS:
                    fields[field.name] = given
                else:
                    fields[field.name] = self.value(given, frame) if isinstance(given, Expression) else given
            except SpecError as error:
                mistakes = [*(mistakes or []), *error.diagnostics]
        if mistakes is not None:
            raise SpecError(mistakes)
        return fields, values

    @staticmethod
    def operand_places(kind: Kind, entry: OperatorEntry, frame: Frame) -> dict[str, Span]:
        """Where each operand is named, under its field and its value."""
        found: dict[str, Span] = {}
        for field in kind.fields:
            for name in (entry.fields.get(field.name) or ()) if field.form is Form.VALUES else ():
                value = frame.values.get(name.text, ABSENT).value
                if value is not None:
                    found[operand_place(field.name, value)] = name.span
        return found

    def named(self, template: Template | None, default: Path, entry: OperatorEntry, frame: Frame) -> list[tuple[Truth, Path]]:
        """The paths of a parameter: as a template says, else (and where it says nothing) the default."""
        if template is None:
            return [(YES, default)]
        cases = self.paths(template, frame, self.parent(entry, frame))
        return [(truth, path if path.parts else default) for truth, path in cases]

    def parent(self, entry: OperatorEntry, frame: Frame) -> Path:
        """The path that ``weight`` and ``bias_name`` are relative to."""
        path = self.path(entry.path, frame)
        return path if entry.path.text == "_" else path.parent
