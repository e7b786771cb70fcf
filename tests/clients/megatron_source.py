"""Imports modules of Megatron-LM and Megatron-Bridge on a CPU and on Python 3.11.

Megatron-Bridge imports Transformer Engine, which needs CUDA: its layers are empty classes here. All else is the real thing.
"""

from __future__ import annotations

import importlib
import importlib.machinery
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
    """Finds the modules of Transformer Engine as empty ones."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        root = name.partition(".")[0] in ("transformer_engine", "transformer_engine_torch")
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if root else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return Empty(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run."""


def bridge(name: str) -> types.ModuleType:
    """The module ``megatron.bridge.NAME``."""
    import megatron.core
    import megatron.training.training  # noqa: F401 (both look for Transformer Engine, and do without)

    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.append(Finder())
    return importlib.import_module(f"megatron.bridge.{name}")
