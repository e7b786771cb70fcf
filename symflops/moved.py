"""Redirects of published import paths to present ones; both names import the same module."""

from __future__ import annotations

import sys
from functools import partial
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

FOLDERS = {
    "adapters": "training.frameworks",
    "catalog": "library",
    "devices": "training.devices",
    "diagnostics": "support",
    "frontend": "read",
    "live": "training.introspect",
    "meter": "training.meter",
    "model": "ir",
    "questions": "analysis",
    "runtime": "evaluate",
    "witness": "verify",
}
FILES = {
    "catalog.comparison": "analysis.convention_comparison",
    "catalog.explanation": "analysis.explanation",
    "diagnostics.codes": "support.findings",
    "frontend.baseline": "read.read",
    "frontend.bound_names": "read.definition_order",
    "frontend.classes": "read.variants",
    "frontend.entry_paths": "read.yaml_nodes",
    "frontend.expectations": "read.read",
    "frontend.language": "read.yaml_nodes",
    "frontend.layouts": "read.shapes",
    "frontend.parts": "read.variants",
    "frontend.quotes": "read.edits",
    "frontend.unused": "read.definition_order",
}


class Moved:
    """Import finder for modules under their old names."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the import spec of the module once called ``name``; None if there was or is no such module."""
        package, _, rest = name.partition(".")
        folder, _, file = rest.partition(".")
        if package != "symflops" or folder not in FOLDERS:
            return None
        new = FILES.get(rest) or f"{FOLDERS[folder]}.{file}".rstrip(".")
        from importlib.machinery import ModuleSpec
        from importlib.util import find_spec

        try:
            found = find_spec(f"{package}.{new}")
        except ModuleNotFoundError:
            found = None
        if found is None:
            return None
        loader: Any = Loader(found.name)
        return ModuleSpec(name, loader, is_package=found.submodule_search_locations is not None)


class Loader:
    """Import loader for an old name: the renamed module, or an empty package that forwards attributes."""

    def __init__(self, name: str) -> None:
        self.name = name

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return the moved module; None for a package, so that Python creates an empty one."""
        if spec.submodule_search_locations is not None:
            return None
        module = import_module(self.name)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Forward attributes of a package to the new package; give a module its own import spec back."""
        if hasattr(module, "__path__"):
            module.__getattr__ = partial(getattr, import_module(self.name))  # type: ignore[method-assign]
        else:
            module.__spec__ = self.spec


sys.meta_path.append(Moved)  # last in the list, so that existing paths take precedence
