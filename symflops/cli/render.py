"""Writes the derivation of a spec as LaTeX, PDF, Markdown or HTML: a whole page, or with --fragment what pastes into a paper.

  symflops render llama --format latex > llama.tex
  symflops render llama --format pdf -o papers
  symflops render llama --format markdown --against megatron,verl
  symflops render llama --format latex --fragment --regime full --convention symflops -o paper
  symflops render deepseek_v3 --format pdf --config config.json --numeric

Fragments are the closed forms, a sentence about their symbols, a table of symbols and one of modules, each in a file of its
own below -o. LaTeX fragments are an align, a sentence and two booktabs tables, and say which packages they need; --width
column makes them fit a paper of two columns. A PDF needs latexmk and pdflatex.
HTML is one file with everything in it, a calculator among it, and needs no network; 'symflops site' writes all models.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from symflops.cli.terminal import ASSUME, NUMERIC, SPEC, STRUCTURE, argument, arguments_of
from symflops.support.errors import SymflopsError

ENDINGS = {"latex": "tex", "pdf": "pdf", "markdown": "md", "html": "html"}
"""Formats, with the endings of their files."""
TEX_SECONDS = 300


configure = arguments_of(
    SPEC,
    argument("--format", required=True, choices=tuple(ENDINGS), help="what to write"),
    argument("--fragment", action="store_true", help="pieces without a preamble, not a whole page"),
    argument("--width", choices=("page", "column"), help="of the text that LaTeX fragments go into: one column, or two"),
    argument("-o", "--out", metavar="DIR", help="the folder or file to write to; default: standard output, or here a PDF"),
    STRUCTURE,
    ASSUME,
    NUMERIC,
    argument("--regime", action="append", metavar="R", help="what trains; may be repeated (default: full, forward)"),
    argument("--convention", action="append", metavar="C", help="what is counted; may be repeated (default: all)"),
    argument("--against", metavar="C,C", help="tell what these conventions count, too, and why (takes a while)"),
)


def run(args: argparse.Namespace) -> int:
    """Render a derivation, and print or write it; return the exit code 0."""
    texts = rendered(args)
    folder = args.out or ("." if any(isinstance(text, bytes) for text in texts.values()) else None)
    if folder is None:
        print("\n".join(map(str, texts.values())), end="")
        return 0
    from symflops.support.files import write

    for name, text in texts.items():
        path = Path(folder)
        alone = len(texts) == 1 and path.suffix == Path(name).suffix and not path.is_dir()
        path = path if alone else path / name
        try:
            write(path, text)
        except OSError as error:
            raise SymflopsError(f"{path}: {error.strerror or error}") from None
        print(path, file=sys.stderr)
    return 0


def rendered(args: argparse.Namespace) -> dict[str, str | bytes]:
    """Map the name of each file that a command line asks for to its content."""
    from symflops import __version__
    from symflops.api import CONVENTIONS, REGIMES, load
    from symflops.emit.latex import document as latex
    from symflops.emit.markdown import document as markdown
    from symflops.library.lookup import read_config

    model, ending = load(args.spec), ENDINGS[args.format]
    known = model.known(read_config(args.config) if args.config else None, args.assume, args.numeric)
    regimes, conventions = (tuple(dict.fromkeys(names or ())) for names in (args.regime, args.convention))
    if args.width and not (args.fragment and args.format == "latex"):
        raise SymflopsError("--width is of LaTeX fragments: --format latex --fragment")
    if args.fragment:
        fragments = fragments_of(args.format)
        wide = {"wide": args.width} if args.width else {}
        program = program_of(model, known, regimes or REGIMES, conventions or CONVENTIONS)
        pieces = fragments(program, __version__, **wide)
        return {f"{program.name}-{piece}.{ending}": text for piece, text in pieces.items()}
    if args.format == "html":
        return {f"{model.spec.name}.{ending}": html_page(model, known, regimes, conventions, args.against)}
    if args.format == "pdf":
        tools()  # before the work, not after it
    shown = page(model, known, regimes, conventions or CONVENTIONS, args.against)
    text = (markdown if args.format == "markdown" else latex).render_page(shown, __version__)
    return {f"{shown.name}.{ending}": typeset(text, shown.name) if args.format == "pdf" else text}


def program_of(model: Any, known: Any, regimes: Sequence[str], conventions: Sequence[str]) -> Any:
    """Derive the program with the ``known`` sizes substituted; None: that of the default structure."""
    return known.of(model.program(regimes, conventions, known.config)) if known else model.typical(regimes, conventions)


def fragments_of(name: str) -> Callable[..., dict[str, str]]:
    """Return the function that renders the fragments of the format ``name``.

    Raises:
        SymflopsError: no fragments are printed in this format.
    """
    from symflops.emit.latex.fragments import render_fragments as latex
    from symflops.emit.markdown.document import render_fragments as markdown

    able = {"latex": latex, "markdown": markdown}
    if name not in able:
        raise SymflopsError(f"there are no fragments in the format '{name}', only in {', '.join(able)}")
    return able[name]


def html_page(model: Any, known: Any, regimes: tuple[str, ...], conventions: tuple[str, ...], against: str | None) -> str:
    """Render the HTML page with a calculator, as one file."""
    from symflops.api import CONVENTIONS
    from symflops.cli.actions.site import standalone
    from symflops.cli.actions.stored_rules import baked, compared

    program = None
    if known or regimes or conventions:
        program = program_of(model, known, regimes or baked(model), conventions or CONVENTIONS)
    return standalone(model, program, [name.strip() for name in against.split(",")] if against else compared())


def page(model: Any, known: Any, regimes: tuple[str, ...], conventions: tuple[str, ...], against: str | None) -> Any:
    """Build the page of a model, with figures of its regimes and of the conventions in ``against``."""
    from symflops.analysis.baseline import against as against_baseline
    from symflops.api import REGIMES
    from symflops.cli.actions.stored_rules import baked, convention_figures
    from symflops.emit.emit import page_of
    from symflops.emit.page.sections import document
    from symflops.library.records.verified import verifications

    program = program_of(model, known, regimes or (REGIMES if known else baked(model)), conventions)
    figures: tuple[Any, ...] = ()
    if against:
        others = [name.strip() for name in against.split(",")]
        figures = convention_figures(model, program, known.config or {}, [conventions[0], *others])
    beside = None if known else against_baseline(model)
    return document(page_of(program, verifications(model.file), regimes or REGIMES, figures, beside))


def tools() -> None:
    """Check that the tools for a PDF are installed.

    Raises:
        SymflopsError: a tool is missing.
    """
    import shutil

    missing = [tool for tool in ("latexmk", "pdflatex") if not shutil.which(tool)]
    if missing:
        hint = "install TeX Live (Debian: apt-get install latexmk texlive-latex-extra), or take --format latex"
        raise SymflopsError(f"a PDF needs {' and '.join(missing)}, not found: {hint}")


def typeset(source: str, name: str) -> bytes:
    """Typeset a LaTeX document and return the PDF.

    Raises:
        SymflopsError: TeX is not installed, fails on the document, or takes too long.
    """
    import os
    import subprocess
    import tempfile

    tools()
    with tempfile.TemporaryDirectory(prefix="symflops-") as folder:
        (Path(folder) / f"{name}.tex").write_text(source, encoding="utf-8")
        # a spec may come from anybody: no shell escape, no rc files, no files outside of the folder
        tex = "pdflatex -no-shell-escape %O %S"
        command = ["latexmk", "-norc", "-pdf", f"-pdflatex={tex}", "-interaction=nonstopmode", "-halt-on-error", f"{name}.tex"]
        paranoid = os.environ | {"openin_any": "p", "openout_any": "p", "shell_escape": "f"}
        options: dict[str, Any] = {"capture_output": True, "text": True, "errors": "replace", "timeout": TEX_SECONDS}
        try:
            done = subprocess.run(command, cwd=folder, env=paranoid, check=False, **options)
        except subprocess.TimeoutExpired:
            raise SymflopsError(f"LaTeX takes more than {TEX_SECONDS} s for the page of '{name}'") from None
        output = Path(folder) / f"{name}.pdf"
        if done.returncode or not output.is_file():
            wrong = [line for line in done.stdout.splitlines() if line.startswith(("!", "Latexmk: Err"))]
            raise SymflopsError(f"LaTeX does not take the page of '{name}': {(wrong or ['no reason given'])[0]}")
        return output.read_bytes()
