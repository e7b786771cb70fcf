"""Several models in one table: their closed forms by moment, their figures, and the values of their letters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from symflops.emit.grouping import grouped
from symflops.emit.math.printer import LatexPrinter, letters
from symflops.emit.page.fragments import is_made
from symflops.emit.page.sections import facts
from symflops.emit.page.sections_first import letter_lines, used, value_of
from symflops.emit.page.sections_model import item_letters
from symflops.emit.page.tree import Code, Column, Document, Items, Math, Paragraph, Row, Section, Table, Words
from symflops.emit.page.types import Page
from symflops.emit.page.writing import NONE, letter, math_text, names
from symflops.evaluate.typical_values import default_sizes
from symflops.formula.factoring import expanded
from symflops.formula.formula import ZERO, Formula, Sym, number
from symflops.formula.terms import Rewriting, times
from symflops.ir.program import Field

T = TypeVar("T")
PASSES = ("forward", "backward", "recomputed")


@dataclass(frozen=True)
class Model:
    """One of the models: its page, and its letters with the LaTeX that its formulas have on the page of all models.

    ``place`` is its number; letters of two models with one name differ by it. ``title`` heads its column.
    """

    place: int
    page: Page
    title: str

    @property
    def known(self) -> dict[str, str]:
        """LaTeX by letter, as the model names its letters."""
        found = letters(self.page.program) | dict(self.page.letters)
        return found | item_letters(self.page.program, found)

    @property
    def letters(self) -> dict[str, str]:
        """LaTeX by letter, as :meth:`renamed` names them."""
        return {self.name(letter): latex for letter, latex in self.known.items()}

    def name(self, letter: str) -> str:
        """Return the name of a letter among those of all models."""
        return f"{self.place}:{letter}"

    def renamed(self, value: T) -> T:
        """Rename the letters of the model in formulas, or in words with formulas."""
        known = self.known

        def rename(part: object) -> Formula | None:
            return Sym(self.name(part.name)) if isinstance(part, Sym) and part.name in known else None

        found: T = Rewriting(rename)(value)
        return found

    def coefficients(self, name: str) -> dict[str, tuple[Formula, Formula]]:
        """Map the LaTeX of each moment to (moment, coefficient) in the closed form of a pass, with letters renamed."""
        form = next((form for _, groups in self.page.opened[:1] for form in groups[0].forms if form.name == name), None)
        if form is None:
            return {}
        pairs = ((moment, formula) for moment, (_, formula) in zip(form.moments, form.terms, strict=True))
        return {self.known[moment]: self.renamed((Sym(moment), formula)) for moment, formula in pairs}


def side_by_side(pages: Mapping[str, Page]) -> Document:
    """Build the tree of the page that has ``pages``, by title, side by side, each in its first regime and convention."""
    models = [Model(place, page, title) for place, (title, page) in enumerate(pages.items())]
    every = [model.page.program for model in models]
    known = {name: latex for model in models for name, latex in model.letters.items()}
    regime, convention = every[0].regimes[0].name, every[0].conventions[0]
    unit = models[0].page.unit
    told: Words = (*names(list(pages)), ": ", unit, " of a step on any batch, regime ", Code(regime))
    return Document(
        name=" ".join(pages),
        title=", ".join(pages),
        facts=(),
        intro=(Paragraph((*told, ", convention ", Code(convention), ".")),),
        parts=(
            Section("result", "Result", (formulas(models), figures(models))),
            Section("letters", "Letters", (sizes(models), Items(tuple(shared_lines(models, known)), columns=2))),
        ),
        letters=known,
        sources=tuple(dict.fromkeys(source for one in every for source in one.sources)),
        subtitle=f"Parameters and {unit}, side by side",
        full=False,
    )


def columns(models: Sequence[Model], first: tuple[str, int], *more: tuple[str, int], wide: int = 0) -> tuple[Column, ...]:
    """Return the columns of a table: those given as (title, share), then one per model."""
    rest = 96 - first[1] - sum(share for _, share in more)
    each = (Column((Code(model.title),), wide and rest // len(models), number=not wide) for model in models)
    return *(Column((title,), share) for title, share in (first, *more)), *each


def formulas(models: Sequence[Model]) -> Table:
    """Build the table of formulas: parameters, and the coefficient of each moment in each pass."""
    cells = [(Math((model.renamed(model.page.parameters),)),) for model in models]
    rows: list[tuple[Words, ...]] = [(("parameters",), *cells)]
    for name in PASSES:
        found = [model.coefficients(name) for model in models]
        first = {latex: moment for each in reversed(found) for latex, (moment, _) in each.items()}
        for latex in dict.fromkeys(latex for each in found for latex in each):
            head: Words = (f"{name}, per ", Math((first[latex],))) if latex else (f"{name}, once",)
            rows.append((head, *(cell(model, name, latex) for model in models)))
    return Table("Formulas", columns(models, ("", 16), wide=1), tuple(rows), small=1)


def cell(model: Model, name: str, latex: str) -> Words:
    """Return the words of the coefficient of a moment; of a backward pass that is twice forward they say so."""
    _, formula = model.coefficients(name).get(latex, (ZERO, ZERO))
    if formula == ZERO:
        return NONE
    _, forward = model.coefficients("forward").get(latex, (ZERO, ZERO))
    if name == "backward" and expanded(formula) == expanded(times(number(2), forward)):
        return ("twice forward",)
    return (Math((formula,)),)


def figures(models: Sequence[Model]) -> Table:
    """Build the table of the figures at the default sizes, or those of configs."""
    which = "these" if any(model.page.of_one_config for model in models) else "the default"
    found = [{fact.name: fact.value for fact in facts(model.page)} for model in models]
    titles = dict.fromkeys(name for each in found for name in each)
    rows = tuple(((title,), *(each.get(title, NONE) for each in found)) for title in titles)
    return Table(f"Figures of one step at {which} sizes", columns(models, (f"At {which} sizes", 0)), rows)


def sizes(models: Sequence[Model]) -> Table:
    """Build the table of the sizes, with their values; a letter with two meanings has two rows."""
    rows: dict[tuple[str, str], dict[int, Words]] = {}
    signs: dict[str, Math] = {}
    for model in models:
        program, values, shown = model.page.program, default_sizes(model.page.program), shown_in(model)
        found: list[tuple[str, str, Words]] = [
            (field.letter, told_of(field), value_of(field, values)[1:] or NONE) for field in program.fields
        ]
        found += [
            (one.letter, "derived", (Math((model.renamed(one.formula),)),)) for one in program.definitions if not is_made(one)
        ]
        for name, doc, value in found:
            if name in shown:
                signs.setdefault(model.known[name], letter(model.name(name)))
                rows.setdefault((model.known[name], doc), {})[model.place] = value
    told: list[Row] = []
    for (latex, doc), each in rows.items():
        told.append(((signs[latex],), (doc,), *(each.get(model.place, NONE) for model in models)))
    return Table("Letters", columns(models, ("Letter", 9), ("Meaning", 35), wide=1), tuple(told), small=1)


def told_of(field: Field) -> str:
    """Return the meaning of a size in words."""
    return field.doc.partition(";")[0] or field.keys[0]


def shown_in(model: Model) -> set[str]:
    """Return the letters in the formulas of a model, and in what defines them."""
    page = model.page
    return used(page, [(regime, group) for regime, groups in page.opened[:1] for group in groups[:1]])


def shared_lines(models: Iterable[Model], known: Mapping[str, str]) -> Iterator[Words]:
    """Yield the lines on lengths, sums and notations, each once, with the models where it does not hold for all."""
    printer = LatexPrinter(known)
    found: list[tuple[str, tuple[str, Words]]] = []
    every = list(models)
    for model in every:
        program = model.page.program
        fields = {one.letter for one in program.fields} | {one.letter for one in program.definitions}
        for line in model.renamed(tuple(letter_lines(model.page, model.known, shown_in(model) - fields))):
            text = "".join(math_text(node, printer) if isinstance(node, Math) else str(node) for node in line)
            found.append((text, (model.title, line)))
    for some in grouped(found).values():
        where: Words = (" (", *names([name for name, _ in some]), ")") if len(some) < len(every) else ()
        yield (*some[0][1], *where)
