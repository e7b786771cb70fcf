"""Writes a plain PyTorch module of a spec, to run, count and train what it describes.

  symflops skeleton llama > llama_skeleton.py
  symflops skeleton deepseek_v3 --variant dense -o skeletons/deepseek.py
  symflops skeleton draft.yaml --config config.json

Modules and parameters have the names of the spec, sizes stay letters, loops stay loops. What has no form in PyTorch is a marked
gap, where the forward pass raises NotImplementedError; '# stands in' marks what the spec does not say, such as which pairs
a sparse attention picks. 'symflops verify' runs the skeleton of a spec without a class or cases as its witness.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from symflops.cli.terminal import SPEC, argument, arguments_of
from symflops.support.errors import SymflopsError

configure = arguments_of(
    SPEC,
    argument("--variant", default="", metavar="V", help="a published structure of the spec; default: its defaults"),
    argument("--config", metavar="PATH", help="config.json, a folder with one, or JSON"),
    argument("-o", "--out", metavar="FILE", help="the file to write; default: standard output"),
)


def run(args: argparse.Namespace) -> int:
    """Print or write the skeleton of a spec, and the gaps in it; return the exit code 0."""
    from symflops.api import load
    from symflops.library.lookup import read_config
    from symflops.support.files import write
    from symflops.verify.skeletons import written

    if args.variant and args.config:
        raise SymflopsError("say a variant or a config, not both: a config has a structure of its own")
    model = load(args.spec)
    found = written(model, read_config(args.config) if args.config else None, args.variant).skeleton
    if args.out:
        try:
            write(Path(args.out), found.text)
        except OSError as error:
            raise SymflopsError(f"{args.out}: {error.strerror or error}") from None
        print(args.out, file=sys.stderr)
    else:
        print(found.text, end="")
    for gap in found.gaps:
        print(f"gap: {gap}", file=sys.stderr)
    return 0
