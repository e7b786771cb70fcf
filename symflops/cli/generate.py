"""Derives specs and writes what is generated from them: estimators, LaTeX and Markdown derivations, the
catalog, and the table of what was verified.

Reads ./specs and writes ./generated where there is ./specs; else reads the shipped specs and needs --out. Unchanged
specs are skipped. Of a spec outside of the library, named by its path, it writes the module alone, here or to --out: with
--pages also LaTeX and Markdown, with --data also the stored programs.
--check derives what has changed since files were written here, and compares: exit code 1 when a file differs, is missing, or
belongs to no spec; with --cold it derives everything. --diff shows the differences. A LaTeX page may be missing: its digest
in the manifest is compared.
It prints the figures that move, against the programs that are there: the difference as a formula in the letters of the spec,
by regime and convention where they differ, and in percent at the published sizes under 'expect', else at the defaults.
--check prints them, too, and --summary prints them as Markdown for a pull request.
--convention C,D and --regime R,S store these in programs, modules and pages, in place of those of a library: without them,
programs also store the conventions of training frameworks.
--standalone prints the module of a spec, which needs only the standard library, to copy into another project; with --out DIR it
writes one for each structure of each spec.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from symflops.cli.progress import in_workers
from symflops.cli.terminal import SPECS, argument, arguments_of, one_of
from symflops.support.errors import SymflopsError, did_you_mean

configure = arguments_of(
    SPECS,
    argument("--specs", dest="root", metavar="DIR", help="the folder of specs"),
    argument("--out", metavar="DIR", help="the folder to write to"),
    argument("--convention", action="append", metavar="C", help="store this; may be repeated, or list several (C,D)"),
    argument("--regime", action="append", metavar="R", help="store this; may be repeated, or list several (R,S)"),
    argument("--cold", action="store_true", help="derive unchanged specs, too"),
    argument("--summary", action="store_true", help="print the figures that move as Markdown, for a pull request"),
    argument("--pages", action="store_true", help="of a spec outside of the library: write its pages, too"),
    argument("--data", action="store_true", help="of a spec outside of the library: write its programs, too"),
    argument("--standalone", action="store_true", help="print estimators that need no symflops"),
    one_of(
        argument("--check", action="store_true", help="compare with what is there, write nothing"),
        argument("--diff", action="store_true", help="show what would change, write nothing"),
    ),
)


def run(args: argparse.Namespace) -> int:
    """Generate files, or compare them with what is derived; return the exit code.

    The exit code is 1 if a comparison finds a difference.
    """
    from symflops.read.spec_files import find_spec, shipped, specs_in

    if args.standalone:
        return _standalone(args)
    root = Path(args.root or ("specs" if Path("specs").is_dir() else shipped("specs"))).resolve()
    if not root.is_dir():
        raise SymflopsError(f"there is no folder {root}")
    out = Path(args.out or "generated")
    files = list(specs_in(root))
    inside = {file.path: file for file in files}
    found = (find_spec(spec) if spec.endswith((".yaml", ".yml")) else _named(spec, files) for spec in args.specs)
    chosen = [inside.get(file.path, file) for file in found] or files
    names = {file.name for file in files} | {file.name for file in chosen}
    if args.specs and not any(file.path in inside for file in chosen):
        return _local(args, chosen)
    if args.out is None and root != Path("specs").resolve():
        raise SymflopsError("there is no ./specs here: say where to write with --out DIR")
    work = _Work(root, out, names, not args.specs, _selected_rules(args), args.cold, args.summary)
    return work.compare(chosen, args.diff) if args.check or args.diff else work.write(chosen)


def _standalone(args: argparse.Namespace) -> int:
    """Print the standalone module of one spec, or write those of all its structures to a folder.

    Return the exit code 0.
    """
    from symflops.cli.actions.generate import standalone
    from symflops.read.spec_files import find_spec, shipped, specs_in
    from symflops.support.files import write

    if args.check or args.diff:
        raise SymflopsError("--standalone prints modules and compares nothing: leave out --check and --diff")
    root = Path(args.root or ("specs" if Path("specs").is_dir() else shipped("specs")))
    files = [find_spec(spec) for spec in args.specs] or list(specs_in(root))
    if args.out is None and len(files) != 1:
        raise SymflopsError(f"{len(files)} specs do not go into one file: name one, or say where to write with --out DIR")
    for _, modules in in_workers(partial(standalone, chosen=_selected_rules(args)), files, "deriving"):
        if args.out is None:
            print(next(iter(modules.values())), end="")
        else:
            for name, text in modules.items():
                write(Path(args.out) / name, text)
    return 0


def _local(args: argparse.Namespace, files: list[Any]) -> int:
    """Write what is asked for of specs outside of the library, or compare it with what is there; return the exit code."""
    from symflops.cli.actions.generate import output_of
    from symflops.cli.actions.revisions import as_markdown, as_text, remember, revisions
    from symflops.cli.actions.stored_rules import ENDING
    from symflops.emit.emit import PAGES, STORED
    from symflops.support.files import holds, write

    out, findings = Path(args.out or "."), 0
    wanted = ("py", *(PAGES if args.pages else ()), STORED, *((ENDING,) if args.data else ()))
    for file, output in in_workers(partial(output_of, chosen=_selected_rules(args), wanted=wanted), files, "deriving"):
        moved = revisions(out, file, output)
        for line in (as_markdown if args.summary else as_text)(moved):
            print(line)
        for name, text in output.files.items():
            path = out / name
            if path.suffix == ".py" and path.is_file() and path.stem not in moved and not holds(path, text.encode()):
                print(f"{path}: which figures move is not known: '--data' keeps its program beside it", file=sys.stderr)
            if path.suffix == f".{STORED}" and not args.data:
                if not (args.check or args.diff):
                    remember(path, text, output.files[f"{name.removesuffix(STORED)}py"])
                continue
            if not (args.check or args.diff):
                write(path, text)
                print(path, file=sys.stderr)
            elif not path.is_file() or not holds(path, text.encode()):
                findings += 1
                shown = _unified(path, text) if args.diff and path.is_file() else f"{path}: differs from what is derived"
                print(shown, file=sys.stdout if args.diff else sys.stderr)
    return min(findings, 1)


def _selected_rules(args: argparse.Namespace) -> Any:
    """Parse and validate ``--regime`` and ``--convention``; an inline regime may contain commas."""
    from symflops.api import convention_of, regime_of
    from symflops.cli.actions.stored_rules import Chosen

    def names(given: list[str] | None) -> tuple[str, ...]:
        words = [word for text in given or () for word in ([text] if ":" in text or text.startswith("{") else text.split(","))]
        return tuple(dict.fromkeys(word.strip() for word in words))

    found = Chosen(names(args.regime), names(args.convention))
    for convention in found.conventions:
        convention_of(convention)
    for regime in found.regimes:
        regime_of(regime)
    return found


def _named(name: str, files: list[Any]) -> Any:
    for file in files:
        if file.name == name:
            return file
    raise SymflopsError(f"there is no spec '{name}': {did_you_mean(name, [file.name for file in files], 'see symflops list')}")


class _Work:
    def __init__(
        self, root: Path, out: Path, names: set[str], everything: bool, chosen: Any, cold: bool, summary: bool
    ) -> None:
        self.root, self.out, self.names, self.everything, self.chosen, self.cold = root, out, names, everything, chosen, cold
        self.summary, self.moved = summary, dict[str, Any]()
        self.read()

    def read(self) -> None:
        """Read the manifest and the catalog of the output folder, without specs that no longer exist."""
        from symflops.cli.actions.generate import CATALOG, MANIFEST, known, without

        self.manifest, self.catalog = known(self.out, MANIFEST), known(self.out, CATALOG)
        without(self.names, self.manifest, self.catalog)

    def write(self, files: list[Any]) -> int:
        """Derive changed specs of ``files`` and write what is generated; return the exit code 0."""
        from symflops.cli.actions.generate import shared_files
        from symflops.cli.actions.revisions import revisions
        from symflops.support.files import locked

        stamps = self.stamps()
        outputs = []
        for file, output in self.compiled(files if self.cold else stamps.outdated(files)):
            self.moved |= revisions(self.out, file, output)
            stamps.add(file, output)
            outputs.append(output)
        with locked(self.out):  # others may have written since
            self.read()
            stamps.write(shared_files(outputs, self.manifest, self.catalog, self.root))
            stamps.save()
        self.tell()
        print(f"{len(files)} specs: {stamps.summary(files)}", file=sys.stderr)
        return 0

    def tell(self) -> None:
        """Print the figures that move, as text or as Markdown."""
        from symflops.cli.actions.revisions import as_markdown, as_text

        for line in (as_markdown if self.summary else as_text)(self.moved):
            print(line)

    def stamps(self) -> Any:
        """Load the :class:`Stamps` of the output folder."""
        from symflops.cli.actions.generate import Stamps
        from symflops.support.files import digest, package_digest

        return Stamps(self.out, lambda _: digest(f"{package_digest()} {self.chosen}"))

    def compare(self, files: list[Any], diff: bool) -> int:
        """Derive changed specs and compare the result with the files on disk.

        ``diff``: whether to print differences as unified diffs. Return the exit code: 1 if a file differs.
        """
        from symflops.cli.actions.generate import shared_files
        from symflops.cli.actions.revisions import revisions

        stamps = self.stamps()
        outdated = files if self.cold else stamps.outdated(files)
        outputs = []
        for file, output in self.compiled(outdated):
            self.moved |= revisions(self.out, file, output)
            outputs.append(output)
        outputs += [stamps.output(file) for file in files if file not in outdated]
        same = {name for output in outputs for name in output.digests}
        texts = {name: text for output in outputs for name, text in output.files.items()}
        if self.everything:
            texts.update(shared_files(outputs, {}, {}, self.root))
        findings = list(self.findings(texts, same, diff))
        for finding in findings:
            print(finding, file=sys.stderr if not diff else sys.stdout)
        if not diff or self.summary:
            self.tell()
        if findings:
            print(f"{len(findings)} findings; 'symflops generate' writes what is derived", file=sys.stderr)
            return 1
        unchanged = f", {len(files) - len(outdated)} of them unchanged" * (len(outdated) < len(files))
        print(f"{len(texts) + len(same)} files agree with {len(files)} specs{unchanged}", file=sys.stderr)
        return 0

    def findings(self, texts: dict[str, str], same: set[str], diff: bool) -> Iterator[str]:
        """Yield a message per file that is missing, differs from ``texts``, or belongs to no spec.

        ``same`` are paths of files known to be unchanged. If ``diff``, a file that differs is shown as a unified diff.
        """
        from symflops.cli.actions.generate import MANIFEST, orphans
        from symflops.support.files import holds

        for name, text in sorted(texts.items()):
            path = self.out / name
            if not path.is_file():
                if not self.kept_by_digest(name, text):
                    yield f"{path}: missing"
            elif not holds(path, text.encode()):
                yield _unified(path, text) if diff else f"{path}: differs from what is derived"
                if name == MANIFEST and not diff:
                    yield from self.causes(text)
        if self.everything and self.out.is_dir():
            for name in orphans(self.out, {*texts, *same}):
                yield f"{self.out / name}: belongs to no spec"

    def kept_by_digest(self, name: str, text: str) -> bool:
        """Whether the file ``name`` need not exist, because the manifest has the digest of its ``text``."""
        from symflops.cli.actions.generate import BY_DIGEST
        from symflops.support.files import digest

        return name.endswith(BY_DIGEST) and self.manifest.get("outputs", {}).get(name) == digest(text)

    def causes(self, text: str) -> Iterator[str]:
        """Yield a message per input whose digest in the new manifest ``text`` differs from the stored one."""
        import json

        now, then = json.loads(text), self.manifest
        pairs = [(now["inputs"], then.get("inputs", {}))]
        pairs += [(sources, then.get("specs", {}).get(name, {})) for name, sources in now["specs"].items()]
        for new, old in pairs:
            for name in sorted(new.keys() | old.keys()):
                if new.get(name) != old.get(name):
                    yield f"{name}: changed since the files were generated"

    def compiled(self, files: list[Any]) -> Iterator[tuple[Any, Any]]:
        """Derive specs; yield (spec, :class:`Output`) in the order of ``files``, and draw a progress bar."""
        from symflops.cli.actions.generate import output_of

        for file, output in in_workers(partial(output_of, chosen=self.chosen), files, "deriving"):
            for same in filter(output.has, self.names - {file.name}):
                raise SymflopsError(f"a variant of '{file.name}' and the spec '{same}' would be one module: rename one")
            yield file, output


def _unified(path: Path, text: str) -> str:
    import difflib

    from symflops.support.reading import read_bytes

    old = read_bytes(path).decode("utf-8", "replace").splitlines(keepends=True)
    return "".join(difflib.unified_diff(old, text.splitlines(keepends=True), str(path), f"{path} (derived)")).rstrip()
