"""Line breaking of LaTeX math: width of a text, possible breaks, and rows of an alignment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

LIMITS = re.compile(r"\\sum_\{([^{}]*)\}\^\{((?:[^{}]|\{[^{}]*\})*)\}")
NEST = {"(": 1, "[": 1, r"\lfloor": 1, r"\lceil": 1, ")": -1, "]": -1, r"\rfloor": -1, r"\rceil": -1}
LINE = 375.0


@lru_cache(maxsize=1 << 14)
def width(text: str) -> float:
    """Return the approximate width of the LaTeX formula ``text`` in print, in points."""
    text = LIMITS.sub(lambda found: "x" * (3 + round(0.7 * len(re.sub("[ {}^]", "", max(*found.groups(), key=len))))), text)
    small = sum(len(part) for part in re.findall(r"[_^]\{([A-Za-z0-9+]*)\}", text))
    thin = len(re.findall(r"\\,|\\thin", text))
    plain = re.sub(r"\\(mathit|mathrm|operatorname|text|frac|thinspace)\b|\\(?=(min|max|bmod)\b)|[{}_^&]|\\,", "", text)
    plain = re.sub(r"\\[A-Za-z]+", "M", plain)
    spaced = len(re.findall(r"[-+/=M]", plain))
    wide = len(re.findall("[A-Z]", plain))
    return 5.4 * len(plain.replace(" ", "")) + 2.4 * wide + 6.0 * spaced + 1.7 * thin - 1.6 * small


def fold(text: str, line: float = LINE) -> list[str]:
    """Break ``text`` into lines of at most ``line`` points.

    Lines break before plus and minus; inside brackets only if their content is too wide, between factors only if nothing else
    helps.
    """
    places = list(breaks(text))
    cuts = [0, len(text)]
    for depth in sorted({depth for _, depth in places}):
        for start, end in list(pairwise(cuts)):
            if width(text[start:end]) > line:
                cuts += [place for place, nested in places if nested == depth and start < place < end]
        cuts.sort()
    pieces: list[str] = []
    for piece in (text[start:end].strip() for start, end in pairwise(cuts)):
        pieces += [piece] if width(piece) <= line else split(piece, re.compile(" "))
    lines: list[str] = []
    for piece in pieces:
        if lines and width(f"{lines[-1]} {piece}") <= line:
            lines[-1] += f" {piece}"
        else:
            lines.append(piece)
    return lines


def breaks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the possible line breaks before a plus or minus: (position, number of brackets around it)."""
    braces = nested = 0
    for found in re.finditer(r"[{}()\[\]]|\\[lr](?:floor|ceil)| (?=[+-] )", text):
        braces += {"{": 1, "}": -1}.get(found.group(), 0)
        if braces == 0:
            nested += NEST.get(found.group(), 0)
            if found.group() == " " and found.start():
                yield found.start(), nested


def split(text: str, at: re.Pattern[str]) -> list[str]:
    """Split ``text`` where ``at`` matches outside braces."""
    cuts, depth = [0], 0
    for position, character in enumerate(text):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth == 0 and position and at.match(text, position):
            cuts.append(position)
    return [text[start:end].strip() for start, end in zip(cuts, [*cuts[1:], len(text)], strict=True)]
