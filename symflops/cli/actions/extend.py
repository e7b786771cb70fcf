"""Begins a spec that extends another one for a class that is like it: other classes of its family, defaults, and cases.

The family of a class is what its name has before the ending that it shares with a class of the base (``...ForCausalLM``). Each
class of the base has a sibling in the family, if the package has one with the same config class.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from textwrap import dedent
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from symflops.analysis.headline import base_of
from symflops.api import Model, load
from symflops.cli.actions.new import CASE, LINE, commented, dumped, schema_line, unwritten
from symflops.evaluate.sizes import look_up, sizes_of
from symflops.evaluate.stored import stored_of
from symflops.evaluate.unread import is_id
from symflops.library.lookup import described
from symflops.read.spec_files import SpecFile, find_spec
from symflops.read.yaml_nodes import LANGUAGE
from symflops.support.findings import SymflopsError, did_you_mean
from symflops.verify.cases import LiveCase, cases_of, cases_path
from symflops.verify.classes import class_defaults, class_of, config_class_of, other_defaults, with_value
from symflops.verify.live import build, reference_of


def extend(name: str, folder: Path, base: str, reference: str) -> list[tuple[Path, str]]:
    """Render the files of a spec ``name`` that extends ``base`` for the class ``reference``: spec, cases, missing schema.

    Raises:
        SymflopsError: the name is invalid, a file exists already, or the class or its package does not exist.
        SymflopsError: the class is of another kind than those of the base.
    """
    found = Relative(load(find_spec(base)), reference, folder)
    path = folder / f"{name}.yaml"
    origin = f"as an extension of {found.base.spec.name}"
    document = CommentedMap(language=int(LANGUAGE), name=name, title=f"{found.family}, begun {origin}")
    document["extends"] = found.base.spec.name
    document["reference"] = CommentedMap((one, flow(fields)) for one, fields in found.references.items())
    if kind := found.model_type:
        document["model_type"] = kind
    if found.defaults:
        document["sizes"] = CommentedMap((letter, flow(row)) for letter, row in found.sizes())
    cases = [case_fields(case) for case in found.cases()]
    files = [(path, f"{LINE}{schema_line(folder)}\n{commented(document, name, origin, path)}")]
    files += [(cases_path(path), CASE + dedent(dumped(cases)))] if cases else []
    return unwritten(name, folder, files)


@dataclass(frozen=True)
class Relative:
    """A class that may have the graph of the spec ``base``; ``folder`` is where its own spec will be."""

    base: Model
    reference: str
    folder: Path

    @cached_property
    def config_class(self) -> Any:
        """The config class of the class; None if it is built from plain arguments."""
        return config_class_of(class_of(self.reference, self.folder))

    @cached_property
    def named_by(self) -> str:
        """The beginning that the names of the base's classes and of their config class have in common, if any.

        Raises:
            SymflopsError: the base names no class.
        """
        references = self.base.spec.references
        if not references:
            raise SymflopsError(f"'{self.base.spec.name}' names no class: begin a copy with --like {self.base.spec.name}")
        first = config_class_of(class_of(references[0], self.base.file.path.parent))
        return beginning([*map(short, references), stem(first)])

    @cached_property
    def endings(self) -> dict[str, str]:
        """Map the endings of the names of the base's classes to these classes."""
        classes = {short(one): one for one in self.base.spec.references}
        family = self.named_by or beginning([*classes])
        return {one.removeprefix(family): reference for one, reference in classes.items()}

    @cached_property
    def family(self) -> str:
        """The beginning of the names of the class and its siblings.

        Raises:
            SymflopsError: the class is of another kind than those of the base.
        """
        name, own = short(self.reference), stem(self.config_class)
        ends = (name.removesuffix(ending) for ending in sorted(self.endings, key=len, reverse=True) if name.endswith(ending))
        found = next((one for one in ends if one and (not self.named_by or own.startswith(one))), None)
        if found is None:
            known = ", ".join(f"{own or '...'}{ending}" for ending in self.endings)
            hint = did_you_mean(name, (f"{own}{ending}" for ending in self.endings), f"such a class is called {known}")
            raise SymflopsError(f"'{self.reference}' is of another kind than the classes of '{self.base.spec.name}': {hint}")
        return found

    @cached_property
    def siblings(self) -> dict[str, str]:
        """Map each class of the base to its sibling in the family, those that exist."""
        place = self.reference.removesuffix(short(self.reference))
        found = {}
        for ending, known in self.endings.items():
            with suppress(SymflopsError):
                sibling = f"{place}{self.family}{ending}"
                if config_class_of(class_of(sibling, self.folder)) is self.config_class:
                    found[known] = sibling
        return found

    @property
    def references(self) -> dict[str, Any]:
        """Map the class and its siblings to what differs in them, which is what differs in the class of the base."""
        given = plain(self.base.file).get("reference")
        fields = given if isinstance(given, Mapping) else {}
        return {sibling: self.renamed(fields.get(known) or {}, known, sibling) for known, sibling in self.siblings.items()}

    def renamed(self, fields: Mapping[str, Any], known: str, sibling: str) -> dict[str, Any]:
        """Return the fields of the base's class ``known`` with the paths of its ``sibling``.

        They differ if the two classes have the bare model under different attributes (``base_model_prefix``).
        """
        classes = (class_of(known, self.base.file.path.parent), class_of(sibling, self.folder))
        theirs, own = (getattr(one, "base_model_prefix", "") for one in classes)
        rename = dict(fields.get("rename") or {})
        if theirs and own and theirs != own:
            rename = rename if theirs in rename.values() else {theirs: own, **rename}
            rename = {old: own if new == theirs else new for old, new in rename.items()}
        rename = {old: new for old, new in rename.items() if old != new}
        return {key: value for key, value in fields.items() if key != "rename"} | ({"rename": rename} if rename else {})

    @property
    def model_type(self) -> str:
        """The ``model_type`` of the config class, unless configs find another spec by it; else empty."""
        found = getattr(self.config_class, "model_type", None)
        return found if isinstance(found, str) and found not in described("model_types") else ""

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Map the letters of sizes to the class's defaults, where these differ from the base's."""
        return other_defaults(self.base, self.reference, self.folder)

    def sizes(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the rows of the sizes that have other defaults: those of the base, with the default replaced."""
        files = [self.base.file]
        while (parent := base_of(files[-1])) is not None:
            files.append(parent)
        rows: dict[str, Any] = {}
        for document in map(plain, reversed(files)):
            rows.update(document.get("sizes") or {})
        for letter, value in self.defaults.items():
            yield letter, {**rows[letter], "default": repr(value) if isinstance(value, str) else value}

    def cases(self) -> Iterator[LiveCase]:
        """Yield the cases of the base for the siblings of its classes, in the fields that these have."""
        program = stored_of(replace(self.base.program(["forward"], ["symflops"], {}), census=None))
        keys = {field["letter"]: field["keys"] for field in program.document["fields"]}
        numbers = [letter for letter, value in self.defaults.items() if isinstance(value, int) and not isinstance(value, bool)]
        for case in cases_of(self.base.file):
            known = reference_of(self.base, case)
            if known not in self.siblings:
                continue
            sibling = self.siblings[known]
            own, theirs = class_defaults(sibling, self.folder), class_defaults(known, self.base.file.path.parent)
            config = {key: value for key, value in case.config.items() if key in own or key not in theirs}
            with suppress(SymflopsError):  # numbers that the case leaves to the base's defaults stay small
                sizes = sizes_of(program, case.config)
                for letter in numbers:
                    if look_up(config, keys[letter]) is None and look_up(own, keys[letter]) is not None:
                        config = with_value(config, keys[letter][0], sizes[letter])
            reference = "" if sibling == next(iter(self.siblings.values())) else sibling
            yield self.buildable(replace(case, config=config, reference=reference), sibling, own)

    def buildable(self, case: LiveCase, reference: str, defaults: Mapping[str, Any]) -> LiveCase:
        """Return the case with small token ids, as many as the class needs to be built; unchanged if that does not help."""
        ids = {key: 0 for key, value in defaults.items() if is_id(key) and isinstance(value, int) and key not in case.config}
        for more in chain([{}], ({key: value} for key, value in ids.items()), [ids]):
            with suppress(SymflopsError):
                tried = replace(case, config={**case.config, **more})
                build(reference, tried, self.folder)
                return tried
        return case


def short(reference: str) -> str:
    """Return the name of a class without its package or module."""
    return reference.replace(":", ".").rpartition(".")[2]


def beginning(names: Sequence[str]) -> str:
    """Return the longest beginning, in whole words, that all ``names`` of classes have in common.

    >>> beginning(["LlamaModel", "LlamaForCausalLM", "Llama"]), beginning(["Stacked", "Small"])
    ('Llama', '')
    """
    shared = (names[0][:end] for end in range(len(names[0]), 0, -1))
    return next((one for one in shared if all(re.match(rf"{re.escape(one)}(?![a-z\d])", name) for name in names)), "")


def stem(config_class: Any) -> str:
    """Return the name of a config class without ``Config``; empty for None."""
    return str(getattr(config_class, "__name__", "")).removesuffix("Config")


def plain(file: SpecFile) -> dict[str, Any]:
    """Read the YAML of a spec, without the spec that it extends."""
    found: dict[str, Any] = YAML(typ="safe", pure=True).load(file.source().text)
    return found


def flow(fields: Mapping[str, Any]) -> CommentedMap:
    """Convert a mapping to one that YAML prints on one line."""
    found = CommentedMap(fields)
    found.fa.set_flow_style()
    return found


def case_fields(case: LiveCase) -> CommentedMap:
    """Convert a case to the entry of a case file."""
    found = CommentedMap({"reference": case.reference} if case.reference else {})
    for key in ("config", "batch", "arguments", "options"):
        value = getattr(case, key)
        found.update({key: flow(value)} if value or key in ("config", "batch") else {})
    return CommentedMap({**found, **({"device": case.device} if case.device != "meta" else {})})
