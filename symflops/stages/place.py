"""Places entries in a region: operators, block calls and groups; repeats are placed by :mod:`symflops.stages.loops`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sympy import Expr, Integer, Symbol

from symflops.algebra.evaluate import Choice, Setting, Structural, evaluate
from symflops.algebra.functions import size_symbol
from symflops.algebra.truth import NO, YES, Truth
from symflops.ground.diagnostics import Diagnostic, Reporter, SpecError, did_you_mean
from symflops.ground.expression import Expression
from symflops.model.graph import Operator, Parameter, Path, Select, Stream, Value
from symflops.model.spec import BlockCall, Entry, Group, Name, OperatorEntry, Repeat, Template
from symflops.ops.elementwise import rows_match
from symflops.ops.fields import Form
from symflops.ops.kind import Call, Definitions
from symflops.ops.table import KINDS
from symflops.stages import loops
from symflops.stages.frames import ABSENT, Binding, Frame, assigned
from symflops.stages.streams import Streams, StreamScope

OPTIONAL = ("with", "gate", "bias")


class Mark(NamedTuple):
    """A point to come back to."""

    values: int
    parameters: dict[Path, tuple[Parameter, bool]]
    diagnostics: list[Diagnostic]
    nodes: int
    bindings: dict[str, Binding]


class Builder:
    """Collects the nodes of a graph while entries are placed."""

    def __init__(self, report: Reporter, definitions: Definitions, streams: Streams) -> None:
        self.report = report
        self.definitions = definitions
        self.streams = streams
        self.values: list[Value] = []
        self.count = 0
        self.parameters: dict[Path, tuple[Parameter, bool]] = {}
        self.indices: dict[tuple[Any, ...], Symbol] = {}
        self.sharing = 0
        self.depth = 0

    def index(self, path: Path, *key: Any) -> Symbol:
        """The index of a loop: the same for the same run of the same module list, which has the same parameters."""
        known = (path, self.depth, *key)
        name = key[-1].text if isinstance(key[-1], Name) else "i"
        return self.indices.setdefault(known, size_symbol(f"{name}@{len(self.indices) + 1}_"))

    def mark(self, frame: Frame) -> Mark:
        """Where the graph stands, to come back to when a repeat is built anew."""
        here = (len(frame.nodes), dict(frame.values))
        return Mark(len(self.values), dict(self.parameters), list(self.report.diagnostics), *here)

    def reset(self, mark: Mark, frame: Frame) -> None:
        """Forget what was placed since ``mark``."""
        del self.values[mark.values :]
        del frame.nodes[mark.nodes :]
        self.parameters = dict(mark.parameters)
        self.report.restore(mark.diagnostics)
        frame.values.clear()
        frame.values.update(mark.bindings)

    def new_value(self, name: str, stream: Stream, width: Expr | None, span: Any = None) -> Value:
        """One more value."""
        value = Value(len(self.values), name, stream, width, span)
        self.values.append(value)
        return value

    def number(self) -> int:
        """A fresh number for a node."""
        self.count += 1
        return self.count

    # expressions

    def value(self, expression: Expression, frame: Frame) -> Any:
        """What ``expression`` means here, with what is decided about loop indices put in."""
        result = evaluate(expression, frame.names, {"width": lambda walker, node: self.width_of(walker, node, frame)})
        result = frame.decide(result)
        if isinstance(result, Expr) and any(loops.is_index(symbol) for symbol in result.free_symbols):
            message = f"'{expression.text}' is another number in each iteration"
            raise Structural("", Diagnostic("structural-size", message, expression.span, "the repeat must be over a known list"))
        return result.symbol if isinstance(result, Setting) and result.kind == "number" and not result.nullable else result

    def width_of(self, walker: Any, node: Any, frame: Frame) -> Expr:
        """``width(v)``: the inferred width of a value."""
        name = getattr(node.args[0], "id", "") if len(node.args) == 1 else ""
        binding = frame.values.get(name, ABSENT)
        if binding.value is None or binding.value.width is None:
            walker.fail("unknown-value", f"there is no value '{name}' with a width", node, did_you_mean(name, frame.values))
        assert binding.value is not None and binding.value.width is not None
        return binding.value.width

    def condition(self, expression: Expression | None, frame: Frame) -> Truth:
        """A ``when``: always, where there is none."""
        if expression is None:
            return YES
        value = self.value(expression, frame)
        if not isinstance(value, Truth):
            raise SpecError([Diagnostic("bad-condition", f"'{expression.text}' is no condition", expression.span, "compare it")])
        return value

    def path(self, template: Template, frame: Frame) -> Path:
        """The module path that an entry's key says."""
        return self.paths(template, frame, frame.path)[0][1]

    def paths(self, template: Template, frame: Frame, base: Path) -> list[tuple[Truth, Path]]:
        """A path template under each of its conditions; relative to ``base``."""
        if template.text == "_":
            return [(YES, base)]
        cases: list[tuple[Truth, tuple[str | Expr, ...]]] = [(YES, ())]
        for piece in template.pieces:
            meant = piece if isinstance(piece, str) else frame.decide(evaluate(piece, frame.names))
            meant = meant.symbol if isinstance(meant, Setting) and meant.kind == "number" else meant
            options = meant.cases if isinstance(meant, Choice) else ((YES, meant),)
            cases = [
                (known & truth, (*parts, _text(option)))
                for known, parts in cases
                for truth, option in options
                if known & truth is not NO
            ]
        found = []
        for truth, parts in cases:
            absolute = bool(parts) and isinstance(parts[0], str) and parts[0].startswith("/")
            start = Path(()) if absolute else base
            tail = (str(parts[0])[1:], *parts[1:]) if absolute else parts
            found.append((truth, start.extend(tail) if any(part != "" for part in tail) else Path(())))
        return found

    # entries

    def entries(self, entries: Sequence[Entry], frame: Frame) -> None:
        """Place entries in order; a mistake in one does not hide those in the next."""
        for entry in entries:
            try:
                self.entry(entry, frame)
            except SpecError as error:
                for diagnostic in error.diagnostics:
                    self.report.add(diagnostic)
                self.recover(entry, frame)

    def recover(self, entry: Entry, frame: Frame) -> None:
        """Bind what a faulty entry would have made to nothing in particular, so that no second error follows from the first."""
        for name in assigned([entry]) - frame.values.keys():
            frame.values[name] = Binding(self.new_value(name, self.streams.declared["once"], None), NO)

    def entry(self, entry: Entry, frame: Frame) -> None:
        """Place one entry, under its condition."""
        fields = getattr(entry, "fields", None) or getattr(entry, "common", None) or {}
        when = entry.when if isinstance(entry, (Repeat, Group)) else fields.get("when")
        self.conditional(frame, self.condition(when, frame), assigned([entry]), lambda inner: self.place(entry, inner))

    def place(self, entry: Entry, frame: Frame) -> None:
        """Place one entry whose condition is seen to."""
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

    def join(self, frame: Frame, condition: Truth, new: Binding, old: Binding) -> Binding:
        """The binding of a name that ``condition`` rebinds."""
        present = condition.choose(new.present, old.present)
        if old.value is None or new.value is None or old.value.id == new.value.id:
            return Binding(new.value or old.value, present)
        if not old.value.stream.alike(new.value.stream):
            message = f"'{new.value.name}' has other rows when '{condition.expr}' holds"
            raise SpecError([Diagnostic("row-mismatch", message, new.value.span, "bind a new name")])
        width = new.value.width
        if width is not None and old.value.width is not None and not self.definitions.equal(width, old.value.width):
            width = condition.expr * width + (~condition).expr * old.value.width
        value = self.new_value(new.value.name, new.value.stream, width, new.value.span)
        frame.nodes.append(Select(value.id, condition, new.value.id, old.value.id))
        return Binding(value, present)

    def group(self, entry: Group, frame: Frame) -> None:
        """Entries under one path, perhaps without gradients, perhaps as routed experts."""
        path = self.path(entry.path, frame)
        if entry.experts is None:
            inner = frame.inside(path=path, no_grad=frame.no_grad or entry.no_grad)
            return self.entries(entry.body, inner)
        from symflops.stages.experts import place_experts

        return place_experts(self, entry, frame, path)

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
        inner = frame.inside(path=self.path(entry.path, frame), names=names, values=values)
        self.entries(block.body, inner)
        results = []
        for output in block.outputs:
            binding = inner.values.get(output.text, ABSENT)
            if output.text not in inner.values:
                self.report.error("unknown-value", f"block '{block.name}' never makes its output '{output}'", output.span)
            results.append(binding)
        self.finish(entry.common, entry.path, entry.span, results, frame)

    def operator(self, entry: OperatorEntry, frame: Frame) -> None:
        """An operator: evaluate its fields, let its kind declare what it does, and bind its results."""
        kind = KINDS[entry.kind.text]
        fields, values = {}, {}
        for field in kind.fields:
            given = entry.fields.get(field.name)
            if field.form is Form.VALUES and field.name != "fold":
                bindings = [self.look_up(name, frame, field.name in OPTIONAL) for name in given or ()]
                values[field.name] = tuple(binding.value for binding in bindings if binding.value is not None)
            elif field.name == "fold":
                fields[field.name] = tuple(name.text for name in given or ())
            elif field.form is Form.WINDOW:
                fields[field.name] = {name.text: self.value(size, frame) for name, size in given or ()}
            else:
                fields[field.name] = self.value(given, frame) if isinstance(given, Expression) else given
        path = self.path(entry.path, frame)
        call = Call(
            path, entry.span, fields, entry.places, values, self.definitions,
            lambda template, default: self.named(template, default, entry, frame),
            StreamScope(self.streams, frame.names), frame.guard,
        )  # fmt: skip
        self.combine(entry, frame, call)
        kind.apply(call)
        self.declare(entry, frame, call)
        results = [self.new_value(entry.path.text, stream, width, entry.span) for stream, width in call.results]
        operands = tuple(value.id for name, given in call.values.items() if name != "like" for value in given)
        frame.nodes.append(
            Operator(
                self.number(), entry.kind.text, path, operands, tuple(value.id for value in results),
                tuple(call.parameters), tuple(call.contractions), frame.guard, call.saves or kind.saves,
                call.flows and not frame.no_grad, entry.fields.get("role") or "", call.caption, entry.span,
            )
        )  # fmt: skip
        self.finish(entry.fields, entry.path, entry.span, [Binding(value) for value in results], frame)

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
            rows_match(call, first, value, "with")
        joined = self.step("with", entry, frame, (first, *extra), saves="nothing")
        call.values = {**call.values, field: (joined, *call.values[field][1:])}

    def step(self, kind: str, entry: Any, frame: Frame, values: Sequence[Value], saves: str) -> Value:
        """An elementwise step that belongs to an entry: its ``with``, ``gate`` or ``add_to``."""
        first = values[0]
        result = self.new_value(first.name, first.stream, first.width, entry.span)
        frame.nodes.append(
            Operator(
                self.number(), kind, self.path(entry.path, frame), tuple(value.id for value in values), (result.id,),
                guard=frame.guard, saves=saves, flows=not frame.no_grad, span=entry.span,
            )
        )  # fmt: skip
        return result

    def declare(self, entry: OperatorEntry, frame: Frame, call: Call) -> None:
        """Enter the parameters: one path has one shape, and is used twice only where the spec says so."""
        tied = {name for name in ("weight", "bias_name") if entry.fields.get(name)}
        shared = entry.fields.get("shared") is not None and self.condition(entry.fields["shared"], frame) is YES
        for position, parameter in enumerate(call.parameters):
            if frame.copies:
                parameter = Parameter(parameter.path, (*frame.copies, *parameter.shape), parameter.exists, parameter.trainable, parameter.span)
            parameter = Parameter(
                parameter.path, parameter.shape, parameter.exists & frame.guard, parameter.trainable, parameter.span
            )
            call.parameters[position] = parameter
            known = self.parameters.get(parameter.path)
            if known is None:
                self.parameters[parameter.path] = (parameter, bool(tied))
                continue
            same = len(known[0].shape) == len(parameter.shape) and all(
                self.definitions.equal(a, b) for a, b in zip(known[0].shape, parameter.shape, strict=True)
            )
            if not same:
                shapes = f"{list(known[0].shape)} and {list(parameter.shape)}"
                call.fail("parameter-shape", f"parameter '{parameter.path}' has two shapes, {shapes}")
            if not shared and not self.sharing and not tied and not known[1] and known[0].exists & parameter.exists is not NO:
                hint = "if the model calls this module twice, write 'shared: true'"
                call.fail("parameter-twice", f"parameter '{parameter.path}' is claimed twice", "", hint)

    def look_up(self, name: Name, frame: Frame, optional: bool) -> Binding:
        """The value that ``name`` stands for; an absent one only where the field allows it."""
        binding = frame.values.get(name.text)
        if binding is None:
            hint = did_you_mean(name.text, frame.values, f"values here: {', '.join(list(frame.values)[-8:])}")
            raise SpecError([Diagnostic("unknown-value", f"value '{name}' is not defined here", name.span, hint)])
        if binding is ABSENT and optional:
            return ABSENT
        if not optional and not frame.guard.implies(binding.present):
            if binding.value is not None and binding.present is NO:
                raise SpecError([])  # it comes from an entry whose own mistake is reported already
            hint = f"it is there only when {binding.present.expr}" if binding.present is not NO else "no entry before made it"
            raise SpecError([Diagnostic("absent-value", f"value '{name}' is absent here", name.span, hint)])
        return binding

    def finish(self, fields: Any, path: Template, span: Any, results: list[Binding], frame: Frame) -> None:
        """Gate the first result, bind the names, and add to what ``add_to`` names."""
        entry = _Place(path, span)
        gates = [self.look_up(name, frame, True) for name in fields.get("gate") or ()]
        gates = [gate for gate in gates if gate.value is not None]
        if results and results[0].value is not None and gates:
            results[0] = self.gated(entry, results[0], gates, frame)
        names = [name.text for name in fields.get("to") or ()] or [path.text]
        if len(names) > len(results) or (fields.get("to") and len(names) < len(results)):
            message = f"{len(results)} result{'s' if len(results) != 1 else ''} for {len(names)} name{'s' if len(names) != 1 else ''}"
            place = fields["to"][0].span if fields.get("to") else span
            raise SpecError([Diagnostic("result-count", message, place, "name each result under 'to', '_' drops one")])
        for name, binding in zip(names, results, strict=False):
            if name != "_":
                frame.values[name] = binding
        for name in fields.get("add_to") or ():
            self.add_to(entry, name, results[0], frame)

    def gated(self, entry: _Place, result: Binding, gates: list[Binding], frame: Frame) -> Binding:
        """``gate``: the first result times the gates that are there."""
        assert result.value is not None
        present = gates[0].present
        for gate in gates[1:]:
            present = present | gate.present
        call = _call(entry, frame)
        values = [gate.value for gate in gates if gate.value is not None]
        for value in values:
            rows_match(call, result.value, value, "gate")
        if frame.guard.implies(present):
            return Binding(self.step("mul", entry, frame, (result.value, *values), "operands"), result.present)
        inner = frame.inside(guard=frame.guard & present)
        product = self.step("mul", entry, inner, (result.value, *values), "operands")
        return self.join(frame, present, Binding(product, result.present), result)

    def add_to(self, entry: _Place, name: Name, result: Binding, frame: Frame) -> None:
        """``add_to``: rebind ``name`` to itself plus the result."""
        target = self.look_up(name, frame, False).value
        if target is None or result.value is None:
            return
        call = _call(entry, frame)
        rows_match(call, target, result.value, "add_to")
        if target.width is None or result.value.width is None or not self.definitions.equal(target.width, result.value.width):
            message = f"'{name}' has width {target.width}, the result of '{entry.path.text}' has width {result.value.width}"
            raise SpecError([Diagnostic("width-mismatch", message, name.span)])
        frame.values[name.text] = Binding(self.step("add", entry, frame, (target, result.value), "nothing"))


class _Place:
    """A path and a span, for the steps that an entry adds around its operator."""

    def __init__(self, path: Template, span: Any) -> None:
        self.path = path
        self.span = span


def _call(entry: _Place, frame: Frame) -> Call:
    return Call(frame.path, entry.span, {}, {}, {}, Definitions(), None, None)


def _text(piece: Any) -> str | Expr:
    if isinstance(piece, str):
        return piece
    if isinstance(piece, (Symbol, Integer)) or isinstance(piece, Expr):
        return str(piece) if piece.is_Integer else piece
    raise ValueError(f"a path cannot hold {piece!r}")
