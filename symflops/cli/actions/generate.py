"""Generates the files of specs and tracks what they were made from.

``generated/manifest.json`` has the digests of every input (specs, blocks, templates, regimes, conventions, verified records)
and output, so that a changed input is reported even if no output moved. ``generated/.stamp.json``, which is not committed,
also has the digest of the package's code, so that unchanged specs are skipped.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from symflops import __version__
from symflops.analysis.baseline import against, sources_of
from symflops.api import convention_of, load, program_in
from symflops.cli.actions.stored_rules import ALL, ENDING, Chosen, compared, figures, text_of
from symflops.emit.emit import CODE, ENDINGS, PAGES as PRINTED
from symflops.emit.markdown.document import Family, render_summary
from symflops.emit.python.module import fixed_sizes, render
from symflops.library.records.census import spec_digest
from symflops.library.records.verified import INEXACT, VERIFIED, all_verifications, catalogued, verifications
from symflops.read.spec_files import PACKAGE, SpecFile
from symflops.support.files import digest, write
from symflops.support.findings import SymflopsError
from symflops.support.reading import read_bytes, read_own

TEXTS = {...: str}
ENTRY = {"group": str, "references": [str], "pipelines": [str], "model_types": [str]}
SHAPES: dict[str, Any] = {
    "manifest.json": {"inputs": TEXTS, "specs": {...: TEXTS}, "outputs": TEXTS},
    "catalog.json": {"specs": {...: ENTRY}},
    ".stamp.json": {...: {"code": str, "verified": str, "sources": TEXTS, "outputs": TEXTS, "entry": dict}},
}
"""Expected JSON structure of each file that later runs read from an output folder."""
MANIFEST, CATALOG, STAMP, SUMMARY = "manifest.json", "catalog.json", ".stamp.json", "verified.md"
BY_DIGEST = ".tex"
"""Ending of pages that need not be committed: the manifest has their digest, ``symflops render`` prints them."""
PAGES = "conventions/"  # what 'symflops conform --pages' writes


def package_inputs() -> dict[str, str]:
    """Map each template, regime and convention of the package to its digest."""
    found = {}
    templates = [(f"emit/templates{folder}", "*.jinja") for folder in ("", "/python")]
    for folder, pattern in (*templates, ("regimes", "*.yaml"), ("conventions", "*.yaml")):
        for path in sorted((PACKAGE / folder).glob(pattern)):
            found[f"symflops/{folder}/{path.name}"] = digest(read_bytes(path))
    return found


def records_of(root: Path) -> dict[str, str]:
    """Map each file about measured records in a library to its digest."""
    return {f"specs/{name}": digest(read_bytes(root / name)) for name in (VERIFIED, INEXACT) if (root / name).is_file()}


@dataclass(frozen=True, slots=True)
class Output:
    """All that is generated from one spec.

    Attributes:
        name: The name of the spec.
        group: The folder of the spec.
        files: Text of each file by its path in the output folder; empty if an earlier run wrote the files.
        entry: The entry of the spec in the catalog.
        sources: Digest of each source file of the spec by path.
        verified: Digest of the measured records of the spec and of its data files.
        digests: Digest of each file that an earlier run wrote, by path.
    """

    name: str
    group: str
    files: Mapping[str, str]
    entry: Mapping[str, Any]
    sources: Mapping[str, str]
    verified: str
    digests: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest_of(self) -> dict[str, str]:
        """Map the path of each file in the output folder to its digest."""
        return {**self.digests, **{name: digest(text) for name, text in self.files.items()}}

    def has(self, module: str) -> bool:
        """Whether one of the files is the Python module ``module``."""
        return any(Path(path).name == f"{module}.py" for path in self.digest_of)


def output_of(file: SpecFile, chosen: Chosen = ALL, wanted: Collection[str] = (*ENDINGS, ENDING)) -> Output:
    """Derive one spec and render its files, those with an ending in ``wanted``.

    Raises:
        SpecError: the spec is not valid, or a regime that is asked for does not fit it.
    """
    model = load(file)
    structures = {"": ENDINGS, **dict.fromkeys(model.variants, tuple(CODE))}
    structures = {variant: tuple(one for one in endings if one in wanted) for variant, endings in structures.items()}
    files: dict[str, str] = {}
    programs = []
    for variant, targets in structures.items():
        records = () if variant else verifications(file)
        asked = chosen.regimes_of(model, variant), chosen.stored(model, variant)
        texts: dict[str, Any] = {"version": __version__, "verified": records, "targets": targets}
        texts["against"] = against(model) if PRINTED.keys() & {*targets} else None
        found = model.structure(variant, *asked, **texts, shown=tuple(convention_of(name).name for name in chosen.shown))
        programs.append(program_in(found))
        stem = (f"{file.group}/" if file.group else "") + model.spec.name + (f"_{variant}" if variant else "")
        files |= {f"{stem}.{ending}": text for ending, text in found.texts.items()}
    program = programs[0]
    stem = (f"{file.group}/" if file.group else "") + model.spec.name
    if ENDING in wanted:
        files[f"{stem}.{ENDING}"] = text_of(program, figures(model, program, compared()), compared())
    sources = {source.path: digest(source.text) for source in sources_of(model)}
    entry = {
        "group": file.group,
        "title": program.title,
        "references": file.named_by(model.spec.references),
        "model_types": list(program.model_types),
        "pipelines": list(program.pipelines),
        "streams": {stream.name: list(stream.variables) for stream in program.streams if stream.given},
        "structures": {structure.variant: fixed_sizes(structure) for structure in programs if structure.fixed},
        "keys": sorted({key.partition(".")[0] for size in model.spec.sizes for key in size.keys}),
        **catalogued(file),
        "digest": spec_digest(model.spec, alone=True),
        "crc32": zlib.crc32(model.spec.sources[0].text.encode()),
    }
    return Output(program.name, file.group, files, entry, sources, verified_digest(file))


def standalone(file: SpecFile, chosen: Chosen = ALL) -> dict[str, str]:
    """Render a Python module per structure, by file name; they import only the standard library.

    Raises:
        SpecError: the spec is not valid.
    """
    model = load(file)
    found = {}
    for variant in ("", *model.variants):
        program = program_in(model.structure(variant, chosen.regimes_of(model, variant), chosen.shown))
        name = f"{model.spec.name}{f'_{variant}' if variant else ''}.py"
        found[name] = render(program, __version__)
    return found


def verified_digest(file: SpecFile) -> str:
    """Digest of a spec's verified records and of the data files next to it."""
    return digest(repr(verifications(file)) + file.facts())


def files_of(name: str, entry: Mapping[str, Any], paths: Iterable[str]) -> list[str]:
    """Filter ``paths`` to the files generated from the spec ``name`` with this catalog entry."""
    stem = f"{entry['group']}/{name}" if entry.get("group") else name
    own = (f"{stem}.", *(f"{stem}_{variant}." for variant in entry.get("structures", ())))
    return [path for path in paths if path.startswith(own)]


def known(out: Path, name: str) -> dict[str, Any]:
    """Read a JSON file that an earlier run wrote; return {} if it is missing or has another shape."""
    found: dict[str, Any] = read_own(out / name, SHAPES[name])
    return found


def printed(value: Mapping[str, Any]) -> str:
    """Print ``value`` as JSON for a committed file: sorted keys, indented, with a final newline."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def shared_files(outputs: Sequence[Output], known: Mapping[str, Any], catalog: Mapping[str, Any], root: Path) -> dict[str, str]:
    """Render the catalog, the summary and the manifest, by file name.

    Args:
        outputs: Outputs of the specs of this run; other specs keep their entries.
        known: The manifest of an earlier run.
        catalog: The catalog of an earlier run.
        root: The library, for its records.
    """
    entries = {**catalog.get("specs", {}), **{output.name: output.entry for output in outputs}}
    digests = dict(known.get("outputs", {}))
    for output in outputs:
        for path in files_of(output.name, catalog.get("specs", {}).get(output.name, {}), list(digests)):
            digests.pop(path)
    digests |= {name: known for output in outputs for name, known in output.digest_of.items()}
    sources = {**known.get("specs", {})}
    for output in outputs:
        sources[output.name] = dict(sorted(output.sources.items()))
    shared = {CATALOG: printed({"schema": 1, "specs": entries})}
    if records_of(root):
        shared[SUMMARY] = summary_of(root, entries)
    manifest = {
        "schema": 1,
        "version": __version__,
        "inputs": {**package_inputs(), **records_of(root)},
        "specs": sources,
        "outputs": {**digests, **{name: digest(text) for name, text in shared.items()}},
    }
    return {**shared, MANIFEST: printed(manifest)}


def summary_of(root: Path, entries: Mapping[str, Mapping[str, Any]]) -> str:
    """Render the page that lists specs with and without verified records, by group."""
    verified = all_verifications(root)
    families = []
    for group in sorted({entry["group"] for entry in entries.values()}):
        names = sorted(name for name, entry in entries.items() if entry["group"] == group)
        specs = {name: verified[name] for name in names if name in verified}
        families.append(Family(group, specs, [name for name in names if name not in verified]))
    return render_summary(families, __version__)


def without(names: set[str], manifest: dict[str, Any], catalog: dict[str, Any]) -> None:
    """Remove specs that are not in ``names`` from a manifest and a catalog, in place."""
    for name in set(manifest.get("specs", {})) - names:
        entry = catalog.get("specs", {}).pop(name, {})
        manifest["specs"].pop(name)
        for path in files_of(name, entry, list(manifest.get("outputs", {}))):
            manifest["outputs"].pop(path)


class Stamps:
    """The stamps of an output folder, by which later runs skip unchanged specs.

    The stamp of a spec has the digests of the generated files and of what they were generated from. ``code`` maps the root of
    a library to the digest of the code and data on which all its files depend.
    """

    def __init__(self, out: Path, code: Callable[[Path], str]) -> None:
        self.out, self.code = out, cache(code)
        self.known = known(out, STAMP)
        self.added: list[str] = []
        self.written = 0

    def outdated(self, files: Iterable[SpecFile]) -> list[SpecFile]:
        """Return the specs in ``files`` whose stamp is missing or no longer matches."""
        return [file for file in files if not unchanged(file, self.known.get(file.label, {}), self.code(file.root), self.out)]

    def output(self, file: SpecFile) -> Output:
        """Return the output of an unchanged spec as its stamp has it: digests in place of texts."""
        stamp = self.known[file.label]
        return Output(file.name, file.group, {}, stamp["entry"], stamp["sources"], stamp["verified"], stamp["outputs"])

    def add(self, file: SpecFile, output: Output) -> None:
        """Write the generated files of a spec, and record its stamp; :meth:`save` writes the stamps."""
        self.write(output.files)
        self.added.append(file.label)
        self.known[file.label] = {
            "code": self.code(file.root),
            "verified": output.verified,
            "sources": dict(output.sources),
            "outputs": {name: digest(text) for name, text in output.files.items()},
            "entry": dict(output.entry),
        }

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Write each file whose content differs from that on disk; ``files`` maps paths to contents.

        Raises:
            SymflopsError: a link leads out of the folder.
        """
        for name, text in files.items():
            path = self.out / name
            if not path.parent.resolve().is_relative_to(self.out.resolve()):
                raise SymflopsError(f"{path.parent} leads out of {self.out}: remove that link")
            self.written += write(path, text)

    def save(self) -> None:
        """Write the stamp file: the stamps of this run, and for other specs those that are on disk."""
        write(self.out / STAMP, printed(known(self.out, STAMP) | {label: self.known[label] for label in self.added}))

    def summary(self, files: Sequence[SpecFile]) -> str:
        """Summarise in one line how many of ``files`` were derived, and how many outputs were written."""
        skipped = len(files) - len(self.added)
        return f"{len(self.added)} derived, {skipped} unchanged, {self.written} files written to {self.out}"


def unchanged(file: SpecFile, stamp: Mapping[str, Any], code: str, out: Path) -> bool:
    """Whether nothing differs from ``stamp``: ``code``, the spec's sources and records, generated files."""
    if stamp.get("code") != code or stamp.get("verified") != verified_digest(file) or not file.has(stamp.get("sources", {})):
        return False
    return all((out / name).is_file() and digest(read_bytes(out / name)) == known for name, known in stamp["outputs"].items())


def orphans(out: Path, expected: set[str]) -> Iterator[str]:
    """Yield the paths of files below ``out`` that are not ``expected``; hidden files are ignored."""
    for path in sorted(out.rglob("*")):
        name = path.relative_to(out).as_posix()
        hidden = any(part.startswith(".") or part == "__pycache__" for part in path.relative_to(out).parts)
        if path.is_file() and not hidden and name not in expected and not name.startswith(PAGES):
            yield name
