"""Reads and evaluates printed LaTeX math, every notation of pages, by a walk over its tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

TOKEN = re.compile(
    r"\s+|\\(?:,|thin(?:space)?\b|cdot\b|qquad\b|nolimits(?![a-z]))|\{\}|(?P<number>\d+)|\\text\{(?P<text>[^{}]*)\}"
    r"|\\operatorname\{(?P<call>\w+)\}|\\(?P<least>min|max)\b"
    r"|(?P<letter>(?:\\(?:bar|overline|hat|math(?:it|rm))\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
    r"|\\(?!frac|[lr]floor|[lr]ceil|[lr]vert|[gl]e\b|ne\b|(?:not)?in\b|neg\b|bmod|sum|varnothing)[A-Za-z]+|[A-Za-z])"
    r"(?:_(?:\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}|[A-Za-z0-9]))?)"
    r"|(?P<mark>\\(?:frac|[lr]floor|[lr]ceil|[lr]vert|[gl]e\b|ne\b|(?:not)?in\b|neg\b|bmod|sum|varnothing)|[-+/()\[\]{}^=&,_<>])"
)
CALLS = {"sum": sum, "count": lambda items, value: list(items).count(value)}
COMPARED = {
    r"\ge": lambda a, b: a >= b, "=": lambda a, b: a == b, r"\ne": lambda a, b: a != b, r"\in": lambda a, b: a in (b or ()),
    r"\le": lambda a, b: a <= b, "<": lambda a, b: a < b, ">": lambda a, b: a > b, r"\notin": lambda a, b: a not in (b or ()),
}  # fmt: skip
STARTS = ("(", "[", "{", r"\frac", r"\lfloor", r"\lceil", r"\lvert", r"\sum")
SUBSCRIPTED = re.compile(r"(.*?)_\{(.*)\}", re.DOTALL)


def read(text: str, values: Mapping[str, Any]) -> Any:
    """The value of a printed formula; letters are looked up as they are printed."""
    reader = Reader(text, values)
    value = reader.sum()
    assert reader.peek()[0] == "end", f"left over: {reader.tokens[reader.place :]} of {text}"
    return value


def printed(value: Any) -> Any:
    """A value with its words as LaTeX has them: without underscores."""
    if isinstance(value, (list, tuple)):
        return tuple(map(printed, value))
    return re.sub(r"[^A-Za-z0-9 .,:/-]", "-", value) if isinstance(value, str) else value


def as_number(value: Any) -> Any:
    """A flag as 0 or 1, null as 0."""
    return 0 if value is None else int(value) if isinstance(value, bool) else value


class Reader:
    def __init__(self, text: str, values: Mapping[str, Any]) -> None:
        self.tokens: list[tuple[str, str]] = []
        place = 0
        while place < len(text):
            match = TOKEN.match(text, place)
            assert match, f"unread: {text[place:]!r}"
            if match.lastgroup:
                self.tokens.append((match.lastgroup, match[match.lastgroup]))
            place = match.end()
        self.values = {re.sub(r"\s+", "", name): printed(value) for name, value in values.items()}
        self.place = 0

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.place] if self.place < len(self.tokens) else ("end", "")

    def take(self, text: str | None = None) -> str:
        found = self.peek()[1]
        assert text is None or found == text, f"{text!r} expected, not {found!r}: {self.tokens[: self.place + 1]}"
        self.place += 1
        return found

    def next_is(self, *texts: str) -> bool:
        kind, text = self.peek()
        return kind == "mark" and text in texts

    def sum(self) -> Any:
        negative = self.next_is("-") and bool(self.take())
        total = -self.product() if negative else self.product()
        while self.next_is("+", "-"):
            total = total + self.product() if self.take() == "+" else total - self.product()
        return total

    def product(self) -> Any:
        if self.next_is("-"):
            self.take()
            return -self.product()
        value = self.power()
        while self.peek()[0] in ("number", "letter", "call", "least") or self.next_is(*STARTS):
            value = value * self.power()
        if self.next_is(r"\bmod"):
            self.take()
            value = value % self.power()
        return value

    def power(self) -> Any:
        value = self.atom()
        while self.next_is("^", "_"):
            kind = self.take()
            self.take("{")
            if kind == "_":
                place = self.group("}")
                value = as_number(value[place] if isinstance(value, (list, tuple)) else value)
            elif self.next_is("+"):
                self.take()
                self.take("}")
                value = max(0, value)
            else:
                value = value ** self.group("}")
        return value

    def group(self, close: str) -> Any:
        value = self.sum()
        self.take(close)
        return value

    def atom(self) -> Any:
        kind, text = self.peek()
        self.take()
        if kind == "number":
            return int(text)
        if kind == "text":
            return text
        if kind == "letter":
            return self.letter(text)
        if kind in ("call", "least"):
            self.take("(")
            return (CALLS[text] if kind == "call" else min if text == "min" else max)(*self.arguments())
        return self.marked(text)

    def letter(self, text: str) -> Any:
        text = re.sub(r"\s+", "", text)
        if text in self.values:
            return as_number(self.values[text])
        name, inner = SUBSCRIPTED.fullmatch(text).groups()  # an entry of a list
        found = self.values[name]
        return as_number(found[read(inner, self.values)] if isinstance(found, (list, tuple)) else found)

    def arguments(self) -> list[Any]:
        found = [self.sum()]
        while self.next_is(","):
            self.take()
            found.append(self.sum())
        self.take(")")
        return found

    def marked(self, text: str) -> Any:
        if text in ("(", "{"):
            return self.group(")" if text == "(" else "}")
        if text == r"\frac":
            self.take("{")
            above = self.group("}")
            self.take("{")
            return Fraction(above) / self.group("}")
        if text in (r"\lfloor", r"\lceil"):
            above = self.product()
            below = self.power() if self.next_is("/") and self.take() else 1
            self.take(text.replace(r"\l", r"\r"))
            return above // below if text == r"\lfloor" else -(-above // below)
        if text == r"\lvert":
            value = self.sum()
            self.take(r"\rvert")
            return len(value)
        return self.iterated() if text == r"\sum" else self.bracket(text)

    def bracket(self, text: str) -> int:
        assert text == "[", f"no formula starts with {text!r}"
        kind, name = self.peek()
        following = self.tokens[self.place + 1 : self.place + 3]
        if kind == "letter" and following[1:] == [("mark", r"\varnothing")]:
            self.place += 3
            self.take("]")
            return int((self.values[name] is None) == (following[0][1] == "="))
        if self.next_is(r"\neg"):
            self.take()
            return int(not self.group("]"))
        value = self.sum()
        if self.next_is(*COMPARED):
            compared = COMPARED[self.take()]
            value = compared(value, self.sum())
        self.take("]")
        return int(value)

    def iterated(self) -> Any:
        self.take("_")
        self.take("{")
        index = self.take()
        self.take("=")
        low = self.group("}")
        self.take("^")
        self.take("{")
        high = self.group("}")
        before, start, total = self.values.get(index), self.place, 0
        for place in range(low, high + 1):
            self.values[index], self.place = place, start
            total = total + self.product()
        if low > high:  # what is not added is read, too
            self.skip()
        self.values[index] = before
        return total

    def skip(self) -> None:
        """Go to the end of a product."""
        depth = 0
        while self.peek()[0] != "end" and not (depth == 0 and self.next_is("+", "-", ",", ")", "]", "}")):
            depth += {"[": 1, "(": 1, "{": 1, "]": -1, ")": -1, "}": -1}.get(self.take(), 0)
