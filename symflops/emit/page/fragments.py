"""Pieces of a derivation to paste into a paper or a page: their contents, free of markup."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from symflops.emit.grouping import grouped
from symflops.emit.math.printer import LatexPrinter
from symflops.emit.page.page import elements, located, owner, page, term
from symflops.emit.page.types import FormGroup, Page
from symflops.model.formula import Formula
from symflops.model.program import Program, Tensor
from symflops.model.terms import plus, times

PIECES = ("forms", "where", "symbols", "modules")


@dataclass(frozen=True, slots=True)
class ModuleRow:
    """A module that computes, with the parameters and the forward work of all its copies."""

    group: str
    module: str
    parameters: Formula
    term: Formula


@dataclass(frozen=True, slots=True)
class Fragments:
    """The closed forms by regime, the modules as ``convention`` counts them, and which notations to explain."""

    page: Page
    convention: str
    groups: tuple[tuple[str, FormGroup], ...]
    modules: tuple[ModuleRow, ...]
    brackets: bool
    excess: bool


def fragments(program: Program) -> Fragments:
    """The fragments of ``program``; its first convention counts the modules."""
    program, first = program.first(), program.conventions[0]
    whole = page(program)
    groups = tuple((regime.name, group) for regime in whole.regimes for group in regime.groups if group.forms)
    modules = tuple(module_rows(program, dict(program.pairs)[first], dict(program.unseen)[first]))
    shown: list[Formula] = [program.parameters, *(definition.formula for definition in program.definitions)]
    shown += [formula for _, group in groups for form in group.forms for _, formula in form.terms]
    shown += [formula for module in modules for formula in (module.parameters, module.term)]
    shown += [moment.formula for moment in program.moments]
    text = " ".join(map(LatexPrinter().text, shown))
    return Fragments(whole, first, groups, modules, "[" in text, "^{+}" in text)


def module_rows(program: Program, pairs: str, unseen: bool) -> Iterable[ModuleRow]:
    """The modules with contractions, as a convention counts them."""
    lines = program.regimes[0].lines
    for module in dict.fromkeys(line.module for line in lines):
        counted = [line for line in lines if line.module == module and (unseen or line.seen)]
        own = [tensor for tensor in program.tensors if owner(tensor) == module]
        yield ModuleRow(*located(module), all_elements(own), term(counted, program, pairs))


def all_elements(tensors: Iterable[Tensor]) -> Formula:
    """The elements of all copies of some tensors; equal sizes are merged, then equal numbers of copies."""
    copies = grouped(((tensor.name, elements(tensor)), tensor.copies) for tensor in tensors)
    sizes = grouped((plus(counts), size) for (_, size), counts in copies.items())
    return plus([times(count, plus(each)) for count, each in sizes.items()])
