"""Imports the class that a spec describes, from a known library or from a file beside the spec.

``transformers.LlamaForCausalLM`` is a class of a package, ``my_module:MyModel`` the class ``MyModel`` of ``my_module.py`` in
the folder of the spec. That file is executed, as ``python my_module.py`` would; nothing else that a spec names ever is.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from symflops.diagnostics.findings import SymflopsError, did_you_mean
from symflops.witness.tensors import needed

PACKAGES = ("transformers", "diffusers", "torch")


def class_of(reference: str, folder: Path | None = None) -> Any:
    """The class of a ``reference``: a torch module of transformers, diffusers or torch, or of a file in ``folder``.

    Raises:
        SymflopsError: the class does not exist, or its file fails when it is run.
    """
    package, _, path = reference.partition(".")
    name, colon, inner = reference.partition(":")
    if colon:
        found = member_of(_beside(name, folder), inner, f"{name.replace('.', '/')}.py")
    elif package in PACKAGES and path:
        found = needed(package)
        found = member_of(found, path, f"{package} {getattr(found, '__version__', '')}", "is it of another version?")
    else:
        known = f"a reference is a class of {', '.join(PACKAGES)}, or 'module:Class' with module.py beside the spec"
        raise SymflopsError(f"'{reference}' cannot be verified live: {known}")
    return checked(found, reference)


def checked(found: Any, reference: str) -> Any:
    """What a reference names, if it is a module class.

    Raises:
        SymflopsError: it is anything else.
    """
    if not (isinstance(found, type) and issubclass(found, needed("torch").nn.Module)):
        raise SymflopsError(f"'{reference}' is no module class")
    return found


def package_of(reference: str) -> str:
    """The package whose version a report names besides torch's; torch itself for a class of a file."""
    return "torch" if ":" in reference else reference.partition(".")[0]


def member_of(found: Any, path: str, where: str, otherwise: str = "") -> Any:
    """The class at ``path`` inside a module.

    Raises:
        SymflopsError: it does not exist, or cannot be imported.
    """
    for word in path.split("."):
        known = found
        try:
            found = getattr(known, word)
        except AttributeError:
            hint = did_you_mean(word, (name for name in dir(known) if name[:1].isupper()), otherwise)
            raise SymflopsError(f"{where} has no class '{path}'" + (f": {hint}" if hint else "")) from None
        except ImportError as error:
            raise SymflopsError(f"'{path}' of {where} cannot be imported: {error}") from error
    return found


def _beside(name: str, folder: Path | None) -> Any:
    path = (folder or Path()).joinpath(*name.split(".")).with_suffix(".py")
    if not path.is_file():
        raise SymflopsError(f"there is no file '{path.name}' beside the spec (looked for {path})")
    return module_of_file(path.resolve())


@lru_cache(maxsize=64)
def module_of_file(path: Path) -> Any:
    """The module of a file, run once per process; it can import other files of its folder.

    Raises:
        SymflopsError: the file fails when it is run.
    """
    name = f"_symflops_file_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SymflopsError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up the annotations of their fields there
    with _first_on_path(path.parent):
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:
            raise SymflopsError(f"{path} fails when it is run: {type(error).__name__}: {error}") from error
    return module


@contextmanager
def _first_on_path(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
