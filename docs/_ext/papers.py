"""The gallery of architectures from papers: what each is, its pairs, its graph, and its cost beside the dense model."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pictures
from operators import written

from symflops.analysis.baseline import against
from symflops.api import Model, load
from symflops.emit.markdown.document import MarkdownPage
from symflops.emit.math.printer import LatexPrinter, letters
from symflops.emit.page.sections_against import answer, compared, formulas, plot_of
from symflops.emit.page.tree import Equation, Paragraph
from symflops.evaluate.item_analysis import Against
from symflops.ir.regime import Regime
from symflops.read.spec_files import shipped, specs_in

LENGTHS, SIDES, ROWS = (1024, 8192, 65536, 1048576), (16, 64, 256, 1024), 4
"""The lengths that have a column, along one axis and along each of several, and the most rows of a formula."""
LONGEST_FORMULA = 450
FOLDER = "images/papers"


def papers() -> str:
    """A section for each spec of the group that names a witness, then the dense models."""
    return "\n\n".join(
        "\n\n".join(section(name)) for name in sorted(names(), key=lambda name: not loaded(name).spec.references)
    )


def drawn() -> dict[str, str]:
    """The pictures by their names: of each graph, and of each cost beside the baseline."""
    found = {}
    for name in names():
        found[f"{name}.svg"] = pictures.graph(loaded(name).graph({}))
        told = beside(name)
        if told:
            found[f"{name}.cost.svg"] = pictures.cost(plot_of(told, name))
    return found


def names() -> list[str]:
    """The specs of the group."""
    return [file.name for file in specs_in(shipped("specs"), "papers")]


@cache
def beside(name: str) -> Against | None:
    """What a spec costs beside its baseline."""
    return against(loaded(name))


@cache
def loaded(name: str) -> Model:
    """The spec of that name."""
    return load(next(file for file in specs_in(shipped("specs"), "papers", name)))


def section(name: str) -> Iterator[str]:
    """What it is, its sources, its pairs, and its cost over the length."""
    model = loaded(name)
    title, _, idea = model.spec.title.partition(", ")
    yield f"## {title}"
    remarks = (line.removeprefix("# ") for line in model.file.path.read_text("utf-8").splitlines() if line.startswith("# "))
    remarks = [line for line in remarks if "yaml-language-server" not in line]
    yield f"{idea[0].upper()}{idea[1:]}. {' '.join(remarks[1:])}".strip()
    files = [f"[The spec](../specs/papers/{name}.yaml)"]
    if model.spec.references:
        yield f"Source: {remarks[0]}"
        files.append(f"[the witness](../specs/papers/{name}.py)")
    yield " · ".join(
        [*files, *(f"`symflops {word} {name}`" for word in ("explain", "diff") if word == "explain" or beside(name))]
    )
    rows = dict.fromkeys(pairs(model))
    yield "\n".join(["| Attention | Useful pairs of one layer |", "|:--|:--|", *rows]) if rows else "It has no pairs of tokens."
    told = beside(name)
    if told:
        yield from cost(name, told)
    yield f"![The graph of {name}]({FOLDER}/{name}.svg)"


def pairs(model: Model) -> Iterator[str]:
    """A row for each kind of attention: its path, and the pairs of a query and a key."""
    for work in model.derivation(Regime("gallery"), "torch", {}).work:
        contraction = work.contraction
        if contraction.name.startswith("scores"):
            path = ".".join(part for part in str(work.operator.path).split(".") if not part.isdigit() and part != "*")
            formula = written(contraction.extent.useful)
            shown = f"`{formula}`" if len(formula) <= LONGEST_FORMULA else "in closed form, too long for a line"
            each = "" if contraction.items == "samples" else f", for each of {contraction.items}"
            yield f"| `{path}`{each} | {shown} |"


def cost(name: str, told: Against) -> Iterator[str]:
    """What a step costs beside the baseline: in words, as a formula if that is short, at some lengths, and as a picture."""
    known = letters(loaded(name).typical(("full",), ("symflops",)))
    page = MarkdownPage(known)
    yield page.words((*answer(told, name), " ", *compared(told, name)))
    shown = list(formulas(told, LatexPrinter(known)))
    if any(isinstance(block, Equation) for block in shown) and page.blocks(shown).count("\\cr") <= ROWS:
        yield page.blocks([block for block in shown if isinstance(block, (Equation, Paragraph))])
    points = [point for point in told.points if point.length in (SIDES if told.square else LENGTHS)]
    head = " | ".join(f"{told.letter} = {point.length:,}" for point in points)
    cells = " | ".join(f"{float(point.ratio):.3f}" for point in points)
    first = f"FLOPs of a step, over those of `{told.baseline}`"
    yield f"| {first} | {head} |\n|:--|{'--:|' * len(points)}\n| at the defaults | {cells} |"
    yield f"![FLOPs of {name} over the length]({FOLDER}/{name}.cost.svg)"
