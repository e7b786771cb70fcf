"""Scopes: the values and names that an entry sees, its path, and the conditions around it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from sympy import Expr, Symbol

from symflops.build.journal import Journaled
from symflops.formula.expression import Expression
from symflops.formula.functions import is_index
from symflops.formula.truth import NO, YES, Truth, UnknownSizeError
from symflops.ir.convention import ROLES
from symflops.ir.nodes import Node, Value
from symflops.ir.patterns import Path, Visit
from symflops.ir.spec import Template
from symflops.support.findings import Diagnostic


def as_it_is(value: Any) -> Any:
    """``value``: outside of repeats there is nothing to decide."""
    return value


def is_indexed(value: Any, own: Collection[Expr] = ()) -> bool:
    """Whether a number, or one of a list, depends on the index of a loop; ``own`` are the indices of the expression itself."""
    if isinstance(value, tuple):
        return any(is_indexed(item, own) for item in value)
    return isinstance(value, Expr) and any(is_index(symbol.name) for symbol in value.free_symbols.difference(own))


def without_index(value: Any, expression: Expression, decide: Callable[[Any], Any], own: Collection[Expr] = ()) -> Any:
    """The value of an expression, its conditions on loop indices decided; ``own`` are the indices of the expression itself.

    Raises:
        UndecidedError: a segment does not decide one.
        UnknownSizeError: the value is another one in each iteration.
    """
    value = decide(value)
    if is_indexed(value, own):
        message = f"'{expression.text}' is another number in each iteration"
        hint = "the repeat must be over a known list"
        raise UnknownSizeError("", Diagnostic("structural-size", message, expression.span, hint))
    return value


@dataclass(frozen=True, slots=True)
class Binding:
    """The value of a name, and the condition under which it is present; an absent value never is."""

    value: Value | None
    present: Truth = YES


ABSENT = Binding(None, NO)


@dataclass
class Frame:
    """One scope: a document, a block call, the body of a loop, or a branch.

    Attributes:
        path: The module path that relative paths extend.
        names: Values of the names in expressions: sizes, parameters of a block, indices.
        values: Bindings of the names of values; a scope under a condition, or of an iteration, shares them and goes back.
        nodes: The region that nodes are added to.
        guard: The condition under which the scope runs.
        no_grad: Whether it runs without gradients.
        copies: Leading dimensions of its parameters, one per group of experts around it.
        regions: Roles of the entries around it that are regions.
        role: The role of the innermost entry around it that has one, for linears and convolutions.
        lists: Module lists that no repeat runs through (experts): index and length.
        sizes: Names that a local block sees too.
        decide: Replaces conditions on loop indices in an evaluated expression.
        visits: Calls around it that use a module of another place a second time.
        turns: Calls around it that use a module again, each with its number.
    """

    path: Path
    names: dict[str, Any]
    values: Journaled[str, Binding]
    nodes: list[Node]
    guard: Truth = YES
    no_grad: bool = False
    copies: tuple[Expr, ...] = ()
    regions: tuple[str, ...] = ()
    role: str = ""
    lists: tuple[tuple[Symbol, Expr], ...] = ()
    sizes: dict[str, Any] = field(default_factory=dict)
    decide: Callable[[Any], Any] = as_it_is
    visits: tuple[Visit, ...] = ()
    turns: tuple[tuple[Path, int], ...] = ()

    def inside(self, **changes: Any) -> Frame:
        """A scope within this one that shares its region."""
        found = copy(self)
        found.__dict__.update(changes)
        return found

    def as_a(self, role: str) -> Frame:
        """A scope within this one, of a region or for linears and convolutions of a role."""
        if not role:
            return self
        return self.inside(regions=(*self.regions, role)) if ROLES[role].group == "region" else self.inside(role=role)

    def calling(self, template: Template, path: Path, again: int) -> Frame:
        """The scope of an entry at ``path``; ``again`` is the number of the call if it uses the module again, else 0."""
        if not again:
            return self
        visits = (*self.visits, Visit(self.path, path)) if template.text.startswith("/") else self.visits
        return self.inside(visits=visits, turns=(*self.turns, (path, again)))
