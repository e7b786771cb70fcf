"""The blocks of the library as Markdown: what each computes, its parameters, and a call with what that makes."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from operators import sentence
from ruamel.yaml import YAML

from symflops.api import load
from symflops.ir.nodes import Operator
from symflops.read.spec_files import roots, specs_in

LIBRARY = roots()[-1]
ROOT = LIBRARY.parent


@dataclass(frozen=True)
class Call:
    """A call of a block: the spec to build, the file that holds the call, the path of the call, and how it is written."""

    spec: str
    file: Path
    path: str
    line: str


def blocks() -> str:
    """All blocks of the library, by name."""
    return "\n\n".join(section(path) for path in library())


def library() -> list[Path]:
    """The files of the library's blocks."""
    return sorted((LIBRARY / "blocks").glob("*.yaml"))


def section(path: Path) -> str:
    """One block: its file, parameters, and an example.

    Raises:
        KeyError: nothing in the library calls it.
    """
    block, call = read(path), calls()[path.stem]
    parts = [
        f"## `{path.stem}`",
        comment(path.read_text("utf-8")),
        f"{link(path)} takes {listed(block['inputs'])} and gives {listed(block['outputs'])}. "
        + parameters(block.get("params", {})),
        f"A call in {link(call.file)}:",
        f"```yaml\n- {call.line}\n```",
    ]
    if shapes := made(path, call):
        parts += [f"It makes these tensors of `{call.spec}`:", "\n".join(shapes)]
    return "\n\n".join(part for part in parts if part)


def read(path: Path) -> dict[str, Any]:
    """A file of YAML."""
    found: dict[str, Any] = YAML(typ="safe").load(path.read_text("utf-8"))
    return found


def link(path: Path) -> str:
    """A link from a page of the reference to a file of the library."""
    return f"[`{path.relative_to(LIBRARY).as_posix()}`](../../{path.relative_to(ROOT).as_posix()})"


def comment(text: str) -> str:
    """The comment at the head of a file, as prose."""
    head = text.partition("language:")[0].splitlines()
    lines = [line.removeprefix("#").strip() for line in head if "yaml-language-server" not in line]
    return sentence(re.sub(r"'(\w+)'", r"`\1`", " ".join(lines).strip()))


def parameters(given: Mapping[str, Any]) -> str:
    """The parameters of a block: those that a call must give, and those with a default."""
    required = [name for name, default in given.items() if default is None]
    optional = [f"`{name}: {flow(default)}`" for name, default in given.items() if default is not None]
    parts = [f"needs {listed(required)}"] * bool(required) + [f"has the defaults {', '.join(optional)}"] * bool(optional)
    return f"It {' and '.join(parts)}." if parts else ""


def listed(names: list[str]) -> str:
    """Names of values."""
    return ", ".join(f"`{name}`" for name in names) or "nothing"


def made(path: Path, call: Call) -> list[str]:
    """The tensors that the call makes in its spec with the defaults, as a list with shapes."""
    mine = [operator for operator in operators_of(call.spec) if source(operator) == path]
    within = f"{re.sub(r'{.*?}', '*', call.path)}."
    here = [operator for operator in mine if f"{operator.path}.".startswith(within)] or mine
    tensors = [one for operator in here if operator.kind != "act" for one in operator.parameters]
    rows = [f"- `{one.path}`: `({', '.join(map(str, one.shape))})`" for one in tensors]
    return list(dict.fromkeys(rows))


@cache
def operators_of(spec: str) -> tuple[Operator, ...]:
    """The operators of a spec with its defaults."""
    return tuple(load(spec).graph({}).operators())


def source(operator: Operator) -> Path | None:
    """The file in which an operator is written."""
    return ROOT / operator.span.source.path if operator.span else None


@cache
def calls() -> Mapping[str, Call]:
    """The shortest call of each block by a shipped spec, else one by another block."""
    found: dict[str, Call] = {}
    for file in specs_in(LIBRARY):
        spec = read(file.path)
        if file.group == "assumed":
            continue
        for path, name, line in walked(spec.get("graph", []), ""):
            one = Call(file.name, file.path, path, line)
            if name not in spec.get("blocks", {}) and better(one, found.get(name)):
                found[name] = one
    for _ in range(2):  # blocks in blocks in blocks
        for path in library():
            for at, name, line in walked(read(path)["graph"], ""):
                if path.stem in found and name not in found:
                    outer = found[path.stem]
                    found[name] = replace(outer, file=path, path=".".join(filter(None, (outer.path, at))), line=line)
    return found


def better(one: Call, other: Call | None) -> bool:
    """Whether one call is a better example than another: not by an edit of a base, and shorter."""
    return other is None or (len(one.line), one.spec) < (len(other.line), other.spec)


def walked(entries: list[Any], around: str) -> Iterator[tuple[str, str, str]]:
    """The calls of blocks in a graph: their paths, their blocks, and how they are written."""
    for entry in entries:
        [(path, fields)] = entry.items() if len(entry) == 1 else [("", entry)]
        if not isinstance(fields, dict):
            continue
        at = ".".join(word for word in (around, str(path)) if word)
        if "block" in fields:
            yield at, fields["block"], written(path, fields)
        yield from walked(fields.get("graph", []), f"{at}.*" if "repeat" in fields else at)


def written(path: Any, fields: Mapping[str, Any]) -> str:
    """An entry; long ones go on below their first field."""
    inside = [f"{key}: {flow(value)}" for key, value in fields.items() if key not in ("after", "before")]
    start = f"{path}: {{" if path != "" else "{"
    return textwrap.fill(", ".join(inside) + "}", 96, initial_indent=start, subsequent_indent=" " * (len(start) + 2))


def flow(value: Any) -> str:
    """A value in YAML's flow style."""
    if isinstance(value, list):
        return f"[{', '.join(map(flow, value))}]"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f'"{text}"' if re.search(r"[:#{}\[\],'\"]|^$", text) else text
