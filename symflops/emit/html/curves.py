"""Curves over a length as SVG, with logarithmic axes and a dashed line at each mark."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import ceil, floor, log2, log10

from symflops.emit.page.tree import Plot

WIDTH, HEIGHT = 720.0, 340.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 36.0, 40.0, 46.0
PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")
MANY = 8
"""Number of grid lines up to which every line is labelled."""


def picture(plot: Plot) -> str:
    """Draw a plot as SVG; its curves have the classes ``curve-0``, ``curve-1`` ..."""
    return "\n".join((*_Picture(plot).elements(), "</svg>"))


class _Picture:
    def __init__(self, plot: Plot) -> None:
        self.plot = plot
        lengths = [length for _, points in plot.lines for length, _ in points]
        values = [value for _, points in plot.lines for _, value in points if value]
        self.low, self.high = log2(min(lengths)), max(log2(max(lengths)), log2(min(lengths)) + 1)
        self.least = floor(log10(min(values, default=Fraction(1))))
        self.most = max(ceil(log10(max(values, default=Fraction(1)))), self.least + 1)

    def x(self, length: int) -> float:
        """Return the horizontal position of a length, in pixels."""
        return LEFT + (log2(length) - self.low) / (self.high - self.low) * (WIDTH - LEFT - RIGHT)

    def y(self, value: Fraction) -> float:
        """Return the vertical position of a value, in pixels; 0 lies on the axis."""
        share = (log10(value) - self.least) / (self.most - self.least) if value else 0.0
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    def elements(self) -> Iterator[str]:
        """Yield the SVG elements of the plot in drawing order."""
        plot = self.plot
        title = html.escape(plot.title)
        yield (
            f'<svg class="curves" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" width="{WIDTH:.0f}" height="{HEIGHT:.0f}" role="img" '
            f'aria-labelledby="{plot.id}-title">\n<title id="{plot.id}-title">{title}</title>'
        )
        yield from self.grid()
        for number, (name, points) in enumerate(plot.lines):
            path = " ".join(f"{self.x(length):.1f},{self.y(value):.1f}" for length, value in points if value)
            yield f'<polyline class="curve-{number}" points="{path}"/>'
            at = LEFT + number * (WIDTH - LEFT - RIGHT) / max(2, len(plot.lines))
            yield f'<path class="curve-{number}" d="M{at:.1f} 18h22"/>'
            yield f'<text class="key" x="{at + 28:.1f}" y="22">{html.escape(name)}</text>'
        for length in plot.marks:
            x = self.x(length)
            yield f'<path class="mark cross" d="M{x:.1f} {TOP:.1f}V{HEIGHT - BOTTOM:.1f}"/>'
            side = (" end", x - 6) if x > WIDTH / 2 else ("", x + 6)
            yield f'<text class="marked{side[0]}" x="{side[1]:.1f}" y="{TOP + 14:.1f}">{length:,}</text>'

    def grid(self) -> Iterator[str]:
        """Yield the SVG elements of the grid lines, their labels, and the names of both axes."""
        bottom = HEIGHT - BOTTOM
        for power in every(range(ceil(self.low), floor(self.high) + 1)):
            x = self.x(2**power)
            yield f'<path class="grid" d="M{x:.1f} {TOP:.1f}V{bottom:.1f}"/>'
            yield f'<text class="tick middle" x="{x:.1f}" y="{bottom + 17:.1f}">{2**power:,}</text>'
        for power in every(range(self.least, self.most + 1)):
            y = self.y(Fraction(10) ** power)
            yield f'<path class="grid" d="M{LEFT:.1f} {y:.1f}H{WIDTH - RIGHT:.1f}"/>'
            yield f'<text class="tick end" x="{LEFT - 7:.1f}" y="{y + 4:.1f}">{short(power)}</text>'
        yield f'<path class="axis" d="M{LEFT:.1f} {TOP:.1f}V{bottom:.1f}H{WIDTH - RIGHT:.1f}" fill="none"/>'
        across, up = html.escape(self.plot.across), html.escape(self.plot.up)
        yield f'<text class="tick end" x="{WIDTH - RIGHT:.1f}" y="{HEIGHT - 8:.1f}">{across}</text>'
        yield f'<text class="tick" x="{LEFT:.1f}" y="{HEIGHT - 8:.1f}">{up}</text>'


def every(numbers: Sequence[int]) -> Sequence[int]:
    """Return at most ``MANY`` of ``numbers``, evenly spaced."""
    return numbers[:: ceil(len(numbers) / MANY)]


def short(power: int) -> str:
    """Print a power of ten with an SI prefix.

    >>> short(4), short(12)
    ('10 k', '1 T')
    """
    if not 0 <= power < 3 * len(PREFIXES):
        return f"1e{power}"
    return f"{10 ** (power % 3)} {PREFIXES[power // 3]}".strip()
