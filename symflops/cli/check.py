"""Checks specs and shows every mistake with place, reason and hint; entries that nothing uses are warnings.

A role that follows from a name and changes what a convention counts is a note; --roles lists all roles with their origin.

  symflops check my_model.yaml
  symflops check my_model.yaml --regime my_regime.yaml
  symflops check my_model.yaml --watch
  symflops check --explain width-mismatch

Of a spec that is named it prints parameters and FLOPs at the defaults, and what changed against the spec that it extends.

Exit code 1 if there is an error; warnings alone leave it at 0. With --output-format json one object is printed on stdout,
with github the annotations of a workflow.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from symflops.cli.terminal import argument, arguments_of
from symflops.support.errors import SymflopsError, did_you_mean

if TYPE_CHECKING:
    from symflops.read.spec_files import SpecFile
    from symflops.support.findings import Diagnostic, Span

    Roles = dict[str, list[dict[str, Any]]]

FORMATS = ("text", "json", "github")
GITHUB = {"error": "error", "warning": "warning", "note": "notice"}


configure = arguments_of(
    argument("specs", nargs="*", metavar="SPEC", help="names or paths; default: all specs of the library"),
    argument("--regime", action="append", default=[], metavar="R", help="a regime to hold against the specs, too"),
    argument("--convention", action="append", default=[], metavar="C", help="a convention to read, too"),
    argument("--config", action="append", default=[], metavar="PATH", help="a config whose structure to derive, too"),
    argument("--output-format", choices=FORMATS, default="text", help="how findings are shown (default: text)"),
    argument("--roles", action="store_true", help="show what each module is for, and whether the spec says so"),
    argument("--watch", action="store_true", help="check again whenever a file changes, until Ctrl-C"),
    argument("--explain", metavar="KIND", help="say what a kind of finding means, and stop"),
)


def run(args: argparse.Namespace) -> int:
    """Check specs, once or on every change; return the exit code, 1 if there are errors."""
    if args.explain:
        return explain(args.explain)
    from symflops.read.spec_files import chosen_specs

    files, code = chosen_specs(args.specs), 0
    if not args.watch:
        return checked(files, args)
    from symflops.cli.actions.check import changes

    try:
        for number, _ in enumerate(changes(files)):
            print("\n" * bool(number), end="", file=sys.stderr, flush=True)
            code = again(files, args)
    except KeyboardInterrupt:
        return code
    return code


def again(files: Sequence[SpecFile], args: argparse.Namespace) -> int:
    """Check ``files`` as :func:`checked`, but print an error and return 1 if a file cannot be read."""
    try:
        return checked(files, args)
    except SymflopsError as error:
        print(f"symflops check: {error}", file=sys.stderr, flush=True)
        return 1


def checked(files: Sequence[SpecFile], args: argparse.Namespace) -> int:
    """Check ``files`` once and print the findings; return the exit code, 1 if there are errors."""
    from symflops.analysis.headline import headline
    from symflops.cli.actions.check import findings
    from symflops.library.lookup import read_config

    configs = [read_config(path) for path in args.config]
    found = [findings(file, args.regime, args.convention, configs) for file in files]
    everything = list(dict.fromkeys(finding for one in found for finding in one))
    failures = [any(finding.severity == "error" for finding in one) for one in found]
    valid = [file for file, failed in zip(files, failures, strict=True) if not failed]
    roles = roles_of(valid) if args.roles else None
    {"text": text, "json": as_json, "github": github}[args.output_format](everything, roles)
    told = map(headline, valid if args.specs and args.output_format == "text" else ())
    print(*(f"{lines}\n" for lines in told if lines), sep="", end="", flush=True)
    failed = sum(failures)
    print(summary(len(files), failed, everything), file=sys.stderr)
    return 1 if failed else 0


def summary(specs: int, failed: int, found: Sequence[Diagnostic]) -> str:
    """Format the summary line: numbers of specs, failed specs, warnings and notes, and a command."""
    line = f"{counted(specs, 'spec')}, {f'{failed} with errors' if failed else 'all fine'}"
    for severity in ("warning", "note"):
        number = sum(finding.severity == severity for finding in found)
        line += f", {counted(number, severity)}" if number else ""
    kind = next((finding.code for finding in found if finding.severity == "error"), "")
    return f"{line}; 'symflops check --explain {kind}' says more" if kind else line


def counted(number: int, what: str) -> str:
    """Format a number with its noun, in the plural if needed: ``2 specs``."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def explain(code: str) -> int:
    """Print what the kind of finding ``code`` means; return the exit code 0."""
    import textwrap

    from symflops.support.findings import kinds

    if code not in kinds():
        hint = did_you_mean(code, kinds(), f"there are {', '.join(kinds())}")
        raise SymflopsError(f"there is no kind '{code}': {hint}")
    print(f"{code}\n\n{textwrap.fill(kinds()[code], 100)}")
    return 0


def roles_of(files: Sequence[SpecFile]) -> Roles:
    """Map the name of each spec to the role rows of its operators, as JSON objects."""
    from symflops.api import load
    from symflops.cli.actions.check import role_rows

    return {file.name: [row._asdict() for row in role_rows(load(file))] for file in files}


def role_table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Format roles as table lines: module, operator, role, its origin, and regions."""
    lines = [("module", "operator", "role", "from", "regions")]
    for row in rows:
        regions = (region if origin == "spec" else f"{region} ({origin})" for region, origin in row["regions"].items())
        lines.append((row["module"] or "-", row["operator"], row["role"], row["origin"], ", ".join(regions)))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def text(found: Sequence[Diagnostic], roles: Roles | None = None) -> None:
    """Print findings for a terminal, in colours unless the terminal or NO_COLOR forbids them."""
    colour = sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    for finding in found:
        print(finding.render(colour), file=sys.stderr)
    for name, rows in (roles or {}).items():
        print("\n".join([name, *role_table(rows)]))


def as_json(found: Sequence[Diagnostic], roles: Roles | None = None) -> None:
    """Print the findings, and the roles if given, as one JSON object to standard output."""
    import json

    more = {} if roles is None else {"roles": roles}
    print(json.dumps({"schema": 1, "findings": [as_object(finding) for finding in found], **more}, indent=1))


def as_object(finding: Diagnostic) -> dict[str, Any]:
    """Convert a finding to JSON; lines and columns count from 1, ``end`` is the column after the last."""
    return {
        "code": finding.code, "severity": finding.severity, "message": finding.message, **place(finding.span),
        "label": finding.label, "hint": finding.hint, "note": finding.note,
        "also": [{**place(label.span), "label": label.text} for label in finding.also],
    }  # fmt: skip


def place(span: Span | None) -> dict[str, Any]:
    """Convert the place of a finding to JSON: path, line, column and end, all None without a place."""
    if span is None:
        return dict.fromkeys(("path", "line", "column", "end"))
    return {"path": span.source.shown, "line": span.line, "column": span.column, "end": span.end}


def github(found: Sequence[Diagnostic], roles: Roles | None = None) -> None:
    """Print findings as workflow commands, which GitHub shows as annotations of lines."""
    for finding in found:
        span = finding.span
        fields = {"title": f"{finding.code}"}
        if span is not None:
            where = {"file": span.source.shown, "line": span.line, "col": span.column, "endColumn": span.end}
            fields = {**{name: str(value) for name, value in where.items()}, **fields}
        parts = [finding.message, *(f"{label.span.source.shown}:{label.span.line}: {label.text}" for label in finding.also)]
        parts += [f"{name}: {words}" for name, words in (("note", finding.note), ("hint", finding.hint)) if words]
        properties = ",".join(f"{name}={escaped(value, ':,')}" for name, value in fields.items())
        message = escaped("\n".join(parts))
        print(f"::{GITHUB[finding.severity]} {properties}::{message}")


def escaped(words: str, more: str = "") -> str:
    """Escape characters that have a meaning in a workflow command, and the characters in ``more``."""
    return "".join(f"%{ord(char):02X}" if char in "%\r\n" + more else char for char in words)
