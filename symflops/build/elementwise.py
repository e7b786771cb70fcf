"""What entries do around their operators: look up operands, combine, gate, add, and join branches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

from symflops.algebra.domain import either, sizes_behind
from symflops.algebra.truth import NO, Truth
from symflops.algebra.unknown_size import UnknownSizeError, undecided
from symflops.build.scopes import ABSENT, Binding, Frame
from symflops.build.state import Registry
from symflops.diagnostics.findings import Diagnostic, Span, SpecError, did_you_mean
from symflops.model.nodes import Operator, Select, Value
from symflops.model.spec import Name, OperatorEntry, Template
from symflops.ops.elementwise import rows_match
from symflops.ops.kind import Call


class Place(NamedTuple):
    """The path and the span of an entry, for the steps around its operator."""

    path: Template
    span: Span
    places: Mapping[str, Span] = MappingProxyType({})

    def refuse(
        self, code: str, message: str, field: str = "", hint: str = "", about: Value | None = None, **more: Any
    ) -> NoReturn:
        """Refuse the entry, pointing at ``field``, whatever it is ``about``; ``more`` are further fields of the finding."""
        raise SpecError([Diagnostic(code, message, self.places.get(field, self.span), hint, **more)])


class Steps(Registry):
    """Elementwise steps, and the names that they bind."""

    def join(self, frame: Frame, condition: Truth, new: Binding, old: Binding) -> Binding:
        """The binding of a name that ``condition`` rebinds."""
        for binding in (new, old):
            if binding.value is not None and binding.value.id in self.poisoned:
                return binding
        present = condition.choose(new.present, old.present)
        if old.value is None or new.value is None or old.value.id == new.value.id:
            return Binding(new.value or old.value, present)
        if not old.value.stream.alike(new.value.stream):
            self.other_rows(condition, new.value, old.value)
        width = new.value.width
        if width is not None and old.value.width is not None and not self.definitions.equal(width, old.value.width):
            width = either(condition, width, old.value.width)
        value = self.new_value(new.value.name, new.value.stream, width, new.value.span)
        frame.nodes.append(Select(value.id, condition, new.value.id, old.value.id))
        return Binding(value, present)

    def other_rows(self, condition: Truth, new: Value, old: Value) -> NoReturn:
        """A condition decides what rows a name has: the sizes in it must be known, or the names be two."""
        message = f"'{new.name}' has other rows when '{said(condition)}' holds"
        sizes = sizes_behind(condition.expr)
        if not sizes:
            raise SpecError([Diagnostic("row-mismatch", message, new.span, "bind a new name", also=old.long)])
        hint = f"'{sizes[0]}' must be known for that; or bind a new name"
        raise UnknownSizeError(sizes[0], Diagnostic("structural-size", message, new.span, hint))

    def look_up(self, name: Name, frame: Frame, optional: bool) -> Binding:
        """The value that ``name`` stands for; an absent one only where the field allows it."""
        binding = frame.values.get(name.text)
        if binding is None:
            hint = did_you_mean(name.text, frame.values, f"values here: {', '.join(list(frame.values)[-8:])}")
            raise SpecError([Diagnostic("unknown-value", f"value '{name}' is not defined here", name.span, hint)])
        poisoned = binding.value is not None and binding.value.id in self.poisoned
        if optional and (poisoned or binding is ABSENT):
            return ABSENT
        if not optional and not frame.guard.implies(binding.present):
            if poisoned:
                raise SpecError([])  # it comes from an entry whose own mistake is reported already
            hint = (
                f"it is there only when '{said(binding.present)}' holds"
                if binding.present is not NO
                else "no entry before made it"
            )
            raise SpecError([Diagnostic("absent-value", f"value '{name}' is absent here", name.span, hint)])
        return binding

    def combine(self, entry: OperatorEntry, frame: Frame, call: Call) -> None:
        """``with``: the first operand, combined elementwise with others, before the operator."""
        given = entry.fields.get("with")
        extra = [binding.value for binding in (self.look_up(name, frame, True) for name in given or ()) if binding.value]
        if not extra:
            return
        field = next((name for name, values in call.values.items() if values), "")
        if not field:
            call.fail("missing-operand", "'with' needs an operand to combine with", "with")
        first = call.values[field][0]
        for value in extra:
            rows_match(call.fail, first, value, "with")
        unnamed = entry.path.text == "_" or entry.path.text.startswith("/")
        around = frame if unnamed else frame.inside(path=self.path(entry.path, frame).parent)
        joined = self.step("with", entry, around, (first, *extra), saves="nothing")
        call.values = {**call.values, field: (joined, *call.values[field][1:])}

    def step(self, kind: str, entry: Any, frame: Frame, values: Sequence[Value], saves: str) -> Value:
        """An elementwise step that belongs to an entry: its ``with``, ``gate`` or ``add_to``.

        It is no part of the entry's module but of the one around it, as recomputation of a group of modules shows: the
        product of a gate and the sum of a residual of the block (``frame``), what ``with`` combines of the module that holds
        the operator (``norm1`` modulates what its ``norm1.norm`` normalises).
        """
        self.grow()
        first = values[0]
        result = self.new_value(first.name, first.stream, first.width, entry.span)
        frame.nodes.append(
            Operator(
                self.number(), kind, frame.path, tuple(value.id for value in values), (result.id,),
                guard=frame.guard, saves=saves, flows=not frame.no_grad, span=entry.span, visits=frame.visits,
                regions=frame.regions, role="gate" if kind == "mul" else "",
            )
        )  # fmt: skip
        return result

    def finish(self, fields: Any, path: Template, span: Any, results: list[Binding], frame: Frame) -> None:
        """Gate the first result, bind the names, and add to what ``add_to`` names."""
        self.refuse_poison(results)
        entry = Place(path, span, {name: given[0].span for name in ("gate", "add_to") if (given := fields.get(name))})
        gates = [self.look_up(name, frame, True) for name in fields.get("gate") or ()]
        gates = [gate for gate in gates if gate.value is not None]
        if results and results[0].value is not None and gates:
            results[0] = self.gated(entry, results[0], gates, frame)
        names = [name.text for name in fields.get("to") or ()] or [path.text]
        if len(names) > len(results) or (fields.get("to") and len(names) < len(results)):
            message = f"{len(results)} results for {len(names)} names".replace("1 results", "1 result").replace(
                "1 names", "1 name"
            )
            place = fields["to"][0].span if fields.get("to") else span
            raise SpecError([Diagnostic("result-count", message, place, "name each result under 'to', '_' drops one")])
        for name, binding in zip(names, results, strict=False):
            if name != "_":
                frame.values[name] = binding
        for name in fields.get("add_to") or ():
            self.add_to(entry, name, results[0], frame)

    def gated(self, entry: Place, result: Binding, gates: list[Binding], frame: Frame) -> Binding:
        """``gate``: the first result times the gates that are there."""
        assert result.value is not None
        present = gates[0].present
        for gate in gates[1:]:
            present = present | gate.present
        values = [gate.value for gate in gates if gate.value is not None]
        for value in values:
            rows_match(entry.refuse, result.value, value, "gate")
        if frame.guard.implies(present):
            return Binding(self.step("mul", entry, frame, (result.value, *values), "operands"), result.present)
        inner = frame.inside(guard=frame.guard & present)
        product = self.step("mul", entry, inner, (result.value, *values), "operands")
        return self.join(frame, present, Binding(product, result.present), result)

    def add_to(self, entry: Place, name: Name, result: Binding, frame: Frame) -> None:
        """``add_to``: rebind ``name`` to itself plus the result."""
        target = self.look_up(name, frame, False).value
        if target is None or result.value is None:
            return
        rows_match(entry.refuse, target, result.value, "add_to")
        before, after = target.width, result.value.width
        if before is None or after is None or not self.definitions.equal(before, after):
            message = f"'{name}' has width {before}, the result of '{entry.path.text}' has width {after}"
            unknown = undecided([width for width in (before, after) if width is not None], message, name.span)
            if unknown is not None:
                raise unknown
            hint = f"what is added to '{name}' is as wide: {before}" if before is not None else "indices cannot be added to"
            label, note = f"'{entry.path.text}' adds {after} here", self.definitions.told(before, after)
            entry.refuse("width-mismatch", message, "add_to", hint, label=label, also=target.wide, note=note)
        frame.values[name.text] = Binding(self.step("add", entry, frame, (target, result.value), "nothing"))


def said(condition: Truth) -> str:
    """A condition in the letters of the spec."""
    return str(condition.expr).replace("?", "")
