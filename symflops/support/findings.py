"""Diagnostics about a user's file: a place, a code, a message and a hint.

A stage collects every problem of a file in a :class:`Reporter` and stops once, so that one run reports all problems.
A finding is an object; ``render`` formats it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from symflops.support.errors import SymflopsError, did_you_mean

COLOURS = {"error": "31", "warning": "33"}  # of a terminal, by severity
PARTS = {"bold": "1", "frame": "1;34"}  # the message; line numbers, bars and secondary marks
LONGEST_LINE, LEAD = 400, 60
"""Characters of a source line in an excerpt, and how many of these precede the first mark."""
Paint = Callable[[str, str], str]  # a part (``head``, ``bold`` or ``frame``) and its text -> the text in its colour


@dataclass(frozen=True, slots=True)
class Source:
    """A text written by a user.

    Attributes:
        path: Its name in messages.
        text: The text.
        file: The file that it is from; empty if ``path`` is that, or if it is from no file.
    """

    path: str
    text: str = field(repr=False)
    file: str = field(default="", repr=False, compare=False)

    @property
    def shown(self) -> str:
        """The name to print: ``path`` if it exists or there is no ``file``, else the path of ``file``."""
        if not self.file or Path(self.path).exists():
            return self.path
        file, here = Path(self.file).absolute(), Path.cwd()
        return str(file.relative_to(here) if file.is_relative_to(here) else file)

    def line(self, number: int) -> str:
        """The text of line ``number``, counted from 1; empty after the last line."""
        lines = self.text.split("\n")
        return lines[number - 1].rstrip("\r") if 0 < number <= len(lines) else ""


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a source: one line, from ``column`` up to but not including ``end``; all count from 1."""

    source: Source
    line: int
    column: int
    end: int

    @property
    def text(self) -> str:
        """The text of the source at this place."""
        return self.source.line(self.line)[self.column - 1 : self.end - 1]

    def part(self, start: int, end: int) -> Span:
        """The place of characters ``start`` up to but not including ``end`` of this one, counted from 0."""
        begin = self.column + max(0, start)
        return Span(self.source, self.line, begin, max(begin + 1, min(self.column + end, self.end)))


@dataclass(frozen=True, slots=True)
class Label:
    """A place of a finding with a short text to print below it."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: an error or a warning about a place in a file.

    Attributes:
        code: Its kind, as :mod:`symflops.support.findings` explains.
        message: The fact.
        span: The place; None if there is none.
        hint: A proposal for a fix; empty if none.
        severity: ``error`` or ``warning``.
        label: Text to print below the place.
        also: Other places that explain the finding, such as the other side of a mismatch.
        note: A further fact that has no place; a table has lines of its own.
    """

    code: str
    message: str
    span: Span | None = None
    hint: str = ""
    severity: str = "error"
    label: str = ""
    also: tuple[Label, ...] = ()
    note: str = ""

    def render(self, colour: bool = False) -> str:
        """The finding as text for a terminal, with the source lines it is about; ``colour`` adds colours."""
        paint = painter(self.severity, colour)
        head = f"{paint('head', f'{self.severity}[{self.code}]')}: {paint('bold', self.message)}"
        span = self.span
        labels = [*((Label(span, self.label),) if span else ()), *self.also]
        gap = " " * max([2, *(len(str(label.span.line)) for label in labels)])
        below = (("note", self.note), ("hint", self.hint))
        lead = f"\n{gap}   "  # of the further lines of a note
        ends = [f"{gap} {paint('frame', '=')} {name}: {text.replace(chr(10), lead)}" for name, text in below if text]
        if span is None:
            return "\n".join([head, *ends])
        lines = [f"{span.source.shown}:{span.line}:{span.column}: {head}"]
        for path in dict.fromkeys(label.span.source.path for label in labels):
            here = [label for label in labels if label.span.source.path == path]
            if path != span.source.path:
                first = here[0].span
                lines.append(f"{gap} {paint('frame', ':::')} {first.source.shown}:{first.line}:{first.column}")
            lines += excerpt(here, span, gap, paint)
        return "\n".join([*lines, *ends])


def excerpt(labels: Sequence[Label], primary: Span, gap: str, paint: Paint) -> list[str]:
    """Lines that show the places of ``labels``, all of one file, with marks and texts below.

    Args:
        labels: The places.
        primary: The place of the finding, marked with ``^``; the others are marked with ``-``.
        gap: Spaces as wide as the line numbers.
        paint: Function that colours a text.
    """
    bar = paint("frame", "|")
    lines = [f"{gap} {bar}"]
    last = 0
    for number in sorted({label.span.line for label in labels}):
        here = [label for label in labels if label.span.line == number]
        source, cut = window(labels[0].span.source.line(number), min(label.span.column for label in here))
        if last and number > last + 1:
            lines.append(paint("frame", "..."))
        last = number
        lines.append(f"{paint('frame', f'{number:>{len(gap)}} |')} {source}")
        for label in sorted(here, key=lambda label: (label.span is not primary, label.span.column)):
            part, mark = ("head", "^") if label.span is primary else ("frame", "-")
            first, end = (min(place - cut, len(source) + 1) for place in (label.span.column, label.span.end))
            seen = replace(label.span, column=first, end=end)
            marked = f"{caret(source, seen, mark)} {label.text}".rstrip()
            lines.append(f"{gap} {bar} {paint(part, marked)}")
    return lines


def window(source: str, column: int) -> tuple[str, int]:
    """Cut a long source line to the part around ``column``.

    Returns:
        The part, and the number to subtract from columns of the line for columns of the part.
    """
    if len(source) <= LONGEST_LINE:
        return source, 0
    start = max(0, column - LEAD)
    head, tail = "..." if start else "", "..." if start + LONGEST_LINE < len(source) else ""
    return f"{head}{source[start : start + LONGEST_LINE]}{tail}", start - len(head)


def painter(severity: str, colour: bool) -> Paint:
    """A function (part, text) -> text that adds terminal colours; without ``colour``, it adds none.

    ``severity`` decides the colour of the part ``head``.
    """
    parts = {**PARTS, "head": f"1;{COLOURS.get(severity, '36')}"}
    return lambda part, text: f"\x1b[{parts[part]}m{text}\x1b[0m" if colour else text


def caret(source: str, span: Span, mark: str = "^") -> str:
    """The line to print below a ``source`` line: ``mark`` under each character of ``span``, tabs kept."""
    before = "".join("\t" if char == "\t" else " " for char in source[: span.column - 1])
    return before + " " * (span.column - 1 - len(before)) + mark * max(1, span.end - span.column)


class SpecError(SymflopsError):
    """The error for a file with mistakes, such as a spec; ``diagnostics`` has every finding."""

    exit_code = 1

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(diagnostic.render() for diagnostic in self.diagnostics))

    def __reduce__(self) -> tuple[type[SpecError], tuple[tuple[Diagnostic, ...]]]:
        """Pickle the diagnostics, so that the error passes from one process to another."""
        return type(self), (self.diagnostics,)


PAGE = Path(__file__).with_name("codes.md")
MOST_FINDINGS = 300


class Reporter:
    """Collects the findings of one stage; :meth:`check` raises if any is an error."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._seen: set[tuple[str, str, str, int, int]] = set()

    def add(self, diagnostic: Diagnostic) -> None:
        """Add a finding unless an equal one exists, so that a block called twice reports a mistake once."""
        key = (diagnostic.code, diagnostic.message, *_place(diagnostic))
        if key not in self._seen:
            self._seen.add(key)
            self.diagnostics.append(diagnostic)

    def extend(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Add findings, each as :meth:`add` does."""
        for diagnostic in diagnostics:
            self.add(diagnostic)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Context that ends early at a :class:`SpecError`, and adds its findings instead of raising it."""
        try:
            yield
        except SpecError as error:
            self.extend(error.diagnostics)

    def error(self, code: str, message: str, span: Span | None = None, hint: str = "", **more: Any) -> None:
        """Report an error at ``span``; ``more`` are further fields of :class:`Diagnostic`."""
        self.add(Diagnostic(code, message, span, hint, **more))

    def restore(self, diagnostics: list[Diagnostic]) -> None:
        """Forget the findings added since ``diagnostics`` was copied, before a second attempt."""
        self.diagnostics = list(diagnostics)
        self._seen = {(item.code, item.message, *_place(item)) for item in diagnostics}

    @property
    def full(self) -> bool:
        """Whether there are ``MOST_FINDINGS`` findings, so that a stage may stop."""
        return len(self.diagnostics) >= MOST_FINDINGS

    @property
    def failed(self) -> bool:
        """Whether one of the findings is an error."""
        return any(diagnostic.severity == "error" for diagnostic in self.diagnostics)

    def check(self) -> None:
        """Raise if one of the findings is an error.

        Raises:
            SpecError: with all errors, in the order of the file.
        """
        errors = [diagnostic for diagnostic in self.diagnostics if diagnostic.severity == "error"]
        if errors:
            raise SpecError(in_order(errors))


def in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The findings sorted by file, line and column."""
    return sorted(diagnostics, key=_place)


def _place(diagnostic: Diagnostic) -> tuple[str, int, int]:
    span = diagnostic.span
    return (span.source.path, span.line, span.column) if span else ("", 0, 0)


@lru_cache(maxsize=1)
def kinds() -> dict[str, str]:
    """Code of each kind of finding -> its explanation in the documentation, on one line."""
    _, *sections = PAGE.read_text("utf-8").split("\n## ")
    parts = (section.partition("\n") for section in sections)
    return {code.strip(): " ".join(text.split()) for code, _, text in parts}


__all__ = [
    "Diagnostic",
    "Label",
    "Reporter",
    "Source",
    "Span",
    "SpecError",
    "SymflopsError",
    "caret",
    "did_you_mean",
    "in_order",
]
