"""Begins a new spec: a copy of an existing one under another name, with a comment on each part.

The copy may be changed by features: windows, experts, ... ``emit/templates/features.yaml`` says what each one does.
The schema that editors read has the blocks that specs may call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, MutableMapping, Sequence
from functools import cache
from io import StringIO
from itertools import count
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from symflops.cli.actions.check import findings
from symflops.formula.identifiers import MODULE, why_not_identifier
from symflops.read.field_tables import EXTENDS
from symflops.read.json_schema import BlockSignature, schema
from symflops.read.spec_files import PACKAGE, SpecFile, block_texts, comment_of, find_spec
from symflops.read.yaml_nodes import ENTRY, Mapping, read_yaml
from symflops.support.files import write
from symflops.support.findings import Source, SpecError, SymflopsError, did_you_mean
from symflops.support.reading import read_own, read_text

SKELETON = PACKAGE / "emit" / "templates" / "skeleton.yaml"
LINE = "# yaml-language-server: $schema="
SCHEMAS = ("schema.json", "../schema.json", "symflops.schema.json")
OTHERS = ("model_type", "pipelines")  # configs find their spec by these fields: a copy would shadow the original

HEAD = """\
{name}, begun {origin}. A spec says what the model is, never what it costs.
  symflops check {file}     every mistake, with its place and a hint
  symflops explain {file}   where the FLOPs go, and the closed form
  symflops verify {file}    the real class against this, once 'reference' names it
"""
COMMENTS = {
    "reference": "The class that this describes, 'package.Class': 'symflops verify' builds it. Change it to yours.",
    EXTENDS.name: "Everything that is not said below is as in this spec.",
    "sizes": "A letter for each number of the config: 'key' is where the config holds it, 'default' may use the letters above.",
    "derived": "Formulas that get a letter of their own.",
    "requires": "Conditions that a config or a batch must fulfil, each with the words of its refusal.",
    "expected": "Conditions under which the data decides how much work is done, each with what estimates say then.",
    "variants": "Published configs whose structure is another one: the fields in which they differ.",
    "expect": "Figures that the paper states, to the digits given: 'symflops check' compares them.",
    "streams": "What varies with the batch: rows per sample. A name in an axis that is no size is a length that a batch gives.",
    "inputs": "What the model receives: stream, width (none for token ids), and the dimensions of its tensor, 'b' the items.",
    "blocks": "Pieces of graph that are called by name with 'block:'.",
    "graph": """\
The operators in the order of the forward pass. A name is the path of the module in the real model, as in its parameters'
names; 'from' reads values, 'to' names the result, 'add_to' is a residual, 'repeat' a list of equal layers.""",
    "outputs": "What the loss can use.",
    "baseline": "The spec that pages compare this one with: cost over the length, and where the difference comes from.",
}
CASE = """\
# Small configs and batches with which 'symflops verify' builds the real class and runs it: config, then lengths per stream.
"""

Document = MutableMapping[str, Any]


def start(name: str, folder: Path, like: str | None = None, features: Sequence[str] = ()) -> list[tuple[Path, str]]:
    """Render the files of a new spec as (path, text): the spec, its cases, and the schema if missing.

    The spec is a copy of the spec ``like``. With ``features`` it names no reference class and has no cases. No file is written.

    Raises:
        SymflopsError: the name is invalid, the spec to copy does not exist, or a file exists already.
    """
    path = folder / f"{name}.yaml"
    source = find_spec(like) if like is not None else SpecFile(SKELETON.parent, SKELETON, "skeleton")
    if features and like is None:
        raise SymflopsError("features change a copy of a spec: say which one with --like")
    files = [(path, spec_text(name, source, like, path, schema_line(folder), features))]
    cases = source.path.with_name(f"{source.path.stem}.cases.yaml")
    if cases.is_file() and not features:
        files.append((folder / f"{name}.cases.yaml", CASE + read_text(cases)))
    return unwritten(name, folder, files)


def unwritten(name: str, folder: Path, files: list[tuple[Path, str]]) -> list[tuple[Path, str]]:
    """Return the files (path, text) of a new spec ``name``, and the schema that editors read if ``folder`` has none.

    Raises:
        SymflopsError: the name is invalid, or a file exists already.
    """
    reason = why_not_identifier(name) or ("" if MODULE.match(name) else "lower case letters, digits and underscores")
    if reason:
        raise SymflopsError(f"'{name}' cannot name a spec: {reason}")
    if not is_schema(beside(folder, schema_line(folder))):
        files.append((beside(folder, schema_line(folder)), editor_schema("spec")))
    taken = [path for path, _ in files if path.exists()]
    if taken:
        raise SymflopsError(f"{taken[0]} is there already, and is left as it is: choose another name or folder")
    return files


def is_schema(path: Path) -> bool:
    """Whether a file is the JSON Schema of specs."""
    return bool(read_own(path, {"title": str}).get("title") == "symflops spec")


def beside(folder: Path, place: str) -> Path:
    """Resolve the relative path ``place`` against ``folder``, which may not exist yet."""
    return folder.resolve().parent / place[3:] if place.startswith("../") else folder / place


def schema_line(folder: Path) -> str:
    """Relative path from ``folder`` to the existing schema, else to the one that will be written."""
    known = (place for place in SCHEMAS if is_schema(beside(folder, place)))
    return next(known, SCHEMAS[0] if not (folder / SCHEMAS[0]).exists() else SCHEMAS[-1])


def spec_text(name: str, source: SpecFile, like: str | None, path: Path, where: str, features: Sequence[str] = ()) -> str:
    """Render the YAML of the new spec ``name``, with comments.

    Args:
        name: The name of the new spec.
        source: The spec that it is a copy of.
        like: The name of this spec as given; None if it is the skeleton, whose title and fields are kept.
        path: The file that is to be written; the comments at the top name it.
        where: The relative path of the JSON Schema, for the first line.
        features: The features to add to the copy.
    """
    text = source.source().text
    lines = text.split("\n", 1)
    yaml = printer()
    document: Any = yaml.load(lines[1] if lines[0].startswith(LINE) else text)
    document["name"] = name
    origin = "as a small decoder"
    if like is not None:
        add(document, features, source.name)
        origin = " with ".join(filter(None, (f"like {source.name}", " and ".join(features))))
        document["title"] = f"{name}, begun {origin}"
        for key in OTHERS:
            document.pop(key, None)
        if features:
            without_class(document)
            document.pop("expect", None)
    return f"{LINE}{where}\n{commented(document, name, origin, path)}"


def commented(document: CommentedMap, name: str, origin: str, path: Path) -> str:
    """Render the spec ``name``, which is to be written to ``path``, with a comment on its origin and on each part."""
    document.yaml_set_start_comment(HEAD.format(name=name, origin=origin, file=path))
    for key, comment in COMMENTS.items():
        if key in document:
            document.yaml_set_comment_before_after_key(key, before=f"\n{comment}")
    return dumped(document)


def printer() -> YAML:
    """Reader and writer of YAML that keeps comments, quotes and long lines."""
    yaml = YAML(typ="rt")
    yaml.preserve_quotes, yaml.width = True, 10_000
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def dumped(document: Any) -> str:
    """Render a document as YAML."""
    printed = StringIO()
    printer().dump(document, printed)
    return printed.getvalue()


def begin(files: Sequence[tuple[Path, str]]) -> None:
    """Write the files of a new spec, the spec first, and check it; remove them if it is invalid.

    Raises:
        SpecError: the spec is invalid in its new folder; for example, it calls a block of another library.
        SymflopsError: a file cannot be written.
    """
    written: list[Path] = []
    try:
        for path, text in files:
            write(path, text)
            written.append(path)
        errors = [finding for finding in findings(find_spec(files[0][0])) if finding.severity == "error"]
        if errors:
            raise SpecError(errors)
    except BaseException as error:
        for path in written:
            path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise SymflopsError(f"{error.filename}: {error.strerror or error}") from None
        raise


@cache
def features() -> dict[str, Any]:
    """Map the name of each feature that ``--with`` accepts to its changes of a spec."""
    found: dict[str, Any] = YAML(typ="safe", pure=True).load(read_text(PACKAGE / "emit" / "templates" / "features.yaml"))
    return found


def add(document: Document, names: Sequence[str], like: str) -> None:
    """Apply the features ``names`` to ``document``, the copied text of the spec ``like``.

    Raises:
        SymflopsError: a feature is unknown, or the spec has no entry that it changes.
    """
    for name in names:
        if name not in features():
            known = ", ".join(f"{feature} ({row['doc']})" for feature, row in features().items())
            raise SymflopsError(f"there is no feature '{name}': {did_you_mean(name, features(), f'there are {known}')}")
        feature = features()[name]
        found = [body for body in bodies(document.get("graph") or ()) if feature["where"].items() <= body.items()]
        if not found:
            what = ", ".join(f"{key}: {value}" for key, value in feature["where"].items())
            base = document.get("extends")
            hint = f": begin like '{base}', which it extends" if base else ""
            raise SymflopsError(f"'{like}' has no entry of its own with '{what}', which '{name}' changes{hint}")
        letters = {letter: unused(letter, document) for letter in feature["sizes"]}
        for body in found:
            change(document, body, feature, letters)
        document.setdefault("sizes", {})
        for letter, row in feature["sizes"].items():
            document["sizes"][letters[letter]] = size = CommentedMap(row)
            size.fa.set_flow_style()


def without_class(document: Document) -> None:
    """Drop the reference class; sizes without a config key become derived values with their defaults."""
    document.pop("reference", None)
    sizes = document.get("sizes") or {}
    decided = [name for name, row in sizes.items() if isinstance(row, MutableMapping) and "key" not in row]
    derived = {name: sizes.pop(name)["default"] for name in decided}
    if derived:
        document["derived"] = derived | dict(document.get("derived") or {})


def bodies(graph: Sequence[Any]) -> Iterator[Document]:
    """Yield the mapping of fields of each graph entry, entries inside groups included."""
    for entry in graph:
        body = entry if any(key in entry for key in ENTRY) else next(iter(entry.values()), None)
        if isinstance(body, MutableMapping):
            yield body
            yield from bodies(body.get("graph") or ())


def unused(letter: str, document: Document) -> str:
    """Return ``letter``, with a number appended if that letter occurs in the spec already."""
    taken = set(re.findall(r"[A-Za-z_]\w*", repr(document)))
    return next(name for name in (letter + str(number or "") for number in count()) if name not in taken)


def change(document: Document, body: Document, feature: dict[str, Any], letters: dict[str, str]) -> None:
    """Apply ``feature`` to the graph entry ``body``; remove fields and sizes that are then not used.

    ``letters`` maps the letters of sizes in the feature to unused letters of the spec.
    """
    dropped = [body.pop(key) for key in [*body] if key not in feature.get("keep", [*body]) and key not in feature["set"]]
    body.update({key: letters.get(value, value) for key, value in feature["set"].items()})
    for text in map(str, dropped):
        if text in document.get("sizes", {}):
            rest = {key: value for key, value in document["sizes"].items() if key != text}
            others = repr([rest, *(value for key, value in document.items() if key != "sizes")])
            if not re.search(rf"\b{text}\b", others):
                del document["sizes"][text]


def editor_schema(page: str) -> str:
    """Render the JSON Schema of one kind of page; it suggests blocks of the project and the library."""
    return schema(page, [BlockSignature(name, comment_of(text), parameters(text)) for name, text in block_texts().items()])


def parameters(text: str) -> tuple[str, ...]:
    """Return the names of the parameters of the block ``text``; () if it is not valid YAML."""
    try:
        node = read_yaml(Source("block.yaml", text))
    except SpecError:
        return ()
    params = node.get("params") if isinstance(node, Mapping) else None
    return tuple(key.text for key, _ in params.entries) if isinstance(params, Mapping) else ()
