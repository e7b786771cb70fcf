"""Runs a real module class with symbols as its sizes, and prints the closed forms that it tells.

Parameters and FLOPs of both passes, in the fields of the class's own config and the lengths of its inputs, by module; where
they hold; and at how many unseen configs they were equal to PyTorch's counter. The class is not changed; it runs in a
process of its own, without values in its tensors (needs 'pip install symflops[verify]'). A class of a file is run: trace
only files that you trust. Exit code 1 if the forms are not proven.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from symflops.cli.terminal import argument, arguments_of

configure = arguments_of(
    argument("reference", metavar="PACKAGE:CLASS", help="a module class: transformers:X, my_pkg.models:X, path/file.py:X"),
    argument("--config", metavar="JSON", help="fields of its config, or arguments of its constructor; default: its defaults"),
    argument("--inputs", metavar="JSON", help='the arguments of a call: {"x": {"shape": [2, 24, 8], "dtype": "float32"}}'),
    argument("--regime", default="full", metavar="R", help="what trains: full, forward, lora:targets=*.q_proj, checkpointed"),
    argument("--timeout", type=float, default=120.0, metavar="SECONDS", help="give up after this time"),
    argument("--format", choices=("text", "json", "markdown", "latex"), default="text", help="what is printed"),
    argument("--json", action="store_const", dest="format", const="json", help="print a JSON object"),
)


def run(args: argparse.Namespace) -> int:
    """Trace a class and print its forms; return the exit code, 1 if they are not proven."""
    from symflops.support.reading import json_object
    from symflops.verify.classes import referenced
    from symflops.verify.symbolic import printing
    from symflops.verify.symbolic.tracing import trace

    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # a user's own package is found where the command runs, as 'python -m' finds it
    config, inputs = (None if text is None else json_object(text) for text in (args.config, args.inputs))
    found = trace(referenced(args.reference), config=config, inputs=inputs, regime=args.regime, seconds=args.timeout)
    if args.format == "json":
        print(json.dumps(printing.as_json(found), indent=1))
    else:
        shown = {"text": printing.in_terminal, "markdown": printing.in_markdown, "latex": printing.in_latex}
        print(shown[args.format](found))
    return 0 if found.proven else 1
