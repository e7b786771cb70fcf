"""Plots of an analysis with matplotlib: shares of parts, and ratios of figures, over a length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symflops.evaluate.item_analysis import ORDER
from symflops.support.errors import SymflopsError

# distinguishable with colour blindness (Okabe and Ito)
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
TINTS = ("#0072B2", "#56B4E9", "#999999", "#F0E442", "#009E73", "#CC79A7", "#D55E00", "#8C6D31", "#332288", "#E69F00")
SHADES = dict(zip(ORDER, TINTS, strict=True))
DASHES = ("-", "--", "-.", ":")
SIZE = (7.0, 4.2)


def breakdown(title: str, label: str, tokens: Sequence[int], parts: Mapping[str, Sequence[int]], crossover: int | None) -> Any:
    """Return a plot of the stacked shares of ``parts`` over ``tokens``, the lengths of a stream.

    A vertical line marks the length ``crossover``.
    """
    figure, axes = _axes(title, label)
    totals = [sum(values) or 1 for values in zip(*parts.values(), strict=True)]
    shares = [[100 * value / total for value, total in zip(values, totals, strict=True)] for values in parts.values()]
    colours = [SHADES[name] for name in parts]
    axes.stackplot(tokens, *shares, labels=list(parts), colors=colours, alpha=0.9)
    if crossover is not None:
        axes.axvline(crossover, color="black", linewidth=1.2, linestyle="--")
        text, offset = f"half is attention\nfrom {crossover:,}", {"xytext": (-6, 0), "textcoords": "offset points"}
        axes.annotate(text, (crossover, 97), ha="right", va="top", **offset)
    axes.set_ylim(0, 100)
    axes.set_xlim(tokens[0], tokens[-1])
    axes.set_ylabel("share of the FLOPs of a step, %")
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    return figure


def ratios(title: str, label: str, tokens: Sequence[int], lines: Mapping[str, Sequence[float | None]], to: str) -> Any:
    """Return a plot of ratios over ``tokens``, the lengths of a stream; they are relative to ``to``."""
    figure, axes = _axes(title, label)
    for place, (name, values) in enumerate(lines.items()):
        numbers = [float("nan") if value is None else value for value in values]
        colour, dash = COLOURS[place % len(COLOURS)], DASHES[place // len(COLOURS) % len(DASHES)]
        axes.plot(tokens, numbers, dash, color=colour, label=name, linewidth=1.8)
    axes.set_ylabel(f"ratio to {to}")
    axes.grid(alpha=0.25)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    return figure


def _axes(title: str, label: str) -> tuple[Any, Any]:
    """Create a figure with one plot whose horizontal axis is a length; return (figure, axes).

    Raises:
        SymflopsError: matplotlib is not installed.
    """
    try:
        from matplotlib import rcdefaults
        from matplotlib.figure import Figure
    except ImportError:
        raise SymflopsError("a picture needs matplotlib: pip install 'symflops[plot]'") from None
    rcdefaults()  # a matplotlibrc of the current folder may be a stranger's, and start LaTeX
    figure = Figure(figsize=SIZE)
    axes = figure.subplots()
    axes.set_title(title, fontsize=11)
    axes.set_xscale("log", base=2)
    axes.set_xlabel(label)
    return figure, axes


def save(figure: Any, path: str) -> None:
    """Write a plot to ``path``, in the format of its file ending.

    Raises:
        SymflopsError: the file cannot be written, or its ending names no format.
    """
    try:
        figure.savefig(path, bbox_inches="tight", dpi=160)
    except (OSError, ValueError) as error:
        raise SymflopsError(f"the picture cannot be written: {error}") from None
