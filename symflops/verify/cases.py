"""Case files: the configurations and batches for live verification of a spec.

``llama.cases.yaml`` next to ``llama.yaml`` is a list of ``{config: ..., batch: ...}``. A case may also have ``arguments``,
``options``, ``reference`` and ``device``.
"""

from __future__ import annotations

from collections.abc import Mapping as Mapped
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from symflops.read.spec_files import SpecFile, read_source
from symflops.read.yaml_nodes import Mapping, Node, Sequence, python_value, read_yaml
from symflops.support.findings import Reporter, Source, Span, did_you_mean

FIELDS = ("config", "batch", "arguments", "options", "reference", "device")
DEVICES = ("meta", "cpu")


@dataclass(frozen=True, slots=True)
class LiveCase:
    """One run of a spec's real model, as its case file describes it.

    ``config`` are the arguments of the class or of its config class, ``batch`` the lengths per stream, ``arguments`` further
    arguments of the forward pass, ``options`` further arguments of the class (``attn_implementation``). ``reference`` picks
    one of several classes. ``device`` is ``cpu`` for a model whose forward pass reads values.
    """

    config: Mapped[str, Any]
    batch: Mapped[str, Any]
    arguments: Mapped[str, Any] = field(default_factory=dict)
    options: Mapped[str, Any] = field(default_factory=dict)
    reference: str = ""
    device: str = "meta"
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def label(self) -> str:
        """File and line of the case, for messages."""
        return f"{self.span.source.path}:{self.span.line}" if self.span else "a case"


def cases_path(spec: Path) -> Path:
    """The path of the case file that belongs to the spec file ``spec``."""
    return spec.with_name(f"{spec.stem}.cases.yaml")


def cases_of(file: SpecFile) -> tuple[LiveCase, ...]:
    """Read the cases of a spec; empty if it has no case file.

    Raises:
        SpecError: as :func:`read_cases`.
    """
    path = cases_path(file.path)
    return read_cases(read_source(path, file.label.removesuffix(".yaml") + ".cases.yaml")) if path.is_file() else ()


def read_cases(source: Source) -> tuple[LiveCase, ...]:
    """Parse the cases of a file.

    Raises:
        SpecError: the file is no list of mappings, or a field is unknown, missing or of the wrong type.
    """
    report = Reporter()
    document = read_yaml(source)
    if not isinstance(document, Sequence):
        report.error("bad-shape", "a case file is a list of cases", document.span, "start each case with '- '")
        report.check()
        return ()
    found = [_case(item, report) for item in document.items]
    report.check()
    return tuple(case for case in found if case is not None)


def _case(node: Node, report: Reporter) -> LiveCase | None:
    if not isinstance(node, Mapping):
        report.error("bad-shape", "a case is a mapping", node.span, "write {config: {...}, batch: {...}}")
        return None
    known: dict[str, Any] = {}
    for key, value in node.entries:
        if key.text not in FIELDS:
            hint = did_you_mean(key.text, FIELDS, f"a case has {', '.join(FIELDS)}")
            report.error("unknown-field", f"a case has no field '{key.text}'", key.span, hint)
        elif key.text == "reference":
            known["reference"] = _reference(value, report)
        elif key.text == "device":
            known["device"] = _device(value, report)
        elif isinstance(value, Mapping):
            known[key.text] = python_value(value, report)
            if key.text != "config" and not all(isinstance(name, str) for name in known[key.text]):
                report.error(
                    "bad-shape", f"a name in '{key.text}' is a number", value.span, "write the name of a stream or argument"
                )
        else:
            report.error("bad-shape", f"'{key.text}' must be a mapping", value.span, "write {name: value}")
            known[key.text] = {}
    for name in ("config", "batch"):
        if name not in known:
            report.error("missing-field", f"a case needs '{name}'", node.span, f"write '{name}: {{}}' where it is empty")
            known[name] = {}
    return LiveCase(**known, span=node.span)


def _reference(node: Node, report: Reporter) -> str:
    value = python_value(node, report)
    if not isinstance(value, str):
        report.error("bad-shape", "'reference' must be the name of a class", node.span, "package.Class")
        return ""
    return value


def _device(node: Node, report: Reporter) -> str:
    value = python_value(node, report)
    if value not in DEVICES:
        report.error("unknown-word", f"a case runs on {' or '.join(DEVICES)}", node.span)
        return DEVICES[0]
    return str(value)
