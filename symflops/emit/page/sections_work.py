"""Page sections on the work: closed forms, both passes by operator, ratio of backward to forward."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from symflops.emit.math.printer import LatexPrinter, is_barred, width
from symflops.emit.page.tree import (
    Block,
    Code,
    Column,
    Emphasis,
    Equation,
    EquationLink,
    Heading,
    Items,
    Line,
    Link,
    Mark,
    Math,
    Notes,
    Number,
    Paragraph,
    Row,
    Scaled,
    Section,
    Table,
    Words,
)
from symflops.emit.page.types import LONG, Cell, Form, FormGroup, Note, OperatorRow, Page, RegimePage, SumRow
from symflops.emit.page.writing import NONE, by_group, ended, letter, names, numbered, plural, sentence, series
from symflops.evaluate.units import AS_SOURCE, MULTIPLY_ADD, NAMES
from symflops.formula.factoring import expanded
from symflops.formula.formula import ZERO, Formula, Sym, brackets, number
from symflops.formula.terms import is_negative, times

WIDEST = 1800.0
"""Maximum width of an inline formula, in points."""

STEP = "Step 1. A row of the table is one product. A linear layer of width "
PASSES = (
    "A product has two operands. Its backward pass computes the gradient of an operand only if something trainable"
    " lies upstream of it, and only if the loss depends on the result. The gradient of one operand costs as much as the"
    " forward product. The columns tell how often the product, the gradients of its inputs, and the gradient of its weight"
    " are computed in one step; letters explain where that is less often than forward."
)
ASSUMED = (
    "This convention assumes what a backward pass costs: a multiple of the forward one, whatever gradients are computed. The"
    " columns tell how often a product is computed forward in one step, and as how many of it the backward pass counts."
)
SUMS = (
    "Step 2. Rows that run over the same amount add up: each is what it takes, times how often it runs. Backward, it is taken"
    " once per gradient."
)
TWICE = (
    "If both gradients of every product were computed as often as the product itself, backward would be exactly twice forward."
)
TITLES = ("Why backward is not twice forward", "Why not twice forward")
UNSEEN = "†"
NOTHING = "There is nothing to count."
BAR = "A bar, as in ", ", marks the same sum with each item as long as the longest of its batch, to which it is padded."


def forms(page: Page, letters: Mapping[str, str]) -> Section:
    """Build the section with the closed forms of each regime and convention; the first page has the first ones."""
    blocks: list[Block] = [Paragraph(counted_pairs(page))]
    barred = False
    for regime in page.regimes:
        if all(form.same for group in regime.groups for form in group.forms) and any(group.forms for group in regime.groups):
            blocks.append(Paragraph(("Regime ", Code(regime.name), ": ", *same_forms(regime))))
            continue
        for group in regime.groups:
            told = other_unit(page, group)
            blocks.append(Heading(("Regime ", Code(regime.name), ", convention ", *names(group.conventions), *told)))
            if regime == page.regimes[0] and group == regime.groups[0]:
                blocks += on_first_page(page, group)
            else:
                blocks += closed_forms(group.forms, page.unit_of(group.conventions[0]))
            bars = [moment for form in group.forms for moment in form.moments if is_barred(letters[moment])]
            blocks += [Paragraph((BAR[0], letter(bars[0]), BAR[1]))] if bars and not barred else []
            barred = barred or bool(bars)
            if not group.forms:
                blocks.append(Paragraph((NOTHING,)))
        if not regime.trains:
            blocks.append(Paragraph(("Nothing trains, hence there is no backward pass.",)))
    return Section("forms", "Step 3: closed forms", tuple(blocks), "Closed forms")


def on_first_page(page: Page, group: FormGroup) -> Iterator[Block]:
    """Yield references to the closed forms of the first page, and the same forms with the letters that shorten them."""
    yield from closed_forms([replace(form, same=form.number) for form in group.forms], page.unit_of(group.conventions[0]))
    opened = [form.terms for form in page.opened[0][1][0].forms]
    short = [form for form, whole in zip(group.forms, opened, strict=True) if form.terms != whole]
    if short:
        yield Paragraph(("With the letters of ", Link("#definitions", ("Definitions",)), ":"))
        yield from (Equation((Line(form.name, terms(form)),)) for form in short)


def same_forms(regime: RegimePage) -> Words:
    """Return words that name the earlier equations to which all closed forms of a regime are equal."""
    forms = [(group.conventions, form) for group in regime.groups for form in group.forms]
    told = series(
        [(f"{form.name} as in equation ", EquationLink(form.same), " by ", *names(by)) for by, form in forms], "; ", "; "
    )
    return (*told, "." if regime.trains else ". Nothing trains, hence there is no backward pass.")


def other_unit(page: Page, group: FormGroup) -> Words:
    """Return words for the unit of closed forms if it is not that of the page; else ()."""
    own, first = (page.counted_in(name) for name in (group.conventions[0], page.program.conventions[0]))
    told = f", a multiply-add as {MULTIPLY_ADD[own]}" if own == AS_SOURCE else f", in {NAMES[own]}"
    return (told,) if own != first else ()


def closed_forms(found: Sequence[Form], unit: str) -> Iterator[Block]:
    """Yield the blocks of closed forms; for a form equal to an earlier one, a reference to that."""
    same = [form for form in found if form.same]
    yield from (Paragraph((f"The {form.name} {unit} are those of equation ", EquationLink(form.same), ".")) for form in same)
    new = [form for form in found if not form.same]
    if new:
        yield Equation(tuple(Line(form.name, terms(form), form.number) for form in new))


def terms(form: Form) -> tuple[Scaled, ...]:
    """Return the terms of a closed form, coefficient times moment, with negative ones last."""
    found = (Scaled(formula, Sym(moment)) for moment, (_, formula) in zip(form.moments, form.terms, strict=True))
    return tuple(sorted(found, key=lambda term: is_negative(term.formula)))


def counted_pairs(page: Page) -> Words:
    """Return sentences on the unit, and on which conventions count masked pairs and padding."""
    units = {page.counted_in(convention) for convention in page.program.conventions}
    values = f"All values are {page.unit}" if len(units) == 1 else f"Values are {page.unit}, or what a heading says,"
    sums = [made for regime in page.regimes for made in regime.sums]
    which = numbered([made.number for made in sums], "S")
    told = (
        f"{plural(len(sums), 'The sum', 'The sums')} {which} of step 2, times the moments that"
        f" {plural(len(sums), 'its amount stands', 'their amounts stand')} for, give one coefficient per moment. {values} per"
        " batch."
    )
    if not page.pairs_differ:
        return (told,)
    padded = page.program.padded
    useful = "none of it, nor masked pairs" if padded else "the useful ones"
    own = page.program.own
    counts: list[Words] = [
        (Code(name), f" counts {'by rules of its own' if name in own else 'all' if pairs != 'useful' else useful}")
        for name, pairs in page.program.pairs
    ]
    what = "the padding" if padded else "the pairs of masked attention"
    return (f"{told} Conventions differ in {what} that they count: ", *series(counts), ".")


def passes(page: Page) -> Section:
    """Build the section on the number of executions of each contraction, by regime."""
    doubled = page.counted_in(page.program.conventions[0]) == "flops"
    a, b, product, each = (Math((text,)) for text in ("a", "b", "ab", "2ab" if doubled else "ab"))
    one = (STEP, a, " to ", b, " is ", product, " multiply-adds per token, hence ", each, f" {page.unit}. ", PASSES)
    blocks: list[Block] = [Paragraph((ASSUMED,) if all_assumed(page) else one)]
    for regime in page.regimes:
        blocks += regime_passes(regime, page.unit, page.replaced)
    if page.unseen:
        blocks.append(Notes((("", (f"{UNSEEN} not seen by PyTorch's own counter.",)),)))
    return Section("passes", "Steps 1 and 2: both passes, product by product", tuple(blocks), "Both passes")


def all_assumed(page: Page) -> bool:
    """Whether the first convention assumes the backward pass of every regime that trains."""
    training = [regime for regime in page.regimes if regime.trains]
    return bool(training) and all(regime.assumed for regime in training)


def regime_passes(regime: RegimePage, unit: str, replaced: Mapping[str, Formula]) -> Iterator[Block]:
    """Yield the blocks on both passes of a regime."""
    yield Heading(("Regime ", Code(regime.name)))
    if regime.doc:
        yield Paragraph((sentence(regime.doc),))
    if not regime.trains:
        yield Paragraph(("No gradient is computed: the work is the forward column, and there is no backward pass.",))
    if not regime.rows:
        return
    if regime.trains and not regime.everything:
        yield Paragraph(("These parameters train:",))
        yield Equation((Line("trainable", (Scaled(regime.trainable),)),))
    titles = {"Row": 4, "Module": 18, "Product": 9, "Runs over": 11, f"{unit} each": 11, "Forward": 11}
    if any(len(row.module) > LONG for row in regime.rows):
        titles |= {"Module": 24, "Product": 8, "Runs over": 12, "Forward": 10, "Input gradients": 10, "Weight gradient": 9}
    titles |= {"Backward": 23} if regime.assumed else {"Input gradients": 12, "Weight gradient": 11}
    columns = tuple(Column((title,), share) for title, share in titles.items())
    yield Table(f"Operators in regime {regime.name}", columns, tuple(operator_rows(regime, replaced)), small=1)
    if regime.notes:
        told = ended([(note.reason,) for note in regime.notes])
        yield Notes(tuple((note.letter, words) for note, words in zip(regime.notes, told, strict=True)))
    yield Paragraph((SUMS,))
    columns = (
        Column(("Sum",), 5),
        Column(("Over",), 14),
        Column(("Rows",), 11),
        Column(("Forward",), 33),
        Column(("Backward",), 31),
    )
    yield Table(f"Sums in regime {regime.name}", columns, tuple(sum_row(row, replaced) for row in regime.sums), small=1)


def over(amount: str, replaced: Mapping[str, Formula]) -> Words:
    """Return the name of an amount, or the moments that ``replaced`` has in place of a long name."""
    return (Math((replaced[amount],)),) if amount in replaced else (Code(amount),)


def sum_row(row: SumRow, replaced: Mapping[str, Formula]) -> Row:
    """Return the row of a sum: number, amount, added rows, and the work of both passes per unit of it."""
    twice = expanded(row.backward) == expanded(times(number(2), row.forward))
    backward: Words = ("twice forward",) if twice else (Math((row.backward,)),)
    return (f"S{row.number}",), over(row.amount, replaced), (numbered(row.rows),), (Math((row.forward,)),), backward


def operator_rows(regime: RegimePage, replaced: Mapping[str, Formula]) -> Iterator[Row]:
    """Yield the rows of the table of contractions of a regime, with a heading above those of each block.

    ``replaced`` maps the name of an amount to the formula that is printed in its place; other amounts are printed by name.
    """
    return by_group((row.group, operator_row(row, regime.assumed, replaced)) for row in regime.rows)


def operator_row(row: OperatorRow, assumed: bool, replaced: Mapping[str, Formula]) -> tuple[Words, ...]:
    """Return the table cells of a contraction.

    If the backward pass is ``assumed``, one cell has the gradients of all operands.
    """
    module: Words = (Code(row.module), *(() if row.seen else (f" {UNSEEN}",)))
    what: tuple[Words, ...] = (
        (Emphasis((row.contraction,)),),
        over(row.amount, replaced),
        (Math((row.unit,)),),
        (Math((row.forward,)),),
    )
    return (str(row.number),), module, *what, gradients(row.inputs), *(() if assumed else (gradients(row.weights),))


def gradients(cells: Sequence[Cell]) -> Words:
    """Return how often each gradient is computed, with the letter of its note."""
    if len(cells) == 2 and cells[0] == cells[1] and any(True for _ in brackets([cells[0].count])):
        return ("both ", *gradients(cells[:1]))
    return series([(Math((cell.count,)), *((Mark(cell.note),) if cell.note else ())) for cell in cells]) or NONE


def ratio(page: Page, letters: Mapping[str, str]) -> Section:
    """Build the section on gradients that are not always computed, and the ratio of backward to forward."""
    printer, assumed = LatexPrinter(letters), all_assumed(page)
    title, short = ("Backward as a multiple of forward", "Both passes as assumed") if assumed else TITLES
    blocks: list[Block] = [] if assumed else [Paragraph((TWICE,))]
    for regime in page.regimes:
        if regime.trains:
            blocks += missing(regime, page, printer)
        if regime.trains and regime.ratios:
            blocks += ratios(regime, page, letters)
    return Section("ratio", title, tuple(blocks), short)


def assumptions(regime: RegimePage, printer: LatexPrinter) -> Iterator[Block]:
    """Yield the blocks on the assumptions of the convention about the backward pass of a regime."""
    name, notes = Code(regime.name), regime.notes
    if regime.assumed and len(notes) == 1:
        yield Paragraph(("In regime ", name, f" the backward pass is {notes[0].reason}, whatever gradients are computed."))
        return
    what = "the backward pass" if regime.assumed else "a part of the backward pass"
    yield Paragraph(("In regime ", name, f" {what} is assumed:"))
    yield Items(tuple(note_words(note, printer) for note in notes))


def missing(regime: RegimePage, page: Page, printer: LatexPrinter) -> Iterator[Block]:
    """Yield the blocks that say why gradients of a regime are not always computed.

    If the convention assumes their cost, the blocks are those of :func:`assumptions`.
    """
    name = Code(regime.name)
    if any(note.assumed for note in regime.notes):
        yield from assumptions(regime, printer)
        return
    if not regime.notes:
        yield Paragraph(("In regime ", name, " they all are, and the factor is exactly two."))
        return
    yield Paragraph(("In regime ", name, " backward is less than that. These gradients are not always computed:"))
    yield Items(tuple(note_words(note, printer) for note in regime.notes))
    useful = " of all pairs that are useful" if page.pairs_differ else ""
    yield Paragraph((f"Twice the forward {page.unit}, less these, are the backward {page.unit}{useful}.",))


def note_words(note: Note, printer: LatexPrinter) -> Words:
    """Return the words of a note: which gradients are not always computed, and how much work that saves."""
    groups: list[Words] = []
    if note.assumed:
        places = dict.fromkeys(clause[1:] for *_, clauses in note.groups for clause in clauses)
        whose: list[Words] = [(*names(modules), *((" in ", Code(group)) if group else ())) for group, modules in places]
        return (Mark(note.letter), " ", Emphasis((note.reason,)), ": ", *series(whose), ".")
    for count, forward, clauses in note.groups:
        often: Words = (
            ("never computed",) if count == ZERO else ("computed ", Math((count,)), " of ", Math((forward,)), " times")
        )
        whose = [
            (f"the {kinds} of ", *names(modules), *((" in ", Code(group)) if group else ()))
            for kinds, group, modules in clauses
        ]
        groups.append((*often, " for ", *series(whose)))
    saved: Words = (", together ", Math((note.missing,))) if fits(note.missing, printer) else ()
    return (Mark(note.letter), " ", Emphasis((note.reason,)), ": ", *series(groups, "; ", "; "), *saved, ".")


def fits(formula: Formula, printer: LatexPrinter) -> bool:
    """Whether a formula is short enough for inline math."""
    return width(printer.text(formula)) <= WIDEST


def ratios(regime: RegimePage, page: Page, letters: Mapping[str, str]) -> Iterator[Block]:
    """Yield the table of the ratio of backward to forward coefficients, by moment."""
    convention, unit = page.program.conventions[0], page.unit
    yield Paragraph(("At the default sizes (convention ", Code(convention), "), per unit of each moment:"))
    titles = (f"Forward {unit}", f"Backward {unit}", "Ratio")
    columns = (Column(("Moment",)), *(Column((title,), number=True) for title in titles))
    rows: list[tuple[Words, ...]] = [
        ((letter(key),) if letters[key] else ("once",), (Number(forward),), (Number(backward),), (each,))
        for key, forward, backward, each in regime.ratios
    ]
    yield Table(f"Backward over forward at the default sizes, convention {convention}", columns, tuple(rows))
