"""Formulas as JavaScript expressions over BigInt, and the tables of a script: work and parameters.

Names with a leading ``$`` are functions of the template.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from symflops.emit.code.infix import ATOM, DENOMINATOR, SUM, UNARY, CodePrinter, Language
from symflops.emit.code.sharing import Row, Scope, Table, Use, columns_aligned, identifier, shared
from symflops.emit.grouping import grouped
from symflops.formula.formula import ONE, ZERO, Apply, Bracket, Formula, Power, Sym, TallyOf
from symflops.ir.program import Amount, Field, Program, RegimeLines, Tensor

WORDS = frozenset((
    "abstract", "arguments", "async", "await", "boolean", "break", "byte", "case", "catch", "char", "class", "const",
    "continue", "debugger", "default", "delete", "do", "double", "else", "enum", "eval", "export", "extends", "false",
    "final", "finally", "float", "for", "function", "get", "goto", "if", "implements", "import", "in", "instanceof",
    "int", "interface", "let", "long", "native", "new", "null", "of", "package", "private", "protected", "public",
    "return", "set", "short", "static", "super", "switch", "synchronized", "this", "throw", "throws", "transient",
    "true", "try", "typeof", "undefined", "var", "void", "volatile", "while", "with", "yield", "BigInt", "Infinity",
    "NaN",
))  # fmt: skip
"""Reserved words, and globals that a name would shadow."""


def name_of(name: str) -> str:
    """Turn a letter into an identifier; a reserved word gets a ``$``, which no letter contains."""
    return f"{name}$" if name in WORDS else name


class JavaScriptPrinter(CodePrinter):
    """Printer of JavaScript expressions, in which truth values are 0n and 1n."""

    def symbol(self, name: str) -> str:
        return self.names[name] if name in self.names else name_of(name.partition("@")[0])

    def literal(self, value: int) -> str:
        return f"{value}n"

    def quotient(self, top: str, bottom: str, product: bool) -> tuple[str, int]:
        return f"$div({top}, {bottom})", ATOM

    def power(self, formula: Power) -> str:
        """Print a power in parentheses, because JavaScript forbids a minus before a power."""
        base = self.inside(formula.base, ATOM)
        return base if formula.exponent == 1 else f"({base}**{formula.exponent}n)"

    def apply(self, formula: Apply) -> tuple[str, int]:
        arguments = [self.text(argument) for argument in formula.arguments]
        match formula.function:
            case "floordiv":
                return f"$div({arguments[0]}, {arguments[1]})", ATOM
            case "ceildiv":
                return f"-$div(-{self.inside(formula.arguments[0], UNARY)}, {arguments[1]})", SUM
            case "excess":
                return f"$max(0n, {arguments[0]})", ATOM
        return f"${formula.function}({', '.join(arguments)})", ATOM

    def bracket(self, formula: Bracket) -> tuple[str, int]:
        first, *others = formula.arguments
        match formula.kind:
            case "flag":
                return self.text(first), ATOM
            case "given":
                assert isinstance(first, Sym)
                return (f"$given({self.names[first.name]})" if first.name in self.names else f"has_{first.name}"), ATOM
            case "at_least":
                return f"BigInt({self.inside(first, SUM)} >= {self.inside(others[0], SUM)})", ATOM
            case "contains":
                return f"$contains({self.text(others[0])}, {self.text(first)})", ATOM
        return f"$equal({self.text(first)}, {self.text(others[0])})", ATOM

    def tally(self, formula: TallyOf) -> tuple[str, int]:
        low = "0n" if formula.low == ZERO else self.text(formula.low)
        index = self.symbol(formula.index)
        return f"$tally({low}, {self.text(formula.high)}, ({index}) => {self.text(formula.condition)})", ATOM


class LengthsPrinter(JavaScriptPrinter):
    """Printer of functions of lengths; the printed code checks that exact divisions have no remainder."""

    def quotient(self, top: str, bottom: str, product: bool) -> tuple[str, int]:
        return f"$exact({top}, {bottom})", ATOM


READ = {"flag": "$flag({})", "rational": "{}[0]", DENOMINATOR: "{}[1]"}
ABSENT = {"number": "{} ?? 0n", "count": "{} ?? 0n", "list": "{} ?? $nothing"}


def size(field: Field) -> str:
    """Print the expression that reads a size from ``sizes``."""
    kinds = {**READ, **ABSENT} if field.nullable else READ
    return kinds.get(field.kind, "{}").format(f"sizes.{field.attribute}")


def vector(cells: Iterable[str]) -> str:
    """Print an array."""
    return f"[{', '.join(cells)}]"


JAVASCRIPT = Language(
    printer=JavaScriptPrinter,
    assigned="const {} = {};".format,
    size=size,
    given="$given(sizes.{0.attribute})".format,
)


T = TypeVar("T")
WIDEST = 72
"""Maximum width in characters of a cell that takes part in the alignment of its column."""

LONG = 24
"""Length of a name above which a shorter one may replace it."""

Cells = tuple[str, Formula, Formula, tuple[Formula, ...], Formula, str]
"""Cells of a line: amount, FLOPs per unit, counts (forward, each gradient, recomputed), contraction."""


@dataclass(frozen=True, slots=True)
class Function:
    """A generated JavaScript function that returns a table.

    Attributes:
        name: Its name.
        doc: Its comment.
        statements: The statements before the table.
        blocks: The shared blocks of rows, as (name, rows).
        rows: The rows of the table.
        base: If not empty, a function whose table is returned in place of all this, without gradients.
    """

    name: str
    doc: str
    statements: list[str] = field(default_factory=list)
    blocks: list[tuple[str, list[str]]] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    base: str = ""


def regimes(program: Program) -> list[Function]:
    """Build the work functions, one per regime, and per convention with work of its own.

    A regime that runs only the same forward pass as the first one reuses the function of the first one.
    """
    found = []
    for key, regime in program.works():
        if regime.name == program.regimes[0].name:
            first, base = regime, f"_{identifier(key)}"
        under = f", convention '{key.removeprefix(regime.name + ' ')}'" if key != regime.name else ""
        doc = f"Regime '{regime.name}'{under}{': ' + regime.doc if regime.doc else ''}."
        if regime is not first and untrained(regime) and forward_only(regime) == forward_only(first):
            found.append(Function(f"_{identifier(key)}", doc, base=base))
        else:
            found.append(work_of(program, f"_{identifier(key)}", regime, doc))
    return found


def work_of(program: Program, name: str, regime: RegimeLines, doc: str) -> Function:
    """Build the function that returns the work of a regime, one row per contraction."""
    amounts = list(dict.fromkeys(line.amount for line in regime.lines))
    vectors = [formula for amount in amounts for _, formula in (*amount.useful, *amount.executed)]
    rows = [
        (line.module, (line.amount.name, line.unit, line.forward, line.backward, line.recomputed, line.contraction))
        for line in regime.lines
    ]
    scope = Scope(program, JAVASCRIPT, [*vectors, *(formula for _, cells in rows for formula in formulas_of(cells))])
    table = shared(rows, scope.taken)
    scope.share([*vectors, *(formula for cells in table.cells() for formula in formulas_of(cells))])
    moments = ", ".join(moment.name for moment in program.moments)
    scope.statements.append(f"// what a contraction runs over, in multiples of ({moments})")
    names = short_names(amounts, program)
    text = scope.printer.text
    scope.statements += [JAVASCRIPT.assigned(names[one.name], amount_of(program, one, text)) for one in amounts]

    def columns(path: str, cells: Cells) -> list[str]:
        amount, unit, forward, backward, recomputed, _ = cells
        work = names[amount], text(unit), text(forward), vector(map(text, backward))
        return [f"[{json.dumps(path)},", *(f"{cell}," for cell in work), f"{text(recomputed)}],"]

    return printed(name, doc, scope, table, columns)


def amount_of(program: Program, amount: Amount, text: Callable[[Formula], str]) -> str:
    """Print an amount as an array with one coefficient per moment.

    If useful and executed pairs differ, print a choice of two arrays.
    """
    useful, executed = (
        vector(text(dict(terms).get(place, ZERO)) for place in range(len(program.moments)))
        for terms in (amount.useful, amount.executed)
    )
    return useful if useful == executed else f'pairs === "useful" ? {useful} : {executed}'


def parameters(program: Program) -> tuple[list[tuple[str, str]], list[Function]]:
    """Build the functions that return parameters; regimes with equal tensors share one.

    Return ((regime, name of its function) pairs, functions).
    """
    names: list[tuple[str, str]] = []
    functions: dict[tuple[Tensor, ...], Function] = {}
    for regime in program.regimes:
        if regime.tensors not in functions:
            name = "_parameters" + (f"_{identifier(regime.name)}" if functions else "")
            functions[regime.tensors] = elements(program, name, regime.tensors)
        names.append((regime.name, functions[regime.tensors].name))
    return names, list(functions.values())


def elements(program: Program, name: str, tensors: Sequence[Tensor]) -> Function:
    """Build the function that returns the number of elements by parameter name.

    The numbers of tensors with equal names are added.
    """
    counts = {path: tuple(some) for path, some in grouped((tensor.name, tensor.count) for tensor in tensors).items()}
    scope = Scope(program, JAVASCRIPT, [tensor.count for tensor in tensors])
    table = shared(list(counts.items()), scope.taken)
    scope.share(count for cells in table.cells() for count in cells)

    def columns(path: str, cells: tuple[Formula, ...]) -> list[str]:
        return [f"[{json.dumps(path)},", f"{' + '.join(map(scope.printer.text, cells))}],"]

    return printed(name, "Elements per parameter, all copies together.", scope, table, columns)


def trained(program: Program) -> list[tuple[str, str, list[str], str]]:
    """Return, per regime with frozen parameters, the parts of the function that counts trained elements.

    They are (regime, name of the function, statements, expression of the number).
    """
    found = []
    for regime in program.regimes:
        if not all(regime.trains):
            scope = Scope(program, JAVASCRIPT, [regime.trainable])
            scope.share([regime.trainable])
            name = f"_trained_{identifier(regime.name)}"
            found.append((regime.name, name, scope.statements, scope.printer.text(regime.trainable)))
    return found


def work_context(program: Program) -> dict[str, Any]:
    """Return the template variables for the functions of work and parameters.

    ``hidden`` are the positions of rows of contractions that PyTorch's counter does not see, by regime. ``work`` are pairs
    (regime, name of its work function).
    """
    works = dict(program.works())
    names, counts = parameters(program)
    functions = regimes(program)
    return {
        "regime_names": [regime.name for regime in program.regimes],
        "regimes": functions,
        "work": [(key, function.name) for key, function in zip(works, functions, strict=True)],
        "blocks": any(function.blocks for function in functions),
        "hidden": {
            key: tuple(position for position, line in enumerate(regime.lines) if not line.seen) for key, regime in works.items()
        },
        "parameters": counts,
        "parameter_names": names,
        "parameter_blocks": any(function.blocks for function in counts),
        "trained": trained(program),
    }


def untrained(regime: RegimeLines) -> bool:
    """Whether a regime runs only the forward pass."""
    return all(count == ZERO for line in regime.lines for count in (*line.backward, line.recomputed))


def forward_only(regime: RegimeLines) -> list[object]:
    """Return all that the forward pass of a regime consists of, for comparison with other regimes."""
    return [(line.module, line.amount, line.unit, line.forward, line.contraction, len(line.backward)) for line in regime.lines]


def short_names(amounts: Sequence[Amount], program: Program) -> dict[str, str]:
    """Map the name of each amount to a variable; a long name becomes that of its only moment."""
    names = {amount.name: f"{amount.name}_" for amount in amounts}
    for amount in amounts:
        alone = amount.useful if amount.useful == amount.executed and [count for _, count in amount.useful] == [ONE] else ()
        short = [f"{program.moments[position].name}_" for position, _ in alone]
        if len(amount.name) > LONG and short and len(short[0]) < len(amount.name) and short[0] not in names.values():
            names[amount.name] = short[0]
    return names


def formulas_of(cells: Cells) -> list[Formula]:
    """Return the formulas in the cells of a table row."""
    _, unit, forward, backward, recomputed, _ = cells
    return [unit, forward, *backward, recomputed]


def printed(
    name: str,
    doc: str,
    scope: Scope,
    table: Table[T],
    columns: Callable[[str, T], list[str]],
) -> Function:
    """Build the function ``name`` that returns ``table``.

    ``scope`` contains its statements, and ``columns`` prints the cells of a row from its path and cells.
    """

    def rows(entries: Sequence[Row[T] | Use]) -> list[str]:
        aligned = iter(columns_aligned([columns(row.path, row.cells) for row in entries if isinstance(row, Row)], WIDEST))
        return [f"...$at({json.dumps(row.path)}, {row.block})," if isinstance(row, Use) else next(aligned) for row in entries]

    blocks = [(block, rows(entries)) for block, entries in table.blocks]
    return Function(name, doc, scope.statements, blocks, rows(table.rows))
