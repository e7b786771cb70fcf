"""Findings about something that a user wrote: a place, a code, a message and a hint.

A stage collects every problem of a file in a :class:`Reporter` and stops once, so that an author sees all of them in one
run. A finding is an object; how it looks is decided when it is rendered.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from symflops.ground.errors import SymflopsError, did_you_mean


@dataclass(frozen=True, slots=True)
class Source:
    """A text that a user wrote, and what to call it in messages."""

    path: str
    text: str = field(repr=False)

    def line(self, number: int) -> str:
        """The text of line ``number`` (from 1), or nothing past the end."""
        lines = self.text.split("\n")
        return lines[number - 1].rstrip("\r") if 0 < number <= len(lines) else ""


@dataclass(frozen=True, slots=True)
class Span:
    """Columns ``column`` up to, not including, ``end`` of one line; both count from 1."""

    source: Source
    line: int
    column: int
    end: int

    def part(self, start: int, end: int) -> Span:
        """The piece from ``start`` to ``end``, counted from this span's own beginning."""
        begin = self.column + max(0, start)
        return Span(self.source, self.line, begin, max(begin + 1, min(self.column + end, self.end)))


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: ``code`` names its kind, ``hint`` alone proposes a fix."""

    code: str
    message: str
    span: Span | None = None
    hint: str = ""
    severity: str = "error"

    def render(self) -> str:
        """The finding as a person reads it in a terminal."""
        head = f"{self.severity}[{self.code}]: {self.message}"
        if self.span is None:
            return head + (f"\n   = hint: {self.hint}" if self.hint else "")
        span = self.span
        number = str(span.line)
        gap = " " * max(len(number), 2)
        source = span.source.line(span.line)
        lines = [
            f"{span.source.path}:{span.line}:{span.column}: {head}",
            f"{gap} |",
            f"{number:>{len(gap)}} | {source}",
            f"{gap} | {caret(source, span)}",
        ]
        if self.hint:
            lines.append(f"{gap} = hint: {self.hint}")
        return "\n".join(lines)


def caret(source: str, span: Span) -> str:
    """The line of carets under ``span``; tabs of the source line are kept, so the carets stand where they should."""
    before = "".join("\t" if char == "\t" else " " for char in source[: span.column - 1])
    return before + " " * (span.column - 1 - len(before)) + "^" * max(1, span.end - span.column)


class SpecError(SymflopsError):
    """A spec is not valid. ``diagnostics`` holds every finding."""

    exit_code = 1

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(diagnostic.render() for diagnostic in self.diagnostics))

    def __reduce__(self) -> tuple[type[SpecError], tuple[tuple[Diagnostic, ...]]]:
        """Pickles as what it was made of, so that it passes from a process to another."""
        return type(self), (self.diagnostics,)


class Reporter:
    """Collects the findings of one stage; :meth:`check` stops it when there is an error among them."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._seen: set[tuple[str, str, str, int, int]] = set()

    def add(self, diagnostic: Diagnostic) -> None:
        """Keep a finding, once: a block that is called twice says its mistake a single time."""
        key = (diagnostic.code, diagnostic.message, *_place(diagnostic))
        if key not in self._seen:
            self._seen.add(key)
            self.diagnostics.append(diagnostic)

    def error(self, code: str, message: str, span: Span | None = None, hint: str = "") -> None:
        """Report that what stands at ``span`` is wrong."""
        self.add(Diagnostic(code, message, span, hint))

    def note(self, code: str, message: str, span: Span | None = None, hint: str = "") -> None:
        """Report something that is allowed and worth knowing."""
        self.add(Diagnostic(code, message, span, hint, "note"))

    def restore(self, diagnostics: list[Diagnostic]) -> None:
        """Go back to what was known earlier, before a second attempt."""
        self.diagnostics = list(diagnostics)
        self._seen = {(item.code, item.message, *_place(item)) for item in diagnostics}

    @property
    def failed(self) -> bool:
        """Whether an error was reported."""
        return any(diagnostic.severity == "error" for diagnostic in self.diagnostics)

    def check(self) -> None:
        """Raise :class:`SpecError` with the errors, in the order of the file, if there are any."""
        errors = [diagnostic for diagnostic in self.diagnostics if diagnostic.severity == "error"]
        if errors:
            raise SpecError(sorted(errors, key=_place))


def _place(diagnostic: Diagnostic) -> tuple[str, int, int]:
    span = diagnostic.span
    return (span.source.path, span.line, span.column) if span else ("", 0, 0)


__all__ = ["Diagnostic", "Reporter", "Source", "Span", "SpecError", "SymflopsError", "caret", "did_you_mean"]
