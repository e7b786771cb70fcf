"""Modules that need a GPU as empty ones, so that a framework's tree, and its own tests, import on a CPU and on Python 3.11.

As a pytest plugin (``-p hollow``) it takes the packages that the variable ``HOLLOW`` lists, and imports those of ``HOLLOW_AFTER``
before, which do without them. Of the packages in ``BARE`` it does not run the ``__init__``. All else is the real thing.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import os
import sys
import types
import typing

import typing_extensions

if not hasattr(typing, "override"):  # Megatron-LM's models import it from typing, where it is from Python 3.12 on
    typing.override = typing_extensions.override


class Hollow(type):
    """A class whose every attribute is such a class."""

    def __getattr__(cls, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return Hollow(name, (), {})


class Empty(types.ModuleType):
    """A module whose every attribute is a class without anything."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return Hollow(name, (), {})


class Finder:
    """Finds the modules of some packages as empty ones."""

    def __init__(self, packages: typing.Collection[str]) -> None:
        self.packages = packages

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        hollow = name.partition(".")[0] in self.packages
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if hollow else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return Empty(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run."""


def hollowed(*packages: str) -> None:
    """Let packages be empty."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.append(Finder(packages))


def bare(package: str) -> None:
    """Let a package be one whose own ``__init__`` does not run; its modules do."""
    found = types.ModuleType(package)
    found.__path__ = list(importlib.machinery.PathFinder.find_spec(package).submodule_search_locations)
    sys.modules[package] = found


def listed(variable: str) -> list[str]:
    """The names in a variable."""
    return [name for name in os.environ.get(variable, "").split(",") if name]


if __name__ == "hollow":
    for name in listed("HOLLOW_AFTER"):
        importlib.import_module(name)
    for name in listed("BARE"):
        bare(name)
    if listed("HOLLOW"):
        hollowed(*listed("HOLLOW"))
