"""The operator reference as Markdown: every kind with its fields, and the work derived from an example."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from symflops.api import Model, load
from symflops.ir.graph import Work
from symflops.ir.regime import Regime
from symflops.ops.kind import COMMON, Field, Form, Kind
from symflops.ops.table import ALL

EXAMPLES = Path(__file__).with_name("examples.yaml")
SAVES = {
    "operands": "what it reads",
    "factors": "each factor whose partner needs a gradient",
    "result": "its result",
    "nothing": "nothing",
}
SIDES = {True: "weight gradient", False: "input gradient"}


def operators() -> str:
    """All operators, in the order of the table.

    Raises:
        KeyError: a kind has no example, or an example no kind.
    """
    examples = YAML(typ="safe").load(EXAMPLES.read_text("utf-8"))
    unknown = set(examples) ^ {kind.name for kind in ALL}
    if unknown:
        raise KeyError(f"examples.yaml and the operator table differ in {sorted(unknown)}")
    return "\n\n".join(section(kind, examples[kind.name]) for kind in ALL)


def common() -> str:
    """The fields that every operator has."""
    return table(COMMON)


def forms() -> str:
    """How the texts of fields are read."""
    rows = (f"| {form.name.lower()} | {form.value} |" for form in Form)
    return "\n".join(["| Form | What stands there |", "|:--|:--|", *rows])


def section(kind: Kind, example: Mapping[str, Any]) -> str:
    """One operator: its fields, an example, and the parameters and work that are derived from it."""
    model = load_example(example)
    parts = [
        f"## `{kind.name}`",
        sentence(kind.doc),
        "Fields besides the common ones:" if own(kind) else "It has only the common fields.",
    ]
    if own(kind):
        parts.append(table(own(kind)))
    parts.append("```yaml\n" + "\n".join(f"- {entry}" for entry in example["graph"]) + "\n```")
    parts.append("\n".join([*parameters(model, kind), *work(model, kind), f"- The backward pass keeps {SAVES[kind.saves]}."]))
    return "\n\n".join(parts)


def own(kind: Kind) -> tuple[Field, ...]:
    """The fields that a kind declares besides the common ones."""
    return tuple(field for field in kind.fields if field not in COMMON)


def table(fields: tuple[Field, ...]) -> str:
    """Fields as a table."""
    rows = []
    for field in fields:
        words = f" ({', '.join(f'`{word}`' for word in field.words)})" if 0 < len(field.words) <= 12 else ""
        default = ", required" if field.required else f", `{field.default}`" if field.default is not None else ""
        rows.append(f"| `{field.name}` | {field.form.name.lower()}{default} | {escaped(field.doc)}{words} |")
    return "\n".join(["| Field | Form, default | Meaning |", "|:--|:--|:--|", *rows])


def load_example(example: Mapping[str, Any]) -> Model:
    """An example as a spec of its own; its inputs need gradients, so that every gradient is shown."""
    streams = example.get("streams", {"text": ["x"], "sample": []})
    axes = {axis for listed in streams.values() if not isinstance(listed, str) for axis in listed}
    texts = [str(width) for _, width in example["inputs"].values() if width is not None]
    made = {word for entry in example["graph"] for word in re.findall(r"to: \[?([\w, ]+)", entry)}
    bound = {name for text in made for name in text.replace(" ", "").split(",")} | set(example["inputs"])
    letters = set(re.findall(r"\b[A-Za-z]\b", " ".join([*texts, *example["graph"]]))) - axes - bound
    last = re.findall(r"to: \[?(\w+)", example["graph"][-1]) or re.findall(r"- (\w+)", example["graph"][-1])
    sizes = [f"  {letter}: size_{letter}" for letter in sorted(letters)] or ["  {}"]
    lines = ["language: 2", "name: example", "sizes:", *sizes, "streams:"]
    written_out = ((name, axes if isinstance(axes, str) else f"[{', '.join(axes)}]") for name, axes in streams.items())
    lines += [f"  {name}: {text}" for name, text in written_out] + ["inputs:"]
    for name, (stream, width) in example["inputs"].items():
        lines.append(f"  {name}: {{stream: {stream}{'' if width is None else f', width: {width!s}'}}}")
    lines += ["graph:", *(f"  - {entry}" for entry in example["graph"]), f"outputs: [{last[0]}]", ""]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "example.yaml"
        path.write_text("\n".join(lines), "utf-8")
        return load(path)


def parameters(model: Model, kind: Kind) -> Iterator[str]:
    """The parameters that the example's operators of this kind declare."""
    found = [item for operator in model.graph({}).operators() if operator.kind == kind.name for item in operator.parameters]
    for item in found:
        shape = ", ".join(str(size) for size in item.shape)
        yield f"- Parameter `{item.path}` of shape `({shape})`."
    if not found:
        yield "- No parameters."


def work(model: Model, kind: Kind) -> Iterator[str]:
    """The contractions of the example, forward and backward, derived with gradients for everything."""
    inputs = tuple(item.name.text for item in model.spec.inputs if item.width is not None)
    derivation = model.derivation(Regime("example", input_grad=inputs), "torch", {})
    found = [item for item in derivation.work if item.operator.kind == kind.name]
    for item in found:
        yield from described(item)
    if not found:
        yield "- No contraction: it costs nothing."


def described(item: Work) -> Iterator[str]:
    """One contraction and its gradients."""
    contraction, extent = item.contraction, item.contraction.extent
    useful = (
        "" if extent.useful == extent.executed else f", of which `{written(extent.useful)}` are useful (mask: {extent.mask})"
    )
    unseen = "" if contraction.seen else " PyTorch's counter does not see it."
    times = {"once": "in a batch", "samples": "in a sample"}.get(contraction.items, f"in an item of `{contraction.items}`")
    size, count = written(contraction.size), written(extent.executed)
    yield f"- Forward, `{contraction.name}`: `{size}` multiply-adds, `{count}` times {times}{useful}.{unseen}"
    for gradient, operand in zip(item.gradients, contraction.operands, strict=True):
        if gradient.count != 0:
            yield f"- Backward, {SIDES[operand.is_weight]} of `{gradient.operand}`: as much again."


def written(expression: Any) -> str:
    """An expression in the syntax of specs, multiplied out if that is shorter."""
    texts = [str(one) for one in (expression, expression.expand())]
    return min((as_spec(text) for text in texts), key=len)


def as_spec(text: str) -> str:
    """An expression's text with the functions of specs."""
    text = re.sub(r"Modulo\((\w+), (\w+)\)", r"(\1 % \2)", re.sub(r"FloorDiv\((\w+), (\w+)\)", r"(\1//\2)", text))
    for name, function in (("Excess(", "max(0, "), ("AtLeast(", "max("), ("Least(", "min(")):
        text = text.replace(name, function)
    return text


def sentence(text: str) -> str:
    """A line of documentation as a sentence."""
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def escaped(text: str) -> str:
    """Text in the cell of a table."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")
