"""Draws configs and lengths at which closed forms are held against the real class."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from random import Random
from types import MappingProxyType
from typing import Any

import sympy

from symflops.verify.symbolic.forms import Forms, numbers_at
from symflops.verify.symbolic.traced import FIGURES, compiled, replaced, symbol

REPAIRS = 4
"""Most symbols that are changed together for the sake of one."""
OVERFLOW = 1 << 60
"""A condition with a larger number is about integers of 64 bits, not about sizes."""
LARGEST = 400
"""Factor by which sizes of far points are at most larger than the example's."""


def cancelled(guard: sympy.Basic) -> sympy.Basic:
    """A relation without the sizes and numbers that are factors of both of its sides."""
    if not isinstance(guard, sympy.core.relational.Relational):
        return guard
    gap = sympy.factor_terms(guard.lhs - guard.rhs)
    kept = sympy.Mul(*(one for one in sympy.Mul.make_args(gap) if not (one.is_Symbol or (one.is_Number and one > 0))))
    if kept == gap:
        return guard
    left = sympy.Add(*(one for one in sympy.Add.make_args(kept) if not one.could_extract_minus_sign()))
    return guard.func(left, left - kept)


def divisible(guard: sympy.Basic) -> sympy.Basic:
    """A condition that a number is its quotient by another one times it, whichever way it is rounded, as a remainder of 0."""
    for one, other in (guard.args, guard.args[::-1]) if isinstance(guard, sympy.Eq) else ():
        for part in sympy.Mul.make_args(other):
            if isinstance(part, (sympy.floor, sympy.ceiling)) and sympy.expand(part.args[0] * other / part - one) == 0:
                return sympy.Eq(sympy.Mod(one, other / part), 0)
    return guard


class Points:
    """Points of one trace: values of all its symbols, complete by its equations.

    Args:
        forms: The forms of a class.
        seed: Seed of the draws.
    """

    def __init__(self, forms: Forms, seed: int = 7) -> None:
        self.forms, self.random = forms, Random(seed)
        example = forms.example
        found = (*forms.symbols, *(guard for guard, _ in forms.guards), *forms.derived, *forms.derived.values())
        read = {one.name for each in found for one in each.free_symbols}
        self.start = {name: value for name, value in example.lengths.items() if name in read}
        for name, place in forms.places.items():
            self.start[name] = example.depths.get(place, example.fields.get(place, 0))
        steps = {name: example.steps[forms.places[name]] for name in forms.depths}
        self.deep = {name: value + steps.get(name, 0) for name, value in self.start.items()}  # with all kinds of layers
        ties = {one.name for one in forms.derived}
        self.free = sorted(self.start.keys() - ties)
        self.names = sorted(self.start)
        symbols = [symbol(name) for name in self.names]
        self.guards = self.distinct_guards()
        self.holding = compiled(symbols, [guard for guard, _ in self.guards])
        self.figures = compiled(symbols, [getattr(forms, name) for name in FIGURES])
        self.paths = sorted(forms.modules)
        self.by_module = compiled(symbols, [forms.modules[path] for path in self.paths])

    def distinct_guards(self) -> list[tuple[sympy.Basic, str]]:
        """The conditions of the trace, each once."""
        found: dict[sympy.Basic, str] = {}
        for guard, line in (*self.forms.guards, *((one, "") for one in self.forms.layers)):
            plain = divisible(cancelled(guard))
            if plain not in (sympy.true, sympy.false) and all(one < OVERFLOW for one in guard.atoms(sympy.Integer)):
                found.setdefault(plain, line)
        return sorted(found.items(), key=lambda item: (len(item[0].free_symbols), sympy.count_ops(item[0])))

    def moved_point(self, draw: Callable[[int, str], int] | None = None) -> dict[str, int] | None:
        """A point at which all conditions of the trace hold, each symbol moved if some new value allows it.

        Args:
            draw: Makes another value of a symbol from its value and name; by default :meth:`another`.
        """
        now = {name: self.start[name] for name in self.free}
        for name in self.random.sample(self.free, len(self.free)):
            for _ in range(8):
                point = self.repaired({**now, name: (draw or self.another)(now[name], name)}, name)
                if point is not None:
                    now = {other: point[other] for other in self.free}
                    break
        return numbers_at(now, self.forms.derived)

    def repaired(self, now: Mapping[str, int], name: str) -> dict[str, int] | None:
        """A complete point at which all conditions hold: the given one, or with further fields changed as equations ask.

        Args:
            now: Values of the free symbols.
            name: The symbol that was changed, and stays.
        """
        kept, now = {name}, dict(now)
        for _ in range(REPAIRS):
            point = numbers_at(now, self.forms.derived)
            if point is None:
                return None
            failing = [guard for (guard, _), holds in zip(self.guards, self.truths(point), strict=True) if not holds]
            if not failing:
                return point
            equation = next((guard for guard in failing if isinstance(guard, sympy.Eq)), None)
            change = self.solved(equation, point, kept) if equation is not None else None
            if change is None:
                return None
            now |= change
            kept |= change.keys()
        return None

    def solved(self, equation: sympy.Eq, point: Mapping[str, int], kept: Collection[str]) -> dict[str, int] | None:
        """Value of one further symbol that makes an equation hold, as the equation is linear in it; None if there is none."""
        for one in sorted(equation.free_symbols, key=str):
            if one.name not in kept and one.name in self.free:
                value = self.root(equation, one, point)
                if value is not None and value.is_Integer and value >= 2:
                    return {one.name: int(value)}
        return None

    def root(self, relation: Any, one: sympy.Symbol, point: Mapping[str, int]) -> Any:
        """Value of a symbol at which both sides of a relation are equal, all else as at a point; None if they never are.

        Both sides are taken to be linear in the symbol.
        """
        rest = {other: sympy.Integer(point[other.name]) for other in relation.free_symbols if other != one}
        gap = replaced(relation.lhs - relation.rhs, rest)
        now = point[one.name]
        low, *others = (replaced(gap, {one: sympy.Integer(now + step)}) for step in (0, 1, 2))  # halves grow by twos
        return next((now - step * low / (high - low) for step, high in enumerate(others, 1) if high != low), None)

    def another(self, value: int, name: str) -> int:
        """Another value near this one, or a multiple of it; few more for numbers of layers."""
        if name in self.forms.depths:
            return value + self.forms.example.steps[self.forms.places[name]] * self.random.randint(1, 3)
        near, below = value + self.random.randint(1, 9), value - self.random.randint(1, 5)
        choices = (value // 2, value * 2, value * 3 // 2, near, value * 3, below, value // 4, value + 16)
        return max(2, self.random.choice(choices))

    def multiples(self, chained: bool) -> Callable[[int, str], int]:
        """A draw of multiples of the example's sizes, and of a few more layers.

        Args:
            chained: Whether the factor of a size divides those of larger ones, so that sizes which divide others still do.
        """
        factors, last = dict[str, int](), 1
        for name in sorted(self.free, key=lambda name: self.start[name]):
            last = last * self.random.choice((1, 2, 3, 5, 7)) if chained else self.random.randint(2, LARGEST)
            factors[name] = last
        return lambda value, name: self.another(value, name) if name in self.forms.depths else value * factors[name]

    def truths(self, point: Mapping[str, int]) -> list[bool]:
        """Whether each condition holds at a point."""
        try:
            return [bool(one) for one in self.holding(*(point[name] for name in self.names))]
        except (ZeroDivisionError, ValueError, TypeError, OverflowError):
            return [False] * len(self.guards)

    def random_point(self, changes: int | None = None, kept: Mapping[str, int] = MappingProxyType({})) -> dict[str, int] | None:
        """A point with some or all free symbols drawn anew and given ones kept, whether conditions hold or not."""
        now = {name: self.deep[name] for name in self.free}
        for name in self.free if changes is None else self.random.sample(self.free, min(changes, len(self.free))):
            others: list[Any] = [self.start[other] + self.random.randint(-1, 1) for other in self.free]
            choices = (
                self.another(now[name], name),
                self.random.randint(1, 40),
                max(1, self.random.choice(others)),
                self.random.choice((1, 2, 3)),
            )
            now[name] = self.another(now[name], name) if name in self.forms.depths else self.random.choice(choices)
        return numbers_at({**now, **kept}, self.forms.derived)
