"""Statements of other systems' documents, each with what shows it here, from ``systems.yaml``.

A system has plain ``data``, lines that are ``given`` to its expressions, and ``rules``: the source's arithmetic, without
symflops. A row says what the document states and what runs (``symflops ...`` or Python). Its ``rule``, an expression of plain
numbers, equals the printed figure; or ``holds`` is a condition on ``figure``. ``tests/docs/test_systems.py`` compares them.
"""

from __future__ import annotations

import ast
import re
import shlex
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from operators import escaped
from results import printed
from ruamel.yaml import YAML

FILE = Path(__file__).with_suffix(".yaml")
TOTAL = r"^  total +([\d,]+)"


@cache
def systems() -> Mapping[str, Mapping[str, Any]]:
    """The systems of the file, by name."""
    found: dict[str, dict[str, Any]] = YAML(typ="safe").load(FILE.read_text("utf-8"))
    return found


def system(name: str) -> str:
    """One system: its document, what its expressions use, and its table."""
    one = systems()[name]
    pairs = zip(one["rows"], figures(name), strict=True)
    rows = [f"| {escaped(row['says'])} | {cell(row['run'])} | {escaped(figure)} |" for row, figure in pairs]
    table = "\n".join(["| It says | Shown by | Figure |", "|:--|:--|--:|", *rows])
    return f"{one['source'].strip()}\n\n```python\n{assigned(one)}{one['given'].rstrip()}\n```\n\n{table}"


def assigned(one: Mapping[str, Any]) -> str:
    """The data of a system as assignments, with lines that fit."""
    return "".join(f"{name} = {wrapped(repr(value), len(name) + 4)}\n" for name, value in one.get("data", {}).items())


def wrapped(text: str, indent: int) -> str:
    """A mapping on several lines."""
    lines, line = [], ""
    for word in re.split(r"(?<=,) ", text):
        if line and len(line) + len(word) > 90 - indent:
            lines.append(line)
            line = ""
        line += f" {word}" if line else word
    return ("\n" + " " * indent).join([*lines, line])


def cell(run: str) -> str:
    """Lines of code in a cell of a table."""
    return "<br>".join(f"`{line}`" for line in run.strip().replace("|", "\\|").splitlines())


def figures(name: str) -> Iterator[str]:
    """What each row of a system prints."""
    one = systems()[name]
    names = dict(one.get("data", {}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(one["given"], names)
        for row in one["rows"]:
            yield shown(ran(row["run"].strip(), names, row.get("take", TOTAL)))


def ran(run: str, names: dict[str, Any], take: str) -> Any:
    """The figure of a command, the first group of ``take`` in what it prints; or the value of the last line of Python."""
    if run.startswith("symflops "):
        return re.search(take, printed(*shlex.split(run)[1:]), re.MULTILINE)[1]  # type: ignore[index]
    *before, last = ast.parse(run).body
    exec(compile(ast.Module(before, []), "systems.yaml", "exec"), names)
    assert isinstance(last, ast.Expr)
    return eval(compile(ast.Expression(last.value), "systems.yaml", "eval"), names)


def shown(value: Any) -> str:
    """A figure as the table has it: thousands apart, and six digits of what is no whole number."""
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        return "; ".join(map(shown, value))
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        return str(value)
    return f"{int(value):,}" if value == int(value) else f"{float(value):,.6g}"


def expected(name: str) -> Iterator[tuple[str, Any, str]]:
    """Each statement with the value of its rule, and its condition on the figure if it has one. Nothing of symflops is used."""
    one = systems()[name]
    names = dict(one.get("data", {}))
    exec(one["rules"], names)
    for row in one["rows"]:
        yield row["says"], eval(str(row["rule"]), names) if "rule" in row else names, row.get("holds", "")
