"""Drafts a spec from a real module: writes YAML, symbolic in the fields of the config and in the lengths, and proves it.

The module runs on the meta device; its config and arguments are varied to find the formula of every dimension. The spec goes to
standard output, or to the file that --output names, with its census beside it; the report goes to standard error. Exit code 1
if the draft is not proven exact.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from symflops.cli.terminal import argument, arguments_of
from symflops.support.errors import SymflopsError
from symflops.support.reading import json_object

configure = arguments_of(
    argument("reference", metavar="PACKAGE:CLASS", help="a module class: transformers:X, my_pkg.models:X, path/file.py:X"),
    argument(
        "--config",
        metavar="JSON",
        help="the arguments that build it, small ones; default: a case of a known spec, or its defaults",
    ),
    argument("--inputs", metavar="JSON", help='the arguments of a call: {"x": {"shape": [2, 24, 8], "dtype": "float32"}}'),
    argument(
        "--variant",
        metavar="NAME=JSON",
        action="append",
        default=[],
        help="fields of a config with which the structure is another one: drafted too, and merged under conditions",
    ),
    argument(
        "--variant-inputs", metavar="NAME=JSON", action="append", default=[], help="the arguments of a call of that variant"
    ),
    argument("--published", metavar="JSON", action="append", default=[], help="a config to prove the draft for, too"),
    argument("--output", "-o", metavar="PATH", help="write the spec there, and its census beside it: a file, or a folder"),
    argument("--timeout", type=float, default=120.0, metavar="SECONDS", help="give up after this much processor time"),
    argument("--device", choices=("meta", "cpu"), default="meta", help="cpu for a module that looks at values"),
    argument("--json", action="store_true", help="print the report, with the spec in it, as JSON"),
)


def run(args: argparse.Namespace) -> int:
    """Draft a spec, print it, and report the proof; return the exit code, 1 if the draft is not exact."""
    from symflops.draft.draft import draft_in_process
    from symflops.draft.trace.steps import Subject

    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # a user's own package is found where the command runs, as 'python -m' finds it
    config, inputs, options = given(args)
    subject = Subject(args.reference, config, inputs, options, args.device)
    published = [Subject(args.reference, json_object(path), inputs, options, args.device) for path in args.published]
    try:
        found = draft_in_process(subject, args.timeout, show_progress(), published, variants_of(args, subject))
    finally:
        clear()
    if args.output and found.text:
        save(Path(args.output), found.text, found.census)
    if args.json:
        print(json.dumps(report(found), indent=1))
    else:
        if not args.output:
            print(found.text, end="")
        print(summary(found), file=sys.stderr)
    return 0 if found.exact else 1


def variants_of(args: argparse.Namespace, subject: Any) -> dict[str, Any]:
    """Map each variant to a subject: ``subject`` with config fields replaced, and inputs if given.

    Raises:
        SymflopsError: a name has no file or occurs twice, or arguments belong to no variant.
    """
    tables: list[dict[str, Any]] = []
    for option, texts in (("--variant", args.variant), ("--variant-inputs", args.variant_inputs)):
        table: dict[str, Any] = {}
        for text in texts:
            name, equals, path = text.partition("=")
            if not (name and equals and path) or name in table:
                raise SymflopsError(f"{option} {text}: write NAME=FILE, each name once")
            table[name] = json_object(path)
        tables.append(table)
    configs, inputs = tables
    for name in inputs.keys() - configs.keys():
        raise SymflopsError(f"--variant-inputs {name}: there is no --variant {name}")
    return {
        name: subject.having({**subject.config, **fields}, inputs.get(name, subject.inputs)) for name, fields in configs.items()
    }


def save(path: Path, text: str, census: str = "") -> None:
    """Write a draft to the file ``path``, or below the folder ``path``, and its census beside it.

    If that fails, print the draft.

    Raises:
        SymflopsError: the file cannot be written.
    """
    from symflops.library.records.census import census_path
    from symflops.support.files import write

    name = text.partition("name: ")[2].partition("\n")[0]
    try:
        file = path / f"{name}.yaml" if path.is_dir() else path
        write(file, text)
        if census:
            write(census_path(file), census)
    except OSError as error:
        print(text, end="")
        raise SymflopsError(f"{path}: {error.strerror or error}") from None


def given(args: argparse.Namespace) -> tuple[Any, Any, Any]:
    """Return (config, call arguments, options) of a command line.

    What the command line lacks comes from the example of the class.
    """
    from symflops.draft.draft import example_of

    if args.config and args.inputs:
        return json_object(args.config), json_object(args.inputs), {}
    found = example_of(args.reference)
    if found is None and not args.inputs:
        raise SymflopsError("give --inputs, and --config with small sizes: there is no example of this class")
    config, inputs, options = found or ({}, {}, {})
    return (json_object(args.config) if args.config else config), (json_object(args.inputs) if args.inputs else inputs), options


def show_progress() -> Any:
    """Return a function that prints a text as progress, or does nothing if stderr is no terminal."""
    if not sys.stderr.isatty():
        return lambda _: None
    return lambda text: print(f"\r{text:<76.76}", end="", file=sys.stderr, flush=True)


def clear() -> None:
    """Clear the line that the function of :func:`show_progress` printed."""
    if sys.stderr.isatty():
        print(f"\r{' ' * 76}\r", end="", file=sys.stderr, flush=True)


def report(found: Any) -> dict[str, Any]:
    """Convert the result of a draft to JSON data."""
    return {
        "schema": 1,
        "reference": found.subject.reference,
        "exact": found.exact,
        "spec": found.text,
        "lines": len(found.text.splitlines()),
        "seconds": round(found.seconds, 1),
        "processor_seconds": round(found.processor, 1),
        "gate": [{"check": one.name, "measured": one.measured, "taped": one.taped} for one in found.gate],
        "varied": found.varied,
        "stuck": found.stuck,
        "unsolved": [{"place": place, "values": list(values)} for place, values in found.unsolved],
        "proofs": [
            {"at": one.label, "kind": one.kind, "exact": one.exact, "checks": one.checks, "differences": one.differences}
            for one in found.proofs
        ],
        "decide": found.decide,
        "given_up": found.given_up,
        "partial": list(found.partial),
        "proven": found.proof if found.exact else None,
        "forms": [one.as_json() for one in found.forms],
        "holds_for": found.holds_for,
        "census": json.loads(found.census) if found.census else None,
        "samples": found.samples,
        "runs": found.runs,
    }


def summary(found: Any) -> str:
    """Format the result of a draft as text."""
    exact = sum(proof.exact for proof in found.proofs)
    verdict = "exact" if found.exact else "partial"
    lines = [f"{found.subject.reference}: {verdict}: {exact} of {len(found.proofs)} configurations are equal"]
    lines += [f"  partial: {reason}" for reason in found.partial]
    if found.exact:
        lines.append(f"  proven {found.proof}")
    lines.append(f"  {len(found.text.splitlines())} lines, {found.samples} samples, {found.runs} runs, {found.seconds:.0f} s")
    lines.append(f"  varied: {', '.join(found.varied) or 'nothing'}")
    if found.stuck:
        lines.append(f"  could not be moved: {', '.join(found.stuck)}")
    for place, values in found.unsolved:
        lines.append(f"  unsolved: {place}: {', '.join(map(str, values[:8]))}, ...")
    for proof in found.proofs:
        lines += [f"  differs at {proof.label}: {difference}" for difference in proof.differences[1:3]]
    lines += [f"  holds for {one}" for one in found.holds_for]
    lines += [f"  a person decides: {one}" for one in found.decide]
    return "\n".join(lines)
