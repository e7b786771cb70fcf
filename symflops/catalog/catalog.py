"""The stored programs of a project and of the package, by the names of their specs. Imports neither sympy nor YAML."""

from __future__ import annotations

import json
import os.path

from symflops.diagnostics.errors import SymflopsError, did_you_mean
from symflops.runtime.classes import check_class, class_in, class_name
from symflops.runtime.sizes import sizes_of
from symflops.runtime.stored import Stored, has

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PACKAGE = os.path.dirname(
    os.path.dirname(os.path.abspath(__file__))
)  # os.path: pathlib alone would cost a tenth of an estimate


class UnknownModelError(SymflopsError):
    """No spec describes this model."""


class Catalog:
    """The stored programs below one folder."""

    def __init__(self, root: str, specs: Mapping[str, Mapping[str, Any]], shipped: bool = False) -> None:
        self.root = root
        self.specs = specs
        self.shipped = shipped

    def program(self, name: str, variant: str = "") -> dict[str, Any]:
        """The stored program of a spec, or of one of its variants.

        Raises:
            SymflopsError: there is no such file, or it is damaged.
        """
        path = os.path.join(self.root, self.specs[name]["group"], f"{name}_{variant}.json" if variant else f"{name}.json")
        try:
            with open(path, "rb") as file:
                found = json.loads(file.read())
        except FileNotFoundError:
            raise SymflopsError(f"{path} is missing: run 'symflops generate {name}'") from None
        except (OSError, ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise SymflopsError(f"{path} is damaged: run 'symflops generate {name}'")
        return found

    def module(self, name: str, variant: str = "") -> Any:
        """The generated module of a spec or a variant; the shipped catalog alone has modules that may be imported."""
        import importlib

        return importlib.import_module(
            f"symflops.generated.{self.specs[name]['group']}.{name}{'_' if variant else ''}{variant}"
        )

    def of_structure(self, name: str, config: Mapping[str, Any]) -> tuple[str | None, dict[str, Any], dict[str, Any]]:
        """The variant whose structure ``config`` has, empty for the spec itself, its program, and the sizes of the config.

        If no program is stored for the structure, the variant is None and the program is that of the spec.

        Raises:
            SymflopsError: the config does not fit the model.
        """
        program = self.program(name)
        entry, own = self.specs[name], class_in(config)
        check_class(name, entry["references"], entry["model_types"], config)
        sizes = attributes(Stored(program), config)
        if own and entry["references"] and own not in map(class_name, program["references"]):
            return None, program, sizes
        structures = entry.get("structures", {})
        for variant, structure in structures.items():
            if variant != "default" and has(sizes, structure):
                return variant, self.program(name, variant), sizes
        return ("" if has(sizes, structures.get("default", {})) else None), program, sizes

    def stale(self, name: str) -> bool:
        """Whether the spec beside this catalog has changed since its files were generated."""
        path = os.path.join(os.path.dirname(self.root), "specs", self.specs[name]["group"], f"{name}.yaml")
        if not os.path.isfile(path):
            return False
        import zlib

        with open(path, "rb") as file:
            return zlib.crc32(file.read()) != int(self.specs[name]["crc32"])


def catalogs() -> list[Catalog]:
    """The catalog of the project in the current folder, if it has one, then the shipped one."""
    inside = os.path.join(PACKAGE, "generated")
    checkout = os.path.join(os.path.dirname(PACKAGE), "generated")
    shipped = inside if os.path.isfile(os.path.join(inside, "catalog.json")) else checkout
    folders = [os.path.abspath("generated")] if os.path.isdir("specs") else []
    found = []
    for folder in dict.fromkeys([*folders, shipped]):
        path = os.path.join(folder, "catalog.json")
        if os.path.isfile(path):
            with open(path, "rb") as file:
                found.append(Catalog(folder, json.loads(file.read())["specs"], folder == shipped))
    return found


def by_name(name: str) -> Catalog:
    """The catalog that has the spec ``name``.

    Raises:
        UnknownModelError: none has; with the nearest names.
    """
    found = catalogs()
    for catalog in found:
        if name in catalog.specs:
            return catalog
    known = [known for catalog in found for known in catalog.specs]
    raise UnknownModelError(f"there is no spec '{name}': {did_you_mean(name, known, 'symflops list shows all')}")


def attributes(program: Stored, config: Mapping[str, Any]) -> dict[str, Any]:
    """The sizes that a config has, by the long names that estimators and catalogs use."""
    sizes = sizes_of(program, config)
    return {row["attribute"]: sizes[row["letter"]] for row in program.document["fields"]}
