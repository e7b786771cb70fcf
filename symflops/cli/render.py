"""Writes the derivation of a spec, as LaTeX, Markdown or HTML: a whole page, or with --fragment what pastes into a paper.

  symflops render llama --format latex > llama.tex
  symflops render llama --format latex --fragment --regime full --convention symflops -o paper

HTML is one file with everything in it, a calculator among it, and needs no network; 'symflops site' writes all models.
Fragments are the closed forms, a table of symbols and a table of modules, each in a file of its own below -o. LaTeX
fragments are an align and two booktabs tables, and say which packages they need.
"""

from __future__ import annotations

import argparse
import sys

ENDINGS = {"latex": "tex", "markdown": "md", "html": "html"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``symflops render``."""
    parser.add_argument("spec", metavar="SPEC", help="name or path of a spec")
    parser.add_argument("--format", required=True, choices=tuple(ENDINGS), help="what to write")
    parser.add_argument("--fragment", action="store_true", help="pieces without a preamble, not a whole page")
    parser.add_argument("-o", "--out", metavar="DIR", help="the folder to write to; default: to standard output")
    parser.add_argument("--config", metavar="PATH", help="config that fixes a structure")
    parser.add_argument("--regime", action="append", metavar="R", help="what trains; may be repeated (default: all)")
    parser.add_argument("--convention", action="append", metavar="C", help="what is counted; may be repeated (default: all)")


def run(args: argparse.Namespace) -> int:
    """Render, then print or write."""
    texts = rendered(args)
    if args.out is None:
        print("\n".join(texts.values()), end="")
        return 0
    from pathlib import Path

    from symflops.ground.errors import SymflopsError
    from symflops.ground.files import write

    for name, text in texts.items():
        path = Path(args.out) / name
        try:
            write(path, text)
        except OSError as error:
            raise SymflopsError(f"{path}: {error.strerror or error}") from None
        print(path, file=sys.stderr)
    return 0


def rendered(args: argparse.Namespace) -> dict[str, str]:
    """What to write, by file name."""
    from symflops import __version__
    from symflops.api import CONVENTIONS, REGIMES, load
    from symflops.lookup import read_config
    from symflops.targets import latex, markdown
    from symflops.verified import verifications

    if args.format == "html":
        return html_page(args)
    model = load(args.spec)
    config = read_config(args.config) if args.config else None
    regimes, conventions = (tuple(dict.fromkeys(names or ())) for names in (args.regime, args.convention))
    program = model.program(regimes or REGIMES, conventions or CONVENTIONS, config)
    target, ending = latex if args.format == "latex" else markdown, ENDINGS[args.format]
    if args.fragment:
        pieces = target.render_fragments(program, __version__)
        return {f"{program.name}-{piece}.{ending}": text for piece, text in pieces.items()}
    return {f"{program.name}.{ending}": target.render(program, __version__, verifications(model.file))}


def html_page(args: argparse.Namespace) -> dict[str, str]:
    """The page in one file, by its name."""
    from symflops.api import CONVENTIONS, load
    from symflops.ground.errors import SymflopsError
    from symflops.lookup import read_config
    from symflops.project import baked
    from symflops.site import standalone

    if args.fragment:
        raise SymflopsError("there are no fragments in HTML: --format latex or markdown has them")
    model = load(args.spec)
    if not (args.config or args.regime or args.convention):
        return {f"{model.spec.name}.html": standalone(model)}
    regimes, conventions = (tuple(dict.fromkeys(names or ())) for names in (args.regime, args.convention))
    program = model.program(
        regimes or baked(model), conventions or CONVENTIONS, read_config(args.config) if args.config else None
    )
    return {f"{model.spec.name}.html": standalone(model, program)}
