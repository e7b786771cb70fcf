"""Writes the result for a spec as LaTeX, PDF, Markdown or HTML: one page, with --full also its derivation, or with --fragment
what pastes into a paper.

  symflops render llama --format pdf -o papers
  symflops render llama --format latex --full > llama.tex
  symflops render llama --format markdown --full --against megatron,verl
  symflops render llama --format latex --fragment --regime full --convention symflops -o paper
  symflops render deepseek_v3 --format pdf --config config.json --numeric
  symflops render llama mixtral --format latex

The page has the figures at the default sizes, the closed forms, a line for each letter, and a table by module. With --config
it has the case of that config, and its numbers beside the letters.

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

from symflops.cli.terminal import ASSUME, NUMERIC, STRUCTURE, argument, arguments_of, one_of
from symflops.support.errors import SymflopsError

ENDINGS = {"latex": "tex", "pdf": "pdf", "markdown": "md", "html": "html"}
"""Formats, with the endings of their files."""
TEX_SECONDS = 300
REPEATED = "may be repeated (default:"


configure = arguments_of(
    argument("spec", nargs="+", metavar="SPEC", help="name or path of a spec; of several, one table of their formulas"),
    argument("--format", required=True, choices=tuple(ENDINGS), help="what to write"),
    one_of(
        argument("--full", action="store_true", help="add the derivation, step by step"),
        argument("--fragment", action="store_true", help="pieces without a preamble, not a whole page"),
    ),
    argument("--width", choices=("page", "column"), help="of the text that LaTeX fragments go into: one column, or two"),
    argument("-o", "--out", metavar="DIR", help="the folder or file to write to; default: standard output, or here a PDF"),
    STRUCTURE,
    ASSUME,
    NUMERIC,
    argument(
        "--regime",
        action="append",
        metavar="R",
        help="what trains; may be repeated (default: full; with --full or --fragment also forward)",
    ),
    argument(
        "--convention",
        action="append",
        metavar="C",
        help="what is counted; may be repeated (default: symflops; with --full or --fragment also torch)",
    ),
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

    if len(args.spec) > 1:
        return beside(args)
    model, ending = load(args.spec[0]), ENDINGS[args.format]
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
        return {f"{model.spec.name}.{ending}": html_page(model, known, regimes, conventions, args.against, True)}
    if args.format == "pdf":
        tools()  # before the work, not after it
    shown = page(model, known, regimes, conventions or (CONVENTIONS if args.full else CONVENTIONS[:1]), args.against, args.full)
    text = (markdown if args.format == "markdown" else latex).render_page(shown, __version__)
    return {f"{shown.name}.{ending}": typeset(text, shown.name) if args.format == "pdf" else text}


def beside(args: argparse.Namespace) -> dict[str, str | bytes]:
    """Render several specs side by side in one table of formulas; map the name of the file to its content.

    Raises:
        SymflopsError: an option is of one spec alone.
    """
    from symflops import __version__
    from symflops.api import load
    from symflops.emit.emit import page_of
    from symflops.emit.latex import document as latex
    from symflops.emit.markdown import document as markdown
    from symflops.emit.page.side_by_side import side_by_side

    single = ("full", "fragment", "config", "set", "assume", "numeric", "against", "width")
    given = [f"--{name}" for name in single if getattr(args, name)] + ["--format html"] * (args.format == "html")
    if given or any(len(names or ()) > 1 for names in (args.regime, args.convention)):
        raise SymflopsError(f"several specs have one regime and one convention, and not {given[0] if given else 'several'}")
    if args.format == "pdf":
        tools()
    regime, convention = ((names or [usual])[0] for names, usual in ((args.regime, "full"), (args.convention, "symflops")))
    pages: dict[str, Any] = {}
    for place, found in enumerate(args.named, 1):
        model = load(found.spec)
        program = program_of(model, model.known(found.config or None), [regime], [convention])
        title = found.called(True) if found.asked else program.name
        pages[f"{title}-{place}" if title in pages else title] = page_of(program, (), [program.regimes[0].name])
    shown = side_by_side(pages)
    text = (markdown if args.format == "markdown" else latex).render_page(shown, __version__)
    name = shown.name.replace(" ", "_").replace("/", "-")
    return {f"{name}.{ENDINGS[args.format]}": typeset(text, name) if args.format == "pdf" else text}


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


def html_page(
    model: Any, known: Any, regimes: tuple[str, ...], conventions: tuple[str, ...], against: str | None, full: bool
) -> str:
    """Render the HTML page with a calculator, as one file."""
    from symflops.api import CONVENTIONS
    from symflops.cli.actions.site import standalone
    from symflops.cli.actions.stored_rules import baked, compared

    program = None
    if known or regimes or conventions:
        program = program_of(model, known, regimes or baked(model), conventions or CONVENTIONS)
    others = [name.strip() for name in against.split(",")] if against else compared() if full else ()
    return standalone(model, program, others, full)


def page(
    model: Any, known: Any, regimes: tuple[str, ...], conventions: tuple[str, ...], against: str | None, full: bool
) -> Any:
    """Build the page of a model, with figures of its regimes and of the conventions in ``against``; ``full`` adds the proof."""
    from symflops.analysis.baseline import against as against_baseline
    from symflops.api import REGIMES
    from symflops.cli.actions.stored_rules import baked, convention_figures
    from symflops.emit.emit import page_of
    from symflops.emit.page.sections import document
    from symflops.library.records.verified import verifications

    usual = REGIMES if known else baked(model)
    program = program_of(model, known, regimes or (usual if full else usual[:1]), conventions)
    figures: tuple[Any, ...] = ()
    if against:
        others = [name.strip() for name in against.split(",")]
        figures = convention_figures(model, program, known.config or {}, [conventions[0], *others])
    beside = against_baseline(model) if full and not known else None
    shown = tuple(row.name for row in program.regimes) if regimes else REGIMES  # a name is not the text that selects a regime
    return document(page_of(program, verifications(model.file), shown, figures, beside), full)


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
    """Typeset a LaTeX document and return the PDF; if that fails, the document and the log stay in a temporary folder.

    Raises:
        SymflopsError: TeX is not installed, fails on the document, or takes too long.
    """
    import os
    import shutil
    import subprocess
    import tempfile

    tools()
    folder = Path(tempfile.mkdtemp(prefix="symflops-"))
    (folder / f"{name}.tex").write_text(source, encoding="utf-8")
    # a spec may come from anybody: no shell escape, no rc files, no files outside of the folder
    tex = "pdflatex -no-shell-escape -file-line-error %O %S"
    command = ["latexmk", "-norc", "-pdf", f"-pdflatex={tex}", "-interaction=nonstopmode", "-halt-on-error", f"{name}.tex"]
    paranoid = os.environ | {"openin_any": "p", "openout_any": "p", "shell_escape": "f", "max_print_line": "1000"}
    options: dict[str, Any] = {"capture_output": True, "text": True, "errors": "replace", "timeout": TEX_SECONDS}
    try:
        done = subprocess.run(command, cwd=folder, env=paranoid, check=False, **options)
    except subprocess.TimeoutExpired:
        raise SymflopsError(f"LaTeX takes more than {TEX_SECONDS} s for the page of '{name}': see {folder}") from None
    output = folder / f"{name}.pdf"
    if done.returncode or not output.is_file():
        raise SymflopsError(failure(folder, name, done.stdout))
    text = output.read_bytes()
    shutil.rmtree(folder)
    return text


def failure(folder: Path, name: str, printed: str) -> str:
    """Say where LaTeX failed: the line of the document, and the line of the log, which both stay in ``folder``.

    ``printed`` is what the tools printed, for a failure without a log.
    """
    from symflops.support.reading import read_bytes

    log = folder / f"{name}.log"
    if not log.is_file():
        log.write_text(printed, encoding="utf-8")
    lines = read_bytes(log).decode("utf-8", "replace").splitlines()
    starts = (f"./{name}.tex:", "!", "Latexmk: Err")
    found = ((at, line) for at, line in enumerate(lines, 1) if line.startswith(starts))
    number, wrong = next(found, (len(lines), "no reason given"))
    wrong = wrong.replace(f"./{name}.tex", str(folder / f"{name}.tex"), 1)
    return f"LaTeX does not take the page of '{name}': {wrong}\n  log: {log}:{number}"
