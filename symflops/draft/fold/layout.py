"""The layout of a merged body: columns common to all kinds of items, and cases of branches in between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import groupby
from typing import Any

from symflops.draft.fold.matching import parallel_lists
from symflops.draft.trace.steps import Step, parameters_of

MOST_KINDS = 6
MOST_CASES = 4
Place = tuple[int, int, int]  # column, case (-1 in a common column), step
Key = tuple[str, tuple[Any, ...], tuple[Any, ...]]


def layout_of(bodies: Sequence[list[Step]], prefix: str, indices: Sequence[int], first: int) -> Layout | None:
    """Assign the steps of all items of a module list a place in one loop body.

    Args:
        bodies: The steps of each item.
        prefix: The path of the list.
        indices: The index of each item.
        first: The first unused id.

    Returns:
        The layout; None if the items have equal steps, too many kinds of them, or no step in common.
    """
    keys = [tuple(key_of(step, f"{prefix}.{index}") for step in body) for body, index in zip(bodies, indices, strict=True)]
    kinds = list(dict.fromkeys(keys))
    if not 1 < len(kinds) <= MOST_KINDS or len(kinds) == len(bodies):
        return None
    columns = aligned(kinds, [0] * len(kinds))
    if not any(column.common for column in columns):
        return None
    layout = Layout(bodies, prefix, indices, [kinds.index(key) for key in keys], kinds, columns, first)
    return layout if layout.arrange() else None


@dataclass
class Layout:
    """The place of every item's steps in one loop body.

    The body is a row of columns. A column has the same steps for all items, or up to four alternatives, its cases. A place
    is a column, a case (-1 in a common column) and a position. Items with equal steps are of one kind.

    Attributes:
        bodies: The steps of each item.
        prefix: The path of the module list.
        indices: The index of each item in the list.
        kind: The kind of each item.
        kinds: The comparison keys of the steps of each kind.
        columns: The columns.
        free: The next unused id.
        place: Step id -> place.
        owner: Step id -> item.
        chosen: Column -> case of each item.
        cases: Column with cases -> the comparison keys of the steps of each case.
        model: Place -> id of the step there in the loop body.
        origin: Place -> step of the first item that has one there.
    """

    bodies: Sequence[list[Step]]
    prefix: str
    indices: Sequence[int]
    kind: Sequence[int]
    kinds: Sequence[Sequence[Key]]
    columns: Sequence[Column]
    free: int
    place: dict[int, Place] = field(default_factory=dict)
    owner: dict[int, int] = field(default_factory=dict)
    chosen: dict[int, list[int]] = field(default_factory=dict)
    cases: dict[int, list[tuple[Key, ...]]] = field(default_factory=dict)
    model: dict[Place, int] = field(default_factory=dict)
    origin: dict[Place, Step] = field(default_factory=dict)

    def arrange(self) -> bool:
        """Compute each column's cases and each step's place, stored in the fields; returns False if it cannot.

        The cases of a column are the different runs of steps that items have there. It cannot if a column has over four, or
        two that differ only in sizes. A place is (column, case, position in the case), with case -1 if all items have the
        same steps.
        """
        for number, column in enumerate(self.columns):
            if column.common:
                self.chosen[number] = [-1] * len(self.bodies)
            elif not self.find_cases(number, column):
                return False
            for item, steps in enumerate(self.bodies):
                start, end = column.spans[self.kind[item]]
                for offset, step in enumerate(steps[start:end]):
                    self.put(step, (number, self.chosen[number][item], offset), item)
        return True

    def find_cases(self, number: int, column: Column) -> bool:
        """Find the cases of a column and the case of each item; returns False if there can be no branch.

        ``number`` is the column's index in ``columns``. There can be none if there are over four cases, or if two differ
        only in sizes.
        """
        parts = [tuple(kind[a:b]) for kind, (a, b) in zip(self.kinds, column.spans, strict=True)]
        cases = sorted(set(parts), key=lambda case: repr([key[:2] for key in case]))
        plain = [[key[:2] for key in case] for case in cases]
        self.cases[number] = cases
        self.chosen[number] = [cases.index(parts[kind]) for kind in self.kind]
        return len(cases) <= MOST_CASES and all(plain.count(one) == 1 for one in plain)

    def put(self, step: Step, where: Place, item: int) -> None:
        """Store ``where`` (column, case, position) as the place of a step of item number ``item``.

        The first step at a place becomes the one in the loop body.
        """
        self.place[step.id], self.owner[step.id] = where, item
        if where not in self.origin:
            # values of the last item have other ids after the loop than inside
            alone = item == len(self.bodies) - 1
            self.origin[where] = step
            self.model[where] = self.free if alone else step.id
            self.free += alone

    def other_lists(self) -> tuple[str, ...] | None:
        """Paths of other module lists whose modules with an item's index run in the body.

        None if a kind with a single item runs such a module: one item does not tell the list.
        """
        found: dict[str, None] = {}
        for number, kind in enumerate(self.kinds):
            first, *more = [item for item, one in enumerate(self.kind) if one == number]
            if more:
                at = f"{self.prefix}.{self.indices[first]}"
                found |= dict.fromkeys(parallel_lists(self.bodies[first], self.bodies[more[0]], at))
            elif any("*" in name for key in kind for name in (key[0], *key[1][-1])):
                return None
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Column:
    """A part of the loop body: the span (first, end) of its steps in each kind of item.

    ``common`` says that these steps are equal in all kinds.
    """

    common: bool
    spans: tuple[tuple[int, int], ...]


def key_of(step: Step, item: str) -> Key:
    """Comparison key of a step of an item: path in the item, then kind and words, then sizes."""
    words = tuple(placed(word, item) if isinstance(word, str) else word for word in step.words)
    own = (step.kind, words, step.quiet, len(step.operands), tuple(placed(name, item) for name in parameters_of(step)))
    return placed(step.path, item), own, (step.numbers, step.times)


def placed(name: str, item: str) -> str:
    """Path ``name`` relative to the path ``item`` if it is there or below, else from the root.

    From the root, it begins with ``/``, and words that equal the item's index become stars: for the item ``layers.3``,
    ``norms.3`` is written ``/norms.*``.
    """
    if name == item or name.startswith(f"{item}."):
        return name[len(item) + 1 :]
    index = item.rpartition(".")[2]
    return "/" + ".".join("*" if word == index else word for word in name.split("."))


def child(key: Key, depth: int) -> str:
    """Word number ``depth`` of the path, relative to the item, of a step's module; empty if it is shorter."""
    words = key[0].split(".")
    return words[depth] if depth < len(words) else ""


def aligned(kinds: Sequence[Sequence[Key]], starts: Sequence[int], depth: int = 0) -> list[Column]:
    """Columns of steps that all kinds of items have in common, and those in between.

    Args:
        kinds: The comparison keys of the steps of each kind, or of a part of them.
        starts: The position of the first of these steps in each kind.
        depth: Steps that run in the same module at this depth below the item stay together.
    """
    runs = [runs_of(kind, depth) for kind in kinds]
    texts = [[tuple(kind[a:b]) for a, b in spans] for kind, spans in zip(kinds, runs, strict=True)]
    shared = reduce(longest, texts)
    # for each kind, the spans of the shared runs, then its end
    ends = [(len(kind), len(kind)) for kind in kinds]
    spans = [[*matches(text, shared, run), end] for text, run, end in zip(texts, runs, ends, strict=True)]
    found: list[Column] = []
    before = [0] * len(kinds)
    for number, row in enumerate(zip(*spans, strict=True)):
        gap = [(end, first) for end, (first, _) in zip(before, row, strict=True)]
        if any(a < b for a, b in gap):
            found += differing([kind[a:b] for kind, (a, b) in zip(kinds, gap, strict=True)], gap, starts, depth)
        if number < len(shared):
            found.append(Column(True, tuple((a + s, b + s) for (a, b), s in zip(row, starts, strict=True))))
        before = [b for _, b in row]
    return found


def matches(text: Sequence[Any], shared: Sequence[Any], spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Spans of those elements of ``text`` that match ``shared``, a subsequence, greedily from the left.

    ``spans`` has the span of each element of ``text``.
    """
    place = -1
    for wanted in shared:
        place = text.index(wanted, place + 1)
        yield spans[place]


def differing(
    kinds: Sequence[Sequence[Key]], gap: Sequence[tuple[int, int]], starts: Sequence[int], depth: int
) -> list[Column]:
    """Columns for steps that differ by kind: one, or several if one module runs all and mostly the same.

    Args:
        kinds: The comparison keys of these steps of each kind.
        gap: Their span in the part that is being aligned.
        starts: The position of the first step of that part in each kind.
        depth: The depth of the module below the item.
    """
    first = [start + a for start, (a, _) in zip(starts, gap, strict=True)]
    whole = [Column(False, tuple((a, a + len(kind)) for a, kind in zip(first, kinds, strict=True)))]
    children = {child(key, depth) for kind in kinds for key in kind}
    if len(children) != 1 or "" in children or not all(kinds):
        return whole
    columns = aligned(kinds, first, depth + 1)
    same = sum(column.spans[0][1] - column.spans[0][0] for column in columns if column.common)
    return columns if 2 * same >= max(map(len, kinds)) else whole


def runs_of(kind: Sequence[Key], depth: int) -> list[tuple[int, int]]:
    """Spans (first, end) of consecutive steps that run in the same module at ``depth`` below the item."""
    places = (list(run) for _, run in groupby(range(len(kind)), lambda place: child(kind[place], depth) or place))
    return [(run[0], run[-1] + 1) for run in places]


def longest(a: list[Any], b: list[Any]) -> list[Any]:
    """Common subsequence of two lists of sequences with the greatest total length of its items."""
    table: list[list[int]] = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in reversed(range(len(a))):
        for j in reversed(range(len(b))):
            same = a[i] == b[j]
            table[i][j] = table[i + 1][j + 1] + len(a[i]) if same else max(table[i + 1][j], table[i][j + 1])
    found: list[Any] = []
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            found.append(a[i])
            i, j = i + 1, j + 1
        elif table[i + 1][j] >= table[i][j + 1]:
            i += 1
        else:
            j += 1
    return found
