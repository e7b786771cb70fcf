"""Evaluates the expressions and path templates of an entry in its scope."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from sympy import Expr

from symflops.build.scopes import ABSENT, Binding, Frame, is_indexed, without_index
from symflops.formula.domain import Setting
from symflops.formula.evaluate import evaluate
from symflops.formula.expression import Expression, is_constant
from symflops.formula.truth import NO, YES, Truth, UnknownSizeError
from symflops.ir.patterns import Path
from symflops.ir.spec import Template
from symflops.ops.kind import cases
from symflops.support.findings import Diagnostic, SpecError, did_you_mean


class Evaluator:
    """Evaluates expressions and path templates.

    ``renamed`` are (old, new) prefixes of paths from the root: the spec's, and those of the class of the model.
    """

    def __init__(self, is_poisoned: Callable[[Binding], bool], renamed: tuple[tuple[str, str], ...] = ()) -> None:
        self.is_poisoned = is_poisoned
        self.renamed = renamed
        self._constants: dict[Expression, Any] = {}

    def value(self, expression: Expression, frame: Frame) -> Any:
        """Evaluate ``expression`` and resolve conditions on loop indices."""
        if expression in self._constants:
            return self._constants[expression]
        result = evaluate(expression, frame.names, {"width": partial(self.width, frame)})
        result = without_index(result, expression, frame.decide)
        if isinstance(result, Setting) and result.kind == "number" and not result.nullable:
            result = result.symbol
        if is_constant(expression):
            self._constants[expression] = result
        return result

    def argument(self, expression: Expression, frame: Frame) -> Any:
        """Evaluate an argument of a block; the result may depend on a loop index."""
        result = evaluate(expression, frame.names, {"width": partial(self.width, frame)})
        return result if is_indexed(result) and is_indexed(frame.decide(result)) else self.value(expression, frame)

    def width(self, frame: Frame, walker: Any, node: Any) -> Expr:
        """Evaluate ``width(v)``: the inferred width of a value.

        ``node`` is the call, in an expression that ``walker`` evaluates.
        """
        name = getattr(node.args[0], "id", "") if len(node.args) == 1 else ""
        binding = frame.values.get(name, ABSENT)
        if self.is_poisoned(binding):
            raise SpecError([])  # its cause was reported
        if binding.value is not None and binding.value.width is not None:
            return binding.value.width
        others = [other for other in frame.values if other != name]
        message = f"there is no value '{name}' with a width"
        raise SpecError([Diagnostic("unknown-value", message, walker.expression.place(node), did_you_mean(name, others))])

    def condition(self, expression: Expression | None, frame: Frame) -> Truth:
        """Evaluate a condition; an absent one, ``None``, always holds."""
        if expression is None:
            return YES
        value = self.value(expression, frame)
        if not isinstance(value, Truth):
            message = f"'{expression.text}' is no condition"
            raise SpecError([Diagnostic("bad-condition", message, expression.span, "compare it")])
        return value

    def is_shared(self, fields: Any, frame: Frame) -> bool:
        """Whether the entry has ``shared: true``: it reuses parameters that exist already."""
        return fields.get("shared") is not None and self.condition(fields["shared"], frame) is YES

    def path(self, template: Template, frame: Frame) -> Path:
        """The module path that ``template`` gives an entry; if it depends on conditions, the first."""
        return self.paths(template, frame, frame.path)[0][1]

    def paths(self, template: Template, frame: Frame, base: Path) -> list[tuple[Truth, Path]]:
        """List the paths that a template can be, as (condition, path); relative paths extend ``base``."""
        if template.text == "_":
            return [(YES, base)]
        found: list[tuple[Truth, tuple[str | Expr, ...]]] = [(YES, ())]
        for piece in template.pieces:
            options = self._options(piece, template, frame)
            found = [
                (known & truth, (*parts, _part(option, template)))
                for known, parts in found
                for truth, option in options
                if known & truth is not NO
            ]
        return [(truth, self._joined(parts, base)) for truth, parts in found]

    def _options(self, piece: str | Expression, template: Template, frame: Frame) -> tuple[tuple[Truth, Any], ...]:
        """Evaluate a text or an expression of ``template`` into (condition, value) pairs.

        Each value is the path's part under its condition; a text has one pair.
        """
        value = piece if isinstance(piece, str) else frame.decide(evaluate(piece, frame.names))
        value = value.symbol if isinstance(value, Setting) and value.kind == "number" else value
        if isinstance(value, Setting):
            message = f"'{value.name}' is part of a path"
            raise UnknownSizeError(value.name, Diagnostic("structural-size", message, template.span))
        return cases(value)

    def _joined(self, parts: tuple[str | Expr, ...], base: Path) -> Path:
        if parts and isinstance(parts[0], str) and parts[0].startswith("/"):
            base, parts = Path(()), (parts[0][1:], *parts[1:])
        if self.renamed and not base.parts and parts and isinstance(parts[0], str):
            parts = (self._renamed(parts[0]), *parts[1:])
        return base.extend(parts) if any(part != "" for part in parts) else Path(())

    def _renamed(self, text: str) -> str:
        """Replace the prefix of ``text``, the beginning of a path from the root, as ``renamed`` says."""
        for old, new in self.renamed:
            if text == old or text.startswith(f"{old}."):
                return (new + text.removeprefix(old)).removeprefix(".")
        return text


def _part(piece: Any, template: Template) -> str | Expr:
    if isinstance(piece, Expr):
        return str(piece) if piece.is_Integer else piece
    if isinstance(piece, str):
        return piece
    message = f"a path cannot hold {str(piece)[:40]!r}: it is made of texts and whole numbers"
    raise SpecError([Diagnostic("bad-path", message, template.span, "the config gives another kind of value here")])
