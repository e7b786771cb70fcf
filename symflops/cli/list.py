"""Lists the specs by group (the classes that each describes, its variants, and the streams of a batch), or what else
there is: published models, regimes, conventions, the blocks of the library, operators of the language, devices.

  symflops list
  symflops list models llama
  symflops list regimes
  symflops list devices --json
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import Any

from symflops.cli.terminal import JSON, argument, arguments_of, line_width, styled, wrapped
from symflops.library.names import key, suggestion
from symflops.support.errors import SymflopsError

KINDS = ("specs", "models", "regimes", "conventions", "blocks", "operators", "devices")


configure = arguments_of(
    argument("kind", nargs="?", default="specs", choices=KINDS, help="what to list (default: specs)"),
    argument(
        "word", nargs="?", default="", metavar="WORD", help="list names that contain this word alone, as the models of a spec"
    ),
    JSON,
)


def run(args: argparse.Namespace) -> int:
    """Print the specs, or all regimes, conventions, blocks, operators or devices; return exit code 0."""
    if args.kind == "specs":
        return specs(args.json, args.word)
    rows = [row for row in ROWS[args.kind]() if key(args.word) in key(f"{row['name']} {row.get('spec', '')}")]
    if args.json:
        print(json.dumps({"schema": 1, args.kind: rows}, indent=1))
        return 0
    if not rows:
        raise nothing(args.kind, args.word, [row["name"] for row in ROWS[args.kind]()])
    wide = max(len(row["name"]) for row in rows)
    for row in rows:
        print("\n".join(wrapped(documented(row), line_width(), f"{row['name']:<{wide}}  ", " " * (wide + 2))))
    return 0


def documented(row: dict[str, Any]) -> str:
    """Format the documentation of a row, with the version of the framework that a convention reproduces."""
    from symflops.ir.reproduced import Reproduced

    return f"{row['doc']} ({Reproduced(**row['reproduces']).sentence})" if row.get("reproduces") else str(row["doc"])


def specs(as_json: bool, word: str) -> int:
    """Print the specs whose names contain a word as a table, or as JSON; return the exit code 0."""
    from symflops.library.catalog import assumed
    from symflops.library.lookup import catalogs, class_name

    every = {name: entry for catalog in reversed(catalogs()) for name, entry in catalog.specs.items()}
    found = {name: entry for name, entry in every.items() if key(word) in key(name)}
    if as_json:
        print(json.dumps({"schema": 1, "specs": found}, indent=1, sort_keys=True))
        return 0
    others = {name: entry for name, entry in assumed().specs.items() if key(word) in key(name)}
    if not found and not others:
        raise nothing("specs", word, [*every, *assumed().specs])
    wide = max(map(len, (*found, *others)))

    def told(name: str, entry: dict[str, Any], what: str) -> str:
        streams = " ".join(f"{stream}[{','.join(axes)}]" for stream, axes in entry["streams"].items())
        return "\n".join(wrapped(f"{what}; batch: {streams}", line_width(), f"  {name:<{wide}}  ", " " * (wide + 4)))

    group = ""
    for name, entry in sorted(found.items(), key=lambda item: (item[1]["group"], item[0])):
        classes = ", ".join(class_name(reference) for reference in entry["references"])
        variants = ", ".join(variant for variant in entry.get("structures", ()) if variant != "default")
        if entry["group"] != group:
            print("\n" * bool(group) + styled(f"{entry['group']}:", "bold"))
            group = entry["group"]
        print(told(name, dict(entry), f"{classes or entry['title']}{f' ({variants})' if variants else ''}"))
    if others:
        print("\n" * bool(found) + "structures that frameworks take models for, by name alone:")
    for name, entry in sorted(others.items()):
        print(told(name, dict(entry), entry["title"]))
    return 0


def nothing(kind: str, word: str, known: Sequence[str]) -> SymflopsError:
    """Create the error for a word that no name contains, with near misses among the ``known`` names."""
    hint = suggestion(word, known, f"'symflops list {kind}' shows all")
    return SymflopsError(f"no name among the {kind} contains '{word}': {hint}")


def regimes() -> list[dict[str, Any]]:
    """Return a dict with ``name`` and ``doc`` for each shipped regime."""
    from symflops.api import regime_of
    from symflops.read.spec_files import pages

    return [{"name": name, "doc": regime_of(name).doc} for name in pages("regimes")]


def conventions() -> list[dict[str, Any]]:
    """Return a dict for each shipped convention: name, doc, unit, links, and the framework that it reproduces."""
    from dataclasses import asdict

    from symflops.api import convention_of
    from symflops.read.spec_files import pages

    found = {name: convention_of(name) for name in pages("conventions")}
    rows = []
    for name, one in found.items():
        row = {"name": name, "doc": one.doc, "unit": one.unit, "links": list(one.links)}
        rows.append({**row, "reproduces": asdict(one.reproduces) if one.reproduces else None})
    return rows


def blocks() -> list[dict[str, Any]]:
    """Return a dict for each block of the library: its ``name``, and as ``doc`` the comment at its top."""
    from symflops.read.spec_files import block_texts, comment_of

    return [{"name": name, "doc": comment_of(text)} for name, text in block_texts().items()]


def operators() -> list[dict[str, Any]]:
    """Return a dict with ``name``, ``doc`` and ``fields`` for each operator kind of specs."""
    from symflops.ops.table import ALL

    return [{"name": kind.name, "doc": kind.doc, "fields": [field.name for field in kind.fields]} for kind in ALL]


def devices() -> list[dict[str, Any]]:
    """Return a dict for each device with known rates: name, aliases, and dense peak TFLOP/s by number type."""
    from symflops.training.devices.peaks import table

    rows: dict[str, dict[str, Any]] = {}
    for row in table():
        if row.confidence != "U":
            found = rows.setdefault(row.name, {"name": row.name, "aliases": list(row.aliases), "tflops": {}})
            found["tflops"][row.dtype] = row.tflops
    for found in rows.values():
        found["doc"] = ", ".join(f"{dtype} {rate:g}" for dtype, rate in found["tflops"].items()) + " TFLOP/s"
    return list(rows.values())


def models() -> list[dict[str, Any]]:
    """Return a dict for each published model: its names, spec, parameters and source; repositories first."""
    from symflops.evaluate.units import scaled
    from symflops.library.lookup import catalogs

    rows, known = [], set()
    for catalog in catalogs():
        for name, row in catalog.repositories().items():
            known.add(row["model"])
            rows.append({**row, "name": name, "spec": row["model"].partition("/")[0]})
        for spec, short, model in catalog.models():
            if f"{spec}/{short}" not in known and short != "default":
                rows.append({"name": f"{spec}/{short}", "spec": spec, "model": f"{spec}/{short}"} | source_of(model))
    for row in rows:
        amount = f", {scaled(row['parameters']).replace('G', 'B')} parameters" if "parameters" in row else ""
        row["doc"] = f"{row['model']}{amount}; {row['source']}"
    return rows


def source_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters and the source of a published model that no repository names."""
    if "source" not in row:
        return {"source": f"a measured record of {row['reference']}"}
    return {"parameters": row["parameters"], "source": row["source"]}


ROWS = {
    "models": models,
    "regimes": regimes,
    "conventions": conventions,
    "blocks": blocks,
    "operators": operators,
    "devices": devices,
}
