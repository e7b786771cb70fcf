"""Reads which pairs of a query and a key attend, by calling a library's own mask functions with symbolic positions."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sympy

Q, K = (sympy.Symbol(name, integer=True, nonnegative=True) for name in "qk")
"""Positions of a query and of a key."""


@dataclass(eq=False)
class Position:
    """A position, or what a mask function says of one, in place of a tensor of indices.

    Attributes:
        found: The expression or the condition.
    """

    found: Any
    device = dtype = None

    def new_ones(self, *_: Any, **__: Any) -> Position:
        """The mask of all pairs."""
        return Position(sympy.true)

    def new_zeros(self, *_: Any, **__: Any) -> Position:
        """The mask of no pair."""
        return Position(sympy.false)

    def to(self, *_: Any, **__: Any) -> Position:
        """The same on another device."""
        return self

    def __abs__(self) -> Position:
        return Position(sympy.Abs(self.found))


def combined(join: Callable[[Any, Any], Any]) -> Any:
    """A method of two operands: positions, or sizes, which may be symbolic."""

    def method(self: Position, other: Any) -> Position:
        node = getattr(other, "node", None)
        return Position(join(self.found, node.expr if node else getattr(other, "found", other)))

    return method


JOINS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "radd": operator.add, "sub": operator.sub, "rsub": lambda a, b: b - a,
    "mul": operator.mul, "floordiv": lambda a, b: sympy.floor(a / b), "mod": sympy.Mod,
    "lt": sympy.Lt, "le": sympy.Le, "gt": sympy.Gt, "ge": sympy.Ge, "eq": sympy.Eq, "ne": sympy.Ne,
    "and": sympy.And, "or": sympy.Or,
}  # fmt: skip
for name, join in JOINS.items():
    setattr(Position, f"__{name}__", combined(join))


@contextmanager
def masks_read(found: list[Any]) -> Iterator[None]:
    """Context manager that adds the conditions of the masks which transformers makes; None for one that reads values.

    Positions are taken to restart nowhere, as those that a class makes by itself.
    """
    masking: Any = sys.modules.get("transformers.masking_utils")
    if masking is None:
        yield
        return
    known = masking.ALL_MASK_ATTENTION_FUNCTIONS
    before, packed = known["eager"], masking.packed_sequence_compatibility_function

    def eager(*args: Any, mask_function: Any = masking.causal_mask_function, **options: Any) -> Any:
        try:
            found.append(mask_function(0, 0, Position(Q), Position(K)).found)
        except Exception:
            found.append(None)
        return before(*args, mask_function=mask_function, **options)

    def whole(mask_function: Any, *args: Any, **options: Any) -> Any:
        restarting = packed(mask_function, *args, **options)
        return lambda b, h, q, k: (mask_function if isinstance(q, Position) else restarting)(b, h, q, k)

    known["eager"], masking.packed_sequence_compatibility_function = eager, whole
    try:
        yield
    finally:
        known["eager"], masking.packed_sequence_compatibility_function = before, packed
