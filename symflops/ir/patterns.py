"""Module paths in which the indices of repeats are expressions, and patterns over them: globs that may select iterations.

``*`` matches anything, dots included. At the index of a repeat, a component of a pattern may be a number (``blocks.2.*``), a
number from the end (``blocks.-1.*``) or a slice (``blocks.::4.*``, ``blocks.:2.*``). The repeat is then split into parts,
each of which matches entirely or not at all. Matching is linear in the length of a path, however many stars a pattern has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from itertools import accumulate

from sympy import Expr, Symbol

from symflops.support.findings import Diagnostic, SpecError


@dataclass(frozen=True, slots=True)
class Path:
    """A module path: texts, and index expressions of loops, e.g. ``('layers.', i, '.mlp')``."""

    parts: tuple[str | Expr, ...]

    def __str__(self) -> str:
        """The path as text, with ``*`` for each loop index."""
        if len(self.parts) == 1 and isinstance(self.parts[0], str):
            return self.parts[0]
        return "".join(part if isinstance(part, str) else str(part) if part.is_Integer else "*" for part in self.parts)

    def join(self, name: str) -> Path:
        """The path of the submodule ``name`` of this module; an empty name returns this path."""
        return self.extend((name,)) if name else self

    def extend(self, parts: tuple[str | Expr, ...]) -> Path:
        """This path, a dot, and then ``parts``; texts that come next to each other are joined."""
        if len(self.parts) <= 1 and all(isinstance(part, str) for part in (*self.parts, *parts)):
            text = "".join((*self.parts, "." if self.parts and parts else "", *parts))
            return Path((text,) if text else ())
        merged: list[str | Expr] = []
        glue: tuple[str, ...] = (".",) if self.parts and parts else ()
        for part in (*self.parts, *glue, *parts):
            if isinstance(part, str) and merged and isinstance(merged[-1], str):
                merged[-1] += part
            elif part != "":
                merged.append(part)
        return Path(tuple(merged))

    @property
    def parent(self) -> Path:
        """The path without its last component."""
        parts = list(self.parts)
        while parts:
            last = parts.pop()
            if isinstance(last, str) and "." in last:
                head = last.rpartition(".")[0]
                return Path((*parts, head) if head else tuple(parts))
        return Path(())

    def below(self, module: Path) -> tuple[str | Expr, ...] | None:
        """The parts of this path behind those of ``module``; None if it is neither ``module`` nor inside of it."""
        count, last = len(module.parts), module.parts[-1]
        head, rest = self.parts[: count - 1], self.parts[count - 1 :]
        if head != module.parts[:-1] or not rest:
            return None
        if rest[0] == last:
            rest = rest[1:]
        elif isinstance(last, str) and str(rest[0]).startswith(f"{last}."):
            rest = (str(rest[0]).removeprefix(last), *rest[1:])
        else:
            return None
        return (str(rest[0])[1:], *rest[1:]) if rest else ()

    @property
    def depth(self) -> int:
        """Number of components, as separated by dots; 0 for the root."""
        return str(self).count(".") + 1 if self.parts else 0

    @property
    def indices(self) -> frozenset[Symbol]:
        """The symbols of loop indices that occur in the path."""
        return frozenset().union(*(part.free_symbols for part in self.parts if not isinstance(part, str)))


@dataclass(frozen=True, slots=True)
class Visit:
    """``caller`` calls ``module``, which is the child of another module that does not run."""

    caller: Path
    module: Path


def prefixes(path: Path) -> Iterator[Path]:
    """Yield the module paths that lead to ``path``, shortest first and ``path`` last."""
    if len(path.parts) == 1 and isinstance(path.parts[0], str):  # the case of every path in an unrolled structure
        heads = accumulate(path.parts[0].split("."), "{}.{}".format)
        return (Path((head,)) for head in heads if head)
    chain = [path]
    while chain[-1].parent.parts:
        chain.append(chain[-1].parent)
    return reversed(chain)


def running(path: Path, visits: Sequence[Visit]) -> Iterator[Path]:
    """Yield the modules that are running when ``path`` is called, outermost first and ``path`` last.

    Without ``visits`` these are its parents. A visit replaces the parents of its module by its caller.
    """
    if not visits:
        yield from prefixes(path)
        return
    start = 1
    for end, module in [*((visit.caller, visit.module) for visit in visits), (path, path)]:
        yield from (prefix for prefix in prefixes(end) if prefix.depth >= start)
        start = module.depth


@lru_cache(maxsize=1 << 14)
def running_texts(path: Path, visits: tuple[Visit, ...]) -> tuple[str, ...]:
    """The result of :func:`running` as a tuple of texts."""
    return tuple(map(str, running(path, visits)))


SELECTOR = re.compile(r"-?\d+|-?\d*:-?\d*(:\d+)?")
MARK = "\x00"
MOST_SPELLED = 1_000
"""Limit on the copies of one pattern, with selectors replaced by indices of unrolled iterations."""


def is_selector(component: str) -> bool:
    """Whether a component of a pattern is a number, or a slice such as ``0:4``: it selects iterations."""
    return component not in (":", "::") and SELECTOR.fullmatch(component) is not None


def selectors(patterns: Iterable[str], module_list: Path) -> tuple[str, ...]:
    """The numbers and slices in ``patterns`` that select indices of ``module_list``, without duplicates."""
    text = marked(module_list, {})
    found = dict.fromkeys(
        component
        for components in (pattern.split(".") for pattern in patterns)
        for position, component in enumerate(components)
        if is_selector(component) and _leading(".".join(components[:position])).fullmatch(text)
    )
    return tuple(found)


def marked(path: Path, chosen: Mapping[Expr, frozenset[str]]) -> str:
    """A path as text for matching: each loop index becomes the list of numbers and slices that select it.

    ``chosen`` has these numbers and slices by index. A path without loop indices is its own text.
    """
    return "".join(
        str(part)
        if isinstance(part, str) or part.is_Integer
        else MARK + "".join(f"<{name}>" for name in sorted(chosen.get(part, ()))) + MARK
        for part in path.parts
    )


def any_matches(patterns: Iterable[str], path: Path, chosen: Mapping[Expr, frozenset[str]]) -> bool:
    """Whether one of ``patterns`` matches all of ``path``; ``chosen`` is that of :func:`marked`."""
    text = marked(path, chosen)
    return any(_compiled(pattern).fullmatch(text) for pattern in patterns)


def any_fits(patterns: Sequence[str], marks: Iterable[str]) -> bool:
    """Whether one of ``patterns`` matches all of one of ``marks``, which are texts of :func:`marked`."""
    return any(_compiled(pattern).fullmatch(mark) for pattern in patterns for mark in marks)


@dataclass(frozen=True, slots=True)
class Glob:
    """A compiled pattern with stars: a regular expression for the text before each star, and for the end.

    Matching takes the first occurrence of each, so the time is linear in the text whatever the number of stars.
    """

    pieces: tuple[re.Pattern[str], ...]
    end: re.Pattern[str]

    def fullmatch(self, text: str) -> bool:
        """Whether the pattern matches all of ``text``."""
        if not self.pieces:
            return self.end.fullmatch(text) is not None
        found = self.pieces[0].match(text)
        for piece in self.pieces[1:]:
            found = found and piece.search(text, found.end())
        return found is not None and self.end.search(text, found.end()) is not None


def _glob(regexes: Iterable[str | None]) -> Glob:
    """Build a :class:`Glob` from regular expressions to be joined, with None for each star."""
    pieces = [""]
    for regex in regexes:
        pieces[-1:] = [pieces[-1], ""] if regex is None else [pieces[-1] + regex]
    *first, last = pieces
    return Glob(tuple(re.compile(piece, re.DOTALL) for piece in first), re.compile(f"(?:{last})\\Z", re.DOTALL))


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> Glob:
    return _glob(_joined(_component(component) for component in (pattern.split(".") if pattern else [])))


@lru_cache(maxsize=4096)
def _leading(pattern: str) -> Glob:
    """Compile the part of a pattern before an index; a number or slice in it matches any loop index too."""
    components = pattern.split(".") if pattern else []
    loose: Iterable[list[str | None]] = (
        [f"(?:{_component(one)[0]}|{MARK}{MARK})"] if is_selector(one) else _component(one) for one in components
    )
    return _glob(_joined(loose))


def _joined(components: Iterable[list[str | None]]) -> Iterator[str | None]:
    """Join the compiled components of a pattern by dots; None stands for a star."""
    for position, component in enumerate(components):
        yield from [r"\."] * (position > 0)
        yield from component


def _component(component: str) -> list[str | None]:
    """Translate one component of a pattern to regular expressions to be joined, with None for each star."""
    if is_selector(component):
        chosen = f"{MARK}[^{MARK}.]*<{re.escape(component)}>[^{MARK}.]*{MARK}"
        return [f"(?:{re.escape(component)}|{chosen})"]
    pieces = re.findall(r"\[!?\]?[^\]]*\]|.", component, re.DOTALL)
    return [None if piece == "*" else translate(piece).removeprefix("(?s:").rpartition(")")[0] for piece in pieces]


def spelled(pattern: str, listed: Sequence[tuple[Path, int, frozenset[str]]]) -> tuple[str, ...]:
    """Expand a pattern for iterations that were unrolled.

    Args:
        pattern: The pattern.
        listed: Path of the module list, index, and the numbers and slices that select it, for each unrolled iteration.

    Returns:
        The pattern, and copies with numbers and slices replaced by the indices that they select.

    Raises:
        SpecError: there are more than ``MOST_SPELLED`` patterns.
    """
    found = {pattern: None}
    lists: dict[Path, list[tuple[int, frozenset[str]]]] = {}
    for path, index, chosen in listed if cutting([pattern]) else ():
        lists.setdefault(path, []).append((index, chosen))
    waiting = [pattern]
    while waiting and lists:
        components = waiting.pop().split(".")
        for position in [position for position, component in enumerate(components) if is_selector(component)]:
            head, component, tail = components[:position], components[position], components[position + 1 :]
            for path, turns in lists.items():
                if not _leading(".".join(head)).fullmatch(marked(path, {})):
                    continue
                indices = (str(index) for index, chosen in turns if component in chosen)
                copies = (".".join([*head, index, *tail]) for index in indices if index != component)
                new = [copy for copy in copies if copy not in found]
                found.update(dict.fromkeys(new))
                waiting += new
                if len(found) > MOST_SPELLED:
                    message = f"'{pattern}' stands for more than {MOST_SPELLED:,} patterns, one for each choice of iterations"
                    raise SpecError([Diagnostic("regime-too-large", message, None, "a star matches all iterations at once")])
    return tuple(found)


def cutting(patterns: Iterable[str]) -> tuple[str, ...]:
    """Those ``patterns`` that contain a number or a slice, so that a repeat may be cut into segments."""
    return tuple(pattern for pattern in patterns if any(is_selector(component) for component in pattern.split(".")))
