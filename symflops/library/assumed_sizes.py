"""Formats the closed forms of a specialised program as text, with a table of their letters."""

from __future__ import annotations

import json

from symflops.emit.python.printer import PythonPrinter
from symflops.formula.formula import symbols
from symflops.ir.program import Case, Program

PASSES = ("forward", "backward", "recomputed")
MOST = 6
"""The longest config list that is printed in full."""
PRINT = PythonPrinter()


def forms_of(program: Program, case: Case) -> dict[str, dict[str, str]]:
    """Format the closed form of each pass: pass -> moment -> coefficient."""
    return {
        name: {program.sum_name(place, case.convention): PRINT.text(formula) for place, formula in getattr(case, name)}
        for name in PASSES
    }


def symbols_of(program: Program, case: Case) -> tuple[list[dict[str, str]], list[str]]:
    """Return the letters of the closed forms of ``case``, each as a dict, and the other fixed sizes.

    The dict of a config field has ``letter``, ``field`` (its name), ``doc`` and, if its value is fixed, ``value``; that of
    a derived size has ``letter`` and ``formula``. A fixed size that the closed forms do not contain is a text: name, ``=``,
    value.
    """
    formulas = [formula for name in PASSES for _, formula in getattr(case, name)] + [one.formula for one in program.definitions]
    used = {name for formula in formulas for name in symbols(formula)}
    rows, rest, fixed = [], [], dict(program.fixed)
    for field in program.fields:
        value = {"value": worded(fixed[field.letter])} if field.letter in fixed else {}
        if field.letter in used:
            rows.append({"letter": field.letter, "field": field.attribute, "doc": field.doc, **value})
        elif value:
            rest.append(f"{field.attribute} = {value['value']}")
    derived = ({"letter": item.letter.partition("@")[0], "formula": PRINT.text(item.formula)} for item in program.definitions)
    return [*rows, *derived], rest


def worded(value: object) -> str:
    """Format a config value as JSON, abbreviating long lists."""
    if isinstance(value, tuple) and len(value) > MOST:
        return f"{json.dumps(value[:3], default=str)[:-1]}, ... {len(value)} entries]"
    return json.dumps(value, default=str)
