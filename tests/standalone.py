"""Generated modules alone: their text run without symflops, and a batch as they take it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from symflops.emit.python.module import render
from symflops.evaluate.published import publish
from symflops.evaluate.stored import Stored, config_value
from symflops.ir.format import unpacked
from symflops.ir.program import Program
from symflops.ir.serialise import document_of

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "generated").glob("*/*.py"))


def alone(text: str, name: str = "alone") -> ModuleType:
    """The module with this text."""
    module = sys.modules[name] = ModuleType(name)  # dataclasses look up their module
    exec(compile(text, name, "exec"), vars(module))
    return module


def sizes_for(module: ModuleType, stored: Stored, sizes: Mapping[str, Any]) -> Any:
    """Sizes by letter as the module's own."""
    return module.Sizes(**{row["attribute"]: config_value(sizes[row["letter"]]) for row in stored.document["fields"]})


def figures(module: ModuleType, sizes: Any, batch: Mapping[str, Any], regime: str, convention: str) -> tuple[int, int, int, int]:
    """Parameters, those that train, forward and backward of a batch of one side of lengths."""
    own = [sizes] if "sizes" in module.moments.__annotations__ else []
    m = module.moments(*own, **batch)
    return (*module.parameters(sizes, regime), module.forward(sizes, m, regime, convention), module.backward(sizes, m, regime, convention))


def of_program(text: str, stored: Stored, sizes: Mapping[str, Any], batch: Mapping[str, Any], regime: str, convention: str) -> tuple[int, int, int, int]:
    """The figures of a printed module for the sizes of an estimator."""
    module = alone(text)
    return figures(module, sizes_for(module, stored, sizes), batch, regime, convention)


def published(program: Program, text: str = "", name: str = "published") -> ModuleType:
    """The module of a program, as the installed package has it: with the published names around its formulas."""
    module = ModuleType(name)
    formulas = alone(text or render(program, "0"), name)
    publish(module, formulas, document_of(program))
    sys.modules[name] = module
    return module


def published_file(path: Path) -> ModuleType:
    """The module of a generated file, with the published names around its formulas."""
    module = ModuleType(path.stem)
    publish(module, alone(path.read_text("utf-8"), path.stem), unpacked(json.loads(path.with_suffix(".json").read_bytes())))
    return module
