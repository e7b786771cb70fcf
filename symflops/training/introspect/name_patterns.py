"""Compresses a set of parameter names into few patterns that match no other name.

All indices of a position become ``*``. Consecutive indices become a slice if the index belongs to a repeat of the spec. Other
indices are written out.

    >>> spelled({"a.0.q", "a.1.q"}, ["a.0.q", "a.1.q", "a.0.k", "a.1.k"], loops=())
    ['a.*.q']
    >>> spelled({"a.1.q", "a.2.q"}, ["a.0.q", "a.1.q", "a.2.q"], loops=["a.*.q"])
    ['a.1:.q']
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

Indices = tuple[int, ...]


def spelled(chosen: Collection[str], names: Iterable[str], loops: Collection[str]) -> list[str]:
    """Find patterns that match the ``chosen`` names and no other of ``names``.

    ``loops`` are names in which ``*`` stands for the index of a repeat.
    """
    known = list(names)
    families: dict[tuple[str, ...], dict[Indices, str]] = {}
    for name in known:
        form = tuple("*" if word.isdigit() else word for word in name.split("."))
        families.setdefault(form, {})[tuple(int(word) for word in name.split(".") if word.isdigit())] = name
    found: list[str] = []
    for form, members in families.items():
        wanted = [indices for indices, name in members.items() if name in chosen]
        if not wanted:
            continue
        patterns = [".".join(_filled(form, words)) for words in cover(wanted, list(members), ".".join(form) in loops)]
        inner = {members[indices] for indices in wanted}
        others = [name for name in known if name not in inner and name not in chosen and name not in members.values()]
        loose = any(fnmatchcase(name, pattern.replace(":", "*")) for pattern in patterns if "*" in pattern for name in others)
        found += sorted(inner) if loose else patterns
    return found


def _filled(form: Sequence[str], words: Sequence[str]) -> Iterator[str]:
    rest = iter(words)
    return (next(rest) if word == "*" else word for word in form)


def cover(wanted: Collection[Indices], known: Collection[Indices], sliced: bool) -> list[tuple[str, ...]]:
    """Find patterns over index tuples that match exactly the ``wanted`` ones among the ``known`` ones.

    A pattern has ``*``, a slice or an index at each position. Slices are used only if ``sliced``.
    """
    chosen = set(wanted)
    if chosen == set(known):
        return [("*",) * len(next(iter(known)))]
    firsts = sorted({indices[0] for indices in known})
    rests = {first: [indices[1:] for indices in known if indices[0] == first] for first in firsts}
    groups: dict[tuple[tuple[str, ...], ...], list[int]] = {}
    for first in firsts:
        inner = [rest for rest in rests[first] if (first, *rest) in chosen]
        if inner:
            groups.setdefault(tuple(cover(inner, rests[first], sliced)), []).append(first)
    return [(word, *rest) for tails, mine in groups.items() for word in selectors(mine, firsts, sliced) for rest in tails]


def selectors(mine: Sequence[int], known: Sequence[int], sliced: bool) -> list[str]:
    """Find selectors (``*``, index, slice if ``sliced``) that match just ``mine`` of ``known`` indices."""
    if list(mine) == list(known):
        return ["*"]
    if not sliced:
        return [str(index) for index in mine]
    found, start = [], 0
    for end in range(1, len(mine) + 1):
        if end == len(mine) or mine[end] != mine[end - 1] + 1:
            low, high = mine[start], mine[end - 1]
            found.append(str(low) if low == high else f"{low if low > known[0] else ''}:{high + 1 if high < known[-1] else ''}")
            start = end
    return found
