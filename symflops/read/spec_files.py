"""Locates specs, blocks, regimes, conventions and generated files, in the current project or as installed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from itertools import takewhile
from pathlib import Path
from typing import Any

from symflops.formula.identifiers import IDENTIFIER
from symflops.support.files import digest
from symflops.support.findings import Source, SymflopsError, did_you_mean
from symflops.support.reading import read_bytes, read_json, read_text

MOST_SPEC = 4_000_000  # bytes
PACKAGE = Path(__file__).parent.parent
WORD = re.compile(r"\w+")


class NotFoundError(SymflopsError):
    """There is no spec, regime or convention of that name."""


def shipped(folder: str) -> Path:
    """The path of the shipped ``folder``: ``specs`` or ``generated``.

    It is inside the installed package, or beside the package in a checkout.
    """
    inside = PACKAGE / folder
    return inside if (inside / "catalog.json").exists() or (inside / "blocks").exists() else PACKAGE.parent / folder


@dataclass(frozen=True, slots=True)
class SpecFile:
    """A spec on disk.

    Attributes:
        root: The folder of its library, which also has the folder ``blocks``.
        path: The file.
        label: What messages and the headers of generated files call it.
    """

    root: Path
    path: Path
    label: str

    @property
    def name(self) -> str:
        """The spec's name: the stem of its file."""
        return self.path.stem

    @property
    def group(self) -> str:
        """The name of the spec's folder in the root; empty for a file directly in the root or elsewhere."""
        return self.path.parent.name if self.path.is_relative_to(self.root) and self.path.parent != self.root else ""

    def named_by(self, references: Iterable[str]) -> list[str]:
        """Those of the classes ``references`` that a config may name.

        For a shipped spec, classes in a file beside the spec (``module:Class``) are left out.
        """
        twin = self.twin()
        own = twin is None or read_bytes(twin.path) != read_bytes(self.path)
        return [reference for reference in references if own or ":" not in reference]

    def twin(self) -> SpecFile | None:
        """The shipped spec with the same folder name and file name; None if there is none.

        For a shipped spec this is the spec itself.
        """
        root = shipped("specs").resolve()
        found = SpecFile(root, root / self.group / self.path.name, self.label)
        return found if self.group and there(found.path) else None

    def is_copy(self, sources: Mapping[str, str], changed: Callable[[str], bool]) -> bool:
        """Whether this is a copy of a shipped spec: with equal text, bases, blocks and data files.

        ``sources`` maps the labels of the text and of its bases to digests. ``changed`` returns whether a text calls blocks
        that differ from the shipped ones.
        """
        twin = self.twin()
        if twin is None or twin == self or not twin.has(sources) or twin.facts() != self.facts():
            return False
        return not any(changed(found.text) for found in map(twin.labelled, sources) if found)

    def source(self) -> Source:
        """Read the text of the spec."""
        return read_source(self.path, self.label)

    @property
    def reading_path(self) -> Path:
        """Path of the file with facts about how the spec's classes read a config."""
        return self.path.with_name(f"{self.path.stem}.reading.json")

    def reading(self) -> dict[str, Any]:
        """Load facts about how the spec's classes read a config; empty without a file.

        Raises:
            SymflopsError: the file is not a JSON object.
        """
        if not there(self.reading_path):
            return {}
        found = read_json(str(self.reading_path))
        if not isinstance(found, dict):
            raise SymflopsError(f"{self.reading_path}: not a JSON object")
        return found

    def facts(self) -> str:
        """One digest of all data files next to the spec, such as facts about how its classes read a config.

        Raises:
            SymflopsError: a file cannot be read.
        """
        beside = sorted(self.path.parent.glob(f"{escape(self.path.stem)}.*.json"))
        return digest("".join(f"{path.name} {digest(read_bytes(path))}\n" for path in beside if there(path)))

    def block(self, name: str) -> Source | None:
        """The text of a block by name: from this library, else a shipped one, else None."""
        for root in (self.root, shipped("specs")):
            path = root / "blocks" / f"{name}.yaml"
            if there(path):
                return read_source(path, f"specs/blocks/{name}.yaml")
        return None

    def base(self, name: str) -> Source | None:
        """The text of a spec by name, found as by :meth:`other`; None if unknown."""
        found = self.other(name)
        return found.source() if found else None

    def other(self, name: str) -> SpecFile | None:
        """A spec by name: from this library, else a shipped one, else in the same folder; None if unknown."""
        if not IDENTIFIER.match(name):
            return None
        for root in (self.root, shipped("specs")):
            for file in specs_in(root, name=name):
                return file
        beside = self.path.parent / f"{name}.yaml"
        return SpecFile(self.root, beside, str(beside)) if there(beside) else None

    def others(self) -> list[str]:
        """Names that :meth:`other` finds, sorted."""
        roots = (self.root, shipped("specs"))
        found = {file.name for root in roots for file in specs_in(root)}
        beside = {path.stem for path in self.path.parent.glob("*.yaml") if "." not in path.stem}
        return sorted(found | beside - {self.name})

    def has(self, sources: Mapping[str, str]) -> bool:
        """Whether texts on disk have the digests in ``sources``, and the spec's own text is among them.

        ``sources`` maps labels of the spec, of its blocks and of its bases to digests.
        """
        for label, known in sources.items():
            try:
                source = self.labelled(label)
            except SymflopsError:
                return False
            if source is None or digest(source.text) != known:
                return False
        return self.label in sources

    def labelled(self, label: str) -> Source | None:
        """The text of the spec, or of a block or base that it uses, by the label of the text; None if unknown."""
        if label == self.label:
            return self.source()
        path = Path(label)
        return (self.block if path.parent.name == "blocks" else self.base)(path.stem)


def there(path: Path) -> bool:
    """Whether there is a file at ``path``; none has an invalid or too long name."""
    try:
        return path.is_file()
    except OSError:
        return False


def read_source(path: Path, label: str | None = None) -> Source:
    """Read the text of a file.

    Raises:
        SymflopsError: it cannot be read, or is not UTF-8.
    """
    return Source(label or str(path), read_text(path, MOST_SPEC), str(path))


def roots() -> list[Path]:
    """Libraries to search for a name: ``./specs`` if it exists, then the shipped one."""
    local = Path("specs")
    found = [local.resolve()] if local.is_dir() else []
    return [*found, *(root for root in [shipped("specs").resolve()] if root not in found)]


def changed_blocks(root: Path) -> Callable[[str], bool]:
    """Make a function that returns whether a text names a changed block of the library at ``root``.

    A block is changed if its text differs from the shipped block, or if it calls a changed block.
    """
    texts = {path.stem: read_text(path, MOST_SPEC) for path in (root / "blocks").glob("*.yaml") if there(path)}
    library = shipped("specs").resolve() / "blocks"
    twins = {name: library / f"{name}.yaml" for name in texts}
    new = {name for name, path in twins.items() if there(path) and read_text(path, MOST_SPEC) != texts[name]}
    found: set[str] = set()

    def names_one(text: str) -> bool:
        return not found.isdisjoint(WORD.findall(text)) if found else False

    while new:
        found |= new
        new = {name for name, text in texts.items() if name not in found and names_one(text)}
    return names_one


ASSUMED = "assumed"  # structures that frameworks assume for models: derived on request, not shipped as modules


def specs_in(root: Path, folders: str = "*", name: str = "*") -> Iterator[SpecFile]:
    """Yield the specs of a library, sorted by path.

    ``folders`` and ``name`` are patterns. The folder ``assumed`` is left out unless ``folders`` is its name.
    """
    for path in sorted(root.glob(f"{folders}/{name}.yaml")):
        if path.parent.name not in ("blocks", ASSUMED if folders == "*" else "") and "." not in path.stem and there(path):
            yield SpecFile(root, path, f"specs/{path.parent.name}/{path.name}")


def find_spec(spec: str | Path) -> SpecFile:
    """Find a spec by name or path.

    Raises:
        NotFoundError: with the nearest names.
    """
    path = Path(spec)
    if path.suffix in (".yaml", ".yml"):
        if not there(path):
            raise NotFoundError(f"there is no file '{spec}'")
        path = path.resolve()
        near, far = path.parent, path.parent.parent
        root = far if (far / "blocks").is_dir() and not (near / "blocks").is_dir() else near
        inside = path.parent.parent.name == "specs"
        return SpecFile(root, path, f"specs/{path.parent.name}/{path.name}" if inside else str(spec))
    known: list[str] = []
    for root in roots():
        for file in specs_in(root):
            if file.name == str(spec):
                return file
            known.append(file.name)
    for root in roots():
        for file in specs_in(root, ASSUMED):
            if str(spec).removeprefix(f"{ASSUMED}/") == file.name:
                return file
            known.append(file.name)
    hint = did_you_mean(str(spec), known, "'symflops list' shows all")
    raise NotFoundError(f"there is no spec '{spec}': {hint}")


def chosen_specs(names: Sequence[str | Path]) -> list[SpecFile]:
    """Find specs by names or paths; without any, return all of the first library.

    Raises:
        NotFoundError: as :func:`find_spec`.
    """
    return [find_spec(name) for name in names] or list(specs_in(roots()[0]))


def page(kind: str, name: str | Path) -> Source:
    """Read a page by name or path; ``kind`` is ``regimes`` or ``conventions``.

    Raises:
        NotFoundError: with the nearest names.
    """
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        return read_source(path, str(name))
    found = PACKAGE / kind / f"{name}.yaml"
    if there(found):
        return read_source(found, f"{kind}/{name}.yaml")
    known = pages(kind)
    hint = did_you_mean(str(name), known, f"there is {', '.join(known)}")
    raise NotFoundError(f"there is no {kind.removesuffix('s')} '{name}': {hint}")


def pages(kind: str) -> list[str]:
    """Sorted names of the shipped pages of ``kind``: ``regimes`` or ``conventions``."""
    return sorted(path.stem for path in (PACKAGE / kind).glob("*.yaml"))


def block_texts() -> dict[str, str]:
    """Map each block's name to its text; a local block hides a shipped one of the same name."""
    found: dict[str, str] = {}
    for root in roots():
        for path in sorted((root / "blocks").glob("*.yaml")):
            found.setdefault(path.stem, read_source(path).text)
    return dict(sorted(found.items()))


def comment_of(text: str) -> str:
    """The comment at the top of a file, joined to one line."""
    lines = takewhile(lambda line: line.startswith("#"), text.splitlines())
    return " ".join(line.lstrip("# ") for line in lines if "yaml-language-server" not in line)
