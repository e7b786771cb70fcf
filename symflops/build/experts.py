"""Places routed experts: copies of every parameter, and rows that go through some of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sympy import Expr

from symflops.build.elementwise import Place
from symflops.build.scopes import ABSENT, Binding, Frame
from symflops.diagnostics.findings import Diagnostic, SpecError
from symflops.model.nodes import Operator, Part, Stream, Value
from symflops.model.path import Path
from symflops.model.spec import Group
from symflops.ops.elementwise import rows_match

if TYPE_CHECKING:
    from symflops.build.builder import Builder

CHOICE = "expert_choice"


def place_experts(builder: Builder, entry: Group, frame: Frame, path: Path) -> None:
    """The body runs on ``choose`` times the rows, with parameters that have a leading dimension of ``experts``, or that are
    those of as many modules of a list.

    Inside, ``x`` is the operand; the body must make ``y``. The router's ``weights`` are multiplied in at the end, so that the
    router gets a gradient, and the chosen rows are summed back into the operand's.
    """
    assert entry.experts is not None
    copies = _number(builder, entry, frame, "experts")
    choose = _number(builder, entry, frame, "choose") if entry.choose is not None else copies
    if len(entry.arguments) != 1:
        raise SpecError([Diagnostic("operand-count", "experts take one value", entry.span, "name it under 'from'")])
    operand = builder.look_up(entry.arguments[0], frame, False).value
    assert operand is not None
    chosen = Stream(operand.stream.items, tuple(Part(((CHOICE, choose), *part.axes)) for part in operand.stream.parts))
    routed = builder.new_value("x", chosen, operand.width, entry.span)
    _step(builder, entry, frame, path, "map", (operand,), routed)
    parameters = _parameters(builder, entry, frame, path, copies)
    inner = frame.inside(values={"x": Binding(routed)}, regions=(*frame.regions, "experts"), **parameters)
    builder.entries(entry.body, inner)
    operands = [_made(builder, entry, inner, chosen)]
    if entry.weights is not None:
        weights = builder.look_up(entry.weights, frame, False).value
        assert weights is not None
        rows_match(Place(entry.path, entry.span, {"weights": entry.weights.span}).refuse, operand, weights, "weights")
        operands.append(weights)
    result = builder.new_value("y", operand.stream, operands[0].width, entry.span)
    _step(builder, entry, frame, path, "mul" if entry.weights else "add", operands, result, "combine")
    builder.finish({"to": entry.to}, entry.path, entry.span, [Binding(result)], frame)


def _parameters(builder: Builder, entry: Group, frame: Frame, path: Path, copies: Expr) -> dict[str, Any]:
    """Where the parameters of the experts are: in one path, each with a dimension more, or in the modules of a list."""
    if not entry.listed:
        return {"path": path, "copies": (*frame.copies, copies)}
    index = builder.index(path, "experts", copies)
    return {"path": path.extend((index,)), "lists": (*frame.lists, (index, copies))}


def _made(builder: Builder, entry: Group, inner: Frame, chosen: Stream) -> Value:
    """What the body has made: ``y``, one row for each that went in."""
    made = inner.values.get("y", ABSENT)
    builder.refuse_poison([made])
    if made.value is None or not inner.guard.implies(made.present):
        hint = "name its result with 'to: y'"
        raise SpecError([Diagnostic("unknown-value", "the body of experts must always make 'y'", entry.span, hint)])
    if not made.value.stream.alike(chosen):
        message = f"'y' has rows {made.value.stream}, the experts have {chosen}"
        raise SpecError([Diagnostic("row-mismatch", message, made.value.span or entry.span, "experts work row by row")])
    return made.value


def _number(builder: Builder, entry: Group, frame: Frame, field: str) -> Expr:
    expression = getattr(entry, field)
    value = builder.value(expression, frame)
    if not isinstance(value, Expr) or not value.is_integer:
        raise SpecError([Diagnostic("bad-field", f"'{field}' must be a whole number", expression.span)])
    return value


def _step(
    builder: Builder,
    entry: Group,
    frame: Frame,
    path: Path,
    kind: str,
    values: list[Value] | tuple[Value, ...],
    result: Value,
    role: str = "",
) -> None:
    """Routing, and weighting: data movement, and a product with the router's weights."""
    frame.nodes.append(
        Operator(
            builder.number(), kind, path, tuple(value.id for value in values), (result.id,), guard=frame.guard,
            saves="operands" if kind == "mul" else "nothing", flows=not frame.no_grad, span=entry.span, visits=frame.visits,
            role=role, regions=frame.regions,
        )
    )  # fmt: skip
