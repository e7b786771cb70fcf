"""Where the FLOPs of a model go: a tree of modules with parameters, both passes, the share of each, then the closed form."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from typing import Any

from symflops.cli.arguments import (
    ASSUME,
    BATCH,
    CONFIG,
    CONVENTION,
    NUMERIC,
    OVER,
    REGIME,
    SPEC_OR_CONFIG,
    argument,
    arguments_of,
)
from symflops.cli.estimate import aligned, batch_of, scaled
from symflops.diagnostics.errors import SymflopsError
from symflops.runtime.units import unit_of

BAR = 20


configure = arguments_of(
    SPEC_OR_CONFIG,
    CONFIG,
    ASSUME,
    NUMERIC,
    BATCH,
    argument("--depth", type=int, default=4, metavar="N", help="levels of modules to show (default: 4)"),
    REGIME,
    CONVENTION,
    argument("--plot", metavar="FILE", help="the share of each part over the length, a picture (needs matplotlib)"),
    OVER,
)


@dataclass
class Module:
    """One node of the tree: what it and everything below it holds and costs."""

    name: str
    parameters: int = 0
    forward: int = 0
    backward: int = 0
    children: dict[str, Module] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Forward and backward."""
        return self.forward + self.backward


def run(args: argparse.Namespace) -> int:
    """Print the tree and the closed form."""
    from symflops.catalog.lookup import by_config, by_name, closed_forms, is_file, read_config, records_of
    from symflops.runtime.evidence import summary
    from symflops.specialise.assumed import known_of

    if not args.spec and not args.config:
        raise SymflopsError("say which model: a SPEC, or --config PATH")
    config = read_config(args.config) if args.config else {}
    spec = args.spec or by_config(config)[1]
    derived = closed_forms(spec, config, args.regime, args.convention)
    known = known_of(derived.program.keys, config if args.config else None, args.assume, args.numeric)
    if args.assume:
        config = dict(known.config or {})
        derived = closed_forms(spec, config, args.regime, args.convention)
    estimator = derived.estimator(config)
    if not is_file(spec):
        estimator.records = records_of(by_name(spec), spec, estimator)
    batch = batch_of(args.batch) if args.batch else default_batch(derived.program)
    moments = estimator.moments(**batch)
    root = tree(estimator, moments)
    print(f"{derived.program.title or derived.program.name}")
    print(f"regime {args.regime}, convention {args.convention}, batch {batch}, moments {moments.as_dict()}")
    print(per_token(estimator, moments) + "\n")
    unit = unit_of(estimator)
    print("\n".join(rows(root, args.depth, unit)))
    print("\n".join(["", *roles(derived)]))
    print("\n" + "\n".join(summary(estimator.evidence)))
    print("\n" + closed_form(derived.under(known), unit, bool(known)))
    if args.plot:
        plot(args, derived, config, batch)
    return 0


def per_token(estimator: Any, moments: Any) -> str:
    """The parameters that one token goes through, the tokens of the batch, and FLOPs per token."""
    from symflops.runtime.per_token import tokens_of

    tokens = tokens_of(estimator.stored, estimator.regime, estimator.sizes, moments)
    told = f"parameters {estimator.parameters:,}"
    if estimator.parameters_active is not None:
        told += f", active per token {estimator.parameters_active:,}"
    rate = scaled(estimator.total(moments) // tokens).strip() + unit_of(estimator) if tokens else ""
    return f"{told}; {tokens:,} tokens, {rate} per token" if tokens else told


def plot(args: argparse.Namespace, derived: Any, config: dict[str, Any], batch: dict[str, Any]) -> None:
    """The share of each part in a step, over the length of the items of a stream, and where attention is half."""
    from symflops.emit.page.parts import ATTENTION, of_parts
    from symflops.emit.page.plots import breakdown, save, sweep

    grown = sweep(batch, args.over or "")
    estimators = of_parts(derived.program, config, derived.case)

    def figures(batch: dict[str, Any]) -> dict[str, int]:
        return {name: one.total(one.moments(**batch)) for name, one in estimators.items()}

    def half(batch: dict[str, Any]) -> bool:
        found = figures(batch)
        return 2 * found.get(ATTENTION, 0) >= sum(found.values())

    rows = [figures(grown.at(side)) for side in grown.sides]
    parts = {name: [row[name] for row in rows] for name in estimators}
    tokens = [grown.tokens(side) for side in grown.sides]
    title = f"{derived.program.name}: where the work goes"
    save(breakdown(title, grown.label, tokens, parts, grown.first(half)), args.plot)


def default_batch(program: Any) -> dict[str, list[Any]]:
    """One item per stream, of typical lengths."""
    from symflops.emit.page.typical_values import typical_batch

    return typical_batch(program)


def tree(estimator: Any, moments: Any) -> Module:
    """Modules by the parts of their paths."""
    root = Module("total")
    for name, count in estimator.tensors().items():
        for node in path_to(root, name.rpartition(".")[0]):
            node.parameters += count
    for name, flops in estimator.by_module(moments).items():
        for node in path_to(root, name):
            node.forward += flops.forward
            node.backward += flops.backward
    return root


def path_to(root: Module, path: str) -> list[Module]:
    """The nodes from the root to ``path``; an index of a repeat belongs to the name before it."""
    found, node = [root], root
    words: list[str] = []
    for word in path.split(".") if path else []:
        if word == "*" and words:
            words[-1] += ".*"
        else:
            words.append(word)
    for word in words:
        node = node.children.setdefault(word, Module(word))
        found.append(node)
    return found


def rows(root: Module, depth: int, unit: str) -> list[str]:
    """The table of the tree."""
    lines = [("module", "parameters", f"forward {unit}", f"backward {unit}", "share of the total")]

    def visit(node: Module, level: int, indent: str) -> None:
        share = node.total / root.total if root.total else 0.0
        bar = "#" * round(share * BAR) + "." * (BAR - round(share * BAR))
        passes = (scaled(node.forward).strip(), scaled(node.backward).strip())
        lines.append((indent + node.name, scaled(node.parameters).strip(), *passes, f"{100 * share:6.2f} % {bar}"))
        if level < depth:
            for child in node.children.values():
                visit(child, level + 1, indent + "  ")

    visit(root, 0, "")
    texts = aligned([line[:4] for line in lines])
    return [f"{text}  {line[4]}" for text, line in zip(texts, lines, strict=True)]


def roles(derived: Any) -> list[str]:
    """The modules that conventions may count apart, by role and by region; what the spec leaves open is inferred."""
    from symflops.runtime.evidence import shortened

    found: dict[tuple[str, bool], list[str]] = {}
    for line in derived.program.regime(derived.case.regime).under(derived.case.convention):
        own = () if line.role in (line.operator, "product") else (line.role,)
        for name in (*own, *line.regions):
            found.setdefault((name, name in line.inferred), []).append(line.module)
    rows = []
    for (name, inferred), modules in found.items():
        names = list(dict.fromkeys(modules))
        rows.append((f"{name} (inferred)" if inferred else name, shortened(names)))
    width = max((len(name) for name, _ in rows), default=0)
    return ["roles:", *(f"  {name.ljust(width)}  {text}" for name, text in rows)] if rows else ["roles: those of the operators"]


def closed_form(derived: Any, unit: str, specialised: bool = False) -> str:
    """The closed forms, a line per moment, and what the letters mean."""
    from symflops.emit.python.closed_forms import symbol_table, symbols_of, wrapped

    lines = [f"closed form, {unit} per batch:"]
    for name, form in (("forward", derived.forward), ("backward", derived.backward)):
        lines += ["  " + line for line in wrapped(name, [f"({text}) * {moment}" for moment, text in form.items()])]
    lines.append("where")
    told = symbols_of(derived.program, derived.case) if specialised else symbol_table(derived.program)
    lines += ["  " + line for line in told]
    named = {*derived.forward, *derived.backward}
    moments = [moment for moment in derived.program.moments if moment.name in named or not moment.side]
    sums = [f"{moment.name} over {moment.items}" for moment in moments]
    return "\n".join([*lines, "  moments: " + ", ".join(sums)])
