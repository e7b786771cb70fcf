"""Reference pages as Markdown, each read from the code or the data that it describes."""

from __future__ import annotations

import argparse
import importlib
import re
from itertools import groupby
from pathlib import Path

from operators import table
from ruamel.yaml import YAML

from symflops.api import convention_of, regime_of
from symflops.build.roles import rules
from symflops.cli.main import COMMANDS
from symflops.formula.language_functions import FUNCTIONS
from symflops.ir.convention import ROLES
from symflops.read import field_tables as tables
from symflops.read.spec_files import page, pages
from symflops.support.findings import kinds

WORDS: dict[str, str] = YAML(typ="safe").load(Path(__file__).with_name("words.yaml").read_text("utf-8"))
KEYS = {
    "document": (*tables.DOCUMENT, tables.EXTENDS), "size": tables.SIZE, "stream": tables.STREAM, "input": tables.INPUT,
    "repeat": tables.REPEAT, "group": tables.GROUP, "call": tables.CALL, "block": tables.BLOCK,
    "baseline": tables.BASELINE, "expect": tables.EXPECT, "regime": tables.REGIME, "adapter": tables.ADAPTER,
    "recompute": tables.RECOMPUTE, "passes": tables.PASSES, "phase": tables.PHASE,
}  # fmt: skip
COUNTS = {"work": "contractions", "elements": "work element by element, without contractions", "region": "parts of a model"}


def keys(kind: str) -> str:
    """The fields of one part of a spec, from the tables of the readers."""
    return table(KEYS[kind])


def functions() -> str:
    """The functions of expressions, with their meaning.

    Raises:
        KeyError: words.yaml lacks a function of the code, or describes one that does not exist.
    """
    names = (*FUNCTIONS, "longest", "width")
    differ = set(names) ^ set(WORDS)
    if differ:
        raise KeyError(f"words.yaml and the functions of expressions differ: {sorted(differ)}")
    return "\n".join(["| Function | Meaning |", "|:--|:--|", *(f"| `{name}` | {WORDS[name]} |" for name in names)])


def commands() -> str:
    """Every command with its arguments, from its own parser."""
    return "\n\n".join(command(name, doc) for name, doc in COMMANDS.items())


def command(name: str, doc: str) -> str:
    """One command: what it does, and a table of its arguments."""
    module = importlib.import_module(f"symflops.cli.{name}")
    parser = argparse.ArgumentParser(prog=f"symflops {name}", add_help=False)
    module.configure(parser)
    rows = [f"| {spelled(action)} | {plain((action.help or '') % vars(action))} |" for action in parser._actions]
    parts = [f"## `symflops {name}`", described(module.__doc__ or f"{doc[:1].upper()}{doc[1:]}.")]
    return "\n\n".join([*parts, "\n".join(["| Argument | Meaning |", "|:--|:--|", *rows])] if rows else parts)


def spelled(action: argparse.Action) -> str:
    """How an argument is written."""
    value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    value = value if isinstance(value, str) else " ".join(value)
    if not action.option_strings:
        return f"`{value}`".replace("|", "\\|")
    names = ", ".join(action.option_strings)
    return f"`{names}`" if action.nargs == 0 else f"`{names} {value}`".replace("|", "\\|")


def described(text: str) -> str:
    """A docstring as Markdown: indented lines are code, the rest is prose."""
    found: list[str] = []
    for part in text.strip().split("\n\n"):
        for code, run in groupby(part.splitlines(), key=lambda line: line.startswith(("  ", "symflops "))):
            lines = [line.removeprefix("  ") for line in run]
            found.append("\n".join(["```text", *lines, "```"]) if code else options(plain(" ".join(lines))))
    return "\n\n".join(found)


def options(text: str) -> str:
    """Prose with the names of options as code."""
    return re.sub(r"(?<!\S)--[a-z][\w-]*", r"`\g<0>`", text)


def plain(text: str) -> str:
    """Prose with all markup escaped."""
    return re.sub(r"([\\*_\[\]<>|`{}$])", r"\\\1", text)


def regimes() -> str:
    """The shipped regimes with their pages."""
    return "\n\n".join(
        f"## `{name}`\n\n{sentence(regime_of(name).doc)}\n\n{source('regimes', name)}" for name in pages("regimes")
    )


def conventions() -> str:
    """The shipped conventions with their pages."""
    found = []
    for name in pages("conventions"):
        one = convention_of(name)
        links = f"See {', '.join(f'<{link}>' for link in one.links)}.\n\n" if one.links else ""
        version = f"It reproduces {sentence(plain(one.reproduces.sentence))}\n\n" if one.reproduces else ""
        found.append(f"## `{name}`\n\n{sentence(plain(one.doc))}\n\n{version}{links}{source('conventions', name)}")
    return "\n\n".join(found)


def reproduced() -> str:
    """The framework, version and date that each shipped convention reproduces, and what has changed since."""
    found = ((name, convention_of(name).reproduces) for name in pages("conventions"))
    rows = [f"| `{name}` | {plain(one.at)} | {one.date} | {plain(one.changed)} |" for name, one in found if one]
    return "\n".join(["| Convention | Reproduces | Of | Changed since |", "|:--|:--|:--|:--|", *rows])


def roles() -> str:
    """The roles that a convention may name."""
    rows = (f"| `{name}` | {role.group} | {plain(role.doc)} |" for name, role in ROLES.items())
    groups = "; ".join(f"*{name}* are {doc}" for name, doc in COUNTS.items())
    return f"Groups: {groups}.\n\n" + "\n".join(["| Role | Group | What it is |", "|:--|:--|:--|", *rows])


def inferred_roles() -> str:
    """The table by which roles and regions follow from the paths of modules."""
    rows = [f"| `{op}` | `{path}` | `{role}` |" for op, path, role in rules().roles]
    rows += [f"| any | `{path}` | region `{region}` |" for path, region in rules().regions]
    return "\n".join(["| Operator | Path | Role |", "|:--|:--|:--|", *rows])


def source(kind: str, name: str) -> str:
    """The page of a regime or convention."""
    return f"```yaml\n{page(kind, name).text.strip()}\n```"


def sentence(text: str) -> str:
    """A line of documentation as a sentence."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", ":")) else ".")


def diagnostics() -> str:
    """Every kind of finding, with the text of ``symflops check --explain``."""
    rows = (f"| `{code}` | {meaning.replace('|', chr(92) + '|')} |" for code, meaning in kinds().items())
    return f"There are {len(kinds())} kinds.\n\n" + "\n".join(["| Kind | Meaning |", "|:--|:--|", *rows])
