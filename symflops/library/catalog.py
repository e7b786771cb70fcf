"""Catalogs of local and shipped specs by name, with the stored programs of shipped ones. Imports neither sympy nor YAML."""

from __future__ import annotations

import json
import os
from functools import lru_cache

from symflops.evaluate.classes import check_class, class_in, class_name, without_pipeline
from symflops.evaluate.evidence import TRACED
from symflops.evaluate.sizes import sizes_of
from symflops.evaluate.stored import Stored, has
from symflops.ir.format import unpacked
from symflops.support.errors import SymflopsError, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from symflops.read.spec_files import SpecFile

PUBLISHED = "pub-"
"""Prefix of the names of published models among the records."""
OTHERS = ("assumed", "blocks")  # folders whose specs are found only by name, and that have none
PACKAGE = os.path.dirname(
    os.path.dirname(os.path.abspath(__file__))
)  # os.path: pathlib alone would cost a tenth of an estimate


class UnknownModelError(SymflopsError):
    """No spec describes the model that a config or a name stands for."""


@lru_cache(maxsize=8)
def _parsed(path: str, _changed: int) -> Any:
    """Parse a JSON file; cached until ``_changed``, its modification time, differs."""
    with open(path, "rb") as file:
        return json.loads(file.read())


@lru_cache(maxsize=4)
def _program(path: str, changed: int) -> Any:
    """Unpack the stored program in a file; cached until ``changed``, its modification time, differs."""
    found = _parsed(path, changed)
    return unpacked(found) if isinstance(found, dict) else found


class Catalog:
    """A library of specs; ``specs`` maps a name to a header of classes, pipelines, streams and structures.

    Shipped specs have stored programs below ``folder``. Local specs have ``files``, from which programs are derived.
    """

    def __init__(
        self, folder: str, specs: Mapping[str, Mapping[str, Any]], files: Mapping[str, SpecFile] | None = None
    ) -> None:
        self.folder = folder
        self.specs = specs
        self.files = files
        self.shipped = files is None

    def file(self, name: str) -> SpecFile:
        """The YAML file of a spec."""
        if self.files is not None:
            return self.files[name.removeprefix("assumed/")]
        from symflops.read.spec_files import SpecFile, shipped

        group, _ = self.stem(name)
        root = shipped("specs").resolve()
        return SpecFile(root, root / group / f"{name}.yaml", f"specs/{group}/{name}.yaml")

    def stem(self, name: str, variant: str = "") -> tuple[str, str]:
        """Return (group, file stem) of a spec or variant, checked for use in paths and module names.

        Raises:
            SymflopsError: one of them is not an identifier.
        """
        group, stem = self.specs[name]["group"], f"{name}_{variant}" if variant else name
        for part in (group, stem):
            if not (isinstance(part, str) and part.isidentifier()):
                raise SymflopsError(f"the catalog of the installed package is damaged: {part!r:.60} is not a name")
        return group, stem

    def program(self, name: str, variant: str = "") -> dict[str, Any]:
        """The stored program of a shipped spec, or of one of its variants.

        Raises:
            SymflopsError: there is no such file, or it is damaged.
        """
        group, stem = self.stem(name, variant)
        path = os.path.join(self.folder, "generated", group, f"{stem}.json")
        try:
            found = _program(path, os.stat(path).st_mtime_ns)
        except FileNotFoundError:
            raise SymflopsError(f"{path} is missing: run 'symflops generate {name}'") from None
        except (OSError, ValueError, RecursionError, LookupError, TypeError):
            found = None
        if not isinstance(found, dict):
            raise SymflopsError(f"{path} is damaged: run 'symflops generate {name}'")
        return found

    def beside(self, file: str, field: str) -> dict[str, Any]:
        """Return a field of a JSON file beside the shipped specs; empty for a local catalog, or without the file.

        Raises:
            SymflopsError: the file is damaged.
        """
        path = os.path.join(self.folder, "specs", file)
        try:
            found = _parsed(path, os.stat(path).st_mtime_ns)[field] if self.shipped else {}
        except FileNotFoundError:
            found = {}
        except (OSError, ValueError, RecursionError, LookupError, TypeError):
            raise SymflopsError(f"{path} is damaged: install symflops again") from None
        return dict(found)

    def published(self) -> dict[str, list[dict[str, Any]]]:
        """Return spec -> its published models with measurements, as :meth:`beside` reads them."""
        return {name: models for name, models in self.beside("published.json", "specs").items() if name in self.specs}

    def models(self) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        """Iterate over published models by spec, measured ones first: (spec, name of the model, its row)."""
        measured, checkpoints = self.published(), self.beside("checkpoints.json", "specs")
        for name in self.specs:
            rows = (model for model in measured.get(name, ()) if model["name"].startswith(PUBLISHED))
            found = {model["name"].removeprefix(PUBLISHED): model for model in rows}
            for model in checkpoints.get(name, ()):
                found.setdefault(model["name"], model)
            yield from ((name, short, model) for short, model in found.items())

    def repositories(self) -> dict[str, dict[str, Any]]:
        """Return repository -> its row: the published ``model`` with its sizes, ``parameters``, ``source``, other names."""
        found = self.beside("repositories.json", "repositories")
        return {name: row for name, row in found.items() if row["model"].partition("/")[0] in self.specs}

    def measured(self, name: str, regime: str = "") -> Mapping[str, Any]:
        """Summary of a spec's records, and its identities if they prove the formulas of ``regime``, as it is asked for.

        See :func:`symflops.library.records.verified.catalogued`.
        """
        if self.shipped and not self.changed(name):
            entry = self.specs[name]
            found = self.beside("identities.json", "specs").get(name, ()) if regime in TRACED else ()
            held = [one for one in found if one["grade"] == "identity" and one["spec"] == entry["digest"]]
            return {**entry, "identities": held}
        if self.shipped or not os.path.isfile(self.file(name).root / "verified.json"):
            return self.specs[name]
        from symflops.library.records.verified import catalogued

        return catalogued(self.file(name))

    def module(self, name: str, variant: str = "") -> Any:
        """The generated module of a shipped spec, or of one of its variants."""
        import importlib

        return importlib.import_module(".".join(("symflops.generated", *self.stem(name, variant))))

    def of_structure(self, name: str, config: Mapping[str, Any]) -> tuple[str | None, dict[str, Any]]:
        """Find the variant with the structure of ``config``; returns (variant, stored program).

        The variant "" is the default structure. It is None if no program is stored for the structure. The program is empty if
        the spec is local or was edited since its programs were stored.

        Raises:
            SymflopsError: the config does not fit the model.
        """
        if not self.shipped or self.changed(name):
            return None, {}
        program, entry = self.program(name), self.specs[name]
        config = without_pipeline(config, entry["pipelines"])
        own = class_in(config)
        check_class(name, entry["references"], entry["model_types"], config)
        sizes = attributes(Stored(program), config)
        if own and entry["references"] and own not in map(class_name, program["references"]):
            return None, program
        structures = entry.get("structures", {})
        for variant, structure in structures.items():
            if variant != "default" and has(sizes, structure):
                return variant, self.program(name, variant)
        return ("" if has(sizes, structures.get("default", {})) else None), program

    def changed(self, name: str) -> bool:
        """Whether the file of a shipped spec has another CRC-32 than when its program was stored."""
        group, stem = self.stem(name)
        try:
            with open(os.path.join(self.folder, "specs", group, f"{stem}.yaml"), "rb") as file:
                text = file.read()
        except OSError:
            return False
        import zlib

        return zlib.crc32(text) != int(self.specs[name]["crc32"])

    def __repr__(self) -> str:
        return f"<Catalog of {len(self.specs)} {'shipped' if self.shipped else 'local'} specs>"


def shipped_catalog() -> Catalog:
    """The catalog of shipped specs, in the package or in the checkout around it, whatever local specs there are."""
    inside = os.path.isfile(os.path.join(PACKAGE, "generated", "catalog.json"))
    folder = PACKAGE if inside else os.path.dirname(PACKAGE)
    path = os.path.join(folder, "generated", "catalog.json")
    if not os.path.isfile(path):
        return Catalog(folder, {})
    with open(path, "rb") as file:
        return Catalog(folder, json.loads(file.read())["specs"])


def catalogs() -> list[Catalog]:
    """Return the catalogs of local specs (``./specs``), if any, of new specs of a checkout, if any, and of shipped specs.

    Copies of shipped specs are not local specs, and neither is the package's own folder of specs.

    Raises:
        SymflopsError: there are too many local specs.
    """
    shipped = shipped_catalog()
    root = os.path.realpath(os.path.join(shipped.folder, "specs"))
    files: dict[str, SpecFile] = {}
    own: dict[str, Any] = {}
    if os.path.isdir("specs") and os.path.realpath("specs") != root:
        from symflops.library.local import local_specs

        files, own = local_specs(os.path.realpath("specs"))
    others = ungenerated(root, {**shipped.specs, **own}) if shipped.folder != PACKAGE and os.path.isdir(root) else []
    local = [Catalog("", own, files)] if own else []
    left = {name: entry for name, entry in shipped.specs.items() if name not in own}
    return [*local, *others, Catalog(shipped.folder, left)]


def ungenerated(root: str, known: Mapping[str, Any]) -> list[Catalog]:
    """Return a catalog of the specs of a checkout that have no stored program yet; empty if all are ``known``."""
    stems = {
        entry.name[:-5]
        for group in os.scandir(root) if group.is_dir() and group.name not in OTHERS
        for entry in os.scandir(group.path) if entry.name.endswith(".yaml") and entry.name.count(".") == 1
    }  # fmt: skip
    if stems <= known.keys():
        return []
    from symflops.library.local import local_specs

    files, own = local_specs(root, known=known)
    return [Catalog("", own, files)]


def assumed() -> Catalog:
    """Return the catalog of structures that frameworks assume; specs in it are found only by name."""
    from symflops.library.local import local_specs
    from symflops.read.spec_files import ASSUMED, shipped

    files, own = local_specs(str(shipped("specs").resolve()), ASSUMED)
    return Catalog("", own, files)


def by_name(name: str) -> Catalog:
    """The catalog that has the spec ``name``.

    Raises:
        UnknownModelError: no catalog has it; suggests the nearest names.
    """
    found = catalogs()
    for catalog in found:
        if name in catalog.specs:
            return catalog
    others = assumed()
    if name.removeprefix("assumed/") in others.specs:
        return others
    known = [known for catalog in (*found, others) for known in catalog.specs]
    raise UnknownModelError(f"there is no spec '{name}': {did_you_mean(name, known, 'symflops list shows all')}")


def attributes(program: Stored, config: Mapping[str, Any]) -> dict[str, Any]:
    """Read the sizes of a config: name of the estimator's attribute -> value."""
    sizes = sizes_of(program, config)
    return {row["attribute"]: sizes[row["letter"]] for row in program.document["fields"]}
