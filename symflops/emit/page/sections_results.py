"""Page sections on figures: regimes, conventions, parameters, and verification."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction

from symflops.emit.grouping import grouped
from symflops.emit.page.tree import (
    Block,
    Code,
    Column,
    Equation,
    EquationLink,
    Figure,
    Group,
    Items,
    Line,
    Link,
    Math,
    Number,
    Paragraph,
    Row,
    Scaled,
    Section,
    Table,
    Words,
)
from symflops.emit.page.types import Page
from symflops.emit.page.writing import NONE, by_group, ended, letter, listed, math, names, plural, series
from symflops.evaluate.step import COUNTER, Inserted
from symflops.evaluate.units import AS_SOURCE, NAMES, TWICE_AS_HIGH
from symflops.evaluate.worked_figures import Worked
from symflops.formula.formula import Formula, Sum, Sym
from symflops.ir.program import Program
from symflops.ir.verification import KnownInexact, Verification, VerifiedCase
from symflops.read.reproduced import reproduced_by

CHANGES = (
    "What trains, what is adapted and what is recomputed changes the work of a step; a convention says what of it is counted."
)
OUTSIDE = (
    ", for a reason that lies outside of it. The parameters agree; of the FLOPs, which are the derived ones, it is known by"
    " how much they are more."
)
TIMES = " \u00d7 "
PASSES = ("Parameters", "Forward", "Backward")


def batch_of(worked: Worked) -> Words:
    """Return words for the batch for which figures are computed."""
    return series([(Code(name), f" {entry}") for name, entry in entries(worked)])


def entries(worked: Worked) -> Iterator[tuple[str, str]]:
    """Yield (stream, its lengths as text) for the batch for which figures are computed."""
    for name, entry in worked.batch:
        yield name, TIMES.join(map(str, entry)) if isinstance(entry, (list, tuple)) else str(entry)


def numbers(*titles: str) -> Iterator[Column]:
    """Yield a column of numbers per title."""
    return (Column((title,), number=True) for title in titles)


def regimes(page: Page) -> Section:
    """Build the section on regimes and conventions, with the figures of a step by regime."""
    told: list[Words] = [("Regime ", Code(name), f": {doc}") for name, doc in page.offered if doc]
    for field, names_of in grouped((field, name) for name, field in page.left_out).items():
        every = len(names_of) == len(page.offered)
        whose: Words = (
            ("Every regime leaves",)
            if every
            else (
                plural(len(names_of), "Regime ", "Regimes "),
                *names(names_of),
                plural(len(names_of), " leaves", " leave"),
            )
        )
        told.append((*whose, " out the ", field.doc, ", ", Code(field.keys[0])))
    told += [
        ("Convention ", Code(name), f": {convention_doc(page.program, name)}{source_of(page, name)}")
        for name in page.program.conventions
    ]
    blocks: list[Block] = [Paragraph((CHANGES,)), Items(ended(told))]
    if page.worked and len(page.worked.regimes) > 1:
        blocks += by_regime(page.worked, page.unit)
    return Section("regimes", "Regimes and conventions", (*blocks, Figure("by-regime")))


def source_of(page: Page, name: str) -> str:
    """Return a text on the framework whose figures a convention reproduces, and on the unit; maybe empty."""
    told = name == page.program.conventions[0] or name in page.program.own
    version = reproduced_by(name) if told else None
    single = f". {TWICE_AS_HIGH}" if page.counted_in(name) == AS_SOURCE else ""
    return f"{f'; it reproduces {version.sentence}' if version else ''}{single}"


def convention_doc(program: Program, name: str) -> str:
    """Describe in words which attention work a convention counts."""
    pairs, lengths = program.row(name).pairs, program.row(name).lengths
    if name in program.own:
        return "rules of its own"
    if program.padded:
        return "padding counted" if lengths == "padded" else "useful work, without padding"
    return "useful pairs of masked attention" if pairs == "useful" else "all pairs of masked attention"


def by_regime(worked: Worked, unit: str) -> Iterator[Block]:
    """Yield the table of the figures of one step by regime."""
    rest = f", in {unit}; ratios count recomputed work:"
    yield Paragraph(("For the batch above, convention ", Code(worked.convention), rest))
    columns = (
        Column(("Regime",), 13), *numbers("Trained parameters", "Forward", "Backward", "Recomputed"),
        Column(("To ", Code(worked.regimes[0].name)), number=True), Column((f"To 3{TIMES}forward",), number=True),
    )  # fmt: skip
    rows: list[tuple[Words, ...]] = []
    for each in worked.regimes:
        counts: list[Words] = [(Number(count),) for count in (each.trainable, each.forward, each.backward, each.recomputed)]
        shares: list[Words] = [() if share is None else (Number(share),) for share in (each.to_first, each.to_three_forward)]
        rows.append(((Code(each.name),), *counts, *shares))
    yield Table("One step by regime", columns, tuple(rows), small=2)


def conventions(worked: Worked, name: str) -> Section:
    """Build the section with the figures of a step by convention, and the main reason of each difference."""
    units = {NAMES[each.unit] for each in worked.conventions}
    shared = units.pop() if len(units) == 1 else ""
    columns = (
        Column(("Convention",), 18), *numbers(f"{shared}, both passes" if shared else "Both passes", "Ratio"),
        Column(("Main reason",), 39),
    )  # fmt: skip
    rows: list[tuple[Words, ...]] = []
    for each in worked.conventions:
        ratio: Words = () if each.ratio is None else (Number(each.ratio),)
        reason: Words = (each.reason or "the same",) if rows else NONE
        own = () if shared else (f" {NAMES[each.unit]}",)
        rows.append(((Code(each.name),), (Number(each.total), *own), ratio, reason))
    step = Paragraph(("The same step, ", *batch_of(worked), ", as others count it:"))
    more = Paragraph((Code(f"symflops compare {name} --conventions A,B"), " explains any two of them, rule by rule."))
    blocks = (step, Table("The same step by conventions", columns, tuple(rows)), more)
    return Section("conventions", "What other conventions say", blocks)


def parameters(page: Page) -> Section:
    """Build the section with the number of parameters, and all tensors."""
    at = () if page.default_parameters is None else (": at the default sizes ", Number(page.default_parameters))
    blocks: list[Block] = [Paragraph((Link("#result", ("The result",)), " has their number", *at, "."))]
    if page.active is not None:
        blocks.append(Paragraph(("A token goes through these, of routed experts through those that it is routed to:",)))
        blocks.append(Equation((Line("active", (Scaled(page.active),)),)))
        if page.default_active is not None:
            blocks.append(Paragraph(("At the default sizes this is ", Number(page.default_active), ".")))
    star = ("Tensor by tensor, a star standing for the index of a copy and ", Code("{0-3}"), " for the numbers 0 to 3:")
    columns = (Column(("Tensor",), 39), Column(("Shape",), 17), Column(("Copies",), 11), Column(("Elements",), 25))
    rows = by_group(
        (tensor.group, (
            (Code(tensor.name),), series([side(size) for size in tensor.shape], TIMES, TIMES) or (math("1"),),
            (Math((tensor.copies,)),), (Math((tensor.count,)),),
        ))
        for tensor in page.tensors
    )  # fmt: skip
    return Section("parameters", "Parameters", (*blocks, Paragraph(star), Table("Parameters", columns, tuple(rows))))


def side(size: Formula) -> Words:
    """Return the math of one dimension of a shape, a sum in parentheses."""
    return (math("(", size, ")"),) if isinstance(size, Sum) else (Math((size,)),)


def verification(page: Page) -> Section:
    """Build the section on the measured cases that the derivation equals, and those that it cannot equal."""
    blocks: list[Block] = []
    for item in page.verified:
        blocks += exact(item) if item.cases else ()
        blocks += inexact(item) if item.inexact else ()
    if not page.verified:
        verify = ("; ", Code("symflops verify"), " compares the derivation with the real model.")
        blocks.append(Paragraph(("No measured case was at hand when this page was printed", *verify)))
    if page.inserted:
        blocks += insertion(page, page.inserted)
    return Section("verified", "Step 4: verification" if page.inserted else "Verification", tuple(blocks), "Verification")


def insertion(page: Page, found: Inserted) -> Iterator[Block]:
    """Yield the worked example: values put into the closed forms, and the result beside a measured one."""
    group = next(each for each in page.regimes[0].groups if COUNTER in each.conventions)
    links = series([(EquationLink(form.same or form.number),) for form in group.forms], " and ")
    values = series([math_value(name, value) for name, value in found.sizes])
    given = {name: entries if isinstance(entries, list) else [entries] for name, entries in (found.case.batch or {}).items()}
    batch = series([(Code(name), " ", *listed(entries)) for name, entries in given.items()])
    measured = ("Step 4. In ", Code(found.case.name), " of ", Code(found.reference))
    sizes = (", ", *values) if values else ()
    told: Words = ("Equations ", *links, " with these values:") if group.forms else ("The closed forms are 0.",)
    yield Paragraph((*measured, *sizes, "; its batch is ", *batch, ". ", *told))
    columns = (Column(("Moment",)), *numbers("Value", "Times, forward", "Times, backward"))
    rows: list[Row] = [
        ((letter(name),), (Number(value),), (Number(forward),), (Number(backward),))
        for name, value, forward, backward in found.terms
    ]
    rows += [Group()] if rows else []
    passes = tuple(zip((found.forward, found.backward), found.counted, strict=True))
    rows.append((("Sum of the products",), (), *((Number(derived),) for derived, _ in passes)))
    rows.append(((f"Counted by PyTorch {found.torch}",), (), *((Number(counted),) for _, counted in passes)))
    rows.append((("Difference",), (), *((Number(derived - counted),) for derived, counted in passes)))
    yield Table("The closed forms and what was counted", columns, tuple(rows))
    if found.known:
        yield Paragraph((f"The difference is known: {found.known.reason}.",))


def math_value(name: str, value: object) -> Words:
    """Return the math that says which value a size has."""
    if isinstance(value, (int, Fraction)) and not isinstance(value, bool):
        return (Math((Sym(name), f" = {value if value.denominator == 1 else float(value)}")),)
    return letter(name), " = ", *(listed(value) if isinstance(value, (list, tuple)) else (Code(json.dumps(value)),))


def exact(item: Verification) -> Iterator[Block]:
    """Yield the blocks on the cases that the derivation equals."""
    cases = len(item.cases)
    counted = (
        f" ({item.version}) has and does: PyTorch {item.torch} counted its parameters and the FLOPs of both passes in"
        f" {cases} {plural(cases, 'case', 'cases')}, and each agrees to the last unit."
    )
    yield Paragraph(("The derivation equals what ", Code(item.reference), counted))
    alike = grouped((figures(case), case.name) for case in item.cases)
    rows = tuple((names(cases, ", "), *counts) for counts, cases in alike.items())
    yield Table(f"Measured cases of {item.reference}", (Column(("Case",), 38), *numbers(*PASSES)), rows)


def figures(case: VerifiedCase) -> tuple[Words, ...]:
    """Return the table cells with the parameters and the FLOPs of both passes of a case."""
    return (Number(case.parameters),), (Number(case.forward),), (Number(case.backward),)


def inexact(item: Verification) -> Iterator[Block]:
    """Yield the blocks on the cases that no derivation can equal, each with its difference and its reason."""
    cases = len(item.inexact)
    yield Paragraph((
        f"No derivation can equal what PyTorch {item.torch} counted of ", Code(item.reference),
        f" ({item.version}) in {cases} {plural(cases, 'case', 'cases')}{OUTSIDE}",
    ))  # fmt: skip
    columns = (Column(("Case",), 15), *numbers("Parameters", "Forward", "More than counted", "Backward", "More than counted"))
    rows = tuple(((Code(case.name),), *differences(case, known)) for case, known in item.inexact)
    yield Table(f"Cases of {item.reference} that cannot be exact", columns, rows, small=2)
    yield Items(ended([(Code(case.name), f": {known.reason}") for case, known in item.inexact]))


def differences(case: VerifiedCase, known: KnownInexact) -> tuple[Words, ...]:
    """Return the cells of :func:`figures`, for each pass with the difference from the measured value."""
    parameters, forward, backward = figures(case)
    return parameters, forward, (Number(known.forward, True),), backward, (Number(known.backward, True),)
