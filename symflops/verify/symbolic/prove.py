"""Holds closed forms against the real class at configs and lengths that the trace has not seen, and finds their domain."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from typing import Any

import sympy

from symflops.verify.symbolic.explore import said
from symflops.verify.symbolic.forms import by_kind, numbers_at
from symflops.verify.symbolic.points import Points
from symflops.verify.symbolic.traced import FIGURES, compiled, symbol

POINTS = 4
"""Unseen configs at which forms are proven; at least three must run."""
SAMPLES = 3000
"""Random points at which a condition that never fails is taken to follow from others."""
NEAR = 300
"""Random points that are looked through for one outside of a single condition of a domain."""
TRIES = 6
"""Points outside of a condition at which the class must be exact before the condition is left out."""
INSIDE = 60
"""Points inside of all conditions of the trace, at which a plainer condition has to hold, too."""
ROUNDS = 12
"""Most corrections of a domain."""
DOUBLINGS = 18
"""Most doublings of a symbol that should violate a condition."""


@dataclass
class Proof:
    """Results of comparisons with the real class.

    Attributes:
        points: The unseen configs and lengths at which all figures were equal.
        wrong: Descriptions of those at which one was not.
        failed: Errors of the class at unseen configs.
        unmoved: Symbols that had their traced value at every unseen config.
        domain: (condition, source line) that the formulas need.
        far: Points inside of the conditions of the trace, mostly of large sizes, at which nothing was run.
        symbolic: Whether the forms have symbols.
        beyond: For conditions of the domain, a point outside at which the class runs and costs something else.
        outside: For each condition of the domain, a point outside at which the class fails or costs something else; else empty.
    """

    points: list[Mapping[str, int]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    unmoved: list[str] = field(default_factory=list)
    domain: list[tuple[sympy.Basic, str]] = field(default_factory=list)
    symbolic: bool = True
    far: Sequence[Mapping[str, int]] = field(default_factory=list)
    beyond: list[Mapping[str, int]] = field(default_factory=list)
    outside: list[Mapping[str, int]] = field(default_factory=list)

    @property
    def exact(self) -> int:
        """Number of unseen configs at which all figures were equal."""
        return len(self.points)

    @property
    def proven(self) -> bool:
        """Whether at least three unseen configs were exact, none differed, and each symbol was moved."""
        return self.exact >= 3 and not self.wrong and not self.unmoved and self.symbolic

    @property
    def why_not(self) -> str:
        """Why forms are not proven; empty if they are."""
        if self.proven:
            return ""
        if self.wrong:
            return self.wrong[0]
        if not self.symbolic:
            return "no size is a symbol"
        if self.unmoved and self.exact:
            return f"{', '.join(self.unmoved)} kept the traced value at every unseen config"
        return f"only {self.exact} unseen configs ran" + (f": {self.failed[0]}" if self.failed else "")


def cover(
    choices: Sequence[tuple[sympy.Basic, str]], example: list[bool], good: Sequence[list[bool]], bad: Sequence[list[bool]]
) -> list[int]:
    """Fewest, plainest conditions of which at each ``bad`` point some do not hold.

    They hold at the example and at all ``good`` points, or at most of them if no such conditions tell all bad points.
    """
    lost = [sum(not row[place] for row in good) for place in range(len(choices))]
    left, found = list(bad), list[int]()
    held = [place for place, holds in enumerate(example) if holds]
    for places in ([place for place in held if not lost[place]], held):
        while left:
            best = max(places, key=lambda place: (sum(not row[place] for row in left), -lost[place], -place), default=None)
            if best is None or all(row[best] for row in left):
                break
            found.append(best)
            left = [row for row in left if row[best]]
    for place in list(found):
        rest = [other for other in found if other != place]
        if not any(all(row[other] for other in rest) for row in bad):
            found = rest
    return sorted(found)


def plain_conditions(
    symbols: Sequence[sympy.Symbol], pairs: Sequence[tuple[sympy.Symbol, sympy.Symbol]]
) -> Iterator[sympy.Basic]:
    """Conditions as authors of classes write them, the plainest first: at least, at most, divisible, even."""
    yield from (one >= least for least in (2, 3) for one in symbols)
    yield from (one <= other for one, other in pairs)
    yield from (one < other for one, other in pairs)
    yield from (sympy.Eq(sympy.Mod(one, 2), 0) for one in symbols)
    yield from (sympy.Eq(sympy.Mod(one, other), 0) for one, other in pairs)
    for one, other in pairs:
        yield sympy.Eq(sympy.Mod(one, 2 * other), 0)
        yield sympy.Eq(sympy.Mod(sympy.floor(one / other), 2), 0)
        yield from (sympy.floor(one / other) >= least for least in (2, 3))


class Prover(Points):
    """Compares forms with the real class.

    Args:
        forms: The forms of a class.
        seed: Seed of the draws.
    """

    def run(self, until: float) -> Proof:
        """Prove the forms, then reduce the conditions to those that matter."""
        used = {one.name for one in self.forms.symbols}
        proof = Proof(symbolic=bool(used))
        moved: set[str] = set()
        for values in self.unseen():
            if proof.exact >= POINTS or time.process_time() > until:
                break
            outcome = self.compare(values)
            if outcome is None:
                proof.points.append(values)
                moved |= {name for name in used if values[name] != self.start[name]}
            elif outcome.startswith("fails"):
                proof.failed.append(outcome)
            else:
                proof.wrong.append(outcome)
                break
        moved |= {name for name in used - moved if proof.exact and self.movable(name, until)}
        proof.unmoved = sorted(used - moved)
        if moved and proof.exact >= 3:
            self.fix(proof)
        if proof.proven:
            self.reduce(proof, until)
            known = {condition for condition, _ in proof.domain}
            proof.domain += [(one, "") for one in self.forms.layers if one not in known]
            proof.domain += self.above_one(proof.domain, until)
            drawn = (self.moved_point(self.multiples(chained)) for chained in (True, False) for _ in range(POINTS))
            proof.far = [one for one in drawn if one is not None]
        return proof

    def fix(self, proof: Proof) -> None:
        """Make numbers of the symbols that were never moved: the forms are proven for their traced values alone."""
        values = {symbol(name): sympy.Integer(self.start[name]) for name in proof.unmoved}
        if any(one in values for each in self.forms.derived.values() for one in each.free_symbols):
            return
        self.forms.put(values)
        for name in proof.unmoved:
            holding = [line for guard, line in self.guards if symbol(name) in guard.free_symbols and line]
            self.forms.lines.setdefault(name, next(iter(holding), ""))
            self.free.remove(name)
        proof.unmoved = []

    def above_one(self, domain: Sequence[tuple[sympy.Basic, str]], until: float) -> list[tuple[sympy.Basic, str]]:
        """Condition of each symbol at whose value 1 the class costs something else, as a trace knows sizes from 2 on only.

        A length of 1 must not fail either. Fields that no time is left to try get the condition.
        """
        found, lengths = list[tuple[sympy.Basic, str]](), self.forms.example.lengths
        holding = compiled([symbol(name) for name in self.names], [one for one, _ in domain])
        for name in sorted(set(self.free) - self.forms.depths.keys()):
            first = numbers_at({other: self.deep[other] for other in self.free} | {name: 1}, self.forms.derived)
            if name not in lengths and time.process_time() > until:
                found.append((symbol(name) >= 2, ""))
                continue
            drawn = chain([first], (self.random_point(2, {name: 1}) for _ in range(NEAR)))
            inside = next((one for one in drawn if (row := self.row(holding, one)) is not None and all(row)), None)
            outcome = (self.compare(inside) if inside else None) or ""
            may_fail = name not in lengths or inside != first
            if (name in lengths and first is None) or (outcome and not (may_fail and outcome.startswith("fails"))):
                found.append((symbol(name) >= 2, ""))
        return found

    def unseen(self) -> Iterator[dict[str, int]]:
        """Yield up to ``3 * POINTS`` complete points with as many new values as the conditions allow."""
        for _ in range(3 * POINTS):
            if (found := self.moved_point()) is not None:
                yield found

    def movable(self, name: str, until: float) -> bool:
        """Whether the class is exact with another value of one field or length, conditions of the trace aside."""
        for _ in range(2 * POINTS):
            point = {other: self.start[other] for other in self.free} | {name: self.another(self.start[name], name)}
            whole = numbers_at(point, self.forms.derived) if name in self.free and time.process_time() < until else None
            if whole is not None and whole[name] != self.start[name] and self.compare(whole) is None:
                return True
        return False

    def compare(self, point: Mapping[str, int]) -> str | None:
        """None if all figures at a point are those of the real class; else what differs, or that the class fails."""
        forms, example = self.forms, self.forms.example
        depths = {place: point.get(".".join(map(str, place)), number) for place, number in example.depths.items()}
        values = {place: point[name] for name, place in forms.places.items() if name not in forms.depths}
        lengths = {name: point.get(name, value) for name, value in example.lengths.items()}
        real_example = replace(example, depths=depths, lengths=lengths)
        rest = {place: value for place, value in example.fields.items() if place not in values}
        try:
            real = real_example.real({**rest, **values}, lengths)
        except Exception as error:
            return f"fails: {said(error)} at {self.told(point)}"
        arguments = [point[name] for name in self.names]
        for name, mine in zip(FIGURES, self.figures(*arguments), strict=True):
            if mine != getattr(real, name):
                return f"{name}: {mine} by the formula, {getattr(real, name)} counted at {self.told(point)}"
        counted = by_kind(real)
        for path, mine in zip(self.paths, self.by_module(*arguments), strict=True):
            if mine != counted.pop(path, 0):
                return f"{path}: other forward FLOPs at {self.told(point)}"
        return f"{next(iter(counted))}: not in the trace" if any(counted.values()) else None

    def told(self, point: Mapping[str, int]) -> str:
        """The values at a point that differ from the example."""
        return ", ".join(f"{name}={value}" for name, value in point.items() if value != self.start[name])

    def reduce(self, proof: Proof, until: float) -> None:
        """Find a domain in plain words: outside of it the class was seen to fail or to cost something else.

        Inside of it, each condition of the trace holds at all sampled points, or the class was exact where it does not. If
        time runs out, the domain keeps all conditions of the trace that were not seen to be without effect.
        """
        symbols = [symbol(name) for name in self.names]
        together = {frozenset(guard.free_symbols) for guard, _ in self.guards}
        read = [one for one in symbols if any(one in some for some in together)]
        pairs = [
            (one, other) for one in read for other in read if one != other and any({one, other} <= some for some in together)
        ]
        choices = [(one, "") for one in plain_conditions(read, pairs)] + self.guards
        judge = compiled(symbols, [one for one, _ in choices])
        in_domain = cache(lambda places: compiled(symbols, [choices[place][0] for place in places]))
        first = len(choices) - len(self.guards)
        example = self.row(judge, self.start) or [True] * len(choices)
        draws = [*([None] * INSIDE), *(self.multiples(chained) for chained in (True, False) for _ in range(INSIDE // 6))]
        inside = (self.row(judge, self.moved_point(draw)) for draw in draws)
        good = [row for row in inside if row is not None and all(row[first:])]  # the trace speaks for these points
        bad: list[list[bool]] = []
        outer: list[tuple[list[bool], dict[str, int], bool]] = []
        harmless = [0] * len(self.guards)
        domain: list[int] = []
        for turn in range(ROUNDS):
            settled = True
            drawn = (self.random_point(self.random.choice((1, 1, 2, 3, len(self.free)))) for _ in range(SAMPLES))
            for point in drawn if turn else chain(drawn, self.crossings(harmless)):
                inner = self.row(in_domain(tuple(domain)), point)
                if point is None or inner is None or not all(inner):
                    continue
                open_ones = [place for place, holds in enumerate(self.truths(point)) if not holds and harmless[place] < TRIES]
                row = self.row(judge, point) if open_ones else None
                if row is None:
                    continue
                if time.process_time() > until:
                    break
                outcome = self.compare(point)
                if outcome is None:
                    good += [row] * (1 not in point.values())  # a size of 1 is broadcast, which no author has in mind
                    for place in open_ones:
                        harmless[place] += 1
                else:
                    bad.append(row)
                    outer.append((row, point, outcome.startswith("fails")))
                    settled = False
                    domain = cover(choices, example, good, bad) or domain
            settled &= not self.widened(judge, domain, good, bad, until)
            domain = cover(choices, example, good, bad)
            if settled or time.process_time() > until:
                break
        if time.process_time() > until or not settled:  # what was not tried may matter
            domain = sorted({*domain, *(first + place for place, count in enumerate(harmless) if count < TRIES)})
        for place in domain:
            alone = sorted(
                (one for one in outer if not one[0][place]), key=lambda one: sum(not one[0][each] for each in domain)
            )
            proof.outside.append(alone[0][1] if alone else {})
            proof.beyond += [point for _, point, fails in alone if not fails][:1]
        proof.domain = [(choices[place][0], self.line_of(choices[place], first, judge)) for place in domain]

    def crossings(self, harmless: Sequence[int]) -> Iterator[dict[str, int]]:
        """Points just outside of each condition that no drawn point has violated, such as a bound of 4096 on a width.

        ``harmless`` counts for each condition the points outside of it at which the class was exact.
        """
        start = {name: self.deep[name] for name in self.free}
        for place, (guard, _) in enumerate(self.guards):
            for one in sorted(guard.free_symbols, key=str) if not harmless[place] and hasattr(guard, "rhs") else ():
                if one.name not in start or one.name in self.forms.depths:
                    continue
                edge = self.root(guard, one, self.deep)
                near = [] if edge is None or not edge.is_finite else [int(edge) + step for step in (0, 1, -1)]
                far = (start[one.name] << doubling for doubling in range(1, DOUBLINGS))
                for value in (value for value in (*near, *far) if value > 0):
                    point = numbers_at({**start, one.name: value}, self.forms.derived)
                    if point is not None and not self.truths(point)[place]:
                        yield point
                        break

    def widened(self, judge: Any, domain: Sequence[int], good: list[list[bool]], bad: list[list[bool]], until: float) -> bool:
        """Run the class where one condition of a domain does not hold and all others do; whether it was exact somewhere."""
        found = False
        for place in (place for place in domain if all(row[place] for row in good)):
            for _ in range(NEAR):
                point = self.random_point(self.random.choice((1, 2)))
                row = self.row(judge, point)
                if row is None or point is None or row[place] or not all(row[other] for other in domain if other != place):
                    continue
                if time.process_time() > until:
                    return found
                if 1 not in point.values() and self.compare(point) is None:
                    good.append(row)
                    found = True
                    break
                if 1 not in point.values():
                    bad.append(row)
                if self.random.random() < 1 / TRIES:
                    break
        return found

    def line_of(self, choice: tuple[sympy.Basic, str], first: int, judge: Any) -> str:
        """Source line of a condition: its own, or that of the first condition of the trace over the same symbols."""
        condition, line = choice
        same = (other for guard, other in self.guards if other and guard.free_symbols >= condition.free_symbols)
        return line or next(same, "")

    def row(self, judge: Any, point: Mapping[str, int] | None) -> list[bool] | None:
        """Truth of each choice at a point; None where one has no value."""
        if point is None:
            return None
        try:
            return [bool(one) for one in judge(*(point[name] for name in self.names))]
        except (ZeroDivisionError, ValueError, TypeError, OverflowError):
            return None
