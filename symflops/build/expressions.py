"""What the expressions and paths of an entry mean where it stands."""

from __future__ import annotations

from typing import Any

from sympy import Expr

from symflops.algebra.domain import Choice, Setting
from symflops.algebra.evaluate import evaluate
from symflops.algebra.functions import is_index
from symflops.algebra.truth import NO, YES, Truth
from symflops.algebra.unknown_size import UnknownSizeError
from symflops.build.scopes import ABSENT, Frame
from symflops.diagnostics.findings import Diagnostic, SpecError, did_you_mean
from symflops.model.path import Path
from symflops.model.spec import Template
from symflops.syntax.expression import Expression, is_constant


class Meaning:
    """Evaluates expressions and path templates in a frame."""

    def __init__(self) -> None:
        self.constants: dict[Expression, Any] = {}  # what those without names are, wherever they stand
        self.rooted = 0  # paths so far that are said from the root

    def value(self, expression: Expression, frame: Frame) -> Any:
        """What ``expression`` means here, with what is decided about loop indices put in."""
        known = self.constants.get(expression, self)
        if known is not self:
            return known
        result = evaluate(expression, frame.names, {"width": lambda walker, node: self.width_of(walker, node, frame)})
        result = frame.decide(result)
        if isinstance(result, Expr) and any(is_index(symbol.name) for symbol in result.free_symbols):
            message = f"'{expression.text}' is another number in each iteration"
            raise UnknownSizeError(
                "", Diagnostic("structural-size", message, expression.span, "the repeat must be over a known list")
            )
        result = result.symbol if isinstance(result, Setting) and result.kind == "number" and not result.nullable else result
        if is_constant(expression):
            self.constants[expression] = result
        return result

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
            raise SpecError(
                [Diagnostic("bad-condition", f"'{expression.text}' is no condition", expression.span, "compare it")]
            )
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
            if isinstance(meant, Setting):
                message = f"'{meant.name}' is part of a path"
                raise UnknownSizeError(meant.name, Diagnostic("structural-size", message, template.span))
            options = meant.cases if isinstance(meant, Choice) else ((YES, meant),)
            cases = [
                (known & truth, (*parts, _text(option, template)))
                for known, parts in cases
                for truth, option in options
                if known & truth is not NO
            ]
        found = []
        for truth, parts in cases:
            absolute = bool(parts) and isinstance(parts[0], str) and parts[0].startswith("/")
            start = Path(()) if absolute else base
            self.rooted += absolute
            tail = (str(parts[0])[1:], *parts[1:]) if absolute else parts
            found.append((truth, start.extend(tail) if any(part != "" for part in tail) else Path(())))
        return found


def _text(piece: Any, template: Template) -> str | Expr:
    if isinstance(piece, Expr):
        return str(piece) if piece.is_Integer else piece
    if isinstance(piece, str):
        return piece
    message = f"a path cannot hold {str(piece)[:40]!r}: it is made of texts and whole numbers"
    raise SpecError([Diagnostic("bad-path", message, template.span, "the config gives another kind of value here")])
