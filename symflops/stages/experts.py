"""Places routed experts: copies of every parameter, and rows that go through some of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sympy import Expr

from symflops.ground.diagnostics import Diagnostic, SpecError
from symflops.model.graph import Operator, Part, Stream
from symflops.model.path import Path
from symflops.model.spec import Group, Name
from symflops.stages.frames import ABSENT, Binding, Frame

if TYPE_CHECKING:
    from symflops.stages.place import Builder

CHOICE = "expert_choice"


def place_experts(builder: Builder, entry: Group, frame: Frame, path: Path) -> None:
    """The body runs on ``choose`` times the rows, with parameters that have a leading dimension of ``experts``.

    Inside, ``x`` is the operand; the body must make ``y``. The router's ``weights`` are multiplied in at the end, so
    that the router gets
    a gradient, and the chosen rows are summed back into the operand's.
    """
    assert entry.experts is not None
    copies = _number(builder, entry, frame, "experts")
    choose = _number(builder, entry, frame, "choose") if entry.choose is not None else copies
    if len(entry.arguments) != 1:
        raise SpecError([Diagnostic("operand-count", "experts take one value, 'from'", entry.span)])
    operand = builder.look_up(entry.arguments[0], frame, False).value
    if operand is None:
        return
    chosen = Stream(operand.stream.items, tuple(Part(((CHOICE, choose), *part.axes)) for part in operand.stream.parts))
    routed = builder.new_value("x", chosen, operand.width, entry.span)
    _map(builder, frame, path, (operand.id,), routed.id, entry)
    names = dict(frame.names)
    inner = frame.inside(path=path, names=names, values={"x": Binding(routed)}, copies=(*frame.copies, copies))
    builder.entries(entry.body, inner)
    made = inner.values.get("y", ABSENT).value
    if made is None or made.width is None:
        raise SpecError(
            [Diagnostic("unknown-value", "the body of experts must make 'y'", entry.span, "name its result with 'to: y'")]
        )
    operands = [made.id]
    if entry.weights is not None:
        weights = builder.look_up(entry.weights, frame, False).value
        operands += [weights.id] if weights is not None else []
    result = builder.new_value("y", operand.stream, made.width, entry.span)
    _map(builder, frame, path, tuple(operands), result.id, entry, kind="mul" if entry.weights else "add")
    names_bound = entry.to or (Name(entry.path.text, entry.span),)
    frame.values[names_bound[0].text] = Binding(result)


def _number(builder: Builder, entry: Group, frame: Frame, field: str) -> Expr:
    expression = getattr(entry, field)
    value = builder.value(expression, frame)
    if not isinstance(value, Expr):
        raise SpecError([Diagnostic("bad-field", f"'{field}' must be a number", expression.span)])
    return value


def _map(
    builder: Builder, frame: Frame, path: Path, operands: tuple[int, ...], result: int, entry: Group, kind: str = "map"
) -> None:
    """Routing and weighting: data movement, and a product with the router's weights."""
    saves = "operands" if kind == "mul" else "nothing"
    node = Operator(
        builder.number(),
        kind,
        path,
        operands,
        (result,),
        guard=frame.guard,
        saves=saves,
        flows=not frame.no_grad,
        span=entry.span,
    )
    frame.nodes.append(node)
