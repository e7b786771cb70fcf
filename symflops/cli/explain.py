"""Where the FLOPs of a model go: a tree of modules with parameters, both passes, the share of each, then the closed form.

  symflops explain llama --batch '{"text": [4096]}'
  symflops explain --config model_folder --top 10
  symflops explain unet_2d_condition --depth 2 --all --json

Modules without work are hidden unless --all. Lines fit the terminal, or the variable COLUMNS. --json has every module.
"""

from __future__ import annotations

import json
from math import prod

from symflops.cli.amounts import chosen_batch
from symflops.cli.terminal import (
    ASSUME,
    BATCH,
    CONFIG,
    CONVENTION,
    JSON,
    NUMERIC,
    OVER,
    REGIME,
    SPEC_OR_CONFIG,
    UNIT,
    argument,
    arguments_of,
    columns,
    of_batch,
    styled,
    width,
    wrapped,
)  # fmt: skip
from symflops.evaluate.units import NAMES, scaled
from symflops.support.errors import SymflopsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from symflops.analysis.explanation import Explanation

BAR = 20
WITH_BAR = 90
"""The least width of a terminal at which shares are also drawn as bars."""


configure = arguments_of(
    SPEC_OR_CONFIG,
    CONFIG,
    ASSUME,
    NUMERIC,
    argument("--symbolic", action="store_true", help="formulas for every config, also those that a config decides"),
    BATCH,
    argument("--depth", type=int, default=4, metavar="N", help="levels of modules to show (default: 4)"),
    argument("--all", action="store_true", help="show modules without work, too"),
    argument("--top", type=int, metavar="N", help="the N modules that do most work themselves, the first one first"),
    REGIME,
    CONVENTION,
    UNIT,
    argument("--plot", metavar="FILE", help="the share of each part over the length, a picture (needs matplotlib)"),
    OVER,
    JSON,
)


def run(args: argparse.Namespace) -> int:
    """Print the tree of modules and the closed form of a model; return the exit code 0."""
    from symflops.analysis.explanation import Explanation

    for name in ("depth", "top"):
        if getattr(args, name) is not None and getattr(args, name) < 0:
            raise SymflopsError(f"--{name} is {getattr(args, name)}, not a number from 0 on")
    model, known = selected_estimator(args)
    told = Explanation(model, chosen_batch(args, model, quiet=True), known)
    if args.json:
        print(json.dumps(told.as_dict() if args.top is None else {**told.as_dict(), "modules": told.top(args.top)}))
    else:
        print("\n".join(lines(told, args)))
    if args.plot:
        plot(args, told)
    return 0


def selected_estimator(args: argparse.Namespace) -> tuple[Any, Any]:
    """Return (estimator of the chosen model, known values of its sizes; None if none are known)."""
    from symflops.library import lookup

    if not args.spec and not args.config:
        raise SymflopsError("say which model: a SPEC, or --config PATH")
    config, known = lookup.read_config(args.config) if args.config else {}, None
    spec = args.spec or lookup.by_config(config)[1]
    if args.assume:
        from symflops.api import load

        known = load(spec).known(config or None, args.assume, args.numeric)
        config = dict(known.config or {})
    elif args.numeric or (config and not args.symbolic):
        from symflops.evaluate.assumed import known_of

        known = known_of({}, config, "", args.numeric)
    model = lookup.interpreter(spec, config, args.regime, counted(args))
    model.asked = getattr(args, "asked", "")
    return model, known


def counted(args: argparse.Namespace) -> Any:
    """Return the convention of a command line; for ``--unit macs``, without its elementwise work."""
    if args.unit == "flops":
        return args.convention
    from symflops.api import convention_of

    return convention_of(args.convention).in_macs


def selected_rows(told: Explanation, args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the rows of the modules to print, chosen by ``--top``, or by ``--depth`` and ``--all``."""
    if args.top is not None:
        return told.top(args.top)
    rows = [row for row in told.rows if row["depth"] <= args.depth]
    return rows if args.all else [row for row in rows if row["total"] or not row["depth"]]


def lines(told: Explanation, args: argparse.Namespace) -> list[str]:
    """Format the whole explanation as lines that fit the terminal."""
    from symflops.evaluate.evidence import summary

    most, found = width(), told.estimate
    unit, rows = NAMES[found["unit"]], selected_rows(told, args)
    moments = ", ".join(f"{name} = {value:,}" for name, value in found["moments"].items())
    head = [
        f"regime {found['regime']}, convention {found['convention']}, {of_batch(told.batch)}",
        f"moments {moments}",
        per_token(found, unit, told.batch),
    ]
    head = [line for text in head for line in wrapped(text, most, "", "  ")]
    hides = args.top is None and not args.all and any(not row["total"] for row in told.rows)
    note = [styled("--all shows the modules without work, too", "dim")] if hides else []
    evidence = [line for text in summary(found["evidence"]) for line in wrapped(text, most, "", "    ")]
    title = [styled(line, "bold") for line in wrapped(told.heading, most)]
    modules = [*table(rows, most, unit, args.top is not None), *note]
    return [*title, *head, "", *modules, "", *roles(told, most), "", *evidence, "", *kept(told, most), *forms(told, most, unit)]


def kept(told: Explanation, most: int) -> list[str]:
    """Format what the batch keeps for further tokens: elements by kind, each with its closed form; empty if nothing."""
    found = []
    for kind, row in told.cache.items():
        form = " + ".join(f"({text}) * {moment}" for moment, text in row["form"].items())
        found += wrapped(f"{row['elements']:,} = {form}", most, f"  {kind}: ", " " * 6)
    return [styled("kept for further tokens, elements per batch:", "bold"), *found, ""] if found else []


def per_token(found: dict[str, Any], unit: str, batch: dict[str, Any]) -> str:
    """Format a line: parameters (all, and active per token), tokens of the batch, FLOPs per token.

    If no stream of ``batch`` has as many rows as the tokens, the line says which rows these are.
    """
    told = f"parameters {found['parameters']:,}"
    if found["parameters_active"] is not None:
        told += f", active per token {found['parameters_active']:,}"
    if not found["tokens"]:
        return told
    which = "" if found["tokens"] in map(rows_given, batch.values()) else " (queries of the first attention)"
    return f"{told}; {found['tokens']:,} tokens{which}, {scaled(found['flops_per_token'])}{unit} per token"


def rows_given(items: Any) -> int | None:
    """The number of rows of ``items``, lengths or lists of sides; None for anything else, such as an array."""
    sides = [item if isinstance(item, (list, tuple)) else [item] for item in items] if isinstance(items, (list, tuple)) else []
    whole = all(isinstance(side, int) for item in sides for side in item)
    return sum(prod(item) for item in sides) if sides and whole else None


def table(rows: list[dict[str, Any]], most: int, unit: str, flat: bool) -> list[str]:
    """Format the table of modules in lines of at most ``most`` characters.

    Modules are printed as a tree, or if ``flat`` as a list of paths.
    """
    drawn = most >= WITH_BAR
    cells = [(f"module (in {unit})", "parameters", "forward", "backward", "share")]
    for row in rows:
        name = row["module"] if flat else "  " * row["depth"] + row["name"]
        share = f"{100 * row['share']:6.2f} %"
        if drawn:
            filled = round(row["share"] * BAR)
            share += f" {'#' * filled}{'.' * (BAR - filled)}"
        cells.append((name, *(scaled(row[key]) for key in ("parameters", "forward", "backward")), share))
    return columns(cells, most)


def roles(told: Explanation, most: int) -> list[str]:
    """Format the modules that conventions may count separately, by role and by region."""
    from symflops.evaluate.evidence import shortened

    names = [f"{row['role']} (inferred)" if row["inferred"] else row["role"] for row in told.roles]
    wide = max(map(len, names), default=0)
    rows = zip(names, told.roles, strict=True)
    texts = [wrapped(shortened(row["modules"]), most, f"  {name.ljust(wide)}  ", " " * (wide + 4)) for name, row in rows]
    return ["roles:", *(line for text in texts for line in text)] if names else ["roles: those of the operators"]


def forms(told: Explanation, most: int, unit: str) -> list[str]:
    """Format the closed forms, one line per moment, and the meaning of each letter."""
    found = [styled(f"closed form, {unit} per batch:", "bold")]
    for name in ("forward", "backward"):
        head = f"  {name:<10} = "
        for moment, text in told.closed_form[name].items():
            found += wrapped(f"({text}) * {moment}", most, head, " " * 17)
            head = " " * 13 + "+ "
    found.append("where")
    wide = max((len(row["letter"]) for row in told.symbols), default=0)
    for row in told.symbols:
        value = f" = {row['value']}" if "value" in row else ""
        doc = f": {row['doc']}" if row.get("doc") else ""
        meaning = f"= {row['formula']}" if "formula" in row else f"{row['field']}{value}{doc}"
        found += wrapped(meaning, most, f"  {row['letter'].ljust(wide)}  ", " " * (wide + 4))
    if told.folded:
        found += wrapped(f"with {', '.join(told.folded)}", most, "  ", " " * 7)
    sums = [
        (items, [name for name, other in told.sums.items() if other == items]) for items in dict.fromkeys(told.sums.values())
    ]
    named = "; ".join(
        [f"{', '.join(names)} over {items}" for items, names in sums]
        + [f"{name} = {text} of the batch" for name, text in told.of_batch.items() if text not in ("1", name)]
    )
    return [*found, *wrapped(f"moments: {named}", most, "  ", " " * 7)]


def plot(args: argparse.Namespace, told: Explanation) -> None:
    """Plot the share of each part of the work over the length of a stream.

    A line marks the length at which attention reaches half of the work.
    """
    from symflops.emit.page.plots import breakdown, save
    from symflops.evaluate.item_analysis import ATTENTION
    from symflops.evaluate.step import Step, sweep

    model, grown = told.model, sweep(told.batch, args.over or "")
    program = model.program
    step = Step(program, model.sizes, told.batch, program.case(model.regime, model.convention), model.stored)

    def figures(batch: dict[str, Any]) -> dict[str, int]:
        return step.at(batch=batch).parts()

    def half(batch: dict[str, Any]) -> bool:
        found = figures(batch)
        return 2 * found.get(ATTENTION, 0) >= sum(found.values())

    rows = [figures(grown.at(side)) for side in grown.sides]
    parts = {name: [row[name] for row in rows] for name in rows[0]}
    tokens = [grown.tokens(side) for side in grown.sides]
    title = f"{program.name}: where the work goes"
    save(breakdown(title, grown.label, tokens, parts, grown.first(half)), args.plot)
