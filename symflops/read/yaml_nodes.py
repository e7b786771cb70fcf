"""Parses YAML into frozen nodes with source locations, from an event stream.

Events keep the text and columns of every scalar, convert nothing by YAML's own rules, and let depth and size be bounded while
reading. Anchors, aliases, tags and second documents are refused: no spec needs them, and they turn small files into large ones.

PyYAML's libyaml parses first if it is available. If it reports an error or could differ, ruamel.yaml, which is slower, parses
again, so all messages and locations come from ruamel.yaml.

Parts of a page without expressions (configs, batches) become plain Python values. There unquoted scalars follow the core
rules of YAML 1.2 (``true``, ``null``, ``12``, ``1e-5``); quoted ones are texts.

Here, too, are the version of the language of a document, and the two forms of its entries: ``path: {fields}``, or fields alone,
which stand at the surrounding path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NoReturn

from symflops.support.findings import Diagnostic, Label, Reporter, Source, Span, SpecError

MAX_BYTES = 1_000_000
MAX_KEPT = 40_000
MAX_DEPTH = 64
MAX_NODES = 100_000
MAX_LABELS = 4
BLOCKS = "blocks and repeats say once what happens often"

SYNTAX = (
    ("expected ',' or", "a brace or bracket is not closed, or a comma is missing; a text with commas needs quotes"),
    ("mapping values are not allowed", "a text that has ': ' in it needs quotes; else look at the indentation"),
    ("expected <block end>", "this line is indented otherwise than those that it belongs to"),
    ("could not find expected ':'", "a key ends with ': '"),
    ("cannot start any token", "a text that begins with this needs quotes"),
    ("found unexpected end of stream", "a quote is not closed"),
)
"""Hints about the likely cause, by part of ruamel.yaml's message."""

OTHERWISE = frozenset("?\t\r\x85\u2028\u2029\ufeff")
"""Characters that libyaml and ruamel.yaml may parse differently, as keys, spaces or line ends."""


Extent = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A text value; ``plain`` if unquoted; ``extent`` is its (start, end) offset in the source."""

    text: str
    span: Span
    plain: bool = True
    extent: Extent = field(default=(0, 0), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list of nodes."""

    items: tuple[Node, ...]
    span: Span
    extent: Extent = field(default=(0, 0), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Mapping:
    """A mapping, as (key, value) pairs in source order; keys are unique."""

    entries: tuple[tuple[Scalar, Node], ...]
    span: Span
    extent: Extent = field(default=(0, 0), compare=False, repr=False)

    def get(self, key: str) -> Node | None:
        """The value under ``key``, or None."""
        return next((value for name, value in self.entries if name.text == key), None)


Node = Scalar | Sequence | Mapping


def read_yaml(source: Source, report: Reporter | None = None) -> Node:
    """Parse the one document of ``source``.

    Args:
        source: The file.
        report: Receives a finding for each repeated key, whose first value is kept; without it a repeated key is an error.

    Raises:
        SpecError: ``source`` is not YAML, has an anchor, alias, tag or second document, or exceeds the bounds.
    """
    parse = _document if len(source.text) < MAX_KEPT else _document.__wrapped__
    document, repeated = parse(source)
    own = report or Reporter()
    own.extend(repeated)
    if report is None:
        own.check()
    return document


@lru_cache(maxsize=256)
def _document(source: Source) -> tuple[Node, tuple[Diagnostic, ...]]:
    """Parse ``source`` into (document, findings about repeated keys); cached for shared blocks.

    Raises:
        SpecError: as :func:`read_yaml`.
    """
    if len(source.text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        _fail("file-too-large", f"a spec has at most {MAX_BYTES:,} bytes", _start(source), BLOCKS)
    tabs = _tabs(source)
    if tabs:
        also = tuple(Label(tab, "") for tab in tabs[1:MAX_LABELS])
        more = f"{len(tabs)} lines begin with tabs" if len(tabs) > 1 else ""
        _fail("tab-indent", "a tab cannot indent a line", tabs[0], "use spaces, two for each level", also=also, note=more)
    quick = _by_libyaml(source)
    if quick is not None:
        return quick, ()
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    report = Reporter()
    reader = _Reader(source, report)
    try:
        document = reader.document(YAML(typ="safe", pure=True).parse(source.text))
    except MarkedYAMLError as error:
        _fail("bad-yaml", *_syntax(error, reader))
    except (YAMLError, RecursionError, ValueError) as error:
        _fail("bad-yaml", _as_message(str(error).split("\n", 1)[0]), _start(source))
    return document, tuple(report.diagnostics)


def _by_libyaml(source: Source) -> Node | None:
    """Parse with libyaml; None if it is not installed, finds an error, or may differ from ruamel.yaml."""
    text = source.text
    if not text.endswith("\n") or not OTHERWISE.isdisjoint(text):
        return None
    try:
        import yaml

        loader = yaml.CSafeLoader
    except (ImportError, AttributeError):
        return None
    report = Reporter()
    reader = _Reader(source, report)
    try:
        document = reader.document(yaml.parse(text, Loader=loader))
    except (yaml.YAMLError, SpecError, RecursionError, ValueError):
        return None
    return None if report.diagnostics or reader.odd else document


def _syntax(error: Any, reader: _Reader) -> tuple[str, Span, str, tuple[Label, ...]]:
    """Convert a syntax error of ruamel.yaml to (message, span, hint, further labels)."""
    mark, problem = error.problem_mark or error.context_mark, _as_message(error.problem or str(error.context))
    span = reader.span(mark, mark) if mark is not None else _start(reader.source)
    hints = (text for words, text in SYNTAX if words in problem)
    begun = error.context_mark
    elsewhere = begun is not None and mark is not None and (begun.line, begun.column) != (mark.line, mark.column)
    also = (Label(reader.span(begun, begun), _as_message(error.context or "")),) if elsewhere else ()
    return problem, span, next(hints, _as_message(error.context or "")), also


def _is_empty(node: Node) -> bool:
    return isinstance(node, Scalar) and not node.text and node.plain


def _extent(first: Any, last: Any) -> Extent:
    return first.start_mark.index, last.end_mark.index


def _as_message(text: str) -> str:
    text = " ".join(text.split()).rstrip(".")
    return text[:1].lower() + text[1:]


def _fail(code: str, message: str, span: Span, hint: str = "", also: tuple[Label, ...] = (), note: str = "") -> NoReturn:
    raise SpecError([Diagnostic(code, message, span, hint, also=also, note=note)])


def _start(source: Source) -> Span:
    return Span(source, 1, 1, 2)


def _tabs(source: Source) -> list[Span]:
    found = []
    for number, line in enumerate(source.text.split("\n"), start=1):
        indent = line[: len(line) - len(line.lstrip())]
        if "\t" in indent and line.strip():
            column = indent.index("\t") + 1
            found.append(Span(source, number, column, column + 1))
    return found


class _Reader:
    """Makes nodes from a parser's events. It does not recurse, so only ``MAX_DEPTH`` limits the depth."""

    def __init__(self, source: Source, report: Reporter) -> None:
        self.source = source
        self.report = report
        self.count = 0
        self.odd = False  # whether parsers may differ: empty item or document, block scalar, tag, explicit end

    def span(self, start: Any, end: Any) -> Span:
        last = end.column + 1 if end.line == start.line else len(self.source.line(start.line + 1)) + 1
        return Span(self.source, start.line + 1, start.column + 1, max(last, start.column + 2))

    def document(self, parsed: Iterable[Any]) -> Node:
        """Build the document from ``parsed`` events, whose class names agree between ruamel.yaml and PyYAML."""
        stack: list[tuple[Any, list[Node]]] = []
        root: Node | None = None
        for event in self.events(parsed):
            node: Node | None = None
            kind = type(event).__name__
            if kind == "ScalarEvent":
                place = self.span(event.start_mark, event.end_mark)
                self.odd |= event.style in ("|", ">")
                node = Scalar(event.value, place, event.style in (None, ""), _extent(event, event))
            elif kind in ("SequenceStartEvent", "MappingStartEvent"):
                stack.append((event, []))
                if len(stack) > MAX_DEPTH:
                    _fail(
                        "too-deep",
                        f"nested deeper than {MAX_DEPTH} levels",
                        self.span(event.start_mark, event.end_mark),
                        BLOCKS,
                    )
            elif kind in ("SequenceEndEvent", "MappingEndEvent"):
                opening, children = stack.pop()
                node = self.collection(opening, children, _extent(opening, event))
            if node is not None:
                if stack:
                    stack[-1][1].append(node)
                else:
                    root = node
        self.odd |= root is None or _is_empty(root)
        return root if root is not None else Mapping((), _start(self.source))

    def collection(self, opening: Any, children: list[Node], extent: Extent) -> Node:
        span = self.span(opening.start_mark, opening.end_mark)
        if type(opening).__name__ == "SequenceStartEvent":
            self.odd |= any(_is_empty(child) for child in children)
            return Sequence(tuple(children), span, extent)
        entries: list[tuple[Scalar, Node]] = []
        seen: dict[str, Scalar] = {}
        for key, value in zip(children[::2], children[1::2], strict=True):
            if not isinstance(key, Scalar):
                _fail("bad-key", "a key must be a name", key.span)
            if key.text in seen:
                also = (Label(seen[key.text].span, "the first one"),)
                hint = f"take one away: the first one is on line {also[0].span.line}"
                self.report.error("duplicate-key", f"key '{key.text}' stands twice", key.span, hint, also=also)
                continue
            seen[key.text] = key
            if _is_empty(value):  # an empty value's event has a later location
                value = Scalar("", key.span, extent=key.extent)
            entries.append((key, value))
        return Mapping(tuple(entries), span, extent)

    def events(self, parsed: Iterable[Any]) -> Iterator[Any]:
        documents = 0
        for event in parsed:
            kind = type(event).__name__
            self.count += 1
            if self.count > MAX_NODES:
                _fail("file-too-large", f"more than {MAX_NODES:,} nodes", _start(self.source), BLOCKS)
            self.odd |= bool(getattr(event, "tag", None)) or (kind == "DocumentEndEvent" and bool(event.explicit))
            if kind == "DocumentStartEvent":
                documents += 1
                if documents > 1:
                    _fail("yaml-feature", "a spec is one document", self.span(event.start_mark, event.end_mark))
            place = (event.start_mark, event.end_mark)
            if kind == "AliasEvent" or getattr(event, "anchor", None):
                _fail("yaml-feature", "anchors and aliases are not part of the language", self.span(*place), "use a block")
            if getattr(event, "tag", None) and getattr(event, "style", None) != '"':
                tag = str(event.tag)
                if not tag.startswith("tag:yaml.org,2002:"):
                    _fail(
                        "yaml-feature",
                        f"tags such as '{tag}' are not part of the language",
                        self.span(*place),
                        "take it away, or quote it",
                    )
            yield event


CONSTANTS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
INTEGERS = ((re.compile(r"[-+]?[0-9]+"), 10), (re.compile(r"0o[0-7]+"), 8), (re.compile(r"0x[0-9a-fA-F]+"), 16))
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
INFINITY = re.compile(r"([-+]?)\.(inf|Inf|INF)")
LONGEST = 40


def python_value(node: Node, report: Reporter) -> Any:
    """Convert a node to dicts, lists and scalar values; numbers with too many digits are reported."""
    match node:
        case Mapping():
            return {_key(key): python_value(value, report) for key, value in node.entries}
        case Sequence():
            return [python_value(item, report) for item in node.items]
        case Scalar():
            return _scalar(node, report)


def _key(node: Scalar) -> Any:
    return int(node.text) if node.plain and node.text.isdecimal() and len(node.text) <= LONGEST else node.text


def _scalar(node: Scalar, report: Reporter) -> Any:
    text = node.text
    if not node.plain:
        return text
    if text in CONSTANTS:
        return CONSTANTS[text]
    for pattern, base in INTEGERS:
        if pattern.fullmatch(text):
            if len(text) > LONGEST:
                report.error("bad-number", f"a number has at most {LONGEST} digits", node.span)
                return 0
            return int(text[2:] if base != 10 else text, base)
    infinite = INFINITY.fullmatch(text)
    if infinite:
        return float(f"{infinite[1]}inf")
    return float(text) if FLOAT.fullmatch(text) else text


def frozen(value: object) -> object:
    """Convert lists in a config value to tuples, recursively, so that it is hashable."""
    return tuple(frozen(item) for item in value) if isinstance(value, (list, tuple)) else value


LANGUAGE = "2"
HERE = "_"
"""Placeholder for the surrounding path; names an entry without a path in an edit."""
ENTRY = ("op", "block", "repeat", "graph")
"""Fields of which an entry has one: it decides the kind of the entry."""


def other_language(node: Node, source: Source) -> Diagnostic | None:
    """The finding about a document's ``language`` if it is missing or not the current version, else None."""
    given = node.get("language") if isinstance(node, Mapping) else None
    text = given.text if isinstance(given, Scalar) else ""
    if text == LANGUAGE:
        return None
    place = Span(source, 1, 1, 2) if given is None or not text else given.span
    if text in ("", "1"):
        message = "this is written in version 1 of the language" if text else "a spec without 'language' is of version 1"
        hint = f"'symflops migrate {source.path}' rewrites it; a new one begins with 'language: {LANGUAGE}'"
        return Diagnostic("old-language", message, place, hint)
    message = f"there is no version '{text}' of the language"
    hint = f"this symflops reads version {LANGUAGE}: write 'language: {LANGUAGE}', or use a newer symflops"
    return Diagnostic("unknown-language", message, place, hint)


def path_and_fields(item: Node) -> tuple[Scalar, Node] | None:
    """Split an entry into its path (:data:`HERE` if it has none) and fields; None if it is not an entry.

    A single key with a mapping as its value is a path: ``block: {repeat: L, ...}`` is at the path ``block``. Null under a
    path removes an entry of the base.
    """
    if not isinstance(item, Mapping) or not item.entries:
        return None
    (key, value), *others = item.entries
    kind = next((name for name, _ in item.entries if name.text in ENTRY), key)
    if not others and (isinstance(value, Mapping) or is_null(value) or kind.text not in ENTRY):
        return key, value
    if isinstance(value, Mapping) and kind.text not in ENTRY:
        return None
    return Scalar(HERE, kind.span), item


def joined(path: Scalar, fields: Mapping, item: Mapping) -> Mapping:
    """Make an entry from a path and fields, located in the source where ``item`` is."""
    return fields if path.text == HERE else Mapping(((path, fields),), item.span)


def is_null(node: Node) -> bool:
    """Whether a node is null: empty, ``null`` or ``~``."""
    return isinstance(node, Scalar) and node.plain and node.text in ("null", "~", "")
