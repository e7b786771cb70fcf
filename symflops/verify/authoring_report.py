"""Renders a live report for the author of a growing spec: parameters missing, extra or wrong, and modules that differ.

Shapes are expressed in the spec's sizes: a dimension becomes the simplest expression with its value in every given case. If
several equally simple expressions fit, the dimension stays a number.
"""

from __future__ import annotations

import difflib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain, combinations, combinations_with_replacement, product
from math import prod

from symflops.evaluate.parameters import Shape
from symflops.training.introspect.tree import starred
from symflops.verify.live import LiveReport
from symflops.verify.running import Figure

Sizes = Mapping[str, int]
Row = tuple[Shape, Sizes]
LARGEST = 99  # the largest numerator and denominator that are printed as a fraction, not as a decimal
TOGETHER = 16  # the most parameters that are listed under one module; more are listed under its parts

FACTORS = (2, 3, 4, 5, 6, 8, 9, 12, 16)
SMALL = 16  # numbers up to this one fit too many expressions: only a single size is tried


def render(report: LiveReport, others: Sequence[LiveReport] = ()) -> str:
    """Render a report as text: one line if exact, else the missing and wrong parameters, and other FLOPs.

    Args:
        report: The report to render.
        others: Reports of the same spec in other cases, from which sizes in a shape are recognised.
    """
    versions = ", ".join(f"{name} {version}" for name, version in report.versions)
    head = f"{report.case}: {report.reference} ({versions})"
    if report.exact:
        return f"{head}: exact: {_passes(report)}"
    rows = _Shapes([report, *(other for other in others if other is not report)])
    found = "differs" if not report.unrun or report.missing or report.extra or report.wrong else "parameters are equal"
    lines = [f"{head}: {found}", *_missing(report, rows), *_extra(report, rows), *_wrong(report, rows)]
    lines.append(f"  parameters: {render_figure(report.parameters)}")
    if report.unrun:
        return "\n".join([*lines, f"  no passes to compare: {report.unrun}"])
    inference = (("inference forward", report.inference), ("inference backward", report.inference_backward))
    passes = (("forward", report.forward), ("backward", report.backward), *(item for item in inference if not item[1].equal))
    lines += [f"  {name}: {render_figure(figure)}" for name, figure in passes]
    lines += _modules_that_differ(report)
    lines += [f"  {report.masks}"] if report.masks and report.masks.modules else []
    if report.single and report.parameters.equal and report.forward.derived > report.forward.expected:
        lines.append("  a length is 1 here: a torch.einsum that contracts it multiplies elementwise, which no counter sees")
    return "\n".join(lines)


def _modules_that_differ(report: LiveReport) -> Iterator[str]:
    paths = [path for path, _ in report.modules]
    inner = [path for path in paths if not any(other.startswith(path + ".") for other in paths)]
    if inner:
        yield "  forward FLOPs by module, the innermost ones:"
    yield from (
        f"    {path or 'the model itself'}: {render_figure(figure)}" for path, figure in report.modules if path in inner
    )


class _Shapes:
    """Writes shapes of parameters in letters of sizes, which are inferred from several cases."""

    def __init__(self, reports: Sequence[LiveReport]) -> None:
        self.seen: dict[str, dict[int, Row]] = defaultdict(dict)
        for report in reports:
            for name, shape in (*report.real, *report.extra):
                self.seen[starred(name)].setdefault(id(report), (shape, dict(report.sizes)))

    def in_letters(self, name: str, shape: Shape, report: LiveReport) -> str:
        """Write ``shape``, that of the parameter ``name`` in ``report``, in letters."""
        others = (row for key, row in self.seen[starred(name)].items() if key != id(report))
        return shape_in_letters([(shape, dict(report.sizes)), *others])


def _passes(report: LiveReport) -> str:
    amounts = ((report.parameters, "parameters"), (report.forward, "forward"), (report.backward, "backward FLOPs"))
    return ", ".join(f"{figure.expected:,} {name}" for figure, name in amounts)


def render_figure(figure: Figure) -> str:
    """Render the real and the derived number of a figure, and the factor derived / real."""
    if figure.equal:
        return f"{figure.expected:,}, equal"
    if not figure.derived:
        return f"nothing derived yet of {figure.expected:,}"
    if not figure.expected:
        return f"{figure.derived:,} derived, and nothing real"
    ratio = Fraction(figure.derived, figure.expected)
    short = max(ratio.numerator, ratio.denominator) <= LARGEST
    factor = str(ratio) if short else f"{float(ratio):.6f}"
    return f"x{factor}: {figure.expected:,} real, {figure.derived:,} derived ({figure.derived - figure.expected:+,})"


def _missing(report: LiveReport, rows: _Shapes) -> Iterator[str]:
    """Yield report lines on the real parameters that the spec lacks, grouped by module."""
    if not report.missing:
        return
    count = sum(prod(shape) for _, shape in report.missing)
    yield f"  not claimed yet, {len(report.missing)} of {len(report.real)} parameters ({count:,} elements):"
    missing = {name for name, _ in report.missing}
    claimed = {module for name, _ in report.real if name not in missing for module in _modules(starred(name))}
    sizes = Counter(module for name in {starred(name) for name in missing} for module in _modules(name))

    def place(name: str) -> str:
        unclaimed = (module for module in _modules(name) if module not in claimed and sizes[module] <= TOGETHER)
        return next(unclaimed, name.rpartition(".")[0])

    found = ((name, place(starred(name)), rows.in_letters(name, shape, report), "") for name, shape in report.missing)
    yield from _grouped(found, claimed)


def _extra(report: LiveReport, rows: _Shapes) -> Iterator[str]:
    """Yield report lines on the spec's parameters that the real model lacks, each with a similar real one."""
    if not report.extra:
        return
    yield f"  claimed, and not in the model ({len(report.extra)}):"
    known = {name for name, _ in report.real}
    unclaimed = {starred(name): shape for name, shape in report.missing}

    def near(name: str, shape: Shape) -> str:
        if name in known:
            return "claimed twice"
        alike = [other for other, real in unclaimed.items() if real == shape] or unclaimed
        nearest = difflib.get_close_matches(starred(name), alike, 1, 0.6)
        return f"did you mean '{nearest[0]}'?" if nearest else ""

    found = ((name, rows.in_letters(name, shape, report), near(name, shape)) for name, shape in report.extra)
    yield from _grouped((name, starred(name).rpartition(".")[0], shape, remark) for name, shape, remark in found)


def _wrong(report: LiveReport, rows: _Shapes) -> Iterator[str]:
    if not report.wrong:
        return
    yield f"  of another shape ({len(report.wrong)}):"

    def both(name: str, real: Shape, derived: Shape) -> tuple[str, str, str, str]:
        letters, plain = rows.in_letters(name, real, report), _shape_text(real)
        shape = plain if letters == plain else f"{letters} = {plain}"
        return name, starred(name).rpartition(".")[0], f"{shape} real, {_shape_text(derived)} derived", ""

    yield from _grouped(both(name, real, derived) for name, real, derived in report.wrong)


def _shape_text(shape: Shape) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _grouped(found: Iterable[tuple[str, str, str, str]], claimed: set[str] | None = None) -> Iterator[str]:
    """Yield report lines on parameters, grouped by module; equal ones of several layers share a line.

    ``found`` has (name, module, shape, remark) of each parameter. ``claimed`` are the modules of which the spec has parameters.
    """
    groups: dict[str, Counter[tuple[str, str, str]]] = defaultdict(Counter)
    for name, module, shape, remark in found:
        rest = starred(name).removeprefix(module).removeprefix(".") if module else starred(name)
        groups[module][rest, shape, remark] += 1
    for module, members in groups.items():
        lines = [_line(*member, copies) for member, copies in members.items()]
        if len(lines) == 1 or not module:
            yield from (f"    {module}{'.' if module else ''}{line}" for line in lines)
            continue
        unclaimed = claimed is not None and module not in claimed and any("." in rest for rest, _, _ in members)
        yield f"    {module}" + (", nothing of it yet" if unclaimed else "")
        yield from (f"      {line}" for line in lines)


def _line(name: str, shape: str, remark: str, copies: int) -> str:
    return f"{name} {shape}" + (f" (x {copies})" if copies > 1 else "") + (f": {remark}" if remark else "")


def _modules(name: str) -> Iterator[str]:
    """Yield the paths of the modules around a parameter, outermost first, without module lists."""
    parts = name.split(".")[:-1]
    for end in range(1, len(parts) + 1):
        if end == len(parts) or parts[end] != "*":
            yield ".".join(parts[:end])


def shape_in_letters(rows: Sequence[Row]) -> str:
    """Write the shape of a parameter with dimensions in letters where possible.

    ``rows`` are (shape, values of the sizes) in several cases, the shape to write first.
    """
    first, _ = rows[0]
    same = [(shape, sizes) for shape, sizes in rows if len(shape) == len(first)]
    dimensions = ([(shape[axis], sizes) for shape, sizes in same] for axis in range(len(first)))
    return f"[{', '.join(in_letters(dimension) for dimension in dimensions)}]"


def in_letters(rows: Sequence[tuple[int, Sizes]]) -> str:
    """Write a dimension as the one simplest expression that fits every case; else as a number.

    ``rows`` are (dimension, values of the sizes) in several cases, the dimension to write first.
    """
    number = rows[0][0]
    names = sorted(set.intersection(*({*sizes} for _, sizes in rows)))
    names = [name for name in names if all(sizes[name] > 1 for _, sizes in rows)]
    further = ((products(1, FACTORS), products(2, (1,))), (total,), (products(2, FACTORS),), (packed,))
    levels = ((products(1, (1,)),), *(() if number <= SMALL else further))
    for level in levels if number > 1 else ():
        kinds = chain.from_iterable(kind(names) for kind in level)
        found = [text for text, value in kinds if all(value(sizes) == dimension for dimension, sizes in rows)]
        if found:
            return found[0] if len(found) == 1 else str(number)
    return str(number)


Expressions = Iterator[tuple[str, Callable[[Sizes], int]]]


def products(count: int, factors: Sequence[int]) -> Callable[[Sequence[str]], Expressions]:
    """Build a generator of products of ``count`` sizes and one factor: ``D``, ``4*D``, ``H*d``, ``2*H*d``."""

    def found(names: Sequence[str]) -> Expressions:
        for factor, chosen in product(factors, combinations_with_replacement(names, count)):
            powers = (name if times == 1 else f"{name}**2" for name, times in Counter(chosen).items())
            words = [str(factor)] * (factor > 1) + list(powers)
            yield "*".join(words), lambda sizes, factor=factor, chosen=chosen: factor * prod(sizes[name] for name in chosen)  # type: ignore[misc]

    return found


def total(names: Sequence[str]) -> Expressions:
    """Yield sums of two sizes, such as ``D + F``, as (text, function of the sizes)."""
    for a, b in combinations(names, 2):
        yield f"{a} + {b}", lambda sizes, a=a, b=b: sizes[a] + sizes[b]  # type: ignore[misc]


def packed(names: Sequence[str]) -> Expressions:
    """Yield widths of packed queries, keys and values, ``(H + 2*G)*d``, as (text, function of the sizes)."""
    for factor in (1, 2):
        for a in names:
            for b in (name for name in names if name != a):
                for c in names:
                    text = f"({a} + {b})*{c}" if factor == 1 else f"({a} + 2*{b})*{c}"
                    if factor == 1 and a > b:
                        continue
                    yield text, lambda sizes, a=a, b=b, c=c, f=factor: (sizes[a] + f * sizes[b]) * sizes[c]  # type: ignore[misc]
