"""The pipelines that diffusers registers, the models that each holds, and which of their names resolve to a spec.

Read from the source of the installed diffusers: annotations of each pipeline's ``__init__``, and the components that blocks of a
modular pipeline declare. Nothing of diffusers is imported.

    python -m tests.verify.pipelines            # a line per pipeline that holds a model with a spec
    python -m tests.verify.pipelines write      # completes the lists 'pipelines' of the specs
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from symflops.evaluate.classes import class_name
from symflops.library.catalog import catalogs
from symflops.read.spec_files import roots, specs_in

CLASS = re.compile(r"^class (\w+)(?:\(([^)]*)\))?:\n", re.MULTILINE)
INIT = re.compile(r"^    def __init__\(.*?\)(?: -> None)?:\n", re.MULTILINE | re.DOTALL)
DECLARED = re.compile(r'ComponentSpec\(\s*"(\w+)",\s*(\w+)')
DOCUMENTED = re.compile(r"(\w+)\s+\(`(\w+)`\)")
MODEL = re.compile(r"^(?:\w+Model|\w+Transformer\w*|\w*UNet\w*|\w+Adapter)$")
MAIN = ("transformer", "unet")
BLOCKS = re.compile(r'default_blocks_name = "(\w+)"')
LISTED = re.compile(r"^pipelines: \[.*?\]\n", re.MULTILINE | re.DOTALL)
WIDTH = 140

Parts = dict[str, tuple[str, ...]]
"""The classes that a component may have, by component."""

OF_OTHERS = {
    # VeRL-Omni a1139baf (rollouts beside their training adapters), and Megatron-Bridge 067f987d
    "flux": ("FluxInferencePipeline",),
    "ltx2_video": ("LTX23Pipeline", "LTX23PipelineWithLogProb"),
    "qwen_image": (
        "QwenImagePipelineWithDualLogProb", "QwenImageMixGRPOPipelineWithLogProb", "QwenImageDiffusionNFTPipeline",
        "QwenImageDPOPipeline", "QwenImageEditPlusPipelineWithLogProb",
    ),
    "wan": ("Wan22Pipeline", "Wan22DanceGRPOPipelineWithLogProb", "WanFlowMatchingPipeline", "FlowInferencePipeline"),
}  # fmt: skip
"""Pipelines that the sources of VeRL-Omni and Megatron-Bridge name for a model with a spec."""


def source() -> Path:
    """The folder of the installed diffusers."""
    found = find_spec("diffusers")
    assert found and found.origin
    return Path(found.origin).parent


@lru_cache(maxsize=1)
def registered() -> dict[str, Parts]:
    """The components of each pipeline that diffusers registers by name."""
    names = set(re.findall(r'"(\w*Pipeline\w*)"', (source() / "__init__.py").read_text("utf-8")))
    known = {**dict(annotated()), **dict(modular())}
    return {name: known[name] for name in sorted(names & known.keys())}


def annotated() -> Iterator[tuple[str, Parts]]:
    """The components of each pipeline with annotations, its own or inherited."""
    own: dict[str, Parts] = {}
    bases: dict[str, list[str]] = {}
    for path in sorted((source() / "pipelines").rglob("*.py")):
        text = path.read_text("utf-8")
        found = list(CLASS.finditer(text)) if "Pipeline" in text else []
        ends = [*(other.start() for other in found[1:]), len(text)][: len(found)]
        for one, end in zip(found, ends, strict=True):
            bases[one[1]] = re.findall(r"\w+", one[2] or "")
            init = INIT.search(text, one.end(), end)
            if init:
                own[one[1]] = dict(arguments(init[0]))
    for name in bases:
        line = [name]
        while line[-1] not in own and any(base in bases for base in bases[line[-1]]):
            line.append(next(base for base in bases[line[-1]] if base in bases))
        yield name, own.get(line[-1], {})


def arguments(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The arguments of a function, each with the names in its annotation."""
    (function,) = ast.parse("".join(line.removeprefix("    ") for line in text.splitlines(keepends=True)) + "    ...").body
    assert isinstance(function, ast.FunctionDef)
    for argument in (*function.args.args, *function.args.kwonlyargs):
        names = [node.id for node in ast.walk(argument.annotation) if isinstance(node, ast.Name)] if argument.annotation else []
        yield argument.arg, tuple(dict.fromkeys(names))


def modular() -> Iterator[tuple[str, Parts]]:
    """The components that the blocks of each modular pipeline document, else those that its folder declares."""
    for folder in sorted(path for path in (source() / "modular_pipelines").iterdir() if path.is_dir()):
        text = "\n".join(path.read_text("utf-8") for path in sorted(folder.glob("*.py")))
        spans = {one[1]: text[one.end() :].partition("\nclass ")[0] for one in CLASS.finditer(text)}
        declared = dict(DECLARED.findall(text))
        for name, body in spans.items():
            blocks = BLOCKS.search(body)
            if blocks:
                parts = dict(DOCUMENTED.findall(spans.get(blocks[1], "").partition('"""\n\n')[0])) or declared
                if "transformer_2" in parts:  # both are of one class, which a block that reads their config need not name
                    parts["transformer"] = parts["transformer_2"]
                yield name, {part: (kind,) for part, kind in parts.items()}


@lru_cache(maxsize=1)
def described() -> dict[str, str]:
    """The specs of the denoising models of diffusers, by class."""
    return {
        class_name(reference): name
        for name, entry in catalogs()[-1].specs.items()
        for reference in entry["references"]
        if reference.startswith("diffusers.") and "Autoencoder" not in reference
    }


def held(parts: Parts) -> set[str]:
    """The specs of the models that a pipeline holds; none if what denoises may be of a class without a spec."""
    specs, found = described(), set()
    for part, kinds in parts.items():
        models = [kind for kind in kinds if MODEL.match(kind) and "Multi" not in kind]
        if part in MAIN and not all(kind in specs for kind in models):
            return set()
        found |= {specs[kind] for kind in models if kind in specs}
    return found


def wanted() -> dict[str, list[str]]:
    """The pipelines that hold the model of each spec, those of diffusers and of others."""
    rows = {name: held(parts) for name, parts in registered().items()}
    specs = sorted({*OF_OTHERS, *(spec for row in rows.values() for spec in row)})
    return {spec: [*(name for name, row in rows.items() if spec in row), *OF_OTHERS.get(spec, ())] for spec in specs}


def complete() -> None:
    """Add to the list of each spec what is missing, in the order of names."""
    files = {file.name: file.path for file in specs_in(roots()[-1])}
    listed = {name: entry["pipelines"] for name, entry in catalogs()[-1].specs.items()}
    for spec, names in wanted().items():
        every = list(dict.fromkeys((*listed[spec], *names)))
        if every != listed[spec]:
            text = files[spec].read_text("utf-8")
            line = folded(every)
            new = LISTED.sub(lambda _, line=line: line, text, count=1)
            if new == text:
                new = re.sub(r"^(reference: .*\n)", lambda found, line=line: found[1] + line, text, count=1, flags=re.MULTILINE)
            files[spec].write_text(new, "utf-8")


def folded(names: list[str]) -> str:
    """The field of a spec, with lines that fit."""
    lines = ["pipelines: ["]
    for name in names:
        word = name + (", " if name != names[-1] else "]")
        if len(lines[-1] + word.rstrip()) > WIDTH:
            lines.append("  ")
        lines[-1] += word
    return "".join(f"{line.rstrip()}\n" for line in lines)


def main(words: list[str]) -> int:
    """Print which names resolve, or complete the specs."""
    if words == ["write"]:
        complete()
        return 0
    from symflops.library.lookup import UnknownModelError, by_config

    for name, parts in registered().items():
        try:
            told = by_config({"_class_name": name})[1]
        except UnknownModelError:
            told = "-"
        if told != "-" or held(parts):
            print(f"{name:<52} {told:<20} {', '.join(sorted(held(parts)))}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
