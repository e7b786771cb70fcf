"""Pictures of the gallery as files: the graph of a model, and its cost over the length beside its baseline."""

from __future__ import annotations

import re
from pathlib import Path

from symflops.emit.html.curves import picture
from symflops.emit.html.drawing import drawing
from symflops.emit.page.tree import Plot
from symflops.ir.graph import Graph

STYLE = (Path(__file__).parents[1] / "_static" / "pictures.css").read_text("utf-8")


WIDE, HIGH = 900.0, 1000.0
"""The size above which a picture is shown smaller."""


def alone(svg: str) -> str:
    """A picture of a page as a file of its own."""
    head, _, body = svg.partition(">")
    width, height = (float(re.search(rf'\b{side}="([0-9.]+)"', head)[1]) for side in ("width", "height"))
    scale = min(1.0, WIDE / width, HIGH / height)
    for side, size in (("width", width), ("height", height)):
        head = head.replace(f'{side}="{size:.0f}"', f'{side}="{size * scale:.0f}"')
    return f'{head} xmlns="http://www.w3.org/2000/svg">\n<style>\n{STYLE}</style>{body}\n'


def graph(found: Graph) -> str:
    """The picture of a graph."""
    return alone(drawing(found.to_networkx()))


def cost(plot: Plot) -> str:
    """The picture of costs over a length."""
    return alone(picture(plot))
