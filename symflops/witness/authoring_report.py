"""A live report as an author reads it while a spec grows: what is not claimed yet, what is not there, what does other work."""

from __future__ import annotations

import difflib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from symflops.witness.live import Figure, LiveReport
from symflops.witness.module_work import starred
from symflops.witness.parameter_names import Shape
from symflops.witness.size_expressions import shape_in_letters

Row = tuple[Shape, Mapping[str, int]]
LARGEST = 99  # the largest numerator and denominator that tell more than a decimal
TOGETHER = 16  # parameters of a module that are listed under it, rather than under its parts


def render(report: LiveReport, others: Sequence[LiveReport] = ()) -> str:
    """The report as a person reads it: one line when exact, else a guide to what is missing, wrong, or of other work.

    ``others`` are reports of the same spec in other cases: they help to tell shapes in letters.
    """
    versions = ", ".join(f"{name} {version}" for name, version in report.versions)
    head = f"{report.case}: {report.reference} ({versions})"
    if report.exact:
        return f"{head}: exact: {_passes(report)}"
    rows = _Shapes([report, *(other for other in others if other is not report)])
    lines = [f"{head}: differs", *_missing(report, rows), *_extra(report, rows), *_wrong(report, rows)]
    if report.unrun:
        return "\n".join([*lines, f"  parameters: {told_figure(report.parameters)}", f"  no passes to compare: {report.unrun}"])
    passes = (("forward", report.forward), ("backward", report.backward))
    inference = (("inference forward", report.inference), ("inference backward", report.inference_backward))
    for name, figure in (("parameters", report.parameters), *passes, *inference):
        if name in ("parameters", "forward", "backward") or not figure.equal:
            lines.append(f"  {name}: {told_figure(figure)}")
    inner = [path for path, _ in report.modules if not any(other.startswith(path + ".") for other, _ in report.modules)]
    if inner:
        lines.append("  forward FLOPs by module, the innermost ones:")
    lines += [f"    {path or 'the model itself'}: {told_figure(figure)}" for path, figure in report.modules if path in inner]
    return "\n".join(lines)


class _Shapes:
    """The shapes of parameters in letters, as the cases at hand tell them."""

    def __init__(self, reports: Sequence[LiveReport]) -> None:
        self.seen: dict[str, dict[int, Row]] = defaultdict(dict)
        for report in reports:
            for name, shape in (*report.real, *report.extra):
                self.seen[starred(name)].setdefault(id(report), (shape, dict(report.sizes)))

    def told(self, name: str, shape: Shape, report: LiveReport) -> str:
        """The shape of a parameter of ``report``."""
        others = (row for key, row in self.seen[starred(name)].items() if key != id(report))
        return shape_in_letters([(shape, dict(report.sizes)), *others])


def _passes(report: LiveReport) -> str:
    amounts = ((report.parameters, "parameters"), (report.forward, "forward"), (report.backward, "backward FLOPs"))
    return ", ".join(f"{figure.expected:,} {name}" for figure, name in amounts)


def told_figure(figure: Figure) -> str:
    """Both numbers, and the factor between them: exact where it is a short fraction."""
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
    """Real parameters that nothing claims, under the largest modules of which nothing is claimed."""
    if not report.missing:
        return
    count = sum(_elements(shape) for _, shape in report.missing)
    yield f"  not claimed yet, {len(report.missing)} of {len(report.real)} parameters ({count:,} elements):"
    missing = {name for name, _ in report.missing}
    claimed = {module for name, _ in report.real if name not in missing for module in _modules(starred(name))}
    sizes = Counter(module for name in {starred(name) for name in missing} for module in _modules(name))

    def place(name: str) -> str:
        whole = (module for module in _modules(name) if module not in claimed and sizes[module] <= TOGETHER)
        return next(whole, name.rpartition(".")[0])

    found = ((name, place(starred(name)), rows.told(name, shape, report), "") for name, shape in report.missing)
    yield from _grouped(found, claimed)


def _extra(report: LiveReport, rows: _Shapes) -> Iterator[str]:
    """Claimed parameters that the real model does not have, each with the nearest of those that nothing claims."""
    if not report.extra:
        return
    yield f"  claimed, and not in the model ({len(report.extra)}):"
    known = {name for name, _ in report.real}
    open_ = {starred(name): shape for name, shape in report.missing}

    def near(name: str, shape: Shape) -> str:
        if name in known:
            return "claimed twice"
        alike = [other for other, real in open_.items() if real == shape] or open_
        nearest = difflib.get_close_matches(starred(name), alike, 1, 0.6)
        return f"did you mean '{nearest[0]}'?" if nearest else ""

    found = ((name, rows.told(name, shape, report), near(name, shape)) for name, shape in report.extra)
    yield from _grouped((name, starred(name).rpartition(".")[0], shape, remark) for name, shape, remark in found)


def _wrong(report: LiveReport, rows: _Shapes) -> Iterator[str]:
    if not report.wrong:
        return
    yield f"  of another shape ({len(report.wrong)}):"

    def both(name: str, real: Shape, derived: Shape) -> tuple[str, str, str, str]:
        letters, plain = rows.told(name, real, report), _plain(real)
        told = plain if letters == plain else f"{letters} = {plain}"
        return name, starred(name).rpartition(".")[0], f"{told} real, {_plain(derived)} derived", ""

    yield from _grouped(both(name, real, derived) for name, real, derived in report.wrong)


def _plain(shape: Shape) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _grouped(found: Iterable[tuple[str, str, str, str]], claimed: set[str] | None = None) -> Iterator[str]:
    """Names, shapes and remarks under the module that each stands in; equal ones of several copies once, with their number."""
    groups: dict[str, Counter[tuple[str, str, str]]] = defaultdict(Counter)
    for name, module, shape, remark in found:
        rest = starred(name).removeprefix(module).removeprefix(".") if module else starred(name)
        groups[module][rest, shape, remark] += 1
    for module, members in groups.items():
        lines = [
            f"{rest} {shape}" + (f" (x {copies})" if copies > 1 else "") + (f": {remark}" if remark else "")
            for (rest, shape, remark), copies in members.items()
        ]
        if len(lines) == 1 or not module:
            yield from (f"    {module}{'.' if module else ''}{line}" for line in lines)
            continue
        whole = claimed is not None and module not in claimed and any("." in rest for rest, _, _ in members)
        yield f"    {module}" + (", nothing of it yet" if whole else "")
        yield from (f"      {line}" for line in lines)


def _modules(name: str) -> Iterator[str]:
    """The modules that a parameter stands in, outermost first; a list of equal ones counts as its iterations."""
    parts = name.split(".")[:-1]
    for end in range(1, len(parts) + 1):
        if end == len(parts) or parts[end] != "*":
            yield ".".join(parts[:end])


def _elements(shape: Shape) -> int:
    found = 1
    for size in shape:
        found *= size
    return found
