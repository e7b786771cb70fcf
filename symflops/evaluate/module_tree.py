"""Tree of modules with cumulative parameters and FLOPs, and its tables in Markdown and HTML."""

from __future__ import annotations

from functools import cache, partial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from symflops.evaluate.moments import Moments


WHOLE = "total"
"""The name of the root."""


class Module:
    """Node of a module tree: path and name of a module, and parameters and FLOPs of its subtree."""

    __slots__ = ("backward", "children", "forward", "name", "parameters", "path", "recomputed")

    def __init__(self, path: str, name: str) -> None:
        self.path, self.name = path, name
        self.parameters = self.forward = self.backward = self.recomputed = 0
        self.children: dict[str, Module] = {}

    @property
    def total(self) -> int:
        """FLOPs of the forward and backward pass."""
        return self.forward + self.backward

    def add_up(self) -> None:
        """Add the parameters and FLOPs of all descendants to each node; a second call would add them again."""
        for child in self.children.values():
            child.add_up()
            self.parameters += child.parameters
            self.forward += child.forward
            self.backward += child.backward
            self.recomputed += child.recomputed

    def child(self, name: str) -> Module:
        """The child ``name``, created if missing."""
        if name not in self.children:
            self.children[name] = Module(f"{self.path}.{name}" if self.path else name, name)
        return self.children[name]


def tree_of(estimator: Any, m: Moments) -> Module:
    """Build the module tree of a model with the FLOPs of a batch."""
    root = _filled(estimator, m, lambda root, path: [node_at(root, path)])
    root.add_up()
    return root


def largest(estimator: Any, m: Moments, most: int) -> Module:
    """Root whose children are the ``most`` modules with the largest FLOPs without their submodules."""
    root = _filled(estimator, m, lambda root, path: [root, root.child(path)])
    found = sorted((node for node in root.children.values() if node.total), key=lambda node: -node.total)
    root.children = {node.name: node for node in found[:most]}
    return root


def _filled(estimator: Any, m: Moments, nodes: Callable[[Module, str], list[Module]]) -> Module:
    root = Module("", WHOLE)
    at = cache(partial(nodes, root))
    for name, count in estimator.tensors().items():
        for node in at(name.rpartition(".")[0]):
            node.parameters += count
    for name, flops in estimator.by_module(m).items():
        for node in at(name):
            node.forward += flops.forward
            node.backward += flops.backward
            node.recomputed += flops.recomputed
    return root


def node_at(root: Module, path: str) -> Module:
    """The node at ``path`` below ``root``, created if missing; a ``*`` is joined to the name before it."""
    words: list[str] = []
    for word in path.split(".") if path else []:
        if word == "*" and words:
            words[-1] += ".*"
        else:
            words.append(word)
    for word in words:
        root = root.child(word)
    return root


def rows_of(node: Module, whole: int, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yield a dict for each module in preorder: path, name, depth, parameters, FLOPs per pass, and ``share`` of ``whole``.

    All figures include the submodules; ``share`` is ``total`` divided by ``whole`` FLOPs.
    """
    yield {
        "module": node.path or WHOLE,
        "name": node.name,
        "depth": depth,
        "parameters": node.parameters,
        "forward": node.forward,
        "backward": node.backward,
        "recomputed": node.recomputed,
        "total": node.total,
        "share": node.total / whole if whole else 0.0,
    }
    for child in node.children.values():
        yield from rows_of(child, whole, depth + 1)


def markdown_of(estimator: Any) -> str:
    """Markdown table of an estimator's coefficients, one row per moment."""
    trained = "all" if estimator.trainable_parameters == estimator.parameters else f"{estimator.trainable_parameters:,}"
    head = f"**{estimator.name}**, regime `{estimator.regime}`, convention `{estimator.convention}`: "
    head += f"{estimator.parameters:,} parameters, of which {trained} train."
    kinds = [estimator.coefficients[kind] for kind in ("forward", "backward", "recomputed")]
    unit, rule = ("MACs" if estimator.unit == "macs" else "FLOPs"), "|:--|--:|--:|--:|"
    lines = [head, "", f"| Moment | Forward {unit} | Backward {unit} | Recomputed |", rule]
    for name, *costs in zip(estimator.moment_sets, *kinds, strict=True):
        lines.append(f"| `{name}` | {' | '.join(f'{cost:,}' for cost in costs)} |")
    return "\n".join(lines)


def html_table(caption: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """HTML table with a left-aligned first column; escapes every text."""
    from html import escape

    def line(cells: Sequence[str], tag: str) -> str:
        sides = ("left", *("right" for _ in cells[1:]))
        kept = (
            f'<{tag} style="text-align: {side}; white-space: pre">{escape(cell)}</{tag}>'
            for side, cell in zip(sides, cells, strict=True)
        )
        return f"<tr>{''.join(kept)}</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table><caption>{escape(caption)}</caption><thead>{line(headings, 'th')}</thead><tbody>{body}</tbody></table>"
