"""Writes branches: a group with a condition for each case, and one name for what comes from another place in each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from symflops.draft.fit.index_conditions import Rows, condition
from symflops.draft.trace.reads import steps_in
from symflops.draft.trace.steps import Branch, Choice, Loop, Ref
from symflops.draft.write.experts import Routing
from symflops.draft.write.writer import Scope, Unsolved, Val


class Switching(Routing, ABC):
    """A writer that writes branches."""

    @abstractmethod
    def entries(self, entries: Sequence[Any], scope: Scope, later: Sequence[Ref]) -> None:
        """Write entries one after another; ``later`` is what is read after them."""

    def copied(self, value: Val, name: str, scope: Scope) -> None:
        """The same value under another name."""
        scope.entries.append(("_", {"op": "add", "from": value.name, "to": name}))

    def branch(self, branch: Branch, scope: Scope, later: Sequence[Ref]) -> None:
        """One group for each case that makes something."""
        loop = scope.loop
        assert loop is not None
        own = [{step.id for step in steps_in(case)} for case in branch.cases]
        before = {choice.id: self.ready(choice, own, scope) for choice in branch.choices}
        for case, entries in enumerate(branch.cases):
            waiting = [choice for choice in branch.choices if choice.sources[case] != before[choice.id]]
            if not entries and not waiting:
                continue
            inner = self.inside(loop, branch.items[case], scope)
            self.entries(entries, inner, [*(choice.sources[case] for choice in waiting), *later])
            for choice in waiting:
                made = self.read(choice.sources[case], inner)
                assert made is not None
                if choice.id not in self.values:
                    name = self.name(made.name)
                    self.values[choice.id] = Val(name, made.rows, made.width, made.once, self.tag(made.rows, made.once))
                wanted = self.values[choice.id]
                self.copied(self.fitted(made, wanted.rows, wanted.width, inner, wanted.once), wanted.name, inner)
            scope.entries.append(("_", {"when": self.condition(branch, case, scope), "graph": inner.entries}))

    def ready(self, choice: Choice, own: Sequence[set[int]], scope: Scope) -> Ref | None:
        """What a choice is where no case says otherwise: a value from before the branch, under the name of the choice."""
        found = next((ref for case, ref in enumerate(choice.sources) if ref.id not in own[case]), None)
        value = None if found is None else self.read(found, scope)
        if value is None:
            return None
        name = self.name(value.name)
        self.copied(value, name, scope)
        self.values[choice.id] = Val(name, value.rows, value.width, value.once, value.tag)
        return found

    def inside(self, loop: Loop, item: int, scope: Scope) -> Scope:
        """A scope for what one item runs."""
        inner = Scope(f"{loop.prefix}.{item}", parent=scope, loop=loop, index=scope.index, count=scope.count)
        if scope.indexed:
            ending = f".{loop.start}"
            inner.indexed = {f"{path.removesuffix(ending)}.{item}": text for path, text in scope.indexed.items()}
            inner.prefix = scope.prefix
        return inner

    def condition(self, branch: Branch, case: int, scope: Scope) -> str:
        """When an item has a case; the items of the base, and a note, where no condition is found."""
        loop = scope.loop
        assert loop is not None
        starts = self.family.numbers(loop, lambda one: one.start)
        chosen = [one.chosen for one in self.family.parts[self.family.place[id(branch)]]]
        rows = Rows(starts, [[one == case for one in items] for items in chosen])
        found = condition(rows, scope.index, scope.count, self.family, self.names)
        if found is not None:
            return found
        *_, last = [number for number, entries in enumerate(branch.cases) if entries]
        others = [one != case for one in branch.chosen]
        if case == last:
            return f"{scope.index} not in {[starts[0] + place for place, one in enumerate(others) if one]}"
        items = [starts[0] + place for place, one in enumerate(others) if not one]
        self.unsolved.append(Unsolved(f"the items of {loop.prefix} that are like {branch.items[case]}", tuple(items)))
        return f"{scope.index} in {items}"
