"""Writes the pages about conventions: conformance with other frameworks, differences with reasons, figures of profilers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from symflops.api import Model, convention_of, load
from symflops.evaluate.units import NAMES, percent
from symflops.ir.regime import Regime
from symflops.read.spec_files import PACKAGE
from symflops.support.reading import read_json
from symflops.verify.differences import Comparison, Difference
from symflops.verify.peers import Conformance, shares

TABLES = PACKAGE / "conventions" / "tables"
BASE = "symflops"


def conformance_page(found: Sequence[Conformance]) -> str:
    """Render the conformance page: share of equal figures by framework, and why the others differ."""
    lines = [
        "# Other frameworks' figures",
        "",
        "Each record is what a framework's own code returned; derived is the figure of the spec under the convention named",
        "after the framework. Whole numbers are equal exactly, others within a relative error of 1e-12.",
        "",
        "| framework | equal | records | share |",
        "|---|---:|---:|---:|",
    ]
    counts = shares(found)
    lines += [
        f"| {name} | {equal} | {total} | {100 * equal / total:.1f} % |" for name, (equal, total) in sorted(counts.items())
    ]
    lines += ["", "## What does not come out", ""]
    reasons: dict[tuple[str, str], int] = {}
    for one in found:
        if not one.equal:
            reason = one.explanation.partition("; derived is")[0].partition("derived is")[0].strip(" ;.") or "not explained"
            reasons[one.system, reason] = reasons.get((one.system, reason), 0) + 1
    lines += [
        f"- {system}, {count} record{'s' if count > 1 else ''}: {reason}" for (system, reason), count in sorted(reasons.items())
    ]
    return "\n".join(lines) + "\n"


def models() -> list[dict[str, Any]]:
    """Read the models of the differences page: each has a spec, a config, a batch and conventions."""
    found: list[dict[str, Any]] = read_json(TABLES / "models.json")
    return found


def differences_page() -> str:
    """Render the differences page: ratios of conventions on some models, linked to explanations."""
    shown = models()
    results = {model["title"]: dict(compared(model)) for model in shown}
    names = list(dict.fromkeys(name for model in shown for name in model["conventions"]))
    lines = [
        "# How much do they differ, and why",
        "",
        "FLOPs of one training step, both passes, in multiples of what is useful (`symflops`); every ratio leads to the causes",
        "of the difference, each with its share.",
        "",
        "| convention | " + " | ".join(model["title"] for model in shown) + " |",
        "|---|" + "---:|" * len(shown),
    ]
    for name in names:
        cells = [cell(results[model["title"]].get(name), model["title"], name) for model in shown]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n" + "".join(section(model, results[model["title"]]) for model in shown)


def section(model: dict[str, Any], results: Mapping[str, tuple[float, int, Difference]]) -> str:
    """Render the section of one model: each convention's total, and why it differs from the base total.

    ``results`` maps conventions to the triples of :func:`compared`.
    """
    lines = ["", f"## {model['title']}", "", f"Batch `{json.dumps(model['batch'])}`."]
    for name, (_, total, difference) in results.items():
        lines += ["", f'<a id="{anchor(model["title"], name)}"></a>', f"**{name}**: {total:,} FLOPs", ""]
        lines += [f"- {step.flops:+,}, {percent(step.share)}: {step.sentence(BASE, name)}" for step in difference.steps] or [
            "- the same"
        ]
    return "\n".join(lines) + "\n"


def compared(entry: dict[str, Any]) -> Iterator[tuple[str, tuple[float, int, Difference]]]:
    """Yield (convention, (ratio to the base total, total FLOPs, difference)) for a model's conventions."""
    comparison = Comparison(load(entry["spec"]), entry["config"], entry["batch"], Regime("full"))
    base = comparison.total(convention_of(BASE))
    for name in entry["conventions"]:
        total = comparison.total(convention_of(name).of(comparison.model.spec.called))
        yield name, (total / base, total, comparison.difference(BASE, name))


def cell(found: tuple[float, int, Difference] | None, title: str, name: str) -> str:
    """Render a table cell: the ratio in ``found``, linked to its explanation; ``-`` if ``found`` is None."""
    return "-" if found is None else f"[{found[0]:.4f}](#{anchor(title, name)})"


def anchor(title: str, name: str) -> str:
    """Build the HTML anchor of the explanation of a convention for one model."""
    return "".join(char if char.isalnum() else "-" for char in f"{title}-{name}".lower())


def tools_page() -> str:
    """Render the profilers page: what profilers print for one model, and how the missed FLOPs grow."""
    data = read_json(TABLES / "tools.json")
    model = load(data["spec"])
    whole = forward(model, data, "torch", data["length"])
    lines = [
        "# Which tool says what",
        "",
        f"The forward pass of {data['title']} on one sequence of {data['length']:,} tokens is {whole:,} FLOPs with all pairs.",
        "",
        "| tool | prints | derived | of the whole | why |",
        "|---|---|---:|---:|---|",
    ]
    for tool in data["tools"]:
        lines.append("| " + " | ".join(tool_cells(model, data, tool, whole)) + " |")
    comparison = Comparison(model, data["config"], {data["stream"]: [data["length"]]}, Regime("forward", train=()))
    (missed,) = [step for step in comparison.difference("torch", "linears").steps if "attention" in step.words]
    (moment, coefficient), *_ = missed.terms
    lines += ["", f"What is missing without attention is `{coefficient}` FLOPs {moment}, so it grows with the length:", ""]
    lines += [
        "| tokens | " + " | ".join(f"{length:,}" for length in data["lengths"]) + " |",
        "|---|" + "---:|" * len(data["lengths"]),
    ]
    parts = []
    for length in data["lengths"]:
        seen, every = (forward(model, data, name, length) for name in ("linears", "torch"))
        parts.append(f"-{100 * (every - seen) / every:.1f} %")
    lines.append("| missed | " + " | ".join(parts) + " |")
    return "\n".join(lines) + "\n"


def tool_cells(model: Model, data: dict[str, Any], tool: dict[str, Any], whole: int) -> list[str]:
    """Render the table cells of one profiler; ``whole`` are the true FLOPs of the forward pass."""
    why = f"{tool['note']} ([issue]({tool['link']}))" if "link" in tool else tool["note"]
    if tool["convention"] is None:
        return [tool["tool"], tool["printed"], "-", "-", why]
    convention = convention_of(tool["convention"])
    convention = replace(convention, unit=tool.get("unit", convention.unit), unseen=convention.unseen)
    value = forward(model, data, convention, data["length"])
    unit = NAMES[convention.unit]
    return [tool["tool"], tool["printed"], f"{value:.5e} {unit}", f"{100 * (value - whole) / whole:+.2f} %", why]


def forward(model: Model, data: dict[str, Any], convention: Any, length: int) -> int:
    """FLOPs of the forward pass on one sequence of ``length`` tokens."""
    estimator = model.estimator(data["config"], "forward", convention)
    return estimator.forward(estimator.moments(**{data["stream"]: [length]}))
