"""What notebooks show of estimators and of rows of figures."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any


def markdown_of(estimator: Any) -> str:
    """The coefficients of an estimator, a row per moment."""
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
    """A table as HTML, the first column to the left; every text is escaped."""
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
